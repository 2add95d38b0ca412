//! What it costs that messages expire: as many of them with a time to live, and without. Each kind
//! is published as fast as the broker takes it, and waits in one queue until all of it is gone.

use std::ops::Range;
use std::time::{Duration, Instant};

use client::{FieldTable, PropertiesBuilder, Property, QueueOptions};
use testkit::Random;

use crate::case::Outcome;
use crate::error::Error;
use crate::load::queues::{self, QUEUE};
use crate::load::{Message, Producer};
use crate::measure::run_local;
use crate::reading::Reading;
use crate::target::Target;

const BODY: usize = 16;
const MANY: u64 = 1_000_000;
const FEW: u64 = 100_000;
/// So often, because CPU time is counted in ticks of 10 ms.
const FEW_TIMES: u32 = 5;
/// Different expirations.
const EXPIRATIONS: usize = 1_000;
/// How often it is asked whether the queue is empty, once it should be.
const POLL: Duration = Duration::from_millis(2);
/// How late messages may be gone.
const LIMIT: Duration = Duration::from_secs(20);

/// Which messages expire when, in milliseconds.
#[derive(Debug, Clone)]
enum Lives {
    /// None; they are purged.
    ForEver,
    /// All after the queue's time.
    Queue(u64),
    /// In turns from one range of expirations and from another.
    Varied([Range<u64>; 2]),
}

/// What one filling has given.
#[derive(Debug, Clone, Copy)]
struct Gone {
    /// Of the broker, from the first message to the end of the last.
    cpu: Option<Duration>,
    /// From when the last should have been gone until it was.
    late: Duration,
}

/// Everything, once.
pub fn measure(target: &Target) -> Result<Outcome, Error> {
    let varied = |short: u64, long: u64, spread: u64| {
        Lives::Varied([short..short + spread, long..long + spread])
    };
    let purged = run_local(fill(MANY, Lives::ForEver, target))?;
    let many = run_local(fill(MANY, varied(4_000, 7_000, 2_000), target))?;
    let of_queue = run_local(fill(MANY, Lives::Queue(4_000), target))?;
    let few = few_times(target, varied(800, 1_400, 400))?;
    let micros = |cpu: Option<Duration>, count| cpu.map(|c| c.as_secs_f64() * 1e6 / count as f64);
    let costs = [
        micros(purged.cpu, MANY),
        micros(of_queue.cpu, MANY),
        micros(many.cpu, MANY),
        micros(few.cpu, FEW),
    ];
    let mut readings = match costs {
        [Some(purged), Some(of_queue), Some(many), Some(few)] => {
            cpu_readings(purged, of_queue, many, few)
        }
        _ => Vec::new(),
    };
    let late = |name, time: Duration| Reading::new(name, time.as_secs_f64() * 1e3, "ms");
    readings.push(late("last gone late, of the queue's", of_queue.late));
    readings.push(late("last gone late, of varied", many.late));
    readings.push(late("last gone late, of 100,000", few.late));
    let notes = vec![
        "1,000,000 messages where nothing else is said; varied: in turns 4 to 6 s and".into(),
        "7 to 9 s; CPU from publishing until all are gone".into(),
    ];
    Ok(Outcome::of_readings(readings, notes))
}

/// The mean CPU time, and the latest end.
fn few_times(target: &Target, lives: Lives) -> Result<Gone, Error> {
    let fill = || run_local(fill(FEW, lives.clone(), target));
    let all: Vec<Gone> = (0..FEW_TIMES).map(|_| fill()).collect::<Result<_, _>>()?;
    let cpu: Option<Duration> = all.iter().map(|gone| gone.cpu).sum();
    Ok(Gone {
        cpu: cpu.map(|cpu| cpu / FEW_TIMES),
        late: all.iter().map(|gone| gone.late).max().unwrap_or_default(),
    })
}

