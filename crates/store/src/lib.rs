//! Messages at rest: the one layout that a message has in memory, in the log and in segments.
//!
//! A message is laid out once, when it is published, and never copied again on its way through
//! queues. What is kept of it on disk is these same bytes.

mod message;

pub use message::{Message, MessageBuilder, MessageHead};
