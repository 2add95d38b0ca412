//! Leveret as lapin sees it, one module for each part of the protocol.

mod channel_errors;
mod confirms;
mod connection;
mod content;
mod publish_consume;
mod redelivery;
mod topology;
mod transactions;
