//! Deleting a queue with thousands of bindings, and how long that holds up whoever publishes to the
//! same exchange. The messages are transient: what they wait for is the broker, not its disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::{Connection, Options};

use crate::args::Args;
use crate::error::Error;
use crate::load::bindings::{self, Binding};
use crate::load::{DRAIN, Load, Message, Pace, Producer, Progress, queues};
use crate::measure::{self, run_local};
use crate::reading::Reading;
use crate::samples::Samples;
use crate::target::Target;

const TOPIC: &str = "leveret-bench-topic";
const DIRECT: &str = "leveret-bench-direct";
const BODY: usize = 16;
/// Bindings of the queue that goes, half of them to each exchange.
const BINDINGS: usize = 3_000;
/// Queues that stay, and the bindings of each to each exchange.
const OTHERS: usize = 10;
const OTHERS_BINDINGS: usize = 1_000;
/// Queues that go in a round, one after the other.
const TIMES: usize = 5;
/// How long confirms are watched before each, and then again.
const WATCH: Duration = Duration::from_millis(500);
/// Messages per second.
const RATE: u32 = 1_000;

/// What confirms count for: an index of [`Confirmed`].
const ASIDE: usize = 0;
const BEFORE: usize = 1;
const MEANWHILE: usize = 2;
type Confirmed = [Samples; 3];

/// What the threads share.
struct Shared {
    options: Options,
    progress: Arc<Progress>,
    phase: AtomicUsize,
}

/// One round.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = queues::names(OTHERS + 1);
    queues::make(&target.options, &names, true)?;
    let (going, staying) = (&names[OTHERS], &names[..OTHERS]);
    run_local(bind_others(&target.options, staying))?;
    let shared = Arc::new(Shared {
        options: target.options.clone(),
        progress: Progress::of(1),
        phase: AtomicUsize::new(ASIDE),
    });
    let sharing = shared.clone();
    // Binding takes its time too.
    let limit = args.round + DRAIN * 2;
    let load = move || publish(sharing);
    let producer = Load::start("producer", &shared.progress, limit, load)?;
    let deletes = run_local(delete_often(going, &shared));
    shared.progress.stop();
    let [_, before, meanwhile] = producer.join()?.map(Samples::sorted);
    let deletes = deletes?.sorted();
    queues::remove(&target.options, &names)?;
    let millis = |name, value| Reading::new(name, value, "ms");
    Ok(vec![
        millis("queue.delete, median", deletes.millis(0.5)),
        millis("queue.delete, longest", deletes.millis(1.0))
            .at_most(50.0)
            .largest_counts(),
        millis("confirm before, median", before.millis(0.5)),
        millis("longest confirm before", before.millis(1.0)).largest_counts(),
        millis("longest confirm meanwhile", meanwhile.millis(1.0))
            .at_most(50.0)
            .largest_counts(),
    ])
}

/// Bindings by three words, of which the last are often left open.
fn some_bindings(queue: &str, count: usize) -> Vec<Binding> {
    (0..count)
        .map(|n| match n % 4 {
            0 => format!("{queue}.*.event{n}"),
            1 => format!("{queue}.device{n}.#"),
            _ => format!("{queue}.device{n}.event{}", n % 7),
        })
        .map(|key| (queue.to_owned(), key))
        .collect()
}

async fn bind_others(options: &Options, names: &[String]) -> Result<(), Error> {
    let mut connection = Connection::connect(options).await?;
    let channel = connection.open_channel().await?;
    for (exchange, kind) in [(TOPIC, "topic"), (DIRECT, "direct")] {
        bindings::make_exchange(&mut connection, channel, exchange, kind, true).await?;
        for name in names {
            let some = some_bindings(name, OTHERS_BINDINGS);
            bindings::bind(&mut connection, channel, exchange, &some).await?;
        }
    }
    Ok(connection.close().await?)
}

/// Binds a queue and deletes it, again and again; returns how long each delete took.
async fn delete_often(queue: &str, shared: &Shared) -> Result<Samples, Error> {
    let phase = |phase| shared.phase.store(phase, Ordering::Relaxed);
    let mut connection = Connection::connect(&shared.options).await?;
    let channel = connection.open_channel().await?;
    let options = client::QueueOptions::durable();
    let some = some_bindings(queue, BINDINGS / 2);
    let mut deletes = Samples::default();
    for _ in 0..TIMES {
        connection.declare_queue(channel, queue, &options).await?;
        bindings::bind(&mut connection, channel, TOPIC, &some).await?;
        bindings::bind(&mut connection, channel, DIRECT, &some).await?;
        phase(BEFORE);
        measure::wait(WATCH, &shared.progress);
        phase(MEANWHILE);
        let began = Instant::now();
        connection.delete_queue(channel, queue).await?;
        deletes.push(began.elapsed());
        measure::wait(WATCH.saturating_sub(began.elapsed()), &shared.progress);
        phase(ASIDE);
    }
    connection.close().await?;
    Ok(deletes)
}

/// Publishes at a steady pace to a queue that stays; returns how long each confirm took.
async fn publish(shared: Arc<Shared>) -> Result<Confirmed, Error> {
    // One of the first queue's bindings; no other's.
    let key = format!("{}.device2.event2", queues::names(OTHERS + 1)[0]);
    let message = Message {
        exchange: TOPIC.into(),
        routing_keys: [key.into_boxed_str()].into(),
        body: BODY,
        persistent: false,
    };
    let mut producer = Producer::connect(&shared.options, message).await?;
    producer.confirm_within(u64::MAX).await?;
    let mut waiting = VecDeque::new();
    let mut confirmed = Confirmed::default();
    let pace = Pace::start(RATE, Duration::from_secs(1) / RATE)?;
    while !shared.progress.stopped() {
        while producer.next() < pace.due() {
            producer.publish()?;
            waiting.push_back(Instant::now());
        }
        producer.connection.try_flush();
        tokio::select! {
            ticked = pace.tick() => ticked?,
            arrived = producer.connection.ready() => arrived?,
        }
        let before = producer.confirmed();
        producer.take_confirms()?;
        let phase = shared.phase.load(Ordering::Relaxed);
        let new = (producer.confirmed() - before) as usize;
        let times = waiting.drain(..new).map(|began| began.elapsed());
        times.for_each(|time| confirmed[phase].push(time));
    }
    producer.settle().await?;
    producer.close().await?;
    Ok(confirmed)
}
