//! How each case is measured.

pub mod backlog;
pub mod bare_loop;
pub mod confirm;
pub mod connections;
pub mod generator;
pub mod latency;
pub mod ping_pong;
pub mod stream;
pub mod tx;
pub mod w1;
