//! W1: persistent messages through a direct exchange in transactions of different sizes, while a
//! consumer acknowledges one by one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Connection, ExchangeOptions, FieldTable, Options};

use crate::args::Args;
use crate::error::Error;
use crate::load::queues::{self, QUEUE};
use crate::load::{Acks, Consumer, DRAIN, Load, Message, Producer, Progress};
use crate::measure::{self, WARM_UP, run_local};
use crate::reading::Reading;
use crate::target::Target;

/// Messages per commit.
const SIZES: [u64; 6] = [500, 1_000, 2_500, 5_000, 10_000, 20_000];
const EXCHANGE: &str = "leveret-bench-w1";
const BODY: usize = 1_000;
/// Messages committed and not received from which the producer waits.
const IN_FLIGHT: u64 = 20_000;

/// One round of each size.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = [QUEUE.to_owned()];
    queues::make(&target.options, &names, true)?;
    run_local(bind(&target.options))?;
    let mut readings = Vec::new();
    let (mut longest, mut rates) = (Duration::ZERO, Vec::new());
    for size in SIZES {
        let (rate, commit) = measure_size(size, args, target)?;
        readings.push(Reading::new(format!("rate, T = {size}"), rate, "msg/s"));
        rates.push(rate);
        longest = longest.max(commit);
    }
    run_local(unbind(&target.options))?;
    queues::remove(&target.options, &names)?;
    if let (Some(small), Some(large)) = (rates.first(), rates.last()) {
        let share = 100.0 * small / large;
        readings.push(Reading::new("rate at 500 / at 20,000", share, "%").at_least(80.0));
    }
    let longest = longest.as_secs_f64() * 1e3;
    let longest = Reading::new("longest commit", longest, "ms").largest_counts();
    readings.push(longest.at_most(1_000.0));
    Ok(readings)
}

/// As the producer and the consumer of the report both did.
async fn bind(options: &Options) -> Result<(), Error> {
    let mut connection = Connection::connect(options).await?;
    let channel = connection.open_channel().await?;
    let durable = ExchangeOptions {
        durable: true,
        ..ExchangeOptions::default()
    };
    connection
        .declare_exchange(channel, EXCHANGE, "direct", &durable)
        .await?;
    connection
        .bind(channel, QUEUE, EXCHANGE, "", &FieldTable::new())
        .await?;
    Ok(connection.close().await?)
}

async fn unbind(options: &Options) -> Result<(), Error> {
    let mut connection = Connection::connect(options).await?;
    let channel = connection.open_channel().await?;
    connection.delete_exchange(channel, EXCHANGE, false).await?;
    Ok(connection.close().await?)
}

/// Messages per second, and the longest commit.
fn measure_size(size: u64, args: &Args, target: &Target) -> Result<(f64, Duration), Error> {
    let progress = Progress::of(1);
    let limit = WARM_UP + args.round + DRAIN;
    let (options, shared) = (target.options.clone(), progress.clone());
    let consumer = Load::start("consumer", &progress, limit, move || {
        consume(options, shared)
    })?;
    let (options, shared) = (target.options.clone(), progress.clone());
    let producer = Load::start("producer", &progress, limit, move || {
        produce(options, shared, size)
    })?;
    let figures = measure::round(args, target, &progress);
    let (produced, received) = (producer.join(), consumer.join());
    let ((sent, longest), received) = (produced?, received?);
    match sent == received {
        true => Ok((figures?.rate, longest)),
        false => Err(Error::Miscount { sent, received }),
    }
}

/// Commits transactions until the round is over; returns the number of messages, and the longest
/// commit.
async fn produce(
    options: Options,
    progress: Arc<Progress>,
    size: u64,
) -> Result<(u64, Duration), Error> {
    let message = Message {
        exchange: EXCHANGE.into(),
        routing_keys: ["".into()].into(),
        body: BODY,
        persistent: true,
    };
    let mut producer = Producer::connect(&options, message).await?;
    producer.connection.tx_select(producer.channel).await?;
    let mut longest = Duration::ZERO;
    while !progress.stopped() {
        let end = producer.next() + size;
        while producer.next() < end {
            producer.step(end).await?;
        }
        let began = Instant::now();
        producer.commit().await?;
        longest = longest.max(began.elapsed());
        // Again, as the report's producer did.
        producer.connection.tx_select(producer.channel).await?;
        progress.flows[0].set_sent(producer.next());
        progress.balance(0, IN_FLIGHT).await;
    }
    producer.publish_quit()?;
    producer.commit().await?;
    let sent = producer.next();
    producer.close().await?;
    Ok((sent, longest))
}

async fn consume(options: Options, progress: Arc<Progress>) -> Result<u64, Error> {
    let mut consumer = Consumer::connect(&options, QUEUE, Acks::Each).await?;
    while !consumer.quit() {
        let count = consumer.take(|_| ()).await?;
        progress.flows[0].add_received(count);
    }
    let received = consumer.next();
    consumer.close().await?;
    Ok(received)
}
