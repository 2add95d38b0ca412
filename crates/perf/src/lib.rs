//! `leveret perf`: how fast, how late, and since when.
//!
//! `command/` reads the command line into [`settings::Settings`], `load/` runs them, `output/` shows
//! what happens, [`result`] is what stays. `scenarios/` are loads with a name; `report/`,
//! `changepoint/` and comparisons work on results alone.

pub mod changepoint;
pub mod clock;
mod command;
mod error;
mod load;
mod output;
mod process;
pub mod result;
pub mod settings;
mod sync;

pub use error::Error;
/// x
pub fn try_out(args: Vec<String>) {
    let mut s = settings::Settings::default();
    s.brokers = vec![args[0].parse().expect("uri")];
    let mut i = 1;
    let mut pid = None;
    let mut steady = false;
    while i < args.len() {
        let v = args.get(i + 1).map(String::as_str).unwrap_or("");
        match args[i].as_str() {
            "-s" => s.payload.body = settings::Body::Sized(v.parse().unwrap()),
            "-x" => s.producers.count = v.parse().unwrap(),
            "-X" => s.producers.channels = v.parse().unwrap(),
            "-y" => s.consumers.count = v.parse().unwrap(),
            "-Y" => s.consumers.channels = v.parse().unwrap(),
            "-c" => s.producers.confirm = Some(v.parse().unwrap()),
            "-m" => s.producers.transaction = Some(v.parse().unwrap()),
            "-n" => s.consumers.transaction = Some(v.parse().unwrap()),
            "-z" => s.limits.time = Some(std::time::Duration::from_secs(v.parse().unwrap())),
            "-r" => s.producers.rate = settings::Rate::Fixed(v.parse().unwrap()),
            "-R" => s.consumers.rate = Some(v.parse().unwrap()),
            "-L" => s.consumers.latency = vec![(std::time::Duration::from_micros(v.parse().unwrap()), std::time::Duration::ZERO)],
            "-C" => s.producers.limit = Some(v.parse().unwrap()),
            "-D" => s.consumers.limit = Some(v.parse().unwrap()),
            "-q" => s.consumers.qos = v.parse().unwrap(),
            "-A" => s.consumers.acks = settings::Acks::Every(v.parse().unwrap()),
            "-u" => s.topology.queues = settings::Queues::Shared(vec![v.into()]),
            "-qp" => s.topology.queues = settings::Queues::InTurn((0..v.parse().unwrap()).map(|n| format!("pq-{n}")).collect()),
            "-t" => { s.topology.exchange = v.into(); s.topology.exchange_type = v.into() }
            "--pid" => pid = process::Process::of(v.parse().unwrap()),
            "--threads" => s.threads = v.parse().unwrap(),
            "-a" => { s.consumers.acks = settings::Acks::Auto; i -= 1 }
            "-po" => { s.consumers.polling = Some(std::time::Duration::ZERO); i -= 1 }
            "-f" => { s.producers.persistent = true; s.topology.durable = true; i -= 1 }
            "--mandatory" => { s.producers.mandatory = true; i -= 1 }
            "-sb" => { s.topology.skip_binding = true; i -= 1 }
            "-p" => { s.topology.predeclared = true; i -= 1 }
            "--verify" => { s.verify = true; i -= 1 }
            "--steady" => { steady = true; i -= 1 }
            "--ms" => { s.use_millis = true; i -= 1 }
            "--plain" => { s.output.live = false; i -= 1 }
            other => panic!("{other}"),
        }
        i += 2;
    }
    let mut output = output::Output::new(&s).expect("output");
    let run = load::run(&s, load::Options { process: pid, steady }, &mut output);
    output.end(&run);
}
