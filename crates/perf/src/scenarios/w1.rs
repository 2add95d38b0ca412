//! W1 (2008): persistent messages through a direct exchange in transactions of different sizes, over
//! AMQP 0-8; then a consumer that acknowledges one by one. Can anything be lost or reordered?

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::method::access;
use client::{
    Connection, ConsumeOptions, Event, ExchangeOptions, FieldTable, Properties, PropertiesBuilder,
    PublishFlags, QueueOptions, Version,
};

use crate::load::{Attribution, Checker, INTERRUPTED, Ledger, MARKED, Mark, Routes, Sent};
use crate::result::Run;
use crate::sync::lock;
use crate::{Error, clock};

use super::own::{self, Hand};
use super::{Case, Common, Scenario, Target};

const EXCHANGE: &str = "X";
const QUEUE: &str = "leveret-perf-w1";
const QUIT: &[u8] = b"quit";
/// Messages per write.
const BATCH: usize = 64 << 10;
/// How long the consumer waits for the next message.
const PATIENCE: Duration = Duration::from_secs(10);
/// The one producer's mark.
const PRODUCER: u32 = MARKED | 1;

/// `leveret perf w1`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Messages in each case, before the last one, which says `quit`.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    messages: u64,
    /// Bytes of body.
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(16..=134_217_728))]
    size: u32,
    /// Messages per commit, one case each.
    #[arg(long, value_name = "T", value_delimiter = ',', default_values_t = [500, 1_000, 1_500, 2_000, 2_500, 5_000, 10_000, 20_000], value_parser = clap::value_parser!(u64).range(1..))]
    transaction: Vec<u64>,
    /// Protocol version: 0-8, 0-9 or 0-9-1.
    #[arg(long, value_name = "VERSION", default_value = "0-8", value_parser = version)]
    protocol: Version,
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "0-8" => Ok(Version::V0_8),
        "0-9" => Ok(Version::V0_9),
        "0-9-1" => Ok(Version::V0_9_1),
        _ => Err("0-8, 0-9 and 0-9-1 are known".into()),
    }
}

/// Messages per second that were published, by messages per commit; the producer's.
const PUBLISHED: [(u64, f64); 8] = [
    (500, 1_538.0),
    (1_000, 1_919.0),
    (1_500, 2_146.0),
    (2_000, 2_390.0),
    (2_500, 2_460.0),
    (5_000, 2_741.0),
    (10_000, 3_015.0),
    (20_000, 3_075.0),
];
const PUBLISHED_TRANSIENT: [(u64, f64); 2] = [(500, 3_372.0), (20_000, 3_419.0)];

/// The cases: one for each size of transaction; the smallest and the largest also without
/// persistence.
pub fn scenario(arguments: &Arguments) -> Scenario {
    let mut cases: Vec<Case> = arguments
        .transaction
        .iter()
        .map(|size| case(arguments, *size, true))
        .collect();
    let (least, most) = (
        arguments.transaction.iter().min(),
        arguments.transaction.iter().max(),
    );
    let ends: Vec<u64> = least
        .into_iter()
        .chain(most.filter(|most| Some(*most) != least))
        .copied()
        .collect();
    cases.extend(ends.into_iter().map(|size| case(arguments, size, false)));
    Scenario {
        name: "w1",
        about: "transactional publishing, then a consumer that acknowledges one by one (2008)",
        figures: vec!["sent", "confirm-max", "consumed/s", "cpu"],
        notes: vec![format!(
            "Sent/s is the producer's; confirm max is the longest commit. Published by whoever \
             measured RabbitMQ 1.4 with amqplib in 2008; its consumer got 2,735 \
             msg/s."
        )],
        cases,
    }
}

