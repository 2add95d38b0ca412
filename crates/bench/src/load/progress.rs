//! How far the load has come: counters that load threads add to once per batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often a producer looks whether it may go on.
const BALANCING: Duration = Duration::from_millis(1);

/// Shared by the threads of one round.
#[derive(Debug)]
pub struct Progress {
    pub flows: Vec<Flow>,
    stop: AtomicBool,
}

/// The messages of one queue, or whatever else is counted.
#[derive(Debug, Default)]
pub struct Flow {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Progress {
    pub fn of(flows: usize) -> Arc<Progress> {
        Arc::new(Progress {
            flows: (0..flows).map(|_| Flow::default()).collect(),
            stop: AtomicBool::new(false),
        })
    }

    /// True once the round is over.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// All that was received.
    pub fn received(&self) -> u64 {
        self.flows.iter().map(Flow::received).sum()
    }

    /// Messages of all flows sent and not yet received, where a flow's may come out at another's end.
    pub fn in_flight(&self) -> u64 {
        let sent = |flow: &Flow| flow.sent.load(Ordering::Relaxed);
        let sent: u64 = self.flows.iter().map(sent).sum();
        sent.saturating_sub(self.received())
    }

    /// Waits while more than `limit` messages of a flow are under way, so that what is measured is a
    /// broker in balance and not its backlog.
    pub async fn balance(&self, flow: usize, limit: u64) {
        while self.flows[flow].in_flight() > limit && !self.stopped() {
            tokio::time::sleep(BALANCING).await;
        }
    }

    /// The same for the messages of all flows together.
    pub async fn balance_all(&self, limit: u64) {
        while self.in_flight() > limit && !self.stopped() {
            tokio::time::sleep(BALANCING).await;
        }
    }
}

impl Flow {
    pub fn set_sent(&self, sent: u64) {
        self.sent.store(sent, Ordering::Relaxed);
    }

    pub fn add_received(&self, count: u64) {
        self.received.fetch_add(count, Ordering::Relaxed);
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Messages sent and not yet received.
    pub fn in_flight(&self) -> u64 {
        self.sent
            .load(Ordering::Relaxed)
            .saturating_sub(self.received())
    }
}

/// Tells other threads to stop when a load thread ends early, so that nobody waits for it.
pub struct StopOnDrop<'a>(pub &'a Progress);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
