//! W3 (2016): 1 to 8 producers, queues and consumers in parallel, persistent messages with at most
//! 1,000 unconfirmed: PerfTest's `-c 1000 -f persistent`.

use std::time::Duration;

use crate::settings::{
    Body, Consumers, Limits, Output, Payload, Producers, Queues, Settings, Topology,
};

use super::arguments::seconds;
use super::{Case, Common, Scenario};

/// `leveret perf w3`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Producers, queues and consumers, one case each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    queues: Vec<u32>,
    /// How long each case takes.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    time: Duration,
    /// Messages that may be unconfirmed.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    confirm: u32,
    /// Bytes of body; PerfTest's default is 12, and 4 more tell producers apart.
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(12..=134_217_728))]
    size: u32,
}

/// Messages per second, from one queue on.
const RABBITMQ_3_3_5: [f64; 4] = [8_900.0, 16_000.0, 21_000.0, 26_000.0];
const RABBITMQ_3_6_1: [f64; 8] = [
    6_000.0, 10_300.0, 13_000.0, 16_000.0, 18_000.0, 19_000.0, 20_300.0, 20_700.0,
];

/// One case for each number of queues.
pub fn scenario(arguments: &Arguments) -> Scenario {
    let cases = arguments.queues.iter().map(|count| {
        let name = match count {
            1 => "1 queue".to_owned(),
            count => format!("{count} queues"),
        };
        let mut case = Case::load(name, settings(arguments, *count))
            .with("queues", *count)
            .with("confirm", arguments.confirm)
            .with("size", arguments.size)
            .with("time", arguments.time.as_secs_f64());
        let index = *count as usize - 1;
        for (release, rates) in [("3.3.5", &RABBITMQ_3_3_5[..]), ("3.6.1", &RABBITMQ_3_6_1)] {
            if let Some(rate) = rates.get(index) {
                case = case.published(&format!("RabbitMQ {release}, received rate"), *rate);
            }
        }
        case
    });
    Scenario {
        name: "w3",
        about: "persistent, confirmed messages through 1 to 8 queues (2016)",
        figures: vec!["received", "p50", "p99", "confirm-p99", "cpu"],
        notes: vec![
            "Published with PerfTest on 8 cores and a remote client, messages per second.".into(),
        ],
        cases: cases.collect(),
    }
}

fn settings(arguments: &Arguments, count: u32) -> Settings {
    let queues = (1..=count)
        .map(|n| format!("leveret-perf-w3-{n}"))
        .collect();
    Settings {
        id: "w3".into(),
        topology: Topology {
            exchange: super::EXCHANGE.into(),
            queues: Queues::InTurn(queues),
            durable: true,
            ..Topology::default()
        },
        producers: Producers {
            count,
            confirm: Some(arguments.confirm),
            persistent: true,
            ..Producers::default()
        },
        payload: Payload::of(Body::Sized(arguments.size as usize)),
        consumers: Consumers {
            count,
            ..Consumers::default()
        },
        limits: Limits {
            time: Some(arguments.time),
            ..Limits::default()
        },
        output: Output::none(),
        verify: true,
        clean_up: true,
        ..Settings::default()
    }
}