fn case(arguments: &Arguments, size: u64, persistent: bool) -> Case {
    let load = Load {
        messages: arguments.messages,
        size: arguments.size as usize,
        transaction: size,
        persistent,
        version: arguments.protocol,
    };
    let name = match persistent {
        true => format!("T={size}"),
        false => format!("T={size}, not persistent"),
    };
    let case = Case::own(name, move |target| run(load, target))
        .with("messages", arguments.messages)
        .with("size", arguments.size)
        .with("transaction", size)
        .with("persistent", persistent);
    let table: &[(u64, f64)] = if persistent {
        &PUBLISHED
    } else {
        &PUBLISHED_TRANSIENT
    };
    match table.iter().find(|(known, _)| *known == size) {
        Some((_, rate)) => case.published("RabbitMQ 1.4, sent rate", *rate),
        None => case,
    }
}

#[derive(Debug, Clone, Copy)]
struct Load {
    messages: u64,
    size: usize,
    transaction: u64,
    persistent: bool,
    version: Version,
}

/// The producer's figures are the run's; the consumer's rate is beside them.
fn run(load: Load, target: &Target) -> Run {
    let mut target = target.clone();
    target.options.version = load.version;
    let options = target.options.clone();
    let mut run = own::measure(&target, None, move |hand| produce(load, options, hand));
    if run.error.is_none() && !run.stopped.contains_key(INTERRUPTED) {
        consume_and_check(load, &target, &mut run);
    }
    let removed = own::block_on(async {
        let removed = tokio::time::timeout(PATIENCE, remove(&target.options)).await;
        removed.unwrap_or_else(|_| Err(Error::Load("the broker does not answer".into())))
    });
    if let Err(error) = removed {
        let left = format!("queue '{QUEUE}' and exchange '{EXCHANGE}' are left behind: {error}");
        run.error.get_or_insert(left);
    }
    run
}

fn consume_and_check(load: Load, target: &Target, run: &mut Run) {
    let ledger = Arc::new(Ledger::new(Attribution {
        base: PRODUCER,
        keys: vec![String::new()],
        unnamed: false,
        spread: false,
        routes: Routes::All,
    }));
    let queue = ledger.queue(QUEUE, "");
    let checked = Arc::new(Mutex::new(None));
    let (options, shared, result) = (target.options.clone(), ledger.clone(), checked.clone());
    // Whether it is steady was asked of the producer.
    let target = &Target {
        steady: false,
        ..target.clone()
    };
    let consumed = own::measure(target, None, move |hand| async move {
        let checker = Checker::new(shared, 0);
        *lock(&result) = Some(consume(load, options, hand, checker, queue).await?);
        Ok(())
    });
    if let Some(checker) = lock(&checked).take() {
        checker.finish();
    }
    let sent = Sent {
        taken: load.messages,
        refused: Vec::new(),
    };
    run.checks = Some(ledger.conclude(&[sent], consumed.error.is_none()));
    run.totals.received = consumed.totals.received;
    run.totals.received_rate = consumed.totals.received_rate;
    run.figures
        .insert("consumed/s".into(), consumed.totals.received_rate);
    run.error = consumed.error;
    run.stopped.extend(consumed.stopped);
}

/// Takes everything away again.
async fn remove(options: &client::Options) -> Result<(), Error> {
    let (mut connection, channel) = open(options, false).await?;
    connection.delete_queue(channel, QUEUE).await?;
    connection.delete_exchange(channel, EXCHANGE, false).await?;
    Ok(connection.close().await?)
}

async fn open(options: &client::Options, write: bool) -> Result<(Connection, u16), Error> {
    let mut connection = Connection::connect(options).await?;
    let channel = connection.open_channel().await?;
    if options.version != Version::V0_9_1 {
        let request = access::Request {
            realm: client::ShortStr::truncated("/data"),
            exclusive: false,
            passive: !write,
            active: true,
            write,
            read: !write,
        };
        connection.request_access(channel, request).await?;
    }
    Ok((connection, channel))
}

