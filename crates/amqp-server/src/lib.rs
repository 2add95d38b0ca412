//! The AMQP 0-8, 0-9 and 0-9-1 server: sockets in front of the broker.
//!
//! A connection is one task. Whenever it is woken it reads what has arrived, decodes and acts on
//! every complete frame, encodes what its outbox holds, and writes once.

mod auth;
mod channel;
mod connection;
mod encode;
mod exception;
mod handshake;
mod heartbeat;
mod listener;
mod options;
mod properties;

pub use listener::{ListenError, Listener};
pub use options::{Options, TcpOptions};
