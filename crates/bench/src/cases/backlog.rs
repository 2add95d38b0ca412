//! A deep backlog: filling one durable queue that nobody consumes, restarting on it, emptying it.

use std::time::{Duration, Instant};

use client::{Connection, Options};

use crate::args::Args;
use crate::case::Outcome;
use crate::error::Error;
use crate::load::queues::{self, QUEUE};
use crate::load::{Acks, Consumer, DRAIN, Message, Producer};
use crate::measure::run_local;
use crate::reading::Reading;
use crate::target::Target;

const BODY: usize = 1024;
/// Messages that may be unconfirmed while filling.
const WINDOW: u64 = 1_000;
/// Deliveries that may be unacknowledged while emptying.
const PREFETCH: u16 = 5_000;
/// A deeper backlog is restarted on at this depth, too.
const FIRST_STOP: u64 = 1_000_000;
/// Room per message: it is written to the log and to a segment, of which the log needs some once.
const ROOM_EACH: u64 = 2_048;
const ROOM_FIXED: u64 = 2 << 30;
const MEBIBYTE: f64 = 1_048_576.0;

/// Everything, once.
pub fn measure(args: &Args, target: &mut Target) -> Result<Outcome, Error> {
    let depth = args.backlog;
    target.needs_room(depth * ROOM_EACH + ROOM_FIXED)?;
    queues::make(&target.options, &[QUEUE.into()], true)?;
    let mut filling = Filling::new(depth);
    let stops = match target.is_own() && depth > FIRST_STOP {
        true => vec![FIRST_STOP, depth],
        false => vec![depth],
    };
    let mut restarts = Vec::new();
    for stop in stops {
        run_local(filling.leg(stop, target))?;
        if target.is_own() {
            let time = target.crash_and_restart()?;
            restarts.push(restart_reading(stop, time));
            holds(stop, &target.options)?;
        }
    }
    let emptied = run_local(empty(depth, target))?;
    queues::remove(&target.options, &[QUEUE.into()])?;
    let mut readings = filling.readings();
    readings.extend(restarts);
    readings.extend(emptied);
    let notes = vec![
        format!("filled with at most {WINDOW} unconfirmed; emptied with prefetch {PREFETCH},"),
        "acks by batch; every message came once, in order".into(),
    ];
    Ok(Outcome::of_readings(readings, notes))
}

/// Fails when nothing comes of it for long: how long all of it takes is what is measured.
async fn within<T>(
    role: &'static str,
    step: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let limit = DRAIN;
    tokio::time::timeout(limit, step)
        .await
        .unwrap_or(Err(Error::Stuck { role, limit }))
}

fn restart_reading(depth: u64, time: Duration) -> Reading {
    let limit = match depth <= FIRST_STOP {
        true => 250.0,
        false => 1_000.0,
    };
    let name = format!("restart after kill -9 at {depth}");
    let reading = Reading::new(name, time.as_secs_f64() * 1e3, "ms");
    reading.at_most(limit).aim(100.0)
}

/// Fails unless the queue holds that many messages.
fn holds(wanted: u64, options: &Options) -> Result<(), Error> {
    run_local(async {
        let mut connection = Connection::connect(options).await?;
        let channel = connection.open_channel().await?;
        let found = queues::count(&mut connection, channel, QUEUE).await?;
        connection.close().await?;
        match found == wanted {
            true => Ok(()),
            false => Err(Error::Depth { wanted, found }),
        }
    })
}

/// What filling has given, over all legs between restarts.
struct Filling {
    depth: u64,
    confirmed: u64,
    time: Duration,
    /// When each hundredth of the depth was confirmed, in time spent filling.
    marks: Vec<Duration>,
    cpu: Option<Duration>,
    peak_rss: Option<u64>,
}

impl Filling {
    fn new(depth: u64) -> Filling {
        Filling {
            depth,
            confirmed: 0,
            time: Duration::ZERO,
            marks: vec![Duration::ZERO],
            cpu: None,
            peak_rss: None,
        }
    }

