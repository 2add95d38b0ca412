//! What the tasks of one thread have counted since the main thread last looked.

use std::sync::{Arc, Mutex};

use hdrhistogram::Histogram;

use crate::result::empty_histogram;

/// Counts and latencies. Tasks lock it once per batch, the main thread once per interval.
pub struct Meter {
    pub counts: Counts,
    /// Nanoseconds from publish to delivery.
    pub consumer: Histogram<u64>,
    /// Nanoseconds from publish to confirm.
    pub confirm: Histogram<u64>,
}

/// Messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub sent: u64,
    pub confirmed: u64,
    pub nacked: u64,
    pub returned: u64,
    pub received: u64,
    /// Received before they were sent, by their clocks.
    pub early: u64,
    /// Received more than a day after they were sent, by their clocks.
    pub ancient: u64,
}

/// Beyond this a latency is no latency.
const A_DAY: i64 = 86_400_000_000_000;

impl Meter {
    /// A new one, to be shared.
    pub fn shared() -> Arc<Mutex<Meter>> {
        Arc::new(Mutex::new(Meter {
            counts: Counts::default(),
            consumer: empty_histogram(),
            confirm: empty_histogram(),
        }))
    }

    /// Counts a message that came so many nanoseconds after it was sent.
    #[inline]
    pub fn received_after(&mut self, latency: i64) {
        match latency {
            ..0 => self.counts.early += 1,
            A_DAY.. => self.counts.ancient += 1,
            _ => self.consumer.saturating_record(latency as u64),
        }
    }

    /// Counts a message that was confirmed so many nanoseconds after it was sent.
    #[inline]
    pub fn confirmed_after(&mut self, latency: i64) {
        self.confirm.saturating_record(latency.max(0) as u64);
    }

    /// Moves everything to `other`.
    pub fn drain_into(&mut self, other: &mut Meter) {
        other.counts.add(&self.counts);
        self.counts = Counts::default();
        for (from, to) in [
            (&mut self.consumer, &mut other.consumer),
            (&mut self.confirm, &mut other.confirm),
        ] {
            if !from.is_empty() {
                // Both have the same bounds.
                let _ = to.add(&*from);
                from.reset();
            }
        }
    }
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: &Counts) {
        self.sent += other.sent;
        self.confirmed += other.confirmed;
        self.nacked += other.nacked;
        self.returned += other.returned;
        self.received += other.received;
        self.early += other.early;
        self.ancient += other.ancient;
    }
}
