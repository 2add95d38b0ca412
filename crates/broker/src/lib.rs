//! The broker's core: vhosts, exchanges, bindings, queues, consumers, transactions, policies, users
//! and permissions. No sockets and no HTTP: protocol servers call in through a [`Session`], and hear
//! back through an [`Outbox`].
//!
//! Lock order: topology → queue (several: in order of id) → {the log's buffer, outbox}. No lock is
//! held across I/O.

pub mod access;
pub mod admin;
mod alarm;
mod arguments;
mod binding;
mod broker;
mod burial;
mod client_info;
mod clock;
mod connections;
mod consumers;
mod death;
mod deduplication;
mod definitions;
mod error;
pub mod events;
mod exchange;
mod firehose;
mod internal_publish;
pub mod json;
mod locked;
mod metadata;
mod name;
mod outbox;
mod parameters;
mod pattern;
pub mod policy;
mod positions;
mod prefetch;
mod publisher;
pub mod queue;
mod restore;
mod routing;
mod session;
mod sharding;
mod spread;
mod sync;
mod terms;
#[cfg(test)]
mod test_support;
mod timer;
mod topology;
mod transaction;
mod vhost;

pub use alarm::Alarms;
pub use binding::{Binding, Destination};
pub use broker::{Broker, Settings, StartError};
pub use client_info::ClientInfo;
pub use clock::{Clock, Millis};
pub use connections::Connections;
pub use definitions::{BadDefinition, DefinitionSummary};
pub use error::{Error, Resource};
pub use exchange::{ExchangeKind, ExchangeOptions};
pub use metadata::VHostMetadata;
pub use name::ConnectionId;
pub use outbox::{Annotation, ConsumerHandle, Delivery, Origin, Outbox, Outgoing};
pub use positions::LogPositions;
pub use prefetch::ChannelPrefetch;
pub use publisher::{Publish, PublishOutcome, Publisher, Rejected};
pub use queue::{
    ConsumerId, ConsumerOptions, LeaseId, Logged, Outcome, Queue, QueueKind, QueueOptions,
};
pub use routing::Route;
pub use session::{Declared, REPLY_TO, Session, generated_name};
pub use sharding::{ShardHandle, ShardMember};
pub use timer::Timer;
pub use transaction::Transaction;
pub use vhost::VHost;
