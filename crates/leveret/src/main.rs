//! The `leveret` binary: reads the configuration, wires the rooms together, runs until it is told
//! to stop. The only place that knows all of them.

mod check;
mod cli;
mod config;
mod control;
mod ctl;
mod definitions;
mod launch;
mod logging;
mod memory;
mod shutdown;
mod storage;
mod timer;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let started = Instant::now();
    let arguments = match cli::parse(std::env::args_os()) {
        Ok(cli::Invocation::Server(arguments)) => arguments,
        Ok(cli::Invocation::Config) => {
            return match cli::print_configuration_reference() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(
                    &format_args!("cannot write to standard output: {error}"),
                    cli::EXIT_FAILURE,
                ),
            };
        }
        Ok(cli::Invocation::Check(arguments)) => {
            return match check::run(&arguments) {
                Ok(status) => ExitCode::from(status),
                Err(error) => failed(&explained(&error), cli::EXIT_FAILURE),
            };
        }
        Ok(cli::Invocation::Perf(arguments)) => return perf::run(arguments),
        Ok(cli::Invocation::Ctl(arguments)) => return ctl::run(&arguments),
        // Prints help and version too; exits with 0 for those and 2 for bad usage.
        Err(error) => error.exit(),
    };
    let loaded = match config::load(&arguments.flags(), &config::Environment::of_process()) {
        Ok(loaded) => loaded,
        Err(error) => return failed(&error, cli::EXIT_USAGE),
    };
    if let Err(error) = logging::init(&loaded.config.log) {
        return failed(&error, cli::EXIT_USAGE);
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    match launch::run(&loaded, started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&explained(&error), cli::EXIT_FAILURE),
    }
}

/// An error and its causes, but for those that it has named itself.
fn explained(error: &anyhow::Error) -> String {
    let causes = error.chain().skip(1);
    causes.fold(error.to_string(), |said, cause| {
        let cause = cause.to_string();
        match said.ends_with(&cause) {
            true => said,
            false => format!("{said}: {cause}"),
        }
    })
}

/// Says on standard error what is wrong, whatever the log is set to.
fn failed(error: &dyn std::fmt::Display, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "leveret: {error}");
    ExitCode::from(status)
}
