//! `bench`: measures a broker with the project's own client, from one process beside it.
//!
//! Each case runs in rounds; a figure is the median round's. The broker's CPU time per message is the
//! figure to compare by: unlike the rate it hardly depends on how fast this process is.
#![allow(clippy::print_stdout, reason = "the report goes to standard output")]

mod args;
mod case;
mod connections;
mod error;
mod history;
mod machine;
mod measure;
mod ping_pong;
mod report;
mod stream;
mod target;

use std::process::ExitCode;

use args::{Action, Args};
use case::{Case, Kind, Outcome};
use error::Error;
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
    let mut results = Vec::new();
    let mut failed = 0;
    for case in &args.cases {
        match run_case(case, args) {
            Ok(outcome) => {
                println!("{}", report::row(case, &outcome));
                results.push((case, outcome));
            }
            Err(error) => {
                println!("{:<12} failed: {error}", case.name);
                failed += 1;
            }
        }
    }
    let path = history::append(&described, &machine, args, &results)?;
    println!("\n{}\nKept in {}.", report::LEGEND, path.display());
    match failed {
        0 => Ok(()),
        failed => Err(Error::Failed(failed)),
    }
}

/// Measures one case, on a broker of its own unless one runs already.
fn run_case(case: &Case, args: &Args) -> Result<Outcome, Error> {
    let target = Target::open(args)?;
    let outcome = measure_case(case, args, &target)?;
    target.close()?;
    Ok(outcome)
}

fn measure_case(case: &Case, args: &Args, target: &Target) -> Result<Outcome, Error> {
    match &case.kind {
        Kind::Stream(stream) => rounds(args, || stream::round(stream, args, target)),
        Kind::PingPong { channels } => rounds(args, || ping_pong::round(*channels, args, target)),
        Kind::Start => target.start_figures().map(Outcome::Start),
        Kind::Connections => connections::measure(args, target).map(Outcome::Connections),
    }
}

fn rounds(
    args: &Args,
    mut round: impl FnMut() -> Result<measure::Figures, Error>,
) -> Result<Outcome, Error> {
    let figures = (0..args.rounds)
        .map(|_| round())
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Outcome::Rounds(figures))
}
