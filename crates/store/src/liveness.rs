//! How long the log is needed: live messages that lie nowhere else, by the part of the log that
//! they were written to.
//!
//! The log is cut into epochs, of 16 MiB each as a rule; a new one begins with each process, so
//! that a file of an earlier process never shares one with what is written now. An epoch without
//! such messages is not needed for messages; what else it holds, the manifest holds as well.

use std::sync::atomic::{AtomicU64, Ordering};

use wal::Lsn;

/// Bytes of an epoch, as a rule.
pub(crate) const EPOCH: u64 = 16 * 1024 * 1024;
/// Epochs that are told apart. The log is far shorter than all of them together: it is kept to
/// its budget, and publishers wait while it is not.
const RING: u64 = 4_096;

/// A part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    /// The one that a record ending there belongs to, if epochs have that many bytes.
    #[inline]
    pub(crate) fn of(lsn: Lsn, size: u64) -> Epoch {
        Epoch(lsn.0.saturating_sub(1) / size)
    }
}

#[derive(Debug)]
pub(crate) struct Liveness {
    size: u64,
    /// Where this process began to write.
    base: Lsn,
    live: Box<[AtomicU64]>,
}

impl Liveness {
    /// Nothing is live; epochs have that many bytes, and this process writes from `base` on.
    pub fn new(size: u64, base: Lsn) -> Self {
        Liveness {
            size,
            base,
            live: (0..RING).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The epoch that a record ending there belongs to.
    #[inline]
    pub fn epoch(&self, lsn: Lsn) -> Epoch {
        if lsn <= self.base {
            return Epoch::of(lsn, self.size);
        }
        let here = Epoch::of(Lsn(lsn.0 - self.base.0), self.size);
        Epoch(Epoch::of(self.base, self.size).0 + 1 + here.0)
    }

    /// The epoch of the next record, if everything up to there is written.
    pub fn current(&self, end: Lsn) -> Epoch {
        self.epoch(Lsn(end.0 + 1))
    }

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
        let liveness = Liveness::new(EPOCH, Lsn(0));
        assert_eq!(liveness.epoch(Lsn(EPOCH)), Epoch(1));
        assert_eq!(liveness.epoch(Lsn(EPOCH + 1)), Epoch(2));
        liveness.add(Epoch(3), 2);
        liveness.sub(Epoch(3), 1);
        assert_eq!(liveness.oldest(Epoch(0), Epoch(9)), Epoch(3));
        liveness.sub(Epoch(3), 1);
        assert_eq!(liveness.oldest(Epoch(0), Epoch(9)), Epoch(9));
    }

    #[test]
    fn each_process_begins_an_epoch() {
        let liveness = Liveness::new(EPOCH, Lsn(EPOCH + 5));
        assert_eq!(liveness.epoch(Lsn(EPOCH + 5)), Epoch(1));
        assert_eq!(liveness.current(Lsn(EPOCH + 5)), Epoch(2));
        assert_eq!(liveness.epoch(Lsn(2 * EPOCH + 5)), Epoch(2));
        assert_eq!(liveness.epoch(Lsn(2 * EPOCH + 6)), Epoch(3));
    }
}
