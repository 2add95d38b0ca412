//! Made-up results that look like real ones, for tests and for looking at pages.

use std::sync::OnceLock;

use hdrhistogram::Histogram;
use testkit::Random;

use crate::changepoint::{Analysis, Change};
use crate::result::{
    Broker, Checks, ConsumerChecks, Document, FORMAT, Host, Interval, Latency, Percentiles, Run,
    Totals,
};

/// How a made-up broker behaves.
#[derive(Debug, Clone, Copy)]
struct Character {
    product: &'static str,
    version: &'static str,
    address: &'static str,
    rate: f64,
    /// Median latency in nanoseconds.
    median: f64,
    /// Standard deviation of its logarithm.
    spread: f64,
    cpu: f64,
}

const LEVERET: Character = Character {
    product: "Leveret",
    version: "0.3.0",
    address: "127.0.0.1:5672",
    rate: 82_000.0,
    median: 850e3,
    spread: 0.45,
    cpu: 3.1,
};

const RABBITMQ: Character = Character {
    product: "RabbitMQ",
    version: "4.1.2",
    address: "127.0.0.1:5673",
    rate: 41_000.0,
    median: 2_600e3,
    spread: 0.6,
    cpu: 19.4,
};

/// One result of a scenario on two brokers: four loads, two rounds.
pub fn two_brokers() -> Vec<(String, Document)> {
    let mut random = Random::new(7);
    let mut document = document("w1", None);
    document.command = [
        "leveret",
        "perf",
        "w1",
        "--against",
        "amqp://127.0.0.1:5673",
        "--rounds",
        "2",
    ]
    .map(str::to_owned)
    .into();
    for (index, name) in ["T=500", "T=2000", "T=5000", "T=20000"]
        .into_iter()
        .enumerate()
    {
        for round in 1..=2 {
            for character in [LEVERET, RABBITMQ] {
                let faster = 1.0 + 0.2 * index as f64;
                let character = Character {
                    rate: character.rate * faster,
                    ..character
                };
                let mut run = run(&mut random, name, round, character);
                let published = [1_538.0, 2_390.0, 2_741.0, 3_075.0][index];
                run.published
                    .insert("received rate (msg/s)".into(), published);
                let longest = normal(&mut random).abs() * 20.0 + 4.0;
                run.figures.insert("longest commit (ms)".into(), longest);
                document.runs.push(run);
            }
        }
    }
    vec![("w1.json".into(), document)]
}

/// One run of PerfTest's kind.
pub fn one_broker() -> Vec<(String, Document)> {
    let mut document = document("", None);
    document.scenario = None;
    document
        .runs
        .push(run(&mut Random::new(3), "test-120000-001", 1, LEVERET));
    vec![("result.json".into(), document)]
}

/// Two releases under thirty loads each; one run fails, one loses messages.
pub fn suite() -> Vec<(String, Document)> {
    static SUITE: OnceLock<Vec<(String, Document)>> = OnceLock::new();
    SUITE.get_or_init(make_suite).clone()
}

fn make_suite() -> Vec<(String, Document)> {
    let mut random = Random::new(11);
    let documents = [("v0.2.0", 1.0), ("v0.3.0-rc.1", 1.13)].map(|(label, speed)| {
        let mut document = document("suite", Some(label));
        for index in 0..30_usize {
            let (consumers, size) = ([1, 2, 4, 8, 16][index % 5], [12, 128, 1_000][index / 5 % 3]);
            let durable = if index < 15 {
                "transient"
            } else {
                "durable, confirms"
            };
            let name = format!("{consumers} queues, {size} B, {durable}");
            let speed = speed * (0.85 + random.below(30) as f64 / 100.0);
            let rate = LEVERET.rate * speed * (1.0 + (consumers as f64).log2() / 2.0);
            let version = if label == "v0.2.0" {
                "0.2.0"
            } else {
                "0.3.0-rc.1"
            };
            let character = Character {
                rate,
                version,
                median: LEVERET.median / speed,
                ..LEVERET
            };
            let mut run = run(&mut random, &name, 1, character);
            if index < 15 {
                run.confirm_latency = None;
                run.series
                    .iter_mut()
                    .for_each(|interval| interval.confirm_latency = None);
            }
            document.runs.push(run);
        }
        (format!("results/{label}.json"), document)
    });
    let mut documents = Vec::from(documents);
    fail(&mut documents[1].1.runs[7]);
    lose(&mut documents[1].1.runs[20]);
    documents
}

