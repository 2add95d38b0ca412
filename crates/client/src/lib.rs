//! A small, fast AMQP 0-8, 0-9 and 0-9-1 client: what the tests, the benchmark, the load tester and
//! the relay speak to a broker with.
//!
//! A [`Connection`] has one owner, spawns no task and passes nothing through channels. Requests are
//! encoded straight into its write buffer and leave with the next `await`; events are decoded
//! in its read buffer and borrow from it. In steady state neither allocates.
//!
//! ```no_run
//! # async fn example() -> Result<(), client::Error> {
//! use client::{Connection, ConsumeOptions, Event, Properties, PublishFlags, QueueOptions};
//!
//! let mut connection = Connection::connect_uri("amqp://guest:guest@localhost").await?;
//! let channel = connection.open_channel().await?;
//! connection.declare_queue(channel, "orders", &QueueOptions::durable()).await?;
//! connection.consume(channel, "orders", &ConsumeOptions::default()).await?;
//! let none = Properties::default();
//! connection.publish(channel, "", "orders", PublishFlags::NONE, none, b"one tea")?;
//! if let Event::Delivery(delivery) = connection.next().await? {
//!     let tag = delivery.delivery_tag;
//!     connection.ack(channel, tag, false);
//! }
//! connection.close().await
//! # }
//! ```

mod assembly;
mod channels;
mod connection;
mod decode;
mod error;
mod event;
mod handshake;
mod heartbeat;
mod input;
mod options;
mod output;
mod raw;
mod rpc;
mod topology;
mod transport;
mod uri;

pub use amqp::method;
pub use amqp::{
    FieldTable, FieldValue, Method, Properties, PropertiesBuilder, Property, ShortStr, Table,
    Version,
};
pub use connection::Connection;
pub use error::Error;
pub use event::{ChannelClosed, Confirm, Delivery, Event, GetOk, Return};
pub use handshake::Tuned;
pub use options::{Mechanism, Options};
pub use output::{Output, PublishFlags};
pub use raw::{RawConnection, RawFrame};
pub use topology::{ConsumeOptions, ExchangeOptions, Message, QueueInfo, QueueOptions};
