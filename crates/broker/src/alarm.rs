//! Alarms: while one is ringing, connections that publish are not read from.

use std::sync::atomic::{AtomicBool, Ordering};

/// The node's alarms. Connections look when they are woken; see [`crate::Connections::wake_all`].
#[derive(Debug, Default)]
pub struct Alarms {
    memory: AtomicBool,
    disk: AtomicBool,
}

impl Alarms {
    /// Sets the memory alarm; true if that changed it.
    pub fn set_memory(&self, ringing: bool) -> bool {
        self.memory.swap(ringing, Ordering::AcqRel) != ringing
    }

    /// Sets the disk alarm; true if that changed it.
    pub fn set_disk(&self, ringing: bool) -> bool {
        self.disk.swap(ringing, Ordering::AcqRel) != ringing
    }

    /// What publishers are blocked for, as RabbitMQ's connection.blocked says it; `None` if they
    /// are not.
    #[inline]
    pub fn blocked(&self) -> Option<&'static str> {
        let memory = self.memory.load(Ordering::Acquire);
        let disk = self.disk.load(Ordering::Acquire);
        match (memory, disk) {
            (false, false) => None,
            (true, false) => Some("low on memory"),
            (false, true) => Some("low on disk"),
            (true, true) => Some("low on memory & disk"),
        }
    }
}
