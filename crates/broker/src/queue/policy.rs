//! The policies that apply to a queue.

use super::Queue;
use super::arguments::QueueKind;
use super::settings::Settings;
use crate::policy::{Applied, Target};

impl Queue {
    /// Other policies apply from now on. With the topology's lock held, never the queue's: what
    /// there is to do, such as dropping messages, is left to the timer.
    pub(crate) fn apply(&self, applied: Applied) {
        let settings = Settings::new(&self.arguments, &applied, self.consumer_timeout);
        *self.applied.lock() = applied;
        self.set_rules(settings);
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

    /// True if it keeps every message over a restart, whatever that says itself.
    pub(crate) fn keeps_all(&self) -> bool {
        self.kind != QueueKind::Classic
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
