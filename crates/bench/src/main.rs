//! `bench`: measures a broker with the project's own client, from one process beside it.
//!
//! Each case runs in rounds; a figure is the median round's. The broker's CPU time per message is the
//! figure to compare by: unlike the rate it hardly depends on how fast this process is.
#![allow(clippy::print_stdout, reason = "the report goes to standard output")]

mod args;
mod case;
mod cases;
mod catalogue;
mod error;
mod history;
mod load;
mod machine;
mod measure;
mod reading;
mod report;
mod samples;
mod target;

use std::process::ExitCode;

use args::{Action, Args};
use case::{Case, Earlier, Kind, Outcome, Row, Stream};
use cases::{backlog, confirm, connections, generator, latency, many_queues, ping_pong};
use cases::{sharded, stream, topic, ttl, tx, unbind, w1};
use catalogue::W3;
use error::Error;
use load::season::{Seasoned, season};
use measure::Figures;
use reading::Reading;
use target::Target;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(Action::Run(args)) => args,
        Ok(Action::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("bench: {problem}\n\n{}", args::HELP);
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the chosen cases, prints each as it is done, and keeps all figures. A case that fails does
/// not keep the others from being measured.
fn run(args: &Args) -> Result<(), Error> {
    let machine = machine::Machine::look();
    let described = Target::open(args)?.describe()?;
    println!("{}", report::heading(&described, &machine, args));
    let mut results: Vec<(&Case, Outcome)> = Vec::new();
    let mut earlier = Earlier::default();
    let mut failed = 0;
    for case in &args.cases {
        match run_case(case, args, &earlier) {
            Ok(outcome) => {
                println!("{}", report::lines(case, &outcome));
                if let ("w3", Row::Rounds(rounds)) = (case.name, &outcome.row) {
                    earlier.w3_rate = Some(report::median(rounds).rate);
                }
                results.push((case, outcome));
            }
            Err(error) => {
                println!("{:<12} failed: {error}", case.name);
                failed += 1;
            }
        }
    }
    let path = history::append(&described, &machine, args, &results)?;
    println!("\n{}", report::LEGEND);
    if let Some(summary) = report::summary(&results) {
        println!("{summary}");
    }
    println!("Kept in {}.", path.display());
    match failed {
        0 => Ok(()),
        failed => Err(Error::Failed(failed)),
    }
}

/// Measures one case, on a broker of its own unless one runs already.
fn run_case(case: &Case, args: &Args, earlier: &Earlier) -> Result<Outcome, Error> {
    let mut target = Target::open(args)?;
    let seasoned = match case.seasoned {
        true => season(&W3, &target)?,
        false => Seasoned::Yes,
    };
    let measured = measure_case(case, args, &mut target, earlier);
    // Those connections are dropped, which a broker may well complain about.
    let complaints = match case.kind {
        Kind::Connections => Vec::new(),
        _ => target.complaints(),
    };
    let Ok(mut outcome) = measured else {
        complaints.iter().for_each(|line| eprintln!("{line}"));
        return measured;
    };
    outcome.notes.extend(seasoned.note());
    outcome.notes.extend(report::complaints(&complaints));
    target.close()?;
    Ok(outcome)
}

fn measure_case(
    case: &Case,
    args: &Args,
    target: &mut Target,
    earlier: &Earlier,
) -> Result<Outcome, Error> {
    match &case.kind {
        Kind::Stream(stream) => measure_stream(stream, args, target, earlier),
        Kind::PingPong { channels } => {
            let figures = rounds(args, || ping_pong::round(*channels, args, target))?;
            Ok(Row::Rounds(figures).into())
        }
        Kind::Confirm => readings(args, || confirm::round(args, target)),
        Kind::Latency => readings(args, || latency::round(args, target)),
        Kind::Transactions => readings(args, || tx::round(args, target)),
        Kind::W1 => readings(args, || w1::round(args, target)),
        Kind::Generator => readings(args, || generator::round(args, target)),
        Kind::Backlog => backlog::measure(args, target),
        Kind::Topic => readings(args, || topic::round(args, target)),
        Kind::Unbind => readings(args, || unbind::round(args, target)),
        Kind::ManyQueues => many_queues::measure(target),
        Kind::Ttl => ttl::measure(target),
        Kind::Sharded => readings(args, || sharded::round(args, target)),
        Kind::Start => Ok(Row::Start(target.start_figures()?).into()),
        Kind::Connections => Ok(Row::Connections(connections::measure(args, target)?).into()),
    }
}

fn measure_stream(
    stream: &Stream,
    args: &Args,
    target: &Target,
    earlier: &Earlier,
) -> Result<Outcome, Error> {
    let figures: Vec<Figures> = rounds(args, || stream::round(stream, args, target))?;
    let readings = stream::readings(stream, &report::median(&figures), earlier);
    Ok(Outcome {
        readings,
        ..Row::Rounds(figures).into()
    })
}

fn readings(
    args: &Args,
    round: impl FnMut() -> Result<Vec<Reading>, Error>,
) -> Result<Outcome, Error> {
    let merged = reading::merge(rounds(args, round)?);
    Ok(Outcome::of_readings(merged, Vec::new()))
}

fn rounds<T>(args: &Args, mut round: impl FnMut() -> Result<T, Error>) -> Result<Vec<T>, Error> {
    (0..args.rounds).map(|_| round()).collect()
}
