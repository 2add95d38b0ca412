//! The outbox: what a connection still has to send, pushed by queues and drained by the
//! connection's own task.
//!
//! Guarded by one mutex that is the last in the lock order. The owner is woken only when the
//! outbox goes from empty to non-empty. It is bounded: a consumer whose outbox is full is stalled,
//! its messages stay in the queue, and it is resumed when the owner has drained.

use std::task::Waker;

use store::Message;

use crate::queue::{LeaseId, QueueSeq};
use crate::sharding::ShardHandle;
use crate::sync::{Mutex, MutexGuard};

/// Messages that an outbox holds at most.
const MAX_DELIVERIES: usize = 2_048;
/// Bytes after which an outbox takes no further message.
const MAX_BYTES: usize = 512 * 1024;

/// What the connection calls one of its consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerHandle(pub u32);

/// Where a delivered message comes from, should it have to go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Out on a lease.
    Leased(LeaseId),
    /// Out on a lease that the connection ends once it has sent the message (no-ack, from a queue
    /// that survives a restart).
    SettledWhenSent(LeaseId),
    /// Read from a stream, where it stays: the lease is credit.
    Read {
        /// What is to be settled.
        lease: LeaseId,
        /// Its place in the stream.
        offset: u64,
    },
    /// Taken for good (no-ack); its place in the queue.
    Taken(QueueSeq),
}

impl Origin {
    /// The lease that its consumer is to settle.
    #[inline]
    pub fn to_settle(self) -> Option<LeaseId> {
        match self {
            Origin::Leased(lease) | Origin::Read { lease, .. } => Some(lease),
            Origin::SettledWhenSent(_) | Origin::Taken(_) => None,
        }
    }
}

/// What a queue adds to a message's headers for its consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Annotation {
    /// Nothing.
    #[default]
    None,
    /// How often it has come back (`x-delivery-count`).
    Returned(u32),
    /// Its offset in a stream (`x-stream-offset`).
    Offset(u64),
}

impl Annotation {
    pub(crate) fn returned(count: u32) -> Self {
        match count {
            0 => Annotation::None,
            count => Annotation::Returned(count),
        }
    }
}

impl Delivery {
    /// True if the queue adds nothing to its headers.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.returns == 0 && !matches!(self.origin, Origin::Read { .. })
    }

    /// What the queue adds to its headers.
    pub fn annotation(&self) -> Annotation {
        match self.origin {
            Origin::Read { offset, .. } => Annotation::Offset(offset),
            _ => Annotation::returned(self.returns.into()),
        }
    }
}

/// A message on its way to a consumer.
#[derive(Debug)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// Where it came from.
    pub origin: Origin,
    /// The consumer it goes to.
    pub consumer: ConsumerHandle,
    /// It was out for delivery before.
    pub redelivered: bool,
    /// How often it has come back, if the queue counts that; as far as it fits.
    pub returns: u16,
}

/// Something to send.
#[derive(Debug)]
pub enum Outgoing {
    /// A message.
    Delivery(Delivery),
    /// The consumer's queue has gone.
    Cancelled(ConsumerHandle),
    /// The shards of a consumer may be others from now on.
    Rebalance(ShardHandle),
    /// The consumer has kept a message for longer than that, in milliseconds.
    TimedOut(ConsumerHandle, u64),
}

#[derive(Debug, Default)]
struct State {
    items: Vec<Outgoing>,
    bytes: usize,
    /// Consumers that had to leave messages in their queues.
    stalled: Vec<ConsumerHandle>,
    waker: Option<Waker>,
}

/// A connection's outbox.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
}

