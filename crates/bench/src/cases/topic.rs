//! What routing costs: a topic exchange with many bindings, and more keys than a publisher of the
//! broker keeps the routes of.
//!
//! The queues have no consumers and hold few messages: those that come drop those that are there.

use std::sync::Arc;

use client::{Connection, FieldTable, Options, QueueOptions};
use testkit::Random;

use crate::args::Args;
use crate::error::Error;
use crate::load::bindings::{self, Binding};
use crate::load::{DRAIN, Load, Message, Producer, Progress, queues};
use crate::measure::{self, Figures, WARM_UP, run_local};
use crate::reading::Reading;
use crate::target::Target;

const EXCHANGE: &str = "leveret-bench-topic";
const BODY: usize = 16;
const QUEUES: usize = 100;
const BINDINGS: usize = 10_000;
/// Messages that a queue holds.
const LENGTH: i64 = 1_000;
/// Four times as many as a publisher keeps routes.
const KEYS: usize = 65_536;
/// Of which a publisher keeps all routes.
const FEW_KEYS: usize = 1_000;
/// Messages by which it is counted how many queues get one.
const COUNTED: u64 = 2_000;
/// Words that each place of a key may have: area, device, measure, range.
const WORDS: [usize; 4] = [50, 400, 25, 40];

/// One round.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = queues::names(QUEUES);
    let mut random = Random::new(1);
    let patterns: Vec<String> = (0..BINDINGS).map(|n| pattern(n, &mut random)).collect();
    let keys = keys(&patterns, &mut random);
    let bindings: Vec<Binding> = (0..)
        .zip(patterns)
        .map(|(n, p)| bound(&names, n, p))
        .collect();
    run_local(make(&target.options, &names, &bindings))?;
    let copies = run_local(count_copies(&target.options, &names, keys.clone()))?;
    let few: Arc<[Box<str>]> = keys[..FEW_KEYS].into();
    let routed = publish(args, target, keys)?;
    let kept = publish(args, target, few)?;
    queues::remove(&target.options, &names)?;
    let mut readings = vec![
        Reading::new("rate", routed.rate, "msg/s"),
        Reading::new("queues that get a message", copies, ""),
    ];
    let cpu = routed
        .broker_cpu
        .map(|micros| Reading::new("broker CPU", micros, "µs/msg").at_most(2.0));
    let without = kept
        .broker_cpu
        .map(|micros| Reading::new("broker CPU, 1,000 keys in turns", micros, "µs/msg"));
    readings.extend(cpu.into_iter().chain(without));
    Ok(readings)
}

fn bound(names: &[String], number: usize, pattern: String) -> Binding {
    (names[number % names.len()].clone(), pattern)
}

/// Half of the patterns are keys, the others have a `*`, a `#`, or both.
fn pattern(number: usize, random: &mut Random) -> String {
    let [area, device, measure, range] = words(random);
    match number % 20 {
        0..=9 => format!("{area}.{device}.{measure}.{range}"),
        10..=14 => format!("{area}.{device}.{measure}.*"),
        15..=16 => format!("{area}.{device}.#"),
        17 => format!("*.{device}.{measure}.#"),
        18 => format!("{area}.*.{measure}.{range}"),
        _ if random.coin() => format!("{area}.#.{range}"),
        _ => format!("#.{measure}.{range}"),
    }
}

/// Every other key fits a binding, each in its turn; the rest come as they come.
fn keys(patterns: &[String], random: &mut Random) -> Arc<[Box<str>]> {
    let any = |random: &mut Random| words(random).join(".");
    (0..KEYS)
        .map(|n| match n % 2 {
            // A stride without a common divisor: all kinds of patterns, one after the other.
            0 => fitting(&patterns[n / 2 * 7_919 % patterns.len()], random),
            _ => any(random),
        })
        .map(String::into_boxed_str)
        .collect()
}

/// A key that a pattern fits.
fn fitting(pattern: &str, random: &mut Random) -> String {
    let drawn = words(random);
    let word = |(place, word): (usize, &str)| match word {
        "*" | "#" => drawn[place].clone(),
        word => word.to_owned(),
    };
    let words: Vec<String> = pattern.split('.').enumerate().map(word).collect();
    words.join(".")
}

fn words(random: &mut Random) -> [String; 4] {
    let [area, device, measure, range] = WORDS.map(|count| random.below(count));
    [
        format!("area{area}"),
        format!("device{device}"),
        format!("measure{measure}"),
        format!("range{range}"),
    ]
}

async fn make(options: &Options, names: &[String], bindings: &[Binding]) -> Result<(), Error> {
    let mut connection = Connection::connect(options).await?;
    let channel = connection.open_channel().await?;
    let short = QueueOptions {
        arguments: FieldTable::new().with("x-max-length", LENGTH),
        ..QueueOptions::default()
    };
    for name in names {
        connection.delete_queue(channel, name).await?;
        connection.declare_queue(channel, name, &short).await?;
    }
    bindings::make_exchange(&mut connection, channel, EXCHANGE, "topic", false).await?;
    bindings::bind(&mut connection, channel, EXCHANGE, bindings).await?;
    Ok(connection.close().await?)
}

fn message(routing_keys: Arc<[Box<str>]>) -> Message {
    Message {
        exchange: EXCHANGE.into(),
        routing_keys,
        body: BODY,
        persistent: false,
    }
}

/// In how many queues a message is, on average.
async fn count_copies(
    options: &Options,
    names: &[String],
    keys: Arc<[Box<str>]>,
) -> Result<f64, Error> {
    let mut producer = Producer::connect(options, message(keys)).await?;
    while producer.next() < COUNTED {
        producer.step(COUNTED).await?;
    }
    let mut copies = 0;
    for name in names {
        copies += queues::count(&mut producer.connection, producer.channel, name).await?;
    }
    producer.close().await?;
    Ok(copies as f64 / COUNTED as f64)
}

/// Publishes as fast as the broker takes it.
fn publish(args: &Args, target: &Target, keys: Arc<[Box<str>]>) -> Result<Figures, Error> {
    let progress = Progress::of(1);
    let limit = WARM_UP + args.round + DRAIN;
    let (options, shared) = (target.options.clone(), progress.clone());
    let load = async move || {
        let mut producer = Producer::connect(&options, message(keys)).await?;
        while !shared.stopped() {
            let before = producer.next();
            producer.step(u64::MAX).await?;
            shared.flows[0].add_received(producer.next() - before);
        }
        producer.close().await
    };
    let producer = Load::start("producer", &progress, limit, load)?;
    let figures = measure::round(args, target, &progress);
    producer.join()?;
    figures
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_hardly_ever_the_same() {
        let mut random = Random::new(1);
        let patterns: Vec<String> = (0..BINDINGS).map(|n| pattern(n, &mut random)).collect();
        let keys = keys(&patterns, &mut random);
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
        // Of any as many as a publisher keeps.
        for some in keys.chunks(16_384) {
            let different: HashSet<_> = some.iter().collect();
            assert!(different.len() > 16_000, "{}", different.len());
        }
    }

    #[test]
    fn wildcards_are_filled() {
        let key = fitting("area1.*.#", &mut Random::new(1));
        let words: Vec<&str> = key.split('.').collect();
        assert_eq!((words.len(), words[0]), (3, "area1"));
        assert!(!key.contains(['*', '#']));
    }
}
