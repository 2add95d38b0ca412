//! The command line.

use std::time::Duration;

use crate::case::Case;
use crate::catalogue;

pub const HELP: &str = "\
Measures a broker: messages per second, CPU time per message, latency, memory,
restarts. A figure that has a bar is printed beside it: met or missed.

Usage: bench [OPTIONS]

Without --uri it starts the broker that lies beside it (target/release/leveret,
or $LEVERET_BIN), anew for each case, with its data under $TMPDIR (/tmp).
For the cases of persistent messages that directory should be on a real disk.

  --only NAMES        Only these cases, separated by commas; see --list
  --seconds N         Length of a round, after one second of warm-up (default 5)
  --rounds N          Rounds a case; the median counts (default 3)
  --connections N     Connections of the case 'connections' (default 10000)
  --backlog N         Messages of the case 'backlog', which has one round
                      (default 1000000, which needs 4 GB of disk)
  --full              As --backlog 5000000, which needs 12 GB of disk
  --uri URI           Measure the broker at amqp://user:password@host:port/vhost:
                      without 'start' and 'sharded', without restarts, without
                      the bare loop of 'confirm', and with its log as it is
  --broker-pid PID    Its process, for CPU time, memory and bytes written
                      (on this machine)
  --list              List the cases
  --help              Show this text

Before the cases w3, w3-4, confirm, latency, tx, w1 and sharded messages flow
until the broker's log uses its files again, as it does in the long run; this
takes some seconds. w3-4 is compared with w3 of the same run.";

/// Messages of the case `backlog`.
const BACKLOG: u64 = 1_000_000;
const FULL_BACKLOG: u64 = 5_000_000;

/// What was asked for.
#[derive(Debug)]
pub enum Action {
    Run(Args),
    Print(String),
}

/// How to measure what.
#[derive(Debug)]
pub struct Args {
    pub cases: Vec<Case>,
    pub round: Duration,
    pub rounds: usize,
    pub connections: usize,
    /// Messages.
    pub backlog: u64,
    pub uri: Option<String>,
    pub broker_pid: Option<u32>,
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Action, String> {
    let mut args = Args {
        cases: catalogue::all(),
        round: Duration::from_secs(5),
        rounds: 3,
        connections: 10_000,
        backlog: BACKLOG,
        uri: None,
        broker_pid: None,
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| arguments.next())
                .ok_or_else(|| format!("{name} needs a value"))
        };
        match name.as_str() {
            "--help" | "-h" => return Ok(Action::Print(HELP.into())),
            "--list" => return Ok(Action::Print(catalogue::list())),
            "--only" => args.cases = chosen(&value()?)?,
            "--seconds" => args.round = Duration::from_secs_f64(positive(&name, &value()?)?),
            "--rounds" => args.rounds = positive::<u32>(&name, &value()?)? as usize,
            "--connections" => args.connections = positive::<u32>(&name, &value()?)? as usize,
            "--backlog" => args.backlog = positive::<u32>(&name, &value()?)?.into(),
            "--full" => args.backlog = FULL_BACKLOG,
            "--uri" => args.uri = Some(value()?),
            "--broker-pid" => args.broker_pid = Some(positive(&name, &value()?)?),
            _ => return Err(format!("unknown argument '{name}'")),
        }
    }
    if args.uri.is_none() && args.broker_pid.is_some() {
        return Err("--broker-pid needs --uri".into());
    }
    if args.uri.is_some() {
        args.cases.retain(|case| !case.kind.needs_own_broker());
    }
    match args.cases.is_empty() {
        true => Err(
            "no case left to measure: 'start' and 'sharded' need a broker of bench's own".into(),
        ),
        false => Ok(Action::Run(args)),
    }
}

fn chosen(names: &str) -> Result<Vec<Case>, String> {
    let all = catalogue::all();
    let unknown = names
        .split(',')
        .find(|name| all.iter().all(|case| case.name != *name));
    match unknown {
        Some(name) => Err(format!(
            "no case is named '{name}'; they are:\n{}",
            catalogue::list()
        )),
        None => Ok(all
            .into_iter()
            .filter(|c| names.split(',').any(|n| n == c.name))
            .collect()),
    }
}

fn positive<T: std::str::FromStr + PartialOrd + Default>(
    name: &str,
    text: &str,
) -> Result<T, String> {
    match text.parse::<T>() {
        Ok(number) if number > T::default() => Ok(number),
        _ => Err(format!("{name} '{text}' is not a positive number in range")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Action, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn cases_are_chosen_by_name() {
        let Ok(Action::Run(args)) = run("--only w2-500,16b --seconds=0.5 --rounds 1") else {
            panic!("arguments must be accepted");
        };
        let names: Vec<&str> = args.cases.iter().map(|case| case.name).collect();
        assert_eq!(names, ["16b", "w2-500"]);
        assert_eq!((args.round, args.rounds), (Duration::from_millis(500), 1));
    }

    #[test]
    fn backlog_is_as_deep_as_asked() {
        let depth = |line| match run(line) {
            Ok(Action::Run(args)) => args.backlog,
            other => panic!("arguments must be accepted: {other:?}"),
        };
        assert_eq!(depth(""), 1_000_000);
        assert_eq!(depth("--full"), 5_000_000);
        assert_eq!(depth("--backlog 20000"), 20_000);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(
            run("--only nothing")
                .expect_err("unknown")
                .contains("'nothing'")
        );
        assert!(run("--rounds 0").expect_err("zero").contains("--rounds"));
        assert!(
            run("--seconds")
                .expect_err("missing")
                .contains("needs a value")
        );
        assert!(run("--fast").expect_err("unknown").contains("--fast"));
        assert!(run("--broker-pid 1").expect_err("alone").contains("--uri"));
    }
}