/// Ends a run early.
fn fail(run: &mut Run) {
    run.error = Some("connection 3 was closed by the broker: 541 INTERNAL_ERROR".into());
    run.series.truncate(12);
    run.totals.seconds = 12.0;
}

/// Makes a run's checks fail.
fn lose(run: &mut Run) {
    run.checks = Some(Checks {
        checked: run.totals.received,
        gaps: 3,
        duplicates: 1,
        by_consumer: vec![ConsumerChecks {
            queue: "perf-3".into(),
            producer: 2,
            gaps: 3,
            duplicates: 1,
            ..ConsumerChecks::default()
        }],
        ..Checks::default()
    });
}

/// A series over releases with three changes.
pub fn analysis() -> Analysis {
    let mut random = Random::new(5);
    let levels = [
        (0, 61_000.0),
        (34, 66_500.0),
        (61, 57_200.0),
        (88, 71_800.0),
    ];
    let level = |index: usize| {
        let level = levels.iter().rev().find(|(start, _)| *start <= index);
        level.map_or(0.0, |(_, level)| *level)
    };
    let values: Vec<f64> = (0..120)
        .map(|index| level(index) + normal(&mut random) * 1_800.0)
        .collect();
    let mean = |range: std::ops::Range<usize>| {
        values[range.clone()].iter().sum::<f64>() / range.len() as f64
    };
    let bounds = [0, 34, 61, 88, 120];
    let changes = [(1, 0.998, 2), (2, 1.0, 2), (3, 1.0, 1)].map(|(at, confidence, depth)| Change {
        index: bounds[at],
        confidence,
        before: mean(bounds[at - 1]..bounds[at]),
        after: mean(bounds[at]..bounds[at + 1]),
        depth,
    });
    let all = mean(0..120);
    let mut sum = 0.0;
    let sums = values.iter().map(|value| {
        sum += value - all;
        sum
    });
    Analysis {
        title: "w3, 4 queues: received rate".into(),
        unit: "messages/s".into(),
        positions: (0..120)
            .map(|index| format!("v0.{}.{}", index / 12, index % 12))
            .collect(),
        cusum: [0.0].into_iter().chain(sums).collect(),
        changes: changes.into(),
        values,
    }
}

fn document(scenario: &str, label: Option<&str>) -> Document {
    let command = [
        "leveret",
        "perf",
        scenario,
        "--duration",
        "30",
        "--json",
        "result.json",
    ];
    Document {
        format: FORMAT.into(),
        leveret: "0.3.0".into(),
        started: "2026-03-01T12:00:07Z".into(),
        label: label.map(str::to_owned),
        command: command
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
        scenario: Some(scenario.to_owned()),
        host: Host {
            name: "bench1".into(),
            system: "Linux 6.8.0-45-generic".into(),
            cpu: "AMD EPYC 7763 64-Core Processor".into(),
            cores: 8,
            memory_bytes: 32 << 30,
        },
        runs: Vec::new(),
    }
}

