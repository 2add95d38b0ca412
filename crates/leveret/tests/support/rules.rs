//! Queues with arguments, messages with properties, and what becomes of messages.

use std::time::{Duration, Instant};

use amqp::FieldValue;
use client::{
    Connection, ConsumeOptions, Event, FieldTable, Properties, PropertiesBuilder, Property,
    PublishFlags, QueueOptions,
};

use super::{Received, received};

/// A transient queue with these arguments.
pub fn transient(arguments: FieldTable) -> QueueOptions {
    QueueOptions {
        arguments,
        ..QueueOptions::default()
    }
}

/// A durable queue with these arguments.
pub fn durable(arguments: FieldTable) -> QueueOptions {
    QueueOptions {
        arguments,
        ..QueueOptions::durable()
    }
}

/// A queue of type quorum with these arguments.
pub fn quorum(arguments: FieldTable) -> QueueOptions {
    durable(arguments.with("x-queue-type", "quorum"))
}

/// Declares a queue.
pub async fn declare_as(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    options: &QueueOptions,
) {
    let declared = connection.declare_queue(channel, queue, options).await;
    declared.unwrap_or_else(|error| panic!("{queue}: {error}"));
}

/// Arguments of a queue whose dead letters go to another one.
pub fn dead_letters_to(queue: &str) -> FieldTable {
    FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", queue)
}

/// Publishes to a queue, by way of the default exchange.
pub fn send(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    properties: PropertiesBuilder,
    body: &[u8],
) {
    publish_to(connection, channel, "", queue, properties, body);
}

/// Publishes to an exchange.
pub fn publish_to(
    connection: &mut Connection,
    channel: u16,
    exchange: &str,
    key: &str,
    properties: PropertiesBuilder,
    body: &[u8],
) {
    let properties = properties.finish();
    let properties = Properties::from_wire(&properties);
    connection
        .publish(channel, exchange, key, PublishFlags::NONE, properties, body)
        .expect("short names");
}

/// The properties of a message that is wanted for so long, in milliseconds.
pub fn wanted_for(expiration: u64) -> PropertiesBuilder {
    PropertiesBuilder::default().text(Property::Expiration, &expiration.to_string())
}

/// Starts a consumer with a limit, 0 for none; returns its tag.
pub async fn consume_from(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    prefetch: u16,
) -> String {
    connection
        .qos(channel, prefetch, false)
        .await
        .expect("qos-ok");
    let options = ConsumeOptions::default();
    let consuming = connection.consume(channel, queue, &options).await;
    consuming.expect("a consumer")
}

/// Starts a consumer without acknowledgements.
pub async fn drain_from(connection: &mut Connection, channel: u16, queue: &str) {
    let options = ConsumeOptions::no_ack();
    let consuming = connection.consume(channel, queue, &options).await;
    consuming.expect("a consumer");
}

/// A delivery with all that belongs to it.
#[derive(Debug, Clone)]
pub struct Letter {
    pub delivery: Received,
    pub exchange: String,
    pub routing_key: String,
    pub properties: Vec<u8>,
    pub at: Instant,
}

impl Letter {
    pub fn of(event: &Event<'_>) -> Option<Letter> {
        let Event::Delivery(delivery) = event else {
            return None;
        };
        Some(Letter {
            delivery: received(event)?,
            exchange: delivery.exchange.lossy().into_owned(),
            routing_key: delivery.routing_key.lossy().into_owned(),
            properties: delivery.properties.as_wire().to_vec(),
            at: Instant::now(),
        })
    }

    pub fn number(&self) -> u64 {
        self.delivery.number()
    }

