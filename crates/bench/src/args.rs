//! The command line.

use std::time::Duration;

use crate::case::{self, Case};

pub const HELP: &str = "\
Measures a broker: messages per second, CPU time per message, memory.

Usage: bench [OPTIONS]

Without --uri it starts the broker that lies beside it (target/release/leveret,
or $LEVERET_BIN), anew for each case.

  --only NAMES        Only these cases, separated by commas; see --list
  --seconds N         Length of a round, after one second of warm-up (default 5)
  --rounds N          Rounds a case; the median counts (default 3)
  --connections N     Connections of the case 'connections' (default 10000)
  --uri URI           Measure the broker at amqp://user:password@host:port/vhost
  --broker-pid PID    Its process, for CPU time and memory (on this machine)
  --list              List the cases
  --help              Show this text";

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
    pub uri: Option<String>,
    pub broker_pid: Option<u32>,
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Action, String> {
    let mut args = Args {
        cases: case::all(),
        round: Duration::from_secs(5),
        rounds: 3,
        connections: 10_000,
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
            "--list" => return Ok(Action::Print(case::list())),
            "--only" => args.cases = chosen(&value()?)?,
            "--seconds" => args.round = Duration::from_secs_f64(positive(&name, &value()?)?),
            "--rounds" => args.rounds = positive::<u32>(&name, &value()?)? as usize,
            "--connections" => args.connections = positive::<u32>(&name, &value()?)? as usize,
            "--uri" => args.uri = Some(value()?),
            "--broker-pid" => args.broker_pid = Some(positive(&name, &value()?)?),
            _ => return Err(format!("unknown argument '{name}'")),
        }
    }
    if args.uri.is_none() && args.broker_pid.is_some() {
        return Err("--broker-pid needs --uri".into());
    }
    if args.uri.is_some() {
        args.cases
            .retain(|case| !matches!(case.kind, case::Kind::Start));
    }
    match args.cases.is_empty() {
        true => Err("no case left to measure: 'start' needs a broker of bench's own".into()),
        false => Ok(Action::Run(args)),
    }
}

fn chosen(names: &str) -> Result<Vec<Case>, String> {
    let all = case::all();
    let unknown = names
        .split(',')
        .find(|name| all.iter().all(|case| case.name != *name));
    match unknown {
        Some(name) => Err(format!(
            "no case is named '{name}'; they are:\n{}",
            case::list()
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
