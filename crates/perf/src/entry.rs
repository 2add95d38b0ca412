//! `leveret perf …`: which command it is, what happens to its results, and its exit status.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::command::{self, Invocation, Keep, Load};
use crate::interrupt::is_interrupted;
use crate::output::{Output, Silent};
use crate::result::{Document, Run};
use crate::scenarios::{self, Common, Keeping, Scenario};
use crate::{Error, changes, compare, interrupt, load, process, report};

/// Something could not be done, or a run failed.
const FAILED: u8 = 1;
/// The arguments make no sense.
const USAGE: u8 = 2;
/// With `--verify`, or in a scenario: messages were missing, doubled or out of order.
const NOT_IN_ORDER: u8 = 3;

/// A command besides a plain load. `-h` is the broker's URI here, too.
#[derive(Debug, Parser)]
#[command(
    name = "leveret perf",
    bin_name = "leveret perf",
    disable_help_flag = true,
    disable_help_subcommand = true
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    /// Show this text.
    #[arg(short = '?', long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Commands besides a plain load.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Transactional publishing, then a consumer that acknowledges one by one (2008)
    W1(scenarios::w1::Arguments),
    /// Ping-pong on many channels of one connection (2011)
    W2(scenarios::w2::Arguments),
    /// Persistent, confirmed messages through 1 to 8 queues (2016)
    W3(scenarios::w3::Arguments),
    /// The same over the shards of one exchange (2016)
    W3Sharded(scenarios::w3_sharded::Arguments),
    /// A flood of orders: time from producer to consumer (2009)
    W4(scenarios::w4::Arguments),
    /// SQS: messages sent per second into queues of several regions (2010)
    W5(W5),
    /// The standard set
    Suite(scenarios::suite::Arguments),
    /// Results as a page, or as text or CSV
    Report(report::Arguments),
    /// Results side by side, with ratios
    Compare(compare::Arguments),
    /// When did it change: in a history of results, or within a run
    Changes(changes::Arguments),
}

/// W5 has endpoints instead of a broker.
#[derive(Debug, clap::Args)]
struct W5 {
    #[command(flatten)]
    load: scenarios::w5::Arguments,
    #[command(flatten)]
    keeping: Keeping,
}

const COMMANDS: [&str; 10] = [
    "w1",
    "w2",
    "w3",
    "w3-sharded",
    "w4",
    "w5",
    "suite",
    "report",
    "compare",
    "changes",
];

/// Runs what the arguments after `leveret perf` ask for.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments
        .into_iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    process::raise_open_files();
    let result = match arguments.first() {
        Some(first) if COMMANDS.contains(&first.as_str()) => run_command(&arguments),
        _ => run_options(&arguments),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(io::stderr(), "leveret perf: {error}");
            ExitCode::from(match error {
                Error::Usage(_) => USAGE,
                _ => FAILED,
            })
        }
    }
}

/// A load by PerfTest's options.
fn run_options(arguments: &[String]) -> Result<u8, Error> {
    let environment = |name: &str| std::env::var(name).ok();
    match command::parse(arguments, &environment)? {
        Invocation::Print(text) => {
            // Whoever does not read it to its end has seen enough.
            let _ = io::stdout().write_all(text.as_bytes());
            Ok(0)
        }
        Invocation::Load(load) => {
            for warning in &load.warnings {
                let _ = writeln!(io::stderr(), "leveret perf: {warning}");
            }
            run_load(*load, command_line(arguments))
        }
    }
}

/// The command line as results keep it.
fn command_line(arguments: &[String]) -> Vec<String> {
    let program = ["leveret", "perf"].map(str::to_owned);
    let mut arguments = command::without_passwords(arguments);
    for at in 0..arguments.len() {
        let secret = SECRETS
            .iter()
            .find(|secret| arguments[at].starts_with(**secret));
        match secret {
            Some(secret) if arguments[at].len() > secret.len() => {
                arguments[at] = format!("{secret}=***");
            }
            Some(_) if at + 1 < arguments.len() => arguments[at + 1] = "***".into(),
            _ => {}
        }
    }
    program.into_iter().chain(arguments).collect()
}

