//! How long a persistent message takes to its consumer, and to its confirm, at a fixed rate.
//!
//! Messages are due at fixed times. Each carries the time at which it was due, and latency counts
//! from there: whatever holds up the producer counts too (no coordinated omission).

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::Options;

use crate::args::Args;
use crate::error::Error;
use crate::load::queues::{self, QUEUE};
use crate::load::{Acks, Consumer, DRAIN, Load, Message, Pace, Producer, Progress};
use crate::measure::{self, WARM_UP};
use crate::reading::Reading;
use crate::samples::Samples;
use crate::target::Target;

const BODY: usize = 1024;
const PREFETCH: u16 = 1_000;
/// Messages per second.
const RATE: u32 = 5_000;
/// Messages published in the warm-up, whose times do not count.
const UNCOUNTED: u64 = RATE as u64 * WARM_UP.as_secs();

/// One round.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = [QUEUE.to_owned()];
    queues::make(&target.options, &names, true)?;
    let progress = Progress::of(1);
    let side = Side {
        options: target.options.clone(),
        progress: progress.clone(),
        zero: Instant::now(),
    };
    let consuming = side.clone();
    let limit = WARM_UP + args.round + DRAIN;
    let consumer = Load::start("consumer", &progress, limit, move || consume(consuming))?;
    let producer = Load::start("producer", &progress, limit, move || produce(side))?;
    let started = Instant::now();
    measure::wait(WARM_UP + args.round, &progress);
    progress.stop();
    let elapsed = started.elapsed().as_secs_f64();
    let (published, consumed) = (producer.join(), consumer.join());
    let (published, (received, deliveries)) = (published?, consumed?);
    let Published {
        sent,
        confirms,
        latest,
    } = published;
    if sent != received {
        return Err(Error::Miscount { sent, received });
    }
    queues::remove(&target.options, &names)?;
    let (confirms, deliveries) = (confirms.sorted(), deliveries.sorted());
    Ok(vec![
        Reading::new("rate", sent as f64 / elapsed, "msg/s"),
        Reading::new("to consumer, median", deliveries.millis(0.5), "ms").aiming_at_most(0.25),
        Reading::new("to consumer, p99", deliveries.millis(0.99), "ms").aiming_at_most(0.6),
        Reading::new("to consumer, longest", deliveries.millis(1.0), "ms").largest_counts(),
        Reading::new("to confirm, median", confirms.millis(0.5), "ms"),
        Reading::new("to confirm, p99", confirms.millis(0.99), "ms"),
        // Time that this program, not the broker, has lost.
        Reading::new("published late, longest", latest.as_secs_f64() * 1e3, "ms").largest_counts(),
    ])
}

/// What a thread works with.
#[derive(Clone)]
struct Side {
    options: Options,
    progress: Arc<Progress>,
    /// Times in bodies count from here.
    zero: Instant,
}

/// What publishing gave.
struct Published {
    sent: u64,
    /// Times to confirms.
    confirms: Samples,
    /// The latest that a message left after it was due.
    latest: Duration,
}

/// Publishes in time until the round is over.
async fn produce(side: Side) -> Result<Published, Error> {
    let message = Message::to_queue(QUEUE, BODY, true);
    let mut producer = Producer::connect(&side.options, message).await?;
    producer.confirm_within(u64::MAX).await?;
    let (mut confirms, mut latest) = (Samples::default(), Duration::ZERO);
    let pace = Pace::start(RATE, Duration::from_secs(1) / RATE)?;
    while !side.progress.stopped() {
        latest = latest.max(publish_due(&mut producer, &pace, side.zero)?);
        producer.connection.try_flush();
        tokio::select! {
            ticked = pace.tick() => ticked?,
            arrived = producer.connection.ready() => arrived?,
        }
        take_confirms(&mut producer, &pace, &mut confirms)?;
    }
    while producer.confirmed() < producer.next() {
        producer.connection.ready().await?;
        take_confirms(&mut producer, &pace, &mut confirms)?;
    }
    producer.publish_quit()?;
    let sent = producer.next();
    producer.close().await?;
    Ok(Published {
        sent,
        confirms,
        latest,
    })
}

/// Publishes what is due; returns by how much the first of it is late.
fn publish_due(producer: &mut Producer, pace: &Pace, zero: Instant) -> Result<Duration, Error> {
    let due = pace.due();
    let late = match producer.next() < due && producer.next() >= UNCOUNTED {
        true => pace.intended(producer.next()).elapsed(),
        false => Duration::ZERO,
    };
    while producer.next() < due {
        let intended = pace.intended(producer.next()) - zero;
        let mark = (intended.as_nanos() as u64).to_be_bytes();
        producer.body_after_number()[..mark.len()].copy_from_slice(&mark);
        producer.publish()?;
    }
    Ok(late)
}

fn take_confirms(producer: &mut Producer, pace: &Pace, samples: &mut Samples) -> Result<(), Error> {
    let before = producer.confirmed();
    producer.take_confirms()?;
    let now = Instant::now();
    (before.max(UNCOUNTED)..producer.confirmed())
        .for_each(|number| samples.push(now - pace.intended(number)));
    Ok(())
}

/// Receives until the end; returns how many messages, and the times they took.
async fn consume(side: Side) -> Result<(u64, Samples), Error> {
    let acks = Acks::Batch { prefetch: PREFETCH };
    let mut consumer = Consumer::connect(&side.options, QUEUE, acks).await?;
    let mut samples = Samples::default();
    let mut seen = 0;
    while !consumer.quit() {
        let each = |body: &[u8]| {
            seen += 1;
            if let Some((mark, _)) = body.split_first_chunk().filter(|_| seen > UNCOUNTED) {
                let intended = Duration::from_nanos(u64::from_be_bytes(*mark));
                samples.push(side.zero.elapsed().saturating_sub(intended));
            }
        };
        let count = consumer.take(each).await?;
        side.progress.flows[0].add_received(count);
    }
    let received = consumer.next();
    consumer.close().await?;
    Ok((received, samples))
}
