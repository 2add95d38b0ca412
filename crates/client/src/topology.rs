//! What a client declares: the arguments of the calls in [`crate::rpc`], with the protocol's
//! defaults.

use amqp::FieldTable;

/// Arguments of exchange.declare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExchangeOptions {
    /// Only ask whether it exists.
    pub passive: bool,
    /// Survives a restart.
    pub durable: bool,
    /// Deleted once nothing is bound to it any more.
    pub auto_delete: bool,
    /// Cannot be published to.
    pub internal: bool,
    /// `alternate-exchange` and others.
    pub arguments: FieldTable,
}

/// Arguments of queue.declare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueOptions {
    /// Only ask whether it exists.
    pub passive: bool,
    /// Survives a restart.
    pub durable: bool,
    /// Belongs to this connection, and ends with it.
    pub exclusive: bool,
    /// Deleted once its last consumer is gone.
    pub auto_delete: bool,
    /// `x-message-ttl` and others.
    pub arguments: FieldTable,
}

impl QueueOptions {
    /// A durable queue without arguments.
    pub fn durable() -> Self {
        QueueOptions {
            durable: true,
            ..QueueOptions::default()
        }
    }

    /// A queue of this connection alone.
    pub fn exclusive() -> Self {
        QueueOptions {
            exclusive: true,
            ..QueueOptions::default()
        }
    }
}

/// Arguments of basic.consume.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsumeOptions {
    /// Chosen by the broker if empty.
    pub consumer_tag: String,
    /// Deliveries count as acknowledged at once.
    pub no_ack: bool,
    /// No other consumer on the queue.
    pub exclusive: bool,
    /// `x-priority` and others. Not on 0-8.
    pub arguments: FieldTable,
}

impl ConsumeOptions {
    /// A consumer without acknowledgements.
    pub fn no_ack() -> Self {
        ConsumeOptions {
            no_ack: true,
            ..ConsumeOptions::default()
        }
    }
}

/// The answer to queue.declare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its name, chosen by the broker where none was given.
    pub name: String,
    /// Messages ready for delivery.
    pub messages: u32,
    /// Its consumers.
    pub consumers: u32,
}

/// A message that owns its parts: what [`Connection::get`](crate::Connection::get) returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// To acknowledge it by.
    pub delivery_tag: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// Where it was published.
    pub exchange: String,
    /// With which key.
    pub routing_key: String,
    /// Messages left in the queue.
    pub message_count: u32,
    /// Its properties, as on the wire.
    pub properties: Vec<u8>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Message {
    /// Its properties.
    pub fn properties(&self) -> amqp::Properties<'_> {
        amqp::Properties::from_wire(&self.properties)
    }
}