/// Options whose values results do not keep.
const SECRETS: [&str; 2] = ["--secret-access-key", "--session-token"];

fn run_load(asked: Load, command: Vec<String>) -> Result<u8, Error> {
    interrupt::heed();
    let keep = &asked.keep;
    let mut document = Document::begin(None, keep.label.clone(), command);
    match &keep.against {
        Some(against) => alternate(&asked, against, &mut document)?,
        None => {
            let process = scenarios::find_process(&asked.settings.brokers[0], keep.broker_pid)?;
            let options = load::Options {
                process,
                steady: keep.steady,
            };
            let mut output = Output::new(&asked)?;
            let mut run = load::run(&asked.settings, options, &mut output);
            run.parameters = asked.parameters.clone();
            // Of a run that did not begin there is nothing to sum up.
            if run.totals.seconds > 0.0 {
                output.end(&run);
            }
            document.runs.push(run);
        }
    }
    keep_results(&document, keep)?;
    Ok(status(&document, asked.settings.verify))
}

/// The same load on two brokers in turn.
fn alternate(
    asked: &Load,
    against: &client::Options,
    document: &mut Document,
) -> Result<(), Error> {
    let first = &asked.settings.brokers[0];
    let pid = asked.keep.broker_pid;
    let targets = [
        (first.clone(), scenarios::find_process(first, pid)?),
        (against.clone(), scenarios::find_process(against, None)?),
    ];
    for round in 1..=asked.keep.rounds {
        for (options, process) in &targets {
            let mut settings = asked.settings.clone();
            settings.brokers = vec![options.clone()];
            let watched = load::Options {
                process: *process,
                steady: asked.keep.steady,
            };
            let mut run = load::run(&settings, watched, &mut Silent);
            run.parameters = asked.parameters.clone();
            run.round = round;
            say(&scenarios::line(&run));
            document.runs.push(run);
            if is_interrupted() {
                return Ok(());
            }
        }
    }
    let named = [(String::new(), document.clone())];
    say(&format!("\n{}", compare::table(&named)));
    Ok(())
}

/// A line of output. Whoever does not read any more does not stop the load.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn keep_results(document: &Document, keep: &Keep) -> Result<(), Error> {
    let Keep {
        json,
        html,
        history,
        ..
    } = keep;
    write_results(
        document,
        json.as_deref(),
        html.as_deref(),
        history.as_deref(),
    )
}

fn write_results(
    document: &Document,
    json: Option<&Path>,
    html: Option<&Path>,
    history: Option<&Path>,
) -> Result<(), Error> {
    if let Some(path) = json {
        document.write(path)?;
    }
    if let Some(path) = history {
        document.append(path)?;
    }
    if let Some(path) = html {
        let name = json.unwrap_or(path).display().to_string();
        let page = report::page(&[(name, document.clone())]);
        std::fs::write(path, page).map_err(|source| Error::file(path, source))?;
    }
    Ok(())
}

/// What went wrong in the first run that failed is said, too.
fn status(document: &Document, verify: bool) -> u8 {
    let failed = document.runs.iter().find_map(|run| run.error.as_ref());
    if let Some(error) = failed {
        let _ = writeln!(io::stderr(), "leveret perf: {error}");
        return FAILED;
    }
    let bad = |run: &Run| run.checks.as_ref().is_some_and(|checks| !checks.passed());
    let unchecked = |run: &Run| {
        run.checks
            .as_ref()
            .is_some_and(|checks| checks.unchecked > 0)
    };
    if verify && document.runs.iter().any(bad) {
        let _ = writeln!(
            io::stderr(),
            "leveret perf: messages are missing, doubled or out of order"
        );
        return NOT_IN_ORDER;
    }
    if verify && document.runs.iter().any(unchecked) {
        let _ = writeln!(
            io::stderr(),
            "leveret perf: not every message could be checked: bodies below 16 bytes name no \
             producer; use --size 16 or more"
        );
        return NOT_IN_ORDER;
    }
    0
}

