//! Queues as a client sees them, before and after a load.

use client::{Connection, ExchangeOptions, FieldTable, Message, QueueOptions};
use testkit::Broker;

use crate::support::*;

/// Messages in a queue that are ready; `None` if there is no such queue.
pub async fn ready(broker: &Broker, queue: &str) -> Option<u32> {
    let passive = QueueOptions {
        passive: true,
        ..QueueOptions::default()
    };
    declared(broker, queue, &passive).await.ok()
}

/// Declares a queue; the error, as where it is there and differs, is its reply code.
pub async fn declared(broker: &Broker, queue: &str, options: &QueueOptions) -> Result<u32, u16> {
    let (mut connection, channel) = open(broker).await;
    let declared = connection.declare_queue(channel, queue, options).await;
    let result = declared.map(|info| info.messages);
    let result = result.map_err(|error| error.reply_code().expect("a closed channel"));
    connection.close().await.expect("close-ok");
    result
}

/// The same for an exchange.
pub async fn declared_exchange(
    broker: &Broker,
    name: &str,
    kind: &str,
    options: &ExchangeOptions,
) -> Result<(), u16> {
    let (mut connection, channel) = open(broker).await;
    let declared = connection
        .declare_exchange(channel, name, kind, options)
        .await;
    let result = declared.map_err(|error| error.reply_code().expect("a closed channel"));
    connection.close().await.expect("close-ok");
    result
}

/// A durable exchange, and nothing more.
pub fn durable_exchange() -> ExchangeOptions {
    ExchangeOptions {
        durable: true,
        ..ExchangeOptions::default()
    }
}

/// A queue of the test's own that gets all that is published to a fanout exchange.
pub async fn listening(broker: &Broker, exchange: &str, queue: &str) {
    let (mut connection, channel) = open(broker).await;
    let options = durable_exchange();
    let declared = connection.declare_exchange(channel, exchange, "fanout", &options);
    declared.await.expect("declare-ok");
    declare(&mut connection, channel, queue).await;
    bind(&mut connection, channel, queue, exchange, "").await;
    connection.close().await.expect("close-ok");
}

/// Binds a queue.
pub async fn bind(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    exchange: &str,
    key: &str,
) {
    let none = FieldTable::new();
    let bound = connection.bind(channel, queue, exchange, key, &none).await;
    bound.expect("bind-ok");
}

/// Takes all messages out of a queue.
pub async fn take(broker: &Broker, queue: &str) -> Vec<Message> {
    let (mut connection, channel) = open(broker).await;
    let mut messages = Vec::new();
    while let Some(message) = connection
        .get(channel, queue, true)
        .await
        .unwrap_or_else(|error| panic!("{queue}: {error}"))
    {
        messages.push(message);
    }
    connection.close().await.expect("close-ok");
    messages
}

/// A message's number in its producer's sequence.
pub fn sequence(body: &[u8]) -> u32 {
    u32::from_be_bytes(*body.first_chunk().expect("a header"))
}

/// A message's time.
pub fn time(body: &[u8]) -> i64 {
    i64::from_be_bytes(*body[4..].first_chunk().expect("a header"))
}

/// What stands for a message's producer.
pub fn producer(body: &[u8]) -> u32 {
    u32::from_be_bytes(*body[12..].first_chunk().expect("16 bytes"))
}