    pub fn properties(&self) -> Properties<'_> {
        Properties::from_wire(&self.properties)
    }

    pub fn header(&self, name: &str) -> Option<FieldValue> {
        header(&self.properties, name)
    }

    /// A header that is text.
    pub fn text(&self, name: &str) -> String {
        let value = self.header(name);
        let text = value.as_ref().and_then(FieldValue::as_str);
        text.unwrap_or_else(|| panic!("{name}: {value:?}"))
            .to_owned()
    }

    /// The entries of `x-death`, the last death first.
    pub fn deaths(&self) -> Vec<FieldTable> {
        let Some(FieldValue::Array(deaths)) = self.header("x-death") else {
            panic!("no x-death: {:?}", self.properties().headers());
        };
        let deaths = deaths.into_iter().map(|death| match death {
            FieldValue::Table(death) => death,
            other => panic!("a table expected, got {other:?}"),
        });
        deaths.collect()
    }

    /// Queue, reason and count of each death, the last one first.
    pub fn obituary(&self) -> Vec<(String, String, i64)> {
        let text = |death: &FieldTable, name: &str| {
            let text = death.get(name).and_then(FieldValue::as_str);
            text.unwrap_or_else(|| panic!("{name}: {death:?}"))
                .to_owned()
        };
        let deaths = self.deaths();
        let deaths = deaths.iter().map(|death| {
            let count = death.get("count").and_then(FieldValue::as_i64);
            let count = count.expect("a number");
            (text(death, "queue"), text(death, "reason"), count)
        });
        deaths.collect()
    }
}

/// A header of a message.
pub fn header(properties: &[u8], name: &str) -> Option<FieldValue> {
    let headers = Properties::from_wire(properties).headers()?;
    headers
        .to_owned()
        .expect("a sound table")
        .get(name)
        .cloned()
}

/// The next event, which has to be a delivery.
pub async fn receive_letter(connection: &mut Connection) -> Letter {
    let event = connection.next().await.expect("an event");
    Letter::of(&event).unwrap_or_else(|| panic!("a delivery expected, got {event:?}"))
}

/// The next deliveries, for as long as they come within `pause` of each other.
pub async fn letters_until_quiet(connection: &mut Connection, pause: Duration) -> Vec<Letter> {
    let mut all = Vec::new();
    while let Ok(event) = tokio::time::timeout(pause, connection.next()).await {
        let event = event.expect("an event");
        let letter = Letter::of(&event);
        all.push(letter.unwrap_or_else(|| panic!("a delivery expected, got {event:?}")));
    }
    all
}

/// The numbers that bodies begin with.
pub fn numbers(letters: &[Letter]) -> Vec<u64> {
    letters.iter().map(Letter::number).collect()
}

/// The next event, which has to be the end of that channel; returns code and text.
pub async fn closed(connection: &mut Connection, channel: u16) -> (u16, String) {
    match connection.next().await.expect("an event") {
        Event::ChannelClosed(closed) => {
            assert_eq!(closed.channel, channel);
            (closed.code, closed.text.lossy().into_owned())
        }
        other => panic!("channel.close expected, got {other:?}"),
    }
}

/// What the broker says to these arguments of a new queue, which it must refuse with 406.
pub async fn refusal_of(broker: &testkit::Broker, options: &QueueOptions) -> String {
    let declared = super::durable::ask(broker, async |connection, channel| {
        connection.declare_queue(channel, "refused", options).await
    });
    let (code, text) = declared.await.expect_err("a refusal");
    assert_eq!(code, 406, "{text}");
    text
}

/// Declares a durable queue with these arguments.
pub async fn declare_with(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    arguments: FieldTable,
) {
    declare_as(connection, channel, queue, &durable(arguments)).await;
}

/// Arguments of a queue whose dead letters go to that exchange.
pub fn to_exchange(exchange: &str) -> FieldTable {
    FieldTable::new().with("x-dead-letter-exchange", exchange)
}

/// Takes the first message and refuses it.
pub async fn reject_first(connection: &mut Connection, channel: u16, queue: &str) {
    let got = super::durable::get(connection, channel, queue, false).await;
    let tag = got.expect("a message").delivery_tag;
    connection.reject(channel, tag, false);
    super::synchronize(connection, channel).await;
}

/// The only message that comes from a queue, taken out of it.
pub async fn only_letter(broker: &testkit::Broker, queue: &str) -> Letter {
    let (mut connection, channel) = super::open(broker).await;
    drain_from(&mut connection, channel, queue).await;
    let letter = receive_letter(&mut connection).await;
    super::assert_quiet(&mut connection).await;
    letter
}

/// How many messages wait.
pub async fn count(connection: &mut Connection, channel: u16, queue: &str) -> u32 {
    super::look_at(connection, channel, queue).await.messages
}

/// Text, as a table holds it.
pub fn text(text: &str) -> Option<FieldValue> {
    Some(FieldValue::LongStr(text.as_bytes().to_vec()))
}
