//! How long the log is needed: live messages that lie nowhere else, by the part of the log that
//! they were written to.
//!
//! The log is cut into epochs of 16 MiB. An epoch without such messages is not needed for
//! messages; what else it holds, the manifest holds as well.

use std::sync::atomic::{AtomicU64, Ordering};

use wal::Lsn;

const EPOCH: u64 = 16 * 1024 * 1024;
/// Epochs that are told apart. The log is far shorter than all of them together: it is kept to
/// its budget, and publishers wait while it is not.
const RING: u64 = 4_096;

/// A part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    /// The one that a record ending there belongs to.
    #[inline]
    pub fn of(lsn: Lsn) -> Epoch {
        Epoch(lsn.0.saturating_sub(1) / EPOCH)
    }

    /// Where it begins.
    pub fn start(self) -> Lsn {
        Lsn(self.0 * EPOCH)
    }
}

#[derive(Debug)]
pub(crate) struct Liveness {
    live: Box<[AtomicU64]>,
}

impl Default for Liveness {
    fn default() -> Self {
        Liveness {
            live: (0..RING).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Liveness {
    fn counter(&self, epoch: Epoch) -> &AtomicU64 {
        &self.live[(epoch.0 % RING) as usize]
    }

    #[inline]
    pub fn add(&self, epoch: Epoch, count: u64) {
        self.counter(epoch).fetch_add(count, Ordering::Relaxed);
    }

    #[inline]
    pub fn sub(&self, epoch: Epoch, count: u64) {
        self.counter(epoch).fetch_sub(count, Ordering::Release);
    }

    /// The first epoch from `from` on that is needed; `to` if none before it is.
    pub fn oldest(&self, from: Epoch, to: Epoch) -> Epoch {
        (from.0..to.0)
            .map(Epoch)
            .find(|epoch| self.counter(*epoch).load(Ordering::Acquire) > 0)
            .unwrap_or(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_belongs_to_the_epoch_that_it_ends_in() {
        assert_eq!(Epoch::of(Lsn(EPOCH)), Epoch(0));
        assert_eq!(Epoch::of(Lsn(EPOCH + 1)), Epoch(1));
        let liveness = Liveness::default();
        liveness.add(Epoch(3), 2);
        liveness.sub(Epoch(3), 1);
        assert_eq!(liveness.oldest(Epoch(0), Epoch(9)), Epoch(3));
        liveness.sub(Epoch(3), 1);
        assert_eq!(liveness.oldest(Epoch(0), Epoch(9)), Epoch(9));
    }
}
