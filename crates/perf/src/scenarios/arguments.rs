//! What all scenarios can be told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::Error;
use crate::process::Process;

/// A broker to load.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it is, and as whom.
    pub options: client::Options,
    /// Its process, if it is on this machine.
    pub process: Option<Process>,
    /// Figures are those of the steady state.
    pub steady: bool,
}

impl Target {
    /// The broker of a URI, and its process: that of `pid`, or the one that listens there.
    pub fn new(uri: &str, pid: Option<u32>) -> Result<Target, Error> {
        let options: client::Options = uri.parse()?;
        Ok(Target {
            process: find_process(&options, pid)?,
            options,
            steady: false,
        })
    }
}

/// The process to watch: the one that is named, or one found by the port.
pub fn find_process(options: &client::Options, pid: Option<u32>) -> Result<Option<Process>, Error> {
    match pid {
        Some(pid) => match Process::of(pid) {
            Some(process) => Ok(Some(process)),
            None => Err(Error::Usage(format!(
                "--broker-pid {pid}: there is no such process on this machine"
            ))),
        },
        None if is_local(&options.host) => Ok(Process::listening_on(options.port)),
        None => Ok(None),
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Options of all scenarios.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// The broker.
    #[arg(
        short = 'h',
        long,
        value_name = "URI",
        default_value = "amqp://localhost"
    )]
    uri: String,
    /// A second broker: each case runs on both in turn.
    #[arg(long, value_name = "URI")]
    against: Option<String>,
    /// How often each case runs; tables show medians [default: 1, with --against 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// The broker's process on this machine; found by its port if left out.
    #[arg(long, value_name = "PID")]
    broker_pid: Option<u32>,
    /// The second broker's process.
    #[arg(long, value_name = "PID")]
    against_pid: Option<u32>,
    /// Figures are those of the steady state, without the warm-up.
    #[arg(long)]
    steady: bool,
    #[command(flatten)]
    pub(crate) keeping: Keeping,
}

/// What happens to the results.
#[derive(Debug, Clone, Args)]
pub struct Keeping {
    /// Keep the results in this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep the intervals in this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a report as a page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Add the results to this file as a line, for `leveret perf changes`.
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// What to call this state of affairs: a release, a commit.
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

impl Common {
    /// The brokers, the first one first.
    pub fn targets(&self) -> Result<Vec<Target>, Error> {
        let mut targets = vec![Target::new(&self.uri, self.broker_pid)?];
        if let Some(uri) = &self.against {
            targets.push(Target::new(uri, self.against_pid)?);
        }
        for target in &mut targets {
            target.steady = self.steady;
        }
        Ok(targets)
    }

    /// How often each case runs.
    pub fn rounds(&self) -> u32 {
        self.rounds
            .unwrap_or(if self.against.is_some() { 3 } else { 1 })
    }
}

/// Seconds, with a fraction if need be.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds above 0 is expected".into()),
    }
}
