//! The standard set: one figure for each thing that people ask of a broker.

use std::time::Duration;

use crate::settings::{
    Acks, Body, Consumers, Limits, Output, Payload, Producers, Queues, Rate, Settings, Topology,
};

use crate::Error;

use super::arguments::seconds;
use super::{Case, Common, Scenario};

/// `leveret perf suite`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// How long each case takes.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    time: Duration,
    /// Messages of the backlog.
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..))]
    backlog: u64,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// What the names of the backlog's cases begin with.
const BACKLOG: &str = "backlog";

/// The whole set.
///
/// # Errors
/// No case has the name that was asked for.
pub fn scenario(arguments: &Arguments) -> Result<Scenario, Error> {
    let mut cases = throughput(arguments);
    cases.extend(queues(arguments));
    cases.extend(channels(arguments));
    cases.extend(transactions(arguments));
    cases.extend(latency(arguments));
    cases.extend(backlog(arguments));
    if let Some(text) = &arguments.only {
        let backlog = BACKLOG.contains(text.as_str());
        let belongs = |name: &str| backlog && name.starts_with(BACKLOG);
        // What is filled is drained, too.
        cases.retain(|case| case.name.contains(text) || belongs(&case.name));
        if cases.is_empty() {
            return Err(Error::Usage(format!(
                "--only '{text}': no case has such a name"
            )));
        }
    }
    Ok(Scenario {
        name: "suite",
        about: "the standard set",
        figures: vec!["received", "sent", "p50", "p99", "confirm-p99", "cpu"],
        notes: vec![
            "Latencies of loads without a rate are those of full queues: look at those with one."
                .into(),
        ],
        cases,
    })
}

/// A load that ends by time, on queues of its own.
fn base(arguments: &Arguments, size: usize) -> Settings {
    Settings {
        id: "suite".into(),
        topology: Topology {
            exchange: super::EXCHANGE.into(),
            ..Topology::default()
        },
        clean_up: true,
        payload: Payload::of(Body::Sized(size)),
        consumers: Consumers {
            acks: Acks::Every(100),
            qos: 1_000,
            ..Consumers::default()
        },
        limits: Limits {
            time: Some(arguments.time),
            ..Limits::default()
        },
        output: Output::none(),
        ..Settings::default()
    }
}

/// Persistent, confirmed, on durable queues.
fn durable(arguments: &Arguments, size: usize) -> Settings {
    let base = base(arguments, size);
    Settings {
        topology: Topology {
            durable: true,
            ..base.topology
        },
        producers: Producers {
            persistent: true,
            confirm: Some(1_000),
            ..base.producers
        },
        ..base
    }
}

fn in_turn(settings: &mut Settings, count: u32) {
    let names = (1..=count).map(|n| format!("leveret-perf-suite-{n}"));
    settings.topology.queues = Queues::InTurn(names.collect());
}

fn throughput(arguments: &Arguments) -> Vec<Case> {
    vec![
        Case::load("16 B, transient", base(arguments, 16)).with("size", 16),
        Case::load("1 KiB, transient", base(arguments, 1_024)).with("size", 1_024),
        Case::load("1 KiB, persistent", durable(arguments, 1_024)).with("size", 1_024),
    ]
}

fn queues(arguments: &Arguments) -> Vec<Case> {
    let mut cases: Vec<Case> = [1, 2, 4, 8]
        .iter()
        .map(|count| {
            let mut settings = durable(arguments, 1_024);
            in_turn(&mut settings, *count);
            settings.producers.count = *count;
            settings.consumers.count = *count;
            let name = format!("{count} queue{}", if *count == 1 { "" } else { "s" });
            Case::load(name, settings).with("queues", *count)
        })
        .collect();
    let mut fan_out = base(arguments, 1_024);
    fan_out.topology.exchange = "leveret-perf-fanout".into();
    fan_out.topology.exchange_type = "fanout".into();
    fan_out.consumers.count = 10;
    cases.push(Case::load("fan-out to 10 queues", fan_out).with("queues", 10));
    cases
}

/// One producer connection and one consumer connection.
fn channels(arguments: &Arguments) -> Vec<Case> {
    let cases = [1_u16, 10, 50, 500].iter().map(|count| {
        let mut settings = base(arguments, 16);
        in_turn(&mut settings, u32::from(*count));
        settings.producers.channels = *count;
        settings.consumers.channels = *count;
        let name = format!("{count} channel{}", if *count == 1 { "" } else { "s" });
        Case::load(name, settings).with("channels", *count)
    });
    cases.collect()
}

fn transactions(arguments: &Arguments) -> Vec<Case> {
    let cases = [1_u32, 10, 100, 1_000].iter().map(|size| {
        let mut settings = durable(arguments, 1_024);
        settings.producers.confirm = None;
        settings.producers.transaction = Some(*size);
        Case::load(format!("tx of {size}"), settings).with("transaction", *size)
    });
    cases.collect()
}

/// Persistent, confirmed, at a rate.
fn latency(arguments: &Arguments) -> Vec<Case> {
    let cases = [100.0, 1_000.0, 5_000.0, 20_000.0].iter().map(|rate| {
        let mut settings = durable(arguments, 1_024);
        settings.producers.rate = Rate::Fixed(*rate);
        settings.consumers.acks = Acks::Each;
        Case::load(format!("latency at {rate}/s"), settings).with("rate", *rate)
    });
    cases.collect()
}

/// Fills a queue that nobody consumes from, then drains it.
fn backlog(arguments: &Arguments) -> Vec<Case> {
    let shared = |mut settings: Settings| {
        let name = "leveret-perf-suite-backlog".to_owned();
        settings.topology.queues = Queues::Shared(vec![name]);
        settings.topology.auto_delete = false;
        settings.limits.time = Some(arguments.time * 60);
        settings
    };
    let mut fill = shared(durable(arguments, 1_024));
    fill.consumers.count = 0;
    fill.producers.limit = Some(arguments.backlog);
    let mut drain = shared(durable(arguments, 1_024));
    drain.producers.count = 0;
    drain.consumers.limit = Some(arguments.backlog);
    fill.clean_up = false;
    let messages = arguments.backlog;
    vec![
        Case::load(format!("{BACKLOG}, fill"), fill).with("messages", messages),
        Case::load(format!("{BACKLOG}, drain"), drain).with("messages", messages),
    ]
}
