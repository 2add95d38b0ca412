//! Where in the log something is that is to be confirmed.

use store::{Durability, Lsn, Store};

use crate::queue::Logged;

/// Positions that the log must reach, as durable as each queue asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogPositions {
    fsync: Lsn,
    os: Lsn,
}

impl LogPositions {
    /// The position of a change of definitions, which is always synced.
    pub fn definitions(lsn: Lsn) -> Self {
        LogPositions {
            fsync: lsn,
            os: Lsn(0),
        }
    }

    /// This one must be reached as well.
    #[inline]
    pub fn add(&mut self, (lsn, durability): Logged) {
        match durability {
            Durability::Fsync => self.fsync = self.fsync.max(lsn),
            Durability::Os => self.os = self.os.max(lsn),
        }
    }

    /// All of those must be reached as well.
    pub fn extend(&mut self, other: LogPositions) {
        self.fsync = self.fsync.max(other.fsync);
        self.os = self.os.max(other.os);
    }

    /// True once all are reached.
    #[inline]
    pub fn reached(&self, store: &Store) -> bool {
        store.reached(Durability::Fsync) >= self.fsync && store.reached(Durability::Os) >= self.os
    }

    /// One that is not reached yet.
    pub fn missing(&self, store: &Store) -> Option<Logged> {
        let all = [(self.fsync, Durability::Fsync), (self.os, Durability::Os)];
        all.into_iter()
            .find(|(lsn, durability)| store.reached(*durability) < *lsn)
    }
}
