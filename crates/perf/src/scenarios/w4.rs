//! W4 (2009): a flood of orders at market open. Producer i writes to queue i only, consumer i reads
//! from it only, as fast as they can. How late do messages come, and when is it steady?

use std::time::Duration;

use crate::settings::{
    Body, Consumers, Limits, Output, Payload, Producers, Queues, Settings, Topology,
};

use super::arguments::seconds;
use super::{Case, Common, Scenario};

/// `leveret perf w4`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Smallest and largest body in bytes.
    #[arg(long, value_name = "MIN-MAX", default_value = "35-400", value_parser = range)]
    size: (usize, usize),
    /// How long the sustained flood takes, whose steady state is looked for.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    time: Duration,
    /// Messages per second of each producer in the sustained flood.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = rate)]
    rate: f64,
}

fn range(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('-').and_then(|(min, max)| {
        let (min, max) = (min.parse().ok()?, max.parse().ok()?);
        (16 <= min && min <= max && max <= 134_217_728).then_some((min, max))
    });
    parsed.ok_or_else(|| "two sizes from 16 on are expected, as in 35-400".into())
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        _ => Err("a number of messages per second above 0 is expected".into()),
    }
}

/// Producers, and messages of each: those of the report.
const FLOODS: [(u32, u64); 3] = [(10, 50), (10, 100), (20, 50)];

/// The floods of the report, and one that lasts.
pub fn scenario(arguments: &Arguments) -> Scenario {
    let mut cases: Vec<Case> = FLOODS
        .iter()
        .map(|(count, messages)| {
            let mut settings = settings(arguments, *count);
            settings.producers.limit = Some(*messages);
            settings.consumers.limit = Some(*messages);
            settings.limits.time = Some(Duration::from_secs(60));
            Case::load(format!("{count} x {messages} messages"), settings)
                .with("producers", *count)
                .with("messages", *messages)
        })
        .collect();
    let mut lasting = settings(arguments, 10);
    lasting.producers.rate = crate::settings::Rate::Fixed(arguments.rate);
    lasting.limits.time = Some(arguments.time);
    let name = format!(
        "10 at {}/s, {} s",
        arguments.rate,
        arguments.time.as_secs_f64()
    );
    cases.push(
        Case::load(name, lasting)
            .with("producers", 10)
            .with("rate", arguments.rate)
            .with("time", arguments.time.as_secs_f64()),
    );
    Scenario {
        name: "w4",
        about: "a flood of orders: time from producer to consumer (2009)",
        figures: vec!["mean", "stdev", "p99", "max", "received"],
        notes: vec![
            "In 2009, with RabbitMQ 1.5.5, it was over 0.5 s. With --steady the lasting flood is \
             measured from where it is steady; `leveret perf changes` shows where that is."
                .into(),
        ],
        cases,
    }
}

fn settings(arguments: &Arguments, count: u32) -> Settings {
    let queues = (1..=count)
        .map(|n| format!("leveret-perf-w4-{n}"))
        .collect();
    let (min, max) = arguments.size;
    Settings {
        id: "w4".into(),
        topology: Topology {
            exchange: super::EXCHANGE.into(),
            queues: Queues::InTurn(queues),
            ..Topology::default()
        },
        producers: Producers {
            count,
            ..Producers::default()
        },
        payload: Payload::of(Body::Between(min, max)),
        consumers: Consumers {
            count,
            ..Consumers::default()
        },
        limits: Limits::default(),
        output: Output::none(),
        verify: true,
        clean_up: true,
        ..Settings::default()
    }
}
