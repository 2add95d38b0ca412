//! `target/bench/history.jsonl`: one line a run, with every figure of every round.

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::case::{Case, Outcome};
use crate::error::Error;
use crate::machine::Machine;
use crate::measure::Figures;
use crate::report::median;
use crate::target::beside_this_program;

/// Adds a line; returns the file's path.
pub fn append(
    server: &str,
    machine: &Machine,
    args: &Args,
    results: &[(&Case, Outcome)],
) -> Result<PathBuf, Error> {
    let cases: Map<String, Value> = results
        .iter()
        .map(|(case, outcome)| (case.name.to_owned(), outcome_json(outcome)))
        .collect();
    let line = json!({
        "timestamp": timestamp(),
        "commit": machine.commit,
        "broker": server,
        "machine": machine.to_json(),
        "seconds": args.round.as_secs_f64(),
        "rounds": args.rounds,
        "cases": cases,
    });
    let target = beside_this_program();
    let folder = target
        .parent()
        .map_or_else(|| PathBuf::from("."), PathBuf::from)
        .join("bench");
    let path = folder.join("history.jsonl");
    let written = create_dir_all(&folder).and_then(|()| {
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(format!("{line}\n").as_bytes())
    });
    match written {
        Ok(()) => Ok(path),
        Err(source) => Err(Error::File { path, source }),
    }
}

fn outcome_json(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Rounds(rounds) => {
            let mut value = figures_json(&median(rounds));
            value["rounds"] = rounds.iter().map(figures_json).collect();
            value
        }
        Outcome::Start(start) => json!({
            "start_ms": start.time.as_secs_f64() * 1e3,
            "rss_bytes": start.rss,
        }),
        Outcome::Connections(figures) => json!({
            "connections": figures.count,
            "opened_per_second": figures.opened_per_second,
            "rss_bytes": figures.rss,
            "rss_bytes_per_connection": figures.rss_each,
        }),
    }
}

fn figures_json(figures: &Figures) -> Value {
    json!({
        "messages_per_second": figures.rate,
        "broker_cpu_us": figures.broker_cpu,
        "load_cpu_us": figures.load_cpu,
        "rss_bytes": figures.rss,
    })
}

/// Now, in UTC, as RFC 3339.
fn timestamp() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format_utc(since.as_secs())
}

/// Days to year, month and day after Howard Hinnant's `civil_from_days`.
fn format_utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_a_date() {
        assert_eq!(format_utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(format_utc(1_735_689_599), "2024-12-31T23:59:59Z");
    }
}
