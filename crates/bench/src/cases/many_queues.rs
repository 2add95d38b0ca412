//! Very many durable queues: declaring them, what one costs in memory, and restarting with them.

use std::time::{Duration, Instant};

use client::method::queue;
use client::{Connection, Options, ShortStr};

use crate::case::Outcome;
use crate::error::Error;
use crate::load::{DRAIN, Load, Progress, pipeline, queues};
use crate::reading::Reading;
use crate::target::Target;

const COUNT: u64 = 100_000;
const CONNECTIONS: u64 = 4;
const CHANNELS: u64 = 25;
/// Requests that await their reply, per channel: more than a connection keeps for later.
const WINDOW: u64 = 100;
/// Lets the broker come to rest before a look.
const REST: Duration = Duration::from_secs(2);

/// What is done with every queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Declare,
    /// A passive declare, which fails where it is not there.
    Find,
    Delete,
}

/// Everything, once.
pub fn measure(target: &mut Target) -> Result<Outcome, Error> {
    // What the broker sets up once is not counted.
    queues::make(&target.options, &queues::names(2), true)?;
    queues::remove(&target.options, &queues::names(2))?;
    std::thread::sleep(REST);
    let before = target.usage()?;
    let declaring = for_all(Task::Declare, &target.options)?;
    let declared = target.usage()?;
    std::thread::sleep(REST);
    let after = target.usage()?;
    let mut readings = vec![per_second("declares", declaring).at_least(20_000.0)];
    if let Some(((before, declared), after)) = before.zip(declared).zip(after) {
        let cpu = (declared.cpu - before.cpu).as_secs_f64() * 1e6 / COUNT as f64;
        let rss = (after.rss as f64 - before.rss as f64) / COUNT as f64;
        readings.push(Reading::new("broker CPU", cpu, "µs/declare"));
        readings.push(Reading::new("RSS of a queue", rss, "bytes").at_most(2_048.0));
    }
    if target.is_own() {
        let ended = Instant::now();
        let start = target.restart()?;
        let stop = ended.elapsed().saturating_sub(start).as_secs_f64();
        let start = start.as_secs_f64() * 1e3;
        readings.push(Reading::new("stop, in order", stop * 1e3, "ms"));
        readings.push(Reading::new("restart", start, "ms").at_most(2_000.0));
    }
    let finding = for_all(Task::Find, &target.options)?;
    readings.push(per_second("passive declares then", finding));
    let deleting = for_all(Task::Delete, &target.options)?;
    readings.push(per_second("deletes", deleting));
    let notes = vec![format!(
        "over {CONNECTIONS} connections of {CHANNELS} channels, at most {WINDOW} under way on each"
    )];
    Ok(Outcome::of_readings(readings, notes))
}

fn per_second(name: &str, time: Duration) -> Reading {
    Reading::new(name, COUNT as f64 / time.as_secs_f64(), "/s")
}

/// Returns how long it took for all queues together.
fn for_all(task: Task, options: &Options) -> Result<Duration, Error> {
    let progress = Progress::of(CONNECTIONS as usize);
    let began = Instant::now();
    let mut loads = Vec::new();
    for share in 0..CONNECTIONS {
        let options = options.clone();
        let load = async move || for_share(task, share, &options).await;
        loads.push(Load::start("client", &progress, DRAIN * 3, load)?);
    }
    let mut longest = Duration::ZERO;
    for load in loads {
        longest = longest.max(load.join()?.duration_since(began));
    }
    Ok(longest)
}

/// The queues of one connection; returns when they were done.
async fn for_share(task: Task, share: u64, options: &Options) -> Result<Instant, Error> {
    let mut connection = Connection::connect(options).await?;
    for _ in 0..CHANNELS {
        connection.open_channel().await?;
    }
    let count = COUNT / CONNECTIONS;
    pipeline(
        &mut connection,
        count,
        WINDOW * CHANNELS,
        |connection, n| {
            let name = format!("{}-{}", queues::QUEUE, share * count + n);
            let channel = (1 + n % CHANNELS) as u16;
            send(task, connection, channel, ShortStr::truncated(&name));
        },
    )
    .await?;
    let done = Instant::now();
    connection.close().await?;
    Ok(done)
}

fn send(task: Task, connection: &mut Connection, channel: u16, queue: ShortStr<'_>) {
    match task {
        Task::Delete => connection.send(
            channel,
            queue::Delete {
                queue,
                ..Default::default()
            },
        ),
        Task::Declare | Task::Find => connection.send(
            channel,
            queue::Declare {
                queue,
                passive: task == Task::Find,
                durable: true,
                ..Default::default()
            },
        ),
    }
}
