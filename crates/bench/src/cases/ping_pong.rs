//! W2, after Haigha's stress test: C channels on one connection, each with its own queue and one
//! message under way; each delivery publishes the next.

use client::{
    Connection, ConsumeOptions, Event, ExchangeOptions, FieldTable, Options, Properties,
    PublishFlags, QueueOptions,
};

use crate::args::Args;
use crate::error::Error;
use crate::load::{DRAIN, Load, Progress, unexpected};
use crate::measure::{self, Figures, WARM_UP};
use crate::target::Target;

/// Size of the set of exchanges.
const EXCHANGES: usize = 10;
const BODY: &[u8] = b"hello world";

/// One round.
pub fn round(channels: u16, args: &Args, target: &Target) -> Result<Figures, Error> {
    let progress = Progress::of(1);
    let (options, shared) = (target.options.clone(), progress.clone());
    let limit = WARM_UP + args.round + DRAIN;
    let load = Load::start("ping-pong load", &progress, limit, async move || {
        play(channels, options, &shared).await
    })?;
    let figures = measure::round(args, target, &progress);
    load.join()?;
    figures
}

async fn play(channels: u16, options: Options, progress: &Progress) -> Result<(), Error> {
    let mut connection = Connection::connect(&options).await?;
    // Exchange and routing key by channel number.
    let mut routes = vec![(String::new(), String::new())];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..channels {
        // xorshift: which channel gets which exchange only has to be mixed, and the same each time.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let exchange = format!("publish-{}", random as usize % EXCHANGES);
        routes.push(set_up(&mut connection, exchange).await?);
    }
    for number in 1..=channels {
        publish(&mut connection, number, &routes)?;
    }
    while !progress.stopped() {
        connection.ready().await?;
        let mut received = 0;
        while let Some((event, output)) = connection.try_next_and_output()? {
            let Event::Delivery(delivery) = event else {
                return Err(unexpected("ping-pong load", &event));
            };
            let (exchange, key) = &routes[usize::from(delivery.channel)];
            let (flags, none) = (PublishFlags::NONE, Properties::default());
            output.publish(delivery.channel, exchange, key, flags, none, BODY)?;
            received += 1;
        }
        progress.flows[0].add_received(received);
    }
    connection.close().await?;
    Ok(())
}

/// Opens a channel with its queue, bound to `exchange`, and its consumer.
async fn set_up(connection: &mut Connection, exchange: String) -> Result<(String, String), Error> {
    let channel = connection.open_channel().await?;
    let key = channel.to_string();
    let auto_delete = ExchangeOptions {
        auto_delete: true,
        ..ExchangeOptions::default()
    };
    connection
        .declare_exchange(channel, &exchange, "direct", &auto_delete)
        .await?;
    let auto_delete = QueueOptions {
        auto_delete: true,
        ..QueueOptions::default()
    };
    connection
        .declare_queue(channel, &key, &auto_delete)
        .await?;
    connection
        .bind(channel, &key, &exchange, &key, &FieldTable::new())
        .await?;
    connection
        .consume(channel, &key, &ConsumeOptions::no_ack())
        .await?;
    Ok((exchange, key))
}

fn publish(
    connection: &mut Connection,
    number: u16,
    routes: &[(String, String)],
) -> Result<(), Error> {
    let (exchange, key) = &routes[usize::from(number)];
    let none = Properties::default();
    Ok(connection.publish(number, exchange, key, PublishFlags::NONE, none, BODY)?)
}
