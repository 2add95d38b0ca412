//! W3 through a sharded exchange, beside plain queues: as many producers, queues and consumers.
//!
//! Every producer publishes to all of the queues, message by message to another one; so do those
//! of the plain queues in the comparison, through a direct exchange, with names and keys of as many
//! octets: these are in every message, on the wire and on disk. In turns, so that all meet the same
//! disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Connection, Options};
use testkit::Random;

use crate::args::Args;
use crate::case::Reliable;
use crate::catalogue::W3;
use crate::error::Error;
use crate::load::bindings::{Binding, bind, make_exchange};
use crate::load::{Acks, Consumer, DRAIN, Load, Message, Producer, Progress, queues};
use crate::measure::{self, Figures, WARM_UP, run_local};
use crate::reading::Reading;
use crate::target::Target;

const EXCHANGE: &str = "leveret-bench-shards";
/// Leads to the plain queues.
const DIRECT: &str = "leveret-bench-direct";
const POLICY: &str = "leveret-bench";
/// Producers, shards, plain queues and consumers.
const PAIRS: usize = 4;
/// More than a publisher keeps the routes of, as with PerfTest's random keys.
const KEYS: usize = 65_536;
/// Routing keys of plain queues, in an order without a pattern.
const TURNS: usize = 4_096;
/// How often a consumer looks whether all is over.
const POLL: Duration = Duration::from_millis(20);

/// One round of each kind.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = queues::names(PAIRS);
    let plain_keys: Vec<String> = (0..PAIRS as u64).map(key).collect();
    let bindings: Vec<Binding> = names.iter().cloned().zip(plain_keys.clone()).collect();
    queues::make(&target.options, &names, true)?;
    run_local(make(&target.options, &bindings))?;
    set_policy(target)?;
    let sharded = Side {
        exchange: EXCHANGE,
        queues: vec![EXCHANGE.into(); PAIRS],
        keys: (0..PAIRS).map(random_keys).collect(),
    };
    let plain = Side {
        exchange: DIRECT,
        queues: names.clone(),
        keys: (0..PAIRS).map(|n| in_turns(n, &plain_keys)).collect(),
    };
    let apart = Side {
        keys: plain_keys
            .iter()
            .map(|key| [key.as_str().into()].into())
            .collect(),
        ..plain.clone()
    };
    let sharded = run(&sharded, args, target)?;
    let plain = run(&plain, args, target)?;
    let apart = run(&apart, args, target)?;
    queues::remove(&target.options, &names)?;
    let rate = |name, figures: &Figures| Reading::new(name, figures.rate, "msg/s");
    let mut readings = vec![
        rate("rate, sharded", &sharded),
        rate("rate, plain queues", &plain),
        Reading::new("sharded / plain", sharded.rate / plain.rate, "").at_least(1.0),
        rate("rate, each its own queue", &apart),
    ];
    let cpu = |name, figures: &Figures| {
        let micros = figures.broker_cpu?;
        Some(Reading::new(name, micros, "µs/msg"))
    };
    readings.extend(cpu("broker CPU, sharded", &sharded));
    readings.extend(cpu("broker CPU, plain queues", &plain));
    readings.extend(cpu("broker CPU, each its own queue", &apart));
    Ok(readings)
}

async fn make(options: &Options, bindings: &[Binding]) -> Result<(), Error> {
    let mut connection = Connection::connect(options).await?;
    let channel = connection.open_channel().await?;
    make_exchange(&mut connection, channel, EXCHANGE, "x-modulus-hash", true).await?;
    make_exchange(&mut connection, channel, DIRECT, "direct", true).await?;
    bind(&mut connection, channel, DIRECT, bindings).await?;
    Ok(connection.close().await?)
}

fn set_policy(target: &Target) -> Result<(), Error> {
    let pattern = format!("^{EXCHANGE}$");
    let definition = format!("{{\"shards-per-node\": {PAIRS}}}");
    target.ctl(&[
        "set_policy",
        "--apply-to",
        "exchanges",
        POLICY,
        &pattern,
        &definition,
    ])
}

fn random_keys(producer: usize) -> Arc<[Box<str>]> {
    let mut random = Random::new(producer as u64);
    (0..KEYS).map(|_| key(random.draw()).into()).collect()
}