    /// Publishes up to that message, until it is confirmed.
    async fn leg(&mut self, stop: u64, target: &Target) -> Result<(), Error> {
        let message = Message::to_queue(QUEUE, BODY, true);
        let mut producer = Producer::connect(&target.options, message).await?;
        producer.confirm_within(WINDOW).await?;
        producer.begin_at(self.confirmed);
        let before = target.usage()?;
        let (began, spent) = (Instant::now(), self.time);
        while producer.confirmed() < stop {
            match producer.next() < stop {
                true => within("producer", producer.step(stop)).await?,
                false => within("producer", producer.settle()).await?,
            }
            self.time = spent + began.elapsed();
            self.mark(producer.confirmed());
        }
        if let Some((before, after)) = before.zip(target.usage()?) {
            self.cpu = Some(self.cpu.unwrap_or_default() + after.cpu - before.cpu);
            // Another's peak may be older than the backlog.
            let peak = target.is_own().then_some(after.peak_rss);
            self.peak_rss = self.peak_rss.max(peak);
        }
        producer.close().await
    }

    fn mark(&mut self, confirmed: u64) {
        self.confirmed = confirmed;
        while self.marks.len() as u64 * self.depth / 100 <= confirmed && self.marks.len() <= 100 {
            self.marks.push(self.time);
        }
    }

    fn readings(&self) -> Vec<Reading> {
        let rate = self.depth as f64 / self.time.as_secs_f64();
        let tenth = |from: usize| {
            let time = self.marks[from + 10] - self.marks[from];
            self.depth as f64 / 10.0 / time.as_secs_f64()
        };
        let mut readings = vec![
            Reading::new("rate in", rate, "msg/s").at_least(250_000.0),
            Reading::new("first tenth", tenth(0), "msg/s"),
            Reading::new("last tenth", tenth(90), "msg/s"),
            Reading::new("last / first tenth", 100.0 * tenth(90) / tenth(0), "%").at_least(80.0),
        ];
        let cpu = self.cpu.map(|cpu| {
            let micros = cpu.as_secs_f64() * 1e6 / self.depth as f64;
            Reading::new("broker CPU while filling", micros, "µs/msg")
        });
        let rss = self.peak_rss.map(|rss| {
            let rss = rss as f64 / MEBIBYTE;
            Reading::new("peak RSS while filling", rss, "MiB").at_most(400.0)
        });
        readings.extend(cpu.into_iter().chain(rss));
        readings
    }
}

/// Consumes everything, and checks that nothing is left.
async fn empty(depth: u64, target: &Target) -> Result<Vec<Reading>, Error> {
    let before = target.usage()?;
    let began = Instant::now();
    let acks = Acks::Batch { prefetch: PREFETCH };
    let mut consumer = Consumer::connect(&target.options, QUEUE, acks).await?;
    while consumer.next() < depth {
        within("consumer", consumer.take(|_| ())).await?;
    }
    let time = began.elapsed();
    let after = target.usage()?;
    let left = consumer.cancel_and_count(QUEUE).await?;
    consumer.close().await?;
    if left > 0 {
        let (sent, received) = (depth, depth + left);
        return Err(Error::Miscount { sent, received });
    }
    let rate = depth as f64 / time.as_secs_f64();
    let mut readings = vec![
        Reading::new("rate out", rate, "msg/s")
            .at_least(400_000.0)
            .aim(700_000.0),
    ];
    if let Some((before, after)) = before.zip(after) {
        let micros = (after.cpu - before.cpu).as_secs_f64() * 1e6 / depth as f64;
        readings.push(Reading::new("broker CPU while emptying", micros, "µs/msg"));
        let peak = after.peak_rss as f64 / MEBIBYTE;
        // A broker of our own has been restarted.
        readings.push(Reading::new("peak RSS since its start", peak, "MiB"));
    }
    Ok(readings)
}
