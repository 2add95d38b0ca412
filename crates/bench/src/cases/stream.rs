//! Producers, queues and consumers in pairs, each with a connection and a thread.
//!
//! A producer writes batches of 64 KiB and waits while too many of its messages are under way, so
//! that what is measured is a broker in balance and not its backlog. Its last message says `quit`;
//! the round then checks that as many messages came out as went in, in their order.

use std::sync::Arc;
use std::time::Duration;

use client::Options;

use crate::args::Args;
use crate::case::{Bars, Earlier, Stream};
use crate::error::Error;
use crate::load::{Acks, Consumer, DRAIN, Load, Message, Producer, Progress, queues};
use crate::measure::{self, Figures, WARM_UP};
use crate::reading::Reading;
use crate::target::Target;

/// One round.
pub fn round(stream: &Stream, args: &Args, target: &Target) -> Result<Figures, Error> {
    run(stream, WARM_UP + args.round, target, |progress| {
        measure::round(args, target, progress)
    })
}

/// Lets messages flow while `watch` looks, which must stop them within `limit`.
pub fn run<T>(
    stream: &Stream,
    limit: Duration,
    target: &Target,
    watch: impl FnOnce(&Progress) -> Result<T, Error>,
) -> Result<T, Error> {
    let names = queues::names(stream.pairs);
    queues::make(&target.options, &names, stream.durable)?;
    let progress = Progress::of(stream.pairs);
    let limit = limit + DRAIN;
    let mut pairs = Vec::new();
    for (flow, queue) in names.iter().enumerate() {
        let pair = Pair {
            stream: *stream,
            options: target.options.clone(),
            progress: progress.clone(),
            flow,
            queue: queue.clone(),
        };
        let consuming = pair.clone();
        pairs.push((
            Load::start("producer", &progress, limit, move || produce(pair))?,
            Load::start("consumer", &progress, limit, move || consume(consuming))?,
        ));
    }
    let watched = watch(&progress);
    for (producer, consumer) in pairs {
        let (sent, received) = (producer.join(), consumer.join());
        let (sent, received) = (sent?, received?);
        if sent != received {
            return Err(Error::Miscount { sent, received });
        }
    }
    queues::remove(&target.options, &names)?;
    watched
}

/// What the two threads of a pair work with.
#[derive(Clone)]
struct Pair {
    stream: Stream,
    options: Options,
    progress: Arc<Progress>,
    flow: usize,
    queue: String,
}

/// Publishes until the round is over; returns the number of messages.
async fn produce(pair: Pair) -> Result<u64, Error> {
    let Pair {
        stream,
        options,
        progress,
        flow,
        queue,
    } = pair;
    let message = Message::to_queue(&queue, stream.body, stream.durable);
    let mut producer = Producer::connect(&options, message).await?;
    if let Some(reliable) = stream.reliable {
        producer.confirm_within(reliable.window).await?;
    }
    while !progress.stopped() {
        producer.step(u64::MAX).await?;
        progress.flows[flow].set_sent(producer.next());
        progress.balance(flow, stream.in_flight).await;
    }
    producer.publish_quit()?;
    let sent = producer.next();
    producer.close().await?;
    Ok(sent)
}

/// Receives until the message that says so; returns the number of those before it.
async fn consume(pair: Pair) -> Result<u64, Error> {
    let acks = match pair.stream.reliable {
        Some(reliable) => Acks::Batch {
            prefetch: reliable.prefetch,
        },
        None => Acks::None,
    };
    let mut consumer = Consumer::connect(&pair.options, &pair.queue, acks).await?;
    while !consumer.quit() {
        let count = consumer.take(|_| ()).await?;
        pair.progress.flows[pair.flow].add_received(count);
    }
    let received = consumer.next();
    consumer.close().await?;
    Ok(received)
}

/// What is asked of the median round.
pub fn readings(stream: &Stream, figures: &Figures, earlier: &Earlier) -> Vec<Reading> {
    let rate = || Reading::new("rate", figures.rate, "msg/s");
    let cpu = figures
        .broker_cpu
        .map(|micros| Reading::new("broker CPU", micros, "µs/msg"));
    let disk = figures
        .disk
        .map(|bytes| Reading::new("disk bytes", bytes, "bytes/msg"));
    match stream.bars {
        Bars::None => Vec::new(),
        Bars::W3 => {
            let rate = rate().at_least(250_000.0).aim(350_000.0);
            let cpu = cpu.map(|cpu| cpu.at_most(2.5).aim(2.0));
            [Some(rate), cpu, disk].into_iter().flatten().collect()
        }
        Bars::Parallel => {
            let rate = match earlier.w3_rate {
                Some(unit) => rate().at_least(unit),
                None => rate(),
            };
            let disk = disk.map(|disk| disk.at_most(1.1 * stream.body as f64 + 64.0));
            [Some(rate), cpu, disk].into_iter().flatten().collect()
        }
    }
}