async fn declare(connection: &mut Connection, channel: u16) -> Result<(), Error> {
    let durable = ExchangeOptions {
        durable: true,
        ..ExchangeOptions::default()
    };
    connection
        .declare_exchange(channel, EXCHANGE, "direct", &durable)
        .await?;
    let queue = QueueOptions::durable();
    connection.declare_queue(channel, QUEUE, &queue).await?;
    connection.purge(channel, QUEUE).await?;
    let none = FieldTable::new();
    Ok(connection.bind(channel, QUEUE, EXCHANGE, "", &none).await?)
}

/// Publishes in transactions. `tx.select` follows every commit, as it did then.
async fn produce(load: Load, options: client::Options, hand: Hand) -> Result<(), Error> {
    let (mut connection, channel) = open(&options, true).await?;
    declare(&mut connection, channel).await?;
    connection.tx_select(channel).await?;
    hand.begin();
    let properties = match load.persistent {
        true => PropertiesBuilder::default().delivery_mode(2).finish(),
        false => PropertiesBuilder::default().finish(),
    };
    let mut body = vec![b'.'; load.size];
    let mut counted = 0;
    for number in 0..load.messages {
        let mark = Mark {
            sequence: number as u32,
            time: clock::nanos(),
            producer: PRODUCER,
        };
        mark.write(&mut body);
        let properties = Properties::from_wire(&properties);
        connection.publish(channel, EXCHANGE, "", PublishFlags::NONE, properties, &body)?;
        let done = number + 1;
        if done.is_multiple_of(load.transaction) || done == load.messages {
            commit(&mut connection, channel, &hand).await?;
            lock(&hand.meter).counts.sent += done - counted;
            counted = done;
        } else if connection.pending() >= BATCH {
            connection.flush().await?;
        }
        if hand.stopped() {
            break;
        }
    }
    let none = Properties::default();
    connection.publish(channel, EXCHANGE, "", PublishFlags::NONE, none, QUIT)?;
    connection.tx_commit(channel).await?;
    hand.end();
    Ok(connection.close().await?)
}

async fn commit(connection: &mut Connection, channel: u16, hand: &Hand) -> Result<(), Error> {
    let began = clock::nanos();
    connection.tx_commit(channel).await?;
    lock(&hand.meter).confirmed_after(clock::nanos() - began);
    Ok(connection.tx_select(channel).await?)
}

/// Consumes up to `quit`.
async fn consume(
    load: Load,
    options: client::Options,
    hand: Hand,
    mut checker: Checker,
    queue: u32,
) -> Result<Checker, Error> {
    let (mut connection, channel) = open(&options, false).await?;
    hand.begin();
    let tag = ConsumeOptions::default();
    connection.consume(channel, QUEUE, &tag).await?;
    let mut quit = false;
    while !quit && !hand.stopped() {
        // If `quit` is lost the rest may be, too: then the checks say so.
        match tokio::time::timeout(PATIENCE, connection.ready()).await {
            Ok(ready) => ready?,
            Err(_) => break,
        }
        let mut meter = lock(&hand.meter);
        let now = clock::nanos();
        while let Some((event, output)) = connection.try_next_and_output()? {
            let Event::Delivery(delivery) = event else {
                return Err(unexpected(&event));
            };
            output.ack(channel, delivery.delivery_tag, false);
            if delivery.body == QUIT {
                quit = true;
                continue;
            }
            let mark = Mark::read(delivery.body).filter(|_| delivery.body.len() == load.size);
            checker.note(queue, mark, delivery.redelivered);
            meter.counts.received += 1;
            if let Some(mark) = mark {
                meter.received_after(now.saturating_sub(mark.time));
            }
        }
        checker.settle();
    }
    hand.end();
    connection.flush().await?;
    connection.close().await?;
    Ok(checker)
}

/// Anything else than a delivery.
pub(super) fn unexpected(event: &Event<'_>) -> Error {
    match event {
        Event::Cancel { .. } => {
            Error::Load("the broker ended the consumer: its queue is gone".into())
        }
        Event::ChannelClosed(closed) => client::Error::from(*closed).into(),
        event => Error::Load(format!("the broker sent something unexpected: {event:?}")),
    }
}
