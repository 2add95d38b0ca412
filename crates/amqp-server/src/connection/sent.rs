//! No-ack deliveries of queues that survive a restart: out on leases that end when the socket has
//! taken the bytes. What was never written is not gone.

use std::collections::VecDeque;
use std::sync::Arc;

use broker::{LeaseId, Outcome, Queue};

/// A delivery's queue and lease.
type Delivered = (Arc<Queue>, LeaseId);

/// Deliveries in the order in which they were encoded.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Encoded since the last [`Sent::encoded_up_to`].
    encoding: Vec<Delivered>,
    /// Each with the position in the output that must be written.
    waiting: VecDeque<(u64, Vec<Delivered>)>,
}

impl Sent {
    #[inline]
    pub fn push(&mut self, queue: &Arc<Queue>, lease: LeaseId) {
        self.encoding.push((queue.clone(), lease));
    }

    /// What was pushed stands before that position in the output.
    #[inline]
    pub fn encoded_up_to(&mut self, position: u64) {
        if !self.encoding.is_empty() {
            let encoded = std::mem::take(&mut self.encoding);
            self.waiting.push_back((position, encoded));
        }
    }

    /// The output is written up to there.
    #[inline]
    pub fn written(&mut self, position: u64) {
        while self.waiting.front().is_some_and(|(at, _)| *at <= position) {
            if let Some((_, deliveries)) = self.waiting.pop_front() {
                settle(deliveries, Outcome::Acknowledge);
            }
        }
    }

    /// The connection ends: what was not written goes back to where it was.
    pub fn take_back(&mut self) {
        let encoding = std::mem::take(&mut self.encoding);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let unwritten = waiting.flat_map(|(_, deliveries)| deliveries);
        settle(unwritten.chain(encoding).collect(), Outcome::Requeue);
    }
}

fn settle(deliveries: Vec<Delivered>, outcome: Outcome) {
    for run in deliveries.chunk_by(|(a, _), (b, _)| Arc::ptr_eq(a, b)) {
        let leases: Vec<LeaseId> = run.iter().map(|(_, lease)| *lease).collect();
        if let Some((queue, _)) = run.first() {
            queue.settle(&leases, outcome);
        }
    }
}
