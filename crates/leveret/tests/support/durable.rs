//! What must outlive the broker's process: durable queues, persistent messages; and the ways in
//! which the process ends.

use client::{
    Connection, Error, Event, FieldTable, Message, Properties, PropertiesBuilder, PublishFlags,
    QueueOptions,
};
use testkit::Broker;

use super::{confirmed_up_to, connect, millis, open};

/// How a broker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// SIGKILL.
    Killed,
    /// SIGTERM.
    Stopped,
}

impl Ending {
    pub const BOTH: [Ending; 2] = [Ending::Killed, Ending::Stopped];

    /// The broker ends this way and starts again. Clients that are to answer its farewell must have
    /// gone before.
    pub fn restart(self, broker: &mut Broker) {
        let restarted = match self {
            Ending::Killed => broker.crash_and_restart(),
            Ending::Stopped => broker.restart(),
        };
        restarted.unwrap_or_else(|error| panic!("{self:?}: {error}"));
    }
}

/// Longer than the broker takes to write down what nobody waits for: acknowledgements outside of
/// transactions, and what has been out for delivery.
pub async fn until_written_down() {
    tokio::time::sleep(millis(150)).await;
}

/// Declares a durable queue.
pub async fn declare_durable(connection: &mut Connection, channel: u16, queue: &str) {
    let durable = QueueOptions::durable();
    let declared = connection.declare_queue(channel, queue, &durable).await;
    declared.unwrap_or_else(|error| panic!("{queue}: {error}"));
}

/// Binds a queue to an exchange, without arguments.
pub async fn bind(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    exchange: &str,
    key: &str,
) {
    let none = FieldTable::new();
    let binding = connection.bind(channel, queue, exchange, key, &none).await;
    binding.unwrap_or_else(|error| panic!("{queue} to {exchange}: {error}"));
}

/// The properties of a message that survives, and nothing else.
pub fn persistent() -> Vec<u8> {
    PropertiesBuilder::default().delivery_mode(2).finish()
}

/// Publishes a persistent message to a queue, by way of the default exchange.
pub fn publish_persistent(connection: &mut Connection, channel: u16, queue: &str, body: &[u8]) {
    let properties = persistent();
    let properties = Properties::from_wire(&properties);
    connection
        .publish(channel, "", queue, PublishFlags::NONE, properties, body)
        .expect("short names");
}

/// A connection with a channel in confirm mode.
pub struct Publisher {
    pub connection: Connection,
    pub channel: u16,
    pub published: u64,
    pub confirmed: u64,
}

impl Publisher {
    pub async fn open(broker: &Broker) -> Publisher {
        let (mut connection, channel) = open(broker).await;
        connection.confirm_select(channel).await.expect("confirms");
        Publisher {
            connection,
            channel,
            published: 0,
            confirmed: 0,
        }
    }

    /// Publishes a persistent message to a queue.
    pub fn persistent(&mut self, queue: &str, body: &[u8]) {
        self.published += 1;
        publish_persistent(&mut self.connection, self.channel, queue, body);
    }

    /// Publishes any message anywhere.
    pub fn publish(&mut self, exchange: &str, key: &str, properties: &[u8], body: &[u8]) {
        self.published += 1;
        let properties = Properties::from_wire(properties);
        let flags = PublishFlags::NONE;
        self.connection
            .publish(self.channel, exchange, key, flags, properties, body)
            .expect("short names");
    }

    /// Takes the next event, which has to be a confirm.
    pub async fn confirm(&mut self) {
        match self.connection.next().await.expect("an event") {
            Event::Confirm(confirm) => {
                assert!(confirm.acked, "{confirm:?}");
                self.confirmed = confirmed_up_to(self.confirmed, &confirm);
            }
            other => panic!("a confirm expected, got {other:?}"),
        }
    }

    /// Waits until everything is confirmed.
    pub async fn all_confirmed(&mut self) {
        while self.confirmed < self.published {
            self.confirm().await;
        }
    }
}

/// Takes one message, or `None` from an empty queue; nothing else may have come.
pub async fn get(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    no_ack: bool,
) -> Option<Message> {
    let got = connection.get(channel, queue, no_ack).await.expect(queue);
    // The client keeps what it has looked at until somebody asks for an event.
    let event = connection.try_next().expect("no error");
    assert!(event.is_none(), "{event:?}");
    got
}

/// Takes all messages out of a queue.
pub async fn take_all(broker: &Broker, queue: &str) -> Vec<Message> {
    let (mut connection, channel) = open(broker).await;
    let mut all = Vec::new();
    while let Some(message) = get(&mut connection, channel, queue, true).await {
        all.push(message);
    }
    connection.close().await.expect("close-ok");
    all
}

/// Takes all messages out of a queue; returns the numbers that they begin with.
pub async fn take_numbers(broker: &Broker, queue: &str) -> Vec<u64> {
    let messages = take_all(broker, queue).await;
    let numbers = messages.iter().map(|message| super::number(&message.body));
    numbers.collect()
}

/// Asks on a channel of its own, which the broker closes if the answer is no.
pub async fn ask<T>(
    broker: &Broker,
    question: impl AsyncFnOnce(&mut Connection, u16) -> Result<T, Error>,
) -> Result<T, (u16, String)> {
    let mut connection = connect(broker).await;
    let channel = connection.open_channel().await.expect("a channel");
    let answer = match question(&mut connection, channel).await {
        Ok(answer) => Ok(answer),
        Err(Error::ChannelClosed { code, text, .. }) => Err((code, text)),
        Err(error) => panic!("{error}"),
    };
    connection.close().await.expect("close-ok");
    answer
}

/// How many messages the queue holds; `None` if there is none of that name.
pub async fn messages_in(broker: &Broker, queue: &str) -> Option<u32> {
    let passive = QueueOptions {
        passive: true,
        ..QueueOptions::default()
    };
    let found = ask(broker, async |connection, channel| {
        connection.declare_queue(channel, queue, &passive).await
    });
    match found.await {
        Ok(info) => Some(info.messages),
        Err((404, _)) => None,
        Err(other) => panic!("{queue}: {other:?}"),
    }
}