impl Outbox {
    /// Sets whom to wake. The caller drains afterwards: what is waiting wakes nobody.
    pub fn register(&self, waker: &Waker) {
        let mut state = self.state.lock();
        match &mut state.waker {
            Some(current) => current.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Wakes the owner for something that is not in the outbox: shutdown, an alarm.
    pub fn wake(&self) {
        let waker = self.state.lock().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Swaps everything that is waiting for the caller's (empty) buffers.
    #[inline]
    pub fn drain(&self, items: &mut Vec<Outgoing>, stalled: &mut Vec<ConsumerHandle>) {
        debug_assert!(items.is_empty() && stalled.is_empty());
        let mut state = self.state.lock();
        std::mem::swap(&mut state.items, items);
        if !state.stalled.is_empty() {
            std::mem::swap(&mut state.stalled, stalled);
        }
        state.bytes = 0;
    }

    /// Takes out the deliveries of some consumers, which will not be sent.
    pub fn withdraw(&self, mut of: impl FnMut(ConsumerHandle) -> bool) -> Vec<Delivery> {
        let mut state = self.state.lock();
        let mut withdrawn = Vec::new();
        let items = std::mem::take(&mut state.items);
        for item in items {
            match item {
                Outgoing::Delivery(delivery) if of(delivery.consumer) => withdrawn.push(delivery),
                Outgoing::Cancelled(handle) | Outgoing::TimedOut(handle, _) if of(handle) => {}
                other => state.items.push(other),
            }
        }
        state.bytes -= withdrawn
            .iter()
            .map(|delivery: &Delivery| delivery.message.stored_len())
            .sum::<usize>();
        state.stalled.retain(|handle| !of(*handle));
        withdrawn
    }

    pub(crate) fn push_cancelled(&self, handle: ConsumerHandle) -> Option<Waker> {
        self.push_notice(Outgoing::Cancelled(handle))
    }

    pub(crate) fn push_timed_out(&self, handle: ConsumerHandle, after: u64) -> Option<Waker> {
        self.push_notice(Outgoing::TimedOut(handle, after))
    }

    pub(crate) fn push_rebalance(&self, handle: ShardHandle) -> Option<Waker> {
        self.push_notice(Outgoing::Rebalance(handle))
    }

    fn push_notice(&self, notice: Outgoing) -> Option<Waker> {
        let mut guard = self.lock();
        guard.state.items.push(notice);
        guard.release()
    }

    #[inline]
    pub(crate) fn lock(&self) -> OutboxGuard<'_> {
        let state = self.state.lock();
        OutboxGuard {
            was_empty: state.items.is_empty(),
            state,
        }
    }
}

/// An outbox that is being filled.
pub(crate) struct OutboxGuard<'a> {
    state: MutexGuard<'a, State>,
    was_empty: bool,
}

impl OutboxGuard<'_> {
    /// How many messages of these lengths may still be pushed.
    #[inline]
    pub fn room_for(&self, lengths: impl Iterator<Item = usize>) -> usize {
        let places = MAX_DELIVERIES.saturating_sub(self.state.items.len());
        let mut bytes = self.state.bytes;
        lengths
            .take(places)
            .take_while(|length| {
                let fits = bytes < MAX_BYTES;
                bytes += length;
                fits
            })
            .count()
    }

    #[inline]
    pub fn push(&mut self, delivery: Delivery) {
        self.state.bytes += delivery.message.stored_len();
        self.state.items.push(Outgoing::Delivery(delivery));
    }

    /// Notes a consumer to be resumed when the outbox has been drained.
    pub fn stall(&mut self, handle: ConsumerHandle) {
        self.state.stalled.push(handle);
    }

    /// Releases the lock; returns whom to wake, if the outbox was empty and no longer is.
    #[inline]
    pub fn release(self) -> Option<Waker> {
        if self.was_empty && !self.state.items.is_empty() {
            self.state.waker.clone()
        } else {
            None
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use loom::sync::Notify;

    use super::*;

    struct Sleeper(Notify);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.notify();
        }
    }

    #[test]
    fn loom_owner_is_woken_for_everything() {
        loom::model(|| {
            let outbox = Arc::new(Outbox::default());
            let sleeper = Arc::new(Sleeper(Notify::new()));
            outbox.register(&sleeper.clone().into());
            let pushers: Vec<_> = (0..2)
                .map(|handle| {
                    let outbox = outbox.clone();
                    loom::thread::spawn(move || {
                        let waker = outbox.push_cancelled(ConsumerHandle(handle));
                        if let Some(waker) = waker {
                            waker.wake();
                        }
                    })
                })
                .collect();
            let mut received = 0;
            loop {
                let (mut items, mut stalled) = (Vec::new(), Vec::new());
                outbox.drain(&mut items, &mut stalled);
                received += items.len();
                if received == 2 {
                    break;
                }
                // Sleeping for ever is a deadlock, which loom reports.
                sleeper.0.wait();
            }
            for pusher in pushers {
                pusher.join().expect("the pusher ends");
            }
        });
    }
}
