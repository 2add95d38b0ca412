//! The prefetch limit that all consumers of a channel share (basic.qos with `global`).

use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// Counts the unacknowledged deliveries of one channel's consumers.
#[derive(Debug, Default)]
pub struct ChannelPrefetch {
    /// 0 = no limit.
    limit: AtomicU32,
    outstanding: AtomicU32,
    /// A consumer was refused since the last release.
    refused: AtomicBool,
}

impl ChannelPrefetch {
    /// Sets the limit; 0 lifts it. True if consumers should be resumed.
    pub fn set_limit(&self, limit: u16) -> bool {
        self.limit.store(limit.into(), Ordering::SeqCst);
        self.refused.swap(false, Ordering::SeqCst)
    }

    /// Claims up to `wanted`; returns how many were granted.
    #[inline]
    pub(crate) fn acquire(&self, wanted: usize) -> usize {
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        if wanted == 0 {
            return 0;
        }
        if self.limit.load(Ordering::Relaxed) == 0 {
            self.outstanding.fetch_add(wanted, Ordering::Relaxed);
            return wanted as usize;
        }
        let granted = self.claim(wanted);
        if granted == wanted {
            return granted as usize;
        }
        // A release between the claim and this store would be missed: look once more.
        self.refused.store(true, Ordering::SeqCst);
        (granted + self.claim(wanted - granted)) as usize
    }

    fn claim(&self, wanted: u32) -> u32 {
        let mut granted = 0;
        let _ = self
            .outstanding
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |outstanding| {
                granted = match self.limit.load(Ordering::SeqCst) {
                    0 => wanted,
                    limit => wanted.min(limit.saturating_sub(outstanding)),
                };
                (granted > 0).then(|| outstanding + granted)
            });
        granted
    }

    /// Ends `count` deliveries. True if a consumer waits for this and should be resumed.
    #[inline]
    pub fn release(&self, count: u32) -> bool {
        self.outstanding.fetch_sub(count, Ordering::SeqCst);
        self.refused.load(Ordering::SeqCst) && self.refused.swap(false, Ordering::SeqCst)
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::Arc;

    use loom::sync::Notify;

    use super::*;

    #[test]
    fn loom_refused_consumer_is_resumed() {
        loom::model(|| {
            let channel = Arc::new(ChannelPrefetch::default());
            channel.set_limit(1);
            assert_eq!(channel.acquire(1), 1);
            let resumed = Arc::new(Notify::new());
            let acknowledging = {
                let (channel, resumed) = (channel.clone(), resumed.clone());
                loom::thread::spawn(move || {
                    if channel.release(1) {
                        resumed.notify();
                    }
                })
            };
            while channel.acquire(1) == 0 {
                // Sleeping for ever is a deadlock, which loom reports.
                resumed.wait();
            }
            acknowledging.join().expect("the acknowledging thread ends");
        });
    }

    #[test]
    fn loom_limit_is_never_exceeded() {
        loom::model(|| {
            let channel = Arc::new(ChannelPrefetch::default());
            channel.set_limit(3);
            let queues: Vec<_> = (0..2)
                .map(|_| {
                    let channel = channel.clone();
                    loom::thread::spawn(move || channel.acquire(2))
                })
                .collect();
            let granted: usize = queues
                .into_iter()
                .map(|queue| queue.join().expect("the queue's thread ends"))
                .sum();
            assert_eq!(granted, 3);
        });
    }
}
