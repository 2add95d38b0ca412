//! How each case is measured.

pub mod backlog;
pub mod bare_loop;
pub mod confirm;
pub mod connections;
pub mod generator;
pub mod latency;
pub mod many_queues;
pub mod ping_pong;
pub mod sharded;
pub mod stream;
pub mod topic;
pub mod ttl;
pub mod tx;
pub mod unbind;
pub mod w1;