fn run_command(arguments: &[String]) -> Result<u8, Error> {
    let program = std::iter::once("leveret perf".to_owned());
    let arguments_as_given = program.chain(arguments.iter().cloned());
    let command = match CommandLine::try_parse_from(arguments_as_given) {
        Ok(line) => line.command,
        Err(error) => {
            // Help goes to standard output, and is no error.
            let _ = error.print();
            return Ok(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let out = &mut io::stdout();
    let line = command_line(arguments);
    match command {
        Command::W1(asked) => run_scenario(&scenarios::w1::scenario(&asked), &asked.common, line),
        Command::W2(asked) => run_scenario(&scenarios::w2::scenario(&asked), &asked.common, line),
        Command::W3(asked) => run_scenario(&scenarios::w3::scenario(&asked), &asked.common, line),
        Command::W3Sharded(asked) => {
            let scenario = scenarios::w3_sharded::scenario(&asked)?;
            run_scenario(&scenario, &asked.common, line)
        }
        Command::W4(asked) => run_scenario(&scenarios::w4::scenario(&asked), &asked.common, line),
        Command::W5(asked) => run_w5(&asked, line),
        Command::Suite(asked) => {
            run_scenario(&scenarios::suite::scenario(&asked)?, &asked.common, line)
        }
        Command::Report(asked) => report::run(&asked, out),
        Command::Compare(asked) => compare::run(&asked, out),
        Command::Changes(asked) => changes::run(&asked, out, report::changes_page),
    }
}

fn run_scenario(scenario: &Scenario, common: &Common, command: Vec<String>) -> Result<u8, Error> {
    interrupt::heed();
    let document = scenarios::run(scenario, common, command, &mut io::stdout())?;
    keep_scenario(&document, &common.keeping)?;
    Ok(status(&document, true))
}

fn run_w5(asked: &W5, command: Vec<String>) -> Result<u8, Error> {
    interrupt::heed();
    let label = asked.keeping.label.clone();
    let mut document = Document::begin(Some("w5"), label, command);
    let out = &mut io::stdout();
    document.runs = scenarios::w5::run_watched(&asked.load, &mut |run| {
        let _ = writeln!(out, "{}", scenarios::line(run));
    })?;
    let figures = ["sent", "confirm-p50", "confirm-p99", "received", "errors"];
    let table = scenarios::table(&document, &figures);
    let _ = writeln!(
        io::stdout(),
        "\n{table}\nConfirm latencies are those of the calls. Published: jclouds and Amazon SQS in \
         2010, on those machines of EC2."
    );
    keep_scenario(&document, &asked.keeping)?;
    Ok(status(&document, true))
}

fn keep_scenario(document: &Document, keeping: &Keeping) -> Result<(), Error> {
    if let Some(path) = &keeping.csv {
        let text = report::intervals(&[(path.display().to_string(), document.clone())]);
        std::fs::write(path, text).map_err(|source| Error::file(path, source))?;
    }
    let Keeping {
        json,
        html,
        history,
        ..
    } = keeping;
    write_results(
        document,
        json.as_deref(),
        html.as_deref(),
        history.as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_sound_and_all_known() {
        let command = CommandLine::command();
        command.clone().debug_assert();
        let names: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(names, COMMANDS);
    }

    #[test]
    fn results_keep_no_secret() {
        let typed = [
            "w5",
            "--secret-access-key",
            "s1",
            "--session-token=s2",
            "--endpoint",
            "http://x",
        ];
        let kept = command_line(&typed.map(str::to_owned)).join(" ");
        assert_eq!(
            kept,
            "leveret perf w5 --secret-access-key *** --session-token=*** --endpoint http://x"
        );
        let kept = command_line(&["-h", "amqp://u:p4ss@h"].map(str::to_owned)).join(" ");
        assert!(!kept.contains("p4ss"), "{kept}");
    }
}