fn cpu_readings(purged: f64, of_queue: f64, many: f64, few: f64) -> Vec<Reading> {
    let micros = |name, value| Reading::new(name, value, "µs/msg");
    vec![
        micros("broker CPU, purged", purged),
        micros("broker CPU, the queue's TTL", of_queue),
        micros("broker CPU, varied expirations", many),
        micros("broker CPU, varied, 100,000", few),
        Reading::new("varied / purged", many / purged, ""),
        Reading::new("1,000,000 / 100,000", many / few, "").at_most(1.5),
    ]
}

impl Lives {
    /// The queue for them.
    fn queue(&self) -> QueueOptions {
        let arguments = match self {
            Lives::Queue(millis) => FieldTable::new().with("x-message-ttl", *millis as i64),
            Lives::ForEver | Lives::Varied(_) => FieldTable::new(),
        };
        QueueOptions {
            arguments,
            ..QueueOptions::default()
        }
    }

    /// The properties of messages, in turns, and the longest life among them.
    fn properties(&self) -> (Vec<Vec<u8>>, Option<Duration>) {
        let ranges = match self {
            Lives::ForEver => return (vec![PropertiesBuilder::default().finish()], None),
            Lives::Queue(millis) => {
                let none = PropertiesBuilder::default().finish();
                return (vec![none], Some(Duration::from_millis(*millis)));
            }
            Lives::Varied(ranges) => ranges,
        };
        let mut random = Random::new(1);
        let lives: Vec<u64> = (0..EXPIRATIONS)
            .map(|n| {
                let range = &ranges[n % ranges.len()];
                range.start + random.draw() % (range.end - range.start)
            })
            .collect();
        let text = |life: &u64| {
            let builder = PropertiesBuilder::default();
            builder
                .text(Property::Expiration, &life.to_string())
                .finish()
        };
        let longest = lives.iter().max().copied().map(Duration::from_millis);
        (lives.iter().map(text).collect(), longest)
    }
}

/// Fills a queue, and waits until it is empty.
async fn fill(count: u64, lives: Lives, target: &Target) -> Result<Gone, Error> {
    let message = Message::to_queue(QUEUE, BODY, false);
    let mut producer = Producer::connect(&target.options, message).await?;
    let channel = producer.channel;
    let connection = &mut producer.connection;
    connection.delete_queue(channel, QUEUE).await?;
    connection
        .declare_queue(channel, QUEUE, &lives.queue())
        .await?;
    let (properties, longest) = lives.properties();
    producer.take_turns(properties);
    let before = target.usage()?;
    while producer.next() < count {
        producer.step(count).await?;
    }
    let published = Instant::now();
    // With fewer, some have expired while others came: all are meant to wait together.
    let found = queues::count(&mut producer.connection, channel, QUEUE).await?;
    if found < count {
        return Err(Error::ExpiredEarly { count, found });
    }
    let late = match longest {
        None => {
            producer.connection.purge(channel, QUEUE).await?;
            Duration::ZERO
        }
        Some(longest) => wait_until_gone(&mut producer, published + longest).await?,
    };
    let cpu = before.zip(target.usage()?).map(|(b, a)| a.cpu - b.cpu);
    producer.connection.delete_queue(channel, QUEUE).await?;
    producer.close().await?;
    Ok(Gone { cpu, late })
}

/// Returns by how much the last message was late.
async fn wait_until_gone(producer: &mut Producer, due: Instant) -> Result<Duration, Error> {
    tokio::time::sleep_until(due.into()).await;
    while queues::count(&mut producer.connection, producer.channel, QUEUE).await? > 0 {
        if due.elapsed() > LIMIT {
            let (role, limit) = ("expiry", LIMIT);
            return Err(Error::Stuck { role, limit });
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(due.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expirations_are_varied_within_their_ranges() {
        let (properties, longest) = Lives::Varied([10..20, 100..200]).properties();
        assert_eq!(properties.len(), EXPIRATIONS);
        let longest = longest.expect("a longest life").as_millis();
        assert!((190..200).contains(&longest), "{longest}");
    }
}
