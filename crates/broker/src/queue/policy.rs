//! The policies that apply to a queue.

use super::{Queue, QueueKind};
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
        match self.kind {
            QueueKind::Classic => Target::ClassicQueue,
            QueueKind::Quorum => Target::QuorumQueue,
            QueueKind::Stream => Target::Stream,
        }
    }

    /// Its type by RabbitMQ's name of it.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            QueueKind::Classic => "classic",
            QueueKind::Quorum => "quorum",
            QueueKind::Stream => "stream",
        }
    }
}