/// Thirty seconds, of which six are warm-up.
fn run(random: &mut Random, name: &str, round: u32, character: Character) -> Run {
    let series: Vec<Interval> = (1..=30)
        .map(|second| interval(random, f64::from(second), character))
        .collect();
    let steady = series[6..].to_vec();
    let mean =
        |value: fn(&Interval) -> f64| steady.iter().map(value).sum::<f64>() / steady.len() as f64;
    let (sent_rate, received_rate) = (mean(|i| i.sent_rate), mean(|i| i.received_rate));
    let count = |rate: f64| (rate * steady.len() as f64) as u64;
    Run {
        name: name.into(),
        started: "2026-03-01T12:00:07Z".into(),
        round,
        broker: Broker {
            address: character.address.into(),
            product: character.product.into(),
            version: character.version.into(),
            pid: Some(4711),
        },
        parameters: [
            ("producers", 4.into()),
            ("size", 1_000.into()),
            ("flag", "persistent".into()),
        ]
        .map(|(key, value): (&str, serde_json::Value)| (key.into(), value))
        .into(),
        stopped: [("time limit".into(), 8)].into(),
        totals: Totals {
            seconds: 24.0,
            sent: count(sent_rate),
            confirmed: count(sent_rate),
            received: count(received_rate),
            sent_rate,
            received_rate,
            load_cpu_seconds: 21.0,
            broker_cpu_seconds: Some(character.cpu * received_rate * 24.0 / 1e6),
            broker_cpu_us_per_message: Some(character.cpu * (1.0 + normal(random) * 0.02)),
            broker_rss_bytes: Some((character.cpu * 21.0 * f64::from(1 << 20)) as u64),
            broker_written_bytes: Some((received_rate * 24.0 * 1_240.0) as u64),
            ..Totals::default()
        },
        steady_from_second: Some(6.0),
        series,
        consumer_latency: latency(random, 10_000, 400, character.median, character.spread),
        confirm_latency: latency(
            random,
            10_000,
            400,
            character.median * 0.7,
            character.spread * 0.8,
        ),
        checks: Some(Checks {
            checked: count(received_rate),
            ..Checks::default()
        }),
        ..Run::default()
    }
}

fn interval(random: &mut Random, second: f64, character: Character) -> Interval {
    let warm = 1.0 - 0.65 * (-second / 2.0).exp();
    let stall = if random.one_in(25) { 0.72 } else { 1.0 };
    let sent_rate = character.rate * warm * stall * (1.0 + normal(random) * 0.018);
    let received_rate = sent_rate * (1.0 + normal(random) * 0.008);
    let median = character.median / (warm * stall * stall);
    let spread = character.spread;
    Interval {
        time: second,
        sent_rate,
        confirmed_rate: sent_rate,
        received_rate,
        consumer_latency: percentiles(random, median, spread),
        confirm_latency: percentiles(random, median * 0.7, spread),
        broker_cpu_seconds: Some(character.cpu * received_rate / 1e6),
        broker_rss_bytes: Some(64 << 20),
        broker_written_bytes: Some((received_rate * 1_240.0) as u64),
        ..Interval::default()
    }
}

/// Log-normal, with one in a thousand much later.
fn late(random: &mut Random, median: f64, spread: f64) -> (u64, bool) {
    let later = random.one_in(1_000);
    let factor = if later {
        8.0 + 30.0 * uniform(random)
    } else {
        1.0
    };
    (
        (median * (normal(random) * spread).exp() * factor) as u64,
        later,
    )
}

fn latency(
    random: &mut Random,
    draws: u32,
    each: u64,
    median: f64,
    spread: f64,
) -> Option<Latency> {
    let bounds = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3);
    let mut histogram = bounds.expect("they are in order");
    for _ in 0..draws {
        let (value, later) = late(random, median, spread);
        // Of the largest latencies there are few.
        histogram.saturating_record_n(value, if later { 1 + each / 10 } else { each });
    }
    histogram.saturating_record((median * 90.0) as u64);
    Latency::of(&histogram)
}

/// Of an interval: without a histogram, which would be slow to make for each.
fn percentiles(random: &mut Random, median: f64, spread: f64) -> Option<Percentiles> {
    let mut values: Vec<u64> = (0..400).map(|_| late(random, median, spread).0).collect();
    values.sort_unstable();
    let quantile = |thousandths: usize| values[thousandths * 399 / 1_000];
    Some(Percentiles {
        count: 80_000,
        min_ns: quantile(0),
        mean_ns: quantile(580),
        stdev_ns: quantile(500),
        p50_ns: quantile(500),
        p75_ns: quantile(750),
        p90_ns: quantile(900),
        p95_ns: quantile(950),
        p99_ns: quantile(990),
        p999_ns: quantile(999),
        max_ns: quantile(1_000),
    })
}

fn uniform(random: &mut Random) -> f64 {
    (random.draw() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Of the standard normal distribution, after Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let (one, other) = (1.0 - uniform(random), uniform(random));
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}
