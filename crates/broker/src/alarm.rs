//! Alarms: while one is ringing, connections that publish are not read from.

use std::sync::atomic::{AtomicBool, Ordering};

/// The node's alarms. Connections look when they are woken; see [`crate::Connections::wake_all`].
#[derive(Debug, Default)]
pub struct Alarms {
    memory: AtomicBool,
}

impl Alarms {
    /// Sets the memory alarm; true if that changed it.
    pub fn set_memory(&self, ringing: bool) -> bool {
        self.memory.swap(ringing, Ordering::AcqRel) != ringing
    }

    /// What publishers are blocked for, as connection.blocked says it; `None` if they are not.
    #[inline]
    pub fn blocked(&self) -> Option<&'static str> {
        self.memory
            .load(Ordering::Acquire)
            .then_some("low on memory")
    }
}
