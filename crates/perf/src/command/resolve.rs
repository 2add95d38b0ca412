//! From what was given to a load: all parts together, checked against each other.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::given::Given;
use super::keep::{self, Keep};
use super::options::{self, Class, Group, Takes};
use super::producers::{producers, seconds};
use super::{connection, consumers, payload, topology, validate};
use crate::settings::{ExitWhen, Format, Limits, Output, Settings, Verbose};
use crate::{Error, clock};

/// A load, and what else is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// What to run.
    pub settings: Settings,
    /// What to do with its result.
    pub keep: Keep,
    /// What is odd about the command line, a line each, for standard error.
    pub warnings: Vec<String>,
    /// The options that make the load, by long name, for the result. Without passwords.
    pub parameters: BTreeMap<String, Value>,
}

/// Makes a load of what was given.
///
/// # Errors
/// A value makes no sense, options contradict each other, or a file cannot be read.
pub fn resolve(given: &Given) -> Result<Load, Error> {
    let producers = producers(given)?;
    let consumers = consumers::consumers(given)?;
    let channels = producers.channels.max(consumers.channels);
    let brokers = connection::brokers(given, channels)?;
    let keep = keep::keep(given, channels)?;
    let settings = Settings {
        clean_up: false,
        id: id(given),
        allocation: connection::allocation(given)?,
        wait_for_brokers: connection::wait_for_brokers(given, brokers.len())?,
        brokers,
        topology: topology::topology(given)?,
        producers,
        payload: payload::payload(given)?,
        consumers,
        limits: limits(given)?,
        output: output(given, &keep)?,
        use_millis: given.has("use-millis"),
        verify: given.has("verify"),
        threads: given.number("threads", 0..=1024)?.unwrap_or(0),
    };
    validate::contradictions(given, &settings, &keep)?;
    let mut warnings = given.warnings.clone();
    warnings.extend(validate::warnings(given, &settings, &keep));
    Ok(Load {
        settings,
        keep,
        warnings,
        parameters: parameters(given),
    })
}

/// `-d`, or the time of day like PerfTest's, but in UTC.
fn id(given: &Given) -> String {
    if let Some(id) = given.text("id") {
        return id.to_owned();
    }
    let millis = clock::millis().unsigned_abs();
    let (second, millis) = (millis / 1000 % 86_400, millis % 1000);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("test-{hour:02}{minute:02}{second:02}-{millis:03}")
}

fn limits(given: &Given) -> Result<Limits, Error> {
    let time = given.number("time", 0..=i32::MAX as u32)?;
    let time = time.filter(|seconds| *seconds > 0);
    let words = [("empty", ExitWhen::Empty), ("idle", ExitWhen::Idle)];
    let shutdown = given
        .number("shutdown-timeout", 0..=i32::MAX as u32)?
        .unwrap_or(5);
    Ok(Limits {
        time: time.map(|seconds| Duration::from_secs(u64::from(seconds))),
        exit_when: given.choice("exit-when", &words)?.unwrap_or_default(),
        shutdown_timeout: Duration::from_secs(u64::from(shutdown)),
    })
}

fn output(given: &Given, keep: &Keep) -> Result<Output, Error> {
    let interval = seconds(given, "interval")?.unwrap_or(Duration::from_secs(1));
    if interval.is_zero() {
        return Err(given.wrong("interval", "0", "at least a second"));
    }
    let words = [("default", Format::Default), ("compact", Format::Compact)];
    Ok(Output {
        interval,
        format: given.choice("metrics-format", &words)?.unwrap_or_default(),
        csv: keep.csv.clone(),
        verbose: match (given.has("verbose"), given.has("verbose-full")) {
            (_, true) => Verbose::Full,
            (true, false) => Verbose::Messages,
            (false, false) => Verbose::Off,
        },
        live: !given.has("plain"),
        quiet: given.has("quiet"),
    })
}

/// Whatever makes the load: not where it is written to, nor what is ignored.
fn parameters(given: &Given) -> BTreeMap<String, Value> {
    let makes_load = |group: Option<Group>| {
        !matches!(
            group,
            None | Some(Group::Output | Group::Metrics | Group::Help | Group::Java)
        )
    };
    let entries = given.iter().filter(|entry| {
        let acted_on = matches!(entry.spec.class, Class::Load | Class::Own);
        acted_on && makes_load(options::group_of(entry.spec))
    });
    let parameters = entries.map(|entry| {
        let first = entry.values.first().map(String::as_str).unwrap_or_default();
        let value = match entry.spec.takes {
            Takes::Nothing => Value::Bool(true),
            Takes::Number(_) => serde_json::from_str(first).unwrap_or_else(|_| first.into()),
            Takes::Many(_) => entry.values.clone().into(),
            Takes::Text("URI" | "URI,URI,...") => {
                let uris: Vec<_> = first
                    .split(',')
                    .map(|uri| connection::shown(uri.trim()))
                    .collect();
                uris.join(",").into()
            }
            Takes::Text(_) | Takes::Maybe(_) => first.into(),
        };
        (entry.spec.long.to_owned(), value)
    });
    parameters.collect()
}
