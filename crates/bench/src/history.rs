//! `target/bench/history.jsonl`: one line a run, with every figure of every round.

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::case::{Case, Outcome, Row};
use crate::error::Error;
use crate::machine::Machine;
use crate::measure::Figures;
use crate::reading::Reading;
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
        "timestamp": perf::clock::timestamp(),
        "commit": machine.commit,
        "broker": server,
        "machine": machine.to_json(),
        "seconds": args.round.as_secs_f64(),
        "rounds": args.rounds,
        "backlog": args.backlog,
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
    let mut value = match &outcome.row {
        Row::Rounds(rounds) => {
            let mut value = figures_json(&median(rounds));
            value["rounds"] = rounds.iter().map(figures_json).collect();
            value
        }
        Row::Start(start) => json!({
            "start_ms": start.time.as_secs_f64() * 1e3,
            "rss_bytes": start.rss,
        }),
        Row::Connections(figures) => json!({
            "connections": figures.count,
            "opened_per_second": figures.opened_per_second,
            "rss_bytes": figures.rss,
            "rss_bytes_per_connection": figures.rss_each,
        }),
        Row::Heading => json!({}),
    };
    if !outcome.readings.is_empty() {
        value["readings"] = outcome.readings.iter().map(reading_json).collect();
    }
    if !outcome.notes.is_empty() {
        value["notes"] = outcome.notes.join(" ").into();
    }
    value
}

fn reading_json(reading: &Reading) -> Value {
    let mut value = json!({
        "name": reading.name,
        "value": reading.value,
        "unit": reading.unit,
    });
    if !reading.rounds.is_empty() {
        value["rounds"] = reading.rounds.clone().into();
    }
    if let Some(bar) = reading.bar {
        value["bar"] = json!({
            "sense": bar.sense.sign().to_string(),
            "limit": bar.limit,
            "met": reading.met(),
            "aim": bar.aim,
            "aim_reached": reading.aim_reached(),
        });
    }
    value
}

fn figures_json(figures: &Figures) -> Value {
    json!({
        "messages_per_second": figures.rate,
        "broker_cpu_us": figures.broker_cpu,
        "load_cpu_us": figures.load_cpu,
        "disk_bytes_per_message": figures.disk,
        "rss_bytes": figures.rss,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_kept_with_their_bars() {
        let readings = vec![Reading::new("rate", 2.0, "msg/s").at_least(3.0)];
        let kept = outcome_json(&Outcome::of_readings(readings, Vec::new()));
        assert_eq!(kept["readings"][0]["value"], 2.0);
        assert_eq!(kept["readings"][0]["bar"]["limit"], 3.0);
        assert_eq!(kept["readings"][0]["bar"]["met"], false);
    }
}