fn in_turns(producer: usize, keys: &[String]) -> Arc<[Box<str>]> {
    let mut random = Random::new(producer as u64);
    let key = |_| keys[random.below(keys.len())].as_str().into();
    (0..TURNS).map(key).collect()
}

/// A routing key.
fn key(number: u64) -> String {
    format!("{number:016x}")
}

/// One side of the comparison.
#[derive(Clone)]
struct Side {
    exchange: &'static str,
    /// What each consumer consumes from.
    queues: Vec<String>,
    /// The routing keys of each producer.
    keys: Vec<Arc<[Box<str>]>>,
}

/// What the threads share.
struct Shared {
    options: Options,
    reliable: Reliable,
    progress: Arc<Progress>,
    /// Consumers that are not there yet: producers wait for them, because shards are shared anew
    /// with each that comes.
    awaited: AtomicUsize,
    /// Producers that may still publish.
    producing: AtomicUsize,
}

fn run(side: &Side, args: &Args, target: &Target) -> Result<Figures, Error> {
    let Some(reliable) = W3.reliable else {
        unreachable!("W3 has confirms");
    };
    let shared = Arc::new(Shared {
        options: target.options.clone(),
        reliable,
        progress: Progress::of(PAIRS),
        awaited: AtomicUsize::new(PAIRS),
        producing: AtomicUsize::new(PAIRS),
    });
    let progress = &shared.progress;
    let limit = WARM_UP + args.round + DRAIN;
    let mut loads = Vec::new();
    for (flow, (queue, keys)) in side.queues.iter().cloned().zip(&side.keys).enumerate() {
        let message = Message {
            exchange: side.exchange.into(),
            routing_keys: keys.clone(),
            body: W3.body,
            persistent: W3.durable,
        };
        let (consuming, producing) = (shared.clone(), shared.clone());
        let consumer = move || consume(consuming, flow, queue);
        let producer = move || produce(producing, flow, message);
        loads.push((
            Load::start("consumer", progress, limit, consumer)?,
            Load::start("producer", progress, limit, producer)?,
        ));
    }
    let figures = measure::round(args, target, progress);
    let (mut sent, mut received) = (0, 0);
    for (consumer, producer) in loads {
        let (took, gave) = (consumer.join(), producer.join());
        received += took?;
        sent += gave?;
    }
    match sent == received {
        true => figures,
        false => Err(Error::Miscount { sent, received }),
    }
}

/// Publishes until the round is over and all is confirmed; returns the number of messages.
async fn produce(load: Arc<Shared>, flow: usize, message: Message) -> Result<u64, Error> {
    let mut producer = Producer::connect(&load.options, message).await?;
    producer.confirm_within(load.reliable.window).await?;
    while load.awaited.load(Ordering::Acquire) > 0 && !load.progress.stopped() {
        tokio::time::sleep(POLL).await;
    }
    while !load.progress.stopped() {
        producer.step(u64::MAX).await?;
        load.progress.flows[flow].set_sent(producer.next());
        load.progress.balance_all(W3.in_flight * PAIRS as u64).await;
    }
    producer.settle().await?;
    load.progress.flows[flow].set_sent(producer.next());
    load.producing.fetch_sub(1, Ordering::Release);
    let sent = producer.next();
    producer.close().await?;
    Ok(sent)
}

/// Receives until nobody publishes and nothing is under way; returns the number of messages.
async fn consume(load: Arc<Shared>, flow: usize, queue: String) -> Result<u64, Error> {
    let prefetch = load.reliable.prefetch;
    let acks = Acks::Batch { prefetch };
    let mut consumer = Consumer::connect(&load.options, &queue, acks).await?;
    consumer.of_several_producers();
    load.awaited.fetch_sub(1, Ordering::Release);
    let over = || load.producing.load(Ordering::Acquire) == 0 && load.progress.in_flight() == 0;
    while !over() {
        let taking = consumer.take(|_| ());
        if let Ok(taken) = tokio::time::timeout(POLL, taking).await {
            load.progress.flows[flow].add_received(taken?);
        }
    }
    let received = consumer.next();
    consumer.close().await?;
    Ok(received)
}
