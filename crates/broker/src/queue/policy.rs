//! The policies that apply to a queue.

use super::Queue;
use crate::policy::{Applied, Target};

impl Queue {
    /// Other policies apply from now on. With the topology's lock held, never the queue's.
    pub(crate) fn apply(&self, applied: Applied) {
        *self.applied.lock() = applied;
    }

    /// The policies that apply.
    pub fn applied(&self) -> Applied {
        self.applied.lock().clone()
    }

    /// Its type as policies tell them apart.
    pub fn target(&self) -> Target {
        let declared = self.arguments.get("x-queue-type");
        match declared.and_then(|name| name.as_str()) {
            Some("quorum") => Target::QuorumQueue,
            Some("stream") => Target::Stream,
            _ => Target::ClassicQueue,
        }
    }

    /// Its type by RabbitMQ's name of it.
    pub fn type_name(&self) -> &'static str {
        match self.target() {
            Target::QuorumQueue => "quorum",
            Target::Stream => "stream",
            _ => "classic",
        }
    }
}
