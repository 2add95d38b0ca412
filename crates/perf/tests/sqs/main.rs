//! The SQS client and the scenario W5 over real sockets, against services that are made up.

mod client;
mod service;
mod w5;
