//! Small transactions of several clients, and what they cost an unrelated flow.
//!
//! Turns alternate: transactions alone, the flow alone, both. The flow is transient, unacknowledged
//! and paced: an unlimited one would compete for the processors with the clients of the
//! transactions, which are load too, and lose for reasons that are not the broker's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use client::Options;

use crate::args::Args;
use crate::error::Error;
use crate::load::{Acks, Consumer, DRAIN, Load, Message, Pace, Producer, Progress, queues};
use crate::measure::{self, WARM_UP};
use crate::reading::Reading;
use crate::samples::Samples;
use crate::target::Target;

const CLIENTS: usize = 4;
const BODY: usize = 1024;
/// Commits after which a client empties its queue.
const PURGE_EVERY: u64 = 1_000;
/// The flow: messages per second, bytes, and from how many under way it waits.
const FLOW_RATE: u32 = 200_000;
const FLOW_BODY: usize = 16;
const FLOW_IN_FLIGHT: u64 = 50_000;
const FLOW_TICK: Duration = Duration::from_millis(1);
/// Messages that the flow may be late by and still catch up: 100 ms.
const FLOW_ARREARS: u64 = FLOW_RATE as u64 / 10;
/// Its place in [`Progress`] is behind the clients'.
const FLOW: usize = CLIENTS;
/// Length of a turn, about, and of what is not counted at its beginning.
const TURN: Duration = Duration::from_millis(500);
const SETTLE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(1);

/// Who works in a turn: bits.
const TRANSACTIONS: u8 = 1;
const MESSAGES: u8 = 2;
const TURNS: [u8; 3] = [TRANSACTIONS, TRANSACTIONS | MESSAGES, MESSAGES];

/// What the threads share.
struct Shared {
    options: Options,
    progress: Arc<Progress>,
    turn: AtomicU8,
}

impl Shared {
    fn turn_of(&self, who: u8) -> bool {
        self.turn.load(Ordering::Relaxed) & who != 0
    }
}

/// One round.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = queues::names(CLIENTS + 1);
    let (client_queues, flow_queue) = names.split_at(CLIENTS);
    queues::make(&target.options, client_queues, true)?;
    queues::make(&target.options, flow_queue, false)?;
    let shared = Arc::new(Shared {
        options: target.options.clone(),
        progress: Progress::of(CLIENTS + 1),
        turn: AtomicU8::new(0),
    });
    let limit = WARM_UP + args.round * 2 + DRAIN;
    let mut clients = Vec::new();
    for (client, queue) in client_queues.iter().cloned().enumerate() {
        let sharing = shared.clone();
        let load = move || commit(sharing, client, queue);
        clients.push(Load::start("client", &shared.progress, limit, load)?);
    }
    let (sharing, queue) = (shared.clone(), flow_queue[0].clone());
    let load = move || consume(sharing, queue);
    let consumer = Load::start("consumer", &shared.progress, limit, load)?;
    let (sharing, queue) = (shared.clone(), flow_queue[0].clone());
    let load = move || produce(sharing, queue);
    let producer = Load::start("producer", &shared.progress, limit, load)?;
    let totals = take_turns(args, target, &shared);
    let times = clients.into_iter().map(Load::join);
    let times = times.collect::<Result<Vec<_>, _>>();
    let (sent, received) = (producer.join(), consumer.join());
    let (times, sent, received) = (times?, sent?, received?);
    if sent != received {
        return Err(Error::Miscount { sent, received });
    }
    queues::remove(&target.options, &names)?;
    Ok(readings(&totals?, times))
}

/// What one kind of turn has given.
#[derive(Debug, Default, Clone, Copy)]
struct Total {
    time: Duration,
    commits: u64,
    messages: u64,
    cpu: Option<Duration>,
}

