//! One producer, one queue, one consumer: two connections on two threads.
//!
//! The producer writes batches of 64 KiB and waits while too many messages are under way, so that
//! what is measured is a broker in balance and not its backlog. Its last message says `quit`; the
//! round then checks that as many messages came out as went in.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use client::{
    Connection, ConsumeOptions, Event, Options, Properties, PropertiesBuilder, PublishFlags,
    QueueOptions,
};

use crate::args::Args;
use crate::case::Stream;
use crate::error::Error;
use crate::measure::{self, Figures, Progress, StopOnDrop, run_local};
use crate::target::Target;

const QUEUE: &str = "leveret-bench";
const QUIT: &[u8] = b"quit";
/// Bytes of publishes per write.
const BATCH: usize = 64 << 10;
/// Messages sent and not received from which the producer waits.
const IN_FLIGHT: u64 = 50_000;
/// Messages published and not confirmed from which the producer waits.
const UNCONFIRMED: u64 = 5_000;
/// Deliveries that the consumer may leave unacknowledged.
const PREFETCH: u16 = 5_000;
/// How long a broker may take to deliver what is under way at the end of a round.
const DRAIN: Duration = Duration::from_secs(20);

/// One round.
pub fn round(stream: &Stream, args: &Args, target: &Target) -> Result<Figures, Error> {
    let progress = Arc::new(Progress::default());
    let limit = args.round + DRAIN;
    let (ready, is_ready) = mpsc::channel();
    let load = |role: &'static str, task: fn(Load) -> LoadResult| {
        let load = Load {
            stream: stream.clone(),
            options: target.options.clone(),
            progress: progress.clone(),
            ready: ready.clone(),
        };
        thread::Builder::new().name(role.into()).spawn(move || {
            let progress = load.progress.clone();
            let _stop = StopOnDrop(&progress);
            run_local(async {
                let load = async { task(load).await };
                tokio::time::timeout(limit, load)
                    .await
                    .unwrap_or(Err(Error::Stuck(role)))
            })
        })
    };
    let consumer = load("consumer", |load| Box::pin(consume(load))).map_err(Error::Runtime)?;
    // An error here means that the consumer has failed: joining it says why.
    let started = is_ready.recv_timeout(DRAIN).is_ok();
    let producer = match started {
        true => Some(load("producer", |load| Box::pin(produce(load))).map_err(Error::Runtime)?),
        false => None,
    };
    let figures = measure::round(args, target, &progress);
    let sent = producer.map_or(Ok(Ok(0)), |producer| producer.join());
    let received = consumer.join().map_err(|_| Error::Panicked)?;
    let (sent, received) = (sent.map_err(|_| Error::Panicked)??, received?);
    match sent == received {
        true => figures,
        false => Err(Error::Miscount { sent, received }),
    }
}

/// What a load thread works with.
struct Load {
    stream: Stream,
    options: Options,
    progress: Arc<Progress>,
    ready: mpsc::Sender<()>,
}

type LoadResult = std::pin::Pin<Box<dyn Future<Output = Result<u64, Error>>>>;

/// Publishes until the round is over; returns the number of messages.
async fn produce(load: Load) -> Result<u64, Error> {
    let Load {
        stream,
        options,
        progress,
        ..
    } = load;
    let mut connection = Connection::connect(&options).await?;
    let channel = connection.open_channel().await?;
    if stream.reliable {
        connection.confirm_select(channel).await?;
    }
    let properties = match stream.durable {
        true => PropertiesBuilder::default().delivery_mode(2).finish(),
        false => Properties::default().as_wire().to_vec(),
    };
    let body = vec![b'x'; stream.body];
    let (mut sent, mut confirmed) = (0, 0);
    while !progress.stopped() {
        let room = match stream.reliable {
            true => UNCONFIRMED - (sent - confirmed),
            false => u64::MAX,
        };
        let before = sent;
        while connection.pending() < BATCH && sent - before < room {
            let properties = Properties::from_wire(&properties);
            connection.publish(channel, "", QUEUE, PublishFlags::NONE, properties, &body)?;
            sent += 1;
        }
        progress.sent.store(sent, Ordering::Relaxed);
        match stream.reliable {
            true => wait_for_confirms(&mut connection, sent, &mut confirmed).await?,
            false => connection.flush().await?,
        }
        while progress.in_flight() > IN_FLIGHT && !progress.stopped() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    connection.publish(
        channel,
        "",
        QUEUE,
        PublishFlags::NONE,
        Properties::default(),
        QUIT,
    )?;
    connection.close().await?;
    Ok(sent)
}

/// Writes what is pending; waits while too many messages are unconfirmed.
async fn wait_for_confirms(
    connection: &mut Connection,
    sent: u64,
    confirmed: &mut u64,
) -> Result<(), Error> {
    loop {
        connection.ready().await?;
        while let Some(event) = connection.try_next()? {
            match event {
                Event::Confirm(confirm) if confirm.acked && confirm.multiple => {
                    *confirmed = confirm.delivery_tag;
                }
                Event::Confirm(confirm) if confirm.acked => *confirmed += 1,
                event => return Err(unexpected("producer", &event)),
            }
        }
        if sent - *confirmed < UNCONFIRMED / 2 {
            return connection.flush().await.map_err(Error::from);
        }
    }
}

/// Receives until the message that says so; returns the number of those before it.
async fn consume(load: Load) -> Result<u64, Error> {
    let Load {
        stream,
        options,
        progress,
        ready,
    } = load;
    let mut connection = Connection::connect(&options).await?;
    let channel = connection.open_channel().await?;
    let queue = QueueOptions {
        durable: stream.durable,
        ..QueueOptions::default()
    };
    connection.declare_queue(channel, QUEUE, &queue).await?;
    connection.purge(channel, QUEUE).await?;
    if stream.reliable {
        connection.qos(channel, PREFETCH, false).await?;
    }
    let consume = ConsumeOptions {
        consumer_tag: "bench".into(),
        no_ack: !stream.reliable,
        ..ConsumeOptions::default()
    };
    connection.consume(channel, QUEUE, &consume).await?;
    let _ = ready.send(());
    let (mut received, mut last_tag, mut quit) = (0, 0, false);
    while !quit {
        connection.ready().await?;
        let before = received;
        while let Some(event) = connection.try_next()? {
            let Event::Delivery(delivery) = event else {
                return Err(unexpected("consumer", &event));
            };
            received += 1;
            last_tag = delivery.delivery_tag;
            quit |= delivery.body == QUIT;
        }
        if stream.reliable && received > before {
            connection.ack(channel, last_tag, true);
        }
        progress
            .received
            .fetch_add(received - before, Ordering::Relaxed);
    }
    connection.delete_queue(channel, QUEUE).await?;
    connection.close().await?;
    Ok(received - 1)
}

pub fn unexpected(role: &'static str, event: &Event<'_>) -> Error {
    Error::Unexpected {
        role,
        event: format!("{event:?}"),
    }
}