impl Total {
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// In the order of [`TURNS`].
fn take_turns(args: &Args, target: &Target, shared: &Shared) -> Result<[Total; 3], Error> {
    shared
        .turn
        .store(TRANSACTIONS | MESSAGES, Ordering::Relaxed);
    measure::wait(WARM_UP, &shared.progress);
    let mut totals = [Total::default(); 3];
    let each = args.round / TURNS.len() as u32;
    let cycles = (each.as_secs_f64() / TURN.as_secs_f64()).ceil();
    for _ in 0..cycles as u32 {
        for (who, total) in TURNS.iter().zip(&mut totals) {
            shared.turn.store(*who, Ordering::Relaxed);
            measure::wait(SETTLE, &shared.progress);
            let before = Look::now(target, shared)?;
            measure::wait(each.div_f64(cycles), &shared.progress);
            let after = Look::now(target, shared)?;
            total.time += after.at - before.at;
            total.commits += after.commits - before.commits;
            total.messages += after.messages - before.messages;
            let cpu = before.cpu.zip(after.cpu).map(|(b, a)| a - b);
            total.cpu = cpu.map(|cpu| cpu + total.cpu.unwrap_or_default());
        }
    }
    shared.progress.stop();
    Ok(totals)
}

struct Look {
    at: Instant,
    commits: u64,
    messages: u64,
    cpu: Option<Duration>,
}

impl Look {
    fn now(target: &Target, shared: &Shared) -> Result<Look, Error> {
        let flows = &shared.progress.flows;
        Ok(Look {
            cpu: target.usage()?.map(|usage| usage.cpu),
            at: Instant::now(),
            commits: flows[..FLOW].iter().map(|flow| flow.received()).sum(),
            messages: flows[FLOW].received(),
        })
    }
}

fn readings(totals: &[Total; 3], times: Vec<[Samples; 2]>) -> Vec<Reading> {
    let [alone, both, flow] = totals;
    let commits = |total: &Total| total.per_second(total.commits);
    let messages = |total: &Total| total.per_second(total.messages);
    let mut samples = [Samples::default(), Samples::default()];
    times.into_iter().for_each(|[alone, beside]| {
        samples[0].extend([alone]);
        samples[1].extend([beside]);
    });
    let [times_alone, times_beside] = samples.map(Samples::sorted);
    let cpu = alone.cpu.map(|cpu| {
        let micros = cpu.as_secs_f64() * 1e6 / alone.commits.max(1) as f64;
        Reading::new("broker CPU", micros, "µs/commit")
    });
    let kept = 100.0 * messages(both) / messages(flow).max(f64::MIN_POSITIVE);
    let kept = Reading::new("flow kept", kept, "%");
    // A broker that cannot keep the pace anyway loses nothing to the transactions.
    let kept = match messages(flow) >= 0.95 * f64::from(FLOW_RATE) {
        true => kept.at_least(90.0),
        false => kept,
    };
    let mut readings = vec![
        Reading::new("commits", commits(alone), "commits/s").at_least(15_000.0),
        Reading::new("a commit, median", times_alone.millis(0.5), "ms"),
        Reading::new("a commit, p99", times_alone.millis(0.99), "ms"),
        Reading::new("commits beside the flow", commits(both), "commits/s"),
        Reading::new("a commit then, p99", times_beside.millis(0.99), "ms"),
        Reading::new("flow alone", messages(flow), "msg/s"),
        Reading::new("flow beside commits", messages(both), "msg/s"),
        kept,
    ];
    readings.extend(cpu);
    readings
}

/// Commits transactions of one message; returns how long each took, without the flow and with it.
async fn commit(shared: Arc<Shared>, client: usize, queue: String) -> Result<[Samples; 2], Error> {
    let message = Message::to_queue(&queue, BODY, true);
    let mut producer = Producer::connect(&shared.options, message).await?;
    let purging = producer.connection.open_channel().await?;
    producer.connection.tx_select(producer.channel).await?;
    let mut samples = [Samples::default(), Samples::default()];
    while !shared.progress.stopped() {
        if !shared.turn_of(TRANSACTIONS) {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let began = Instant::now();
        producer.publish()?;
        producer.commit().await?;
        samples[usize::from(shared.turn_of(MESSAGES))].push(began.elapsed());
        shared.progress.flows[client].add_received(1);
        if producer.next().is_multiple_of(PURGE_EVERY) {
            producer.connection.purge(purging, &queue).await?;
        }
    }
    producer.close().await?;
    Ok(samples)
}

/// Publishes the flow at its pace, or later.
async fn produce(shared: Arc<Shared>, queue: String) -> Result<u64, Error> {
    let message = Message::to_queue(&queue, FLOW_BODY, false);
    let mut producer = Producer::connect(&shared.options, message).await?;
    let mut pace = Pace::start(FLOW_RATE, FLOW_TICK)?;
    let mut base = 0;
    while !shared.progress.stopped() {
        pace.tick().await?;
        let due = base + pace.due();
        if !shared.turn_of(MESSAGES) || due > producer.next() + FLOW_ARREARS {
            pace.restart();
            base = producer.next();
            continue;
        }
        while producer.next() < due && !shared.progress.stopped() {
            producer.step(due).await?;
        }
        shared.progress.flows[FLOW].set_sent(producer.next());
        shared.progress.balance(FLOW, FLOW_IN_FLIGHT).await;
    }
    producer.publish_quit()?;
    let sent = producer.next();
    producer.close().await?;
    Ok(sent)
}

async fn consume(shared: Arc<Shared>, queue: String) -> Result<u64, Error> {
    let mut consumer = Consumer::connect(&shared.options, &queue, Acks::None).await?;
    while !consumer.quit() {
        let count = consumer.take(|_| ()).await?;
        shared.progress.flows[FLOW].add_received(count);
    }
    let received = consumer.next();
    consumer.close().await?;
    Ok(received)
}
