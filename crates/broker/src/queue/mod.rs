//! A queue: messages in order, consumers with credit, leases for what is out.
//!
//! One short mutex guards the state; under it a publisher assigns sequence numbers and hands
//! messages to consumers' outboxes. It is never held across I/O or `.await`. Invariant: whenever
//! the mutex is free, either nothing is ready or no consumer has credit.

mod arguments;
mod consumers;
mod declare;
mod delivery;
mod leases;
mod ready;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use amqp::FieldTable;
use parking_lot::{Mutex, MutexGuard};
use store::Message;

pub(crate) use arguments::{consumer_priority, unsupported};
pub use consumers::{ConsumerId, ConsumerOptions};
pub use declare::QueueOptions;
pub use delivery::{Got, Wakes};
pub use leases::{LeaseId, Outcome};
pub use ready::QueueSeq;

use crate::error::{Error, Resource};
use crate::name::ConnectionId;
use crate::outbox::Delivery;
use consumers::Consumers;
use leases::Leases;
use ready::Ready;

/// At most this many messages are moved under one hold of the lock, where the work allows it.
pub(crate) const MAX_PER_HOLD: usize = 128;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Unique while the node runs; the order in which several queues are locked.
    pub id: u64,
    /// Its name.
    pub name: Arc<str>,
    /// The vhost that it is in.
    pub vhost: Arc<str>,
    /// Survives a restart.
    pub durable: bool,
    /// Goes when its last consumer goes.
    pub auto_delete: bool,
    /// The connection that alone may use it.
    pub exclusive_owner: Option<ConnectionId>,
    /// As declared.
    pub arguments: FieldTable,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    ready: Ready,
    leases: Leases,
    consumers: Consumers,
    deleted: bool,
}

/// The messages of a queue that was closed.
#[derive(Debug)]
pub(crate) struct Remains {
    ready: Ready,
    _leases: Leases,
}

impl Remains {
    /// How many were ready.
    pub fn ready(&self) -> usize {
        self.ready.entries.len()
    }
}

/// Numbers that describe a queue at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages waiting.
    pub ready: usize,
    /// Messages out for delivery.
    pub unacked: usize,
    /// Consumers.
    pub consumers: usize,
}

impl Queue {
    pub(crate) fn new(name: Arc<str>, vhost: Arc<str>, options: QueueOptions) -> Queue {
        Queue {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            name,
            vhost,
            durable: options.durable,
            auto_delete: options.auto_delete,
            exclusive_owner: options.exclusive,
            arguments: options.arguments,
            state: Mutex::default(),
        }
    }

    /// Its name for reply texts.
    pub fn resource(&self) -> Resource<'_> {
        Resource::queue(&self.name, &self.vhost)
    }

    /// Fails with 405 where another connection owns the queue.
    pub fn check_owner(&self, connection: ConnectionId) -> Result<(), Error> {
        match self.exclusive_owner {
            Some(owner) if owner != connection => Err(Error::locked(self.resource())),
            _ => Ok(()),
        }
    }

    /// Appends messages in order, and hands out what consumers have credit for. A queue that was
    /// deleted meanwhile drops them, as it would have a moment later.
    pub fn publish(&self, messages: impl Iterator<Item = Message>) {
        self.change(|state| state.append(messages));
    }

    /// Settles leases: acknowledged, discarded, or put back where they were.
    pub fn settle(&self, leases: &[LeaseId], outcome: Outcome) {
        match outcome {
            // In one go: each time messages are put back costs what lies before the last of them.
            Outcome::Requeue => self.change(|state| state.settle(leases, outcome)),
            Outcome::Acknowledge | Outcome::Discard => {
                for part in leases.chunks(MAX_PER_HOLD) {
                    self.change(|state| state.settle(part, outcome));
                }
            }
        }
    }

    /// Takes back deliveries that were handed to an outbox and never sent.
    pub fn take_back(&self, unsent: impl Iterator<Item = Delivery>) {
        self.change(|state| state.take_back(unsent));
    }

    /// Changes the state, then hands out what consumers have credit for: the one way to make
    /// messages ready or give consumers credit.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        let result = change(&mut state);
        while state.dispatch(&mut wakes) {
            MutexGuard::bump(&mut state);
        }
        drop(state);
        wakes.wake();
        result
    }

    /// Drops all ready messages; returns how many.
    pub fn purge(&self) -> usize {
        // Freed after the lock is released: dropping millions of messages takes a while.
        let dropped = std::mem::take(&mut self.state.lock().ready.entries);
        dropped.len()
    }

    /// Numbers of messages and consumers now.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            ready: state.ready.entries.len(),
            unacked: state.leases.len(),
            consumers: state.consumers.len(),
        }
    }

    /// Marks the queue as gone if the conditions hold; tells its consumers; returns what is left
    /// of it, for the caller to drop where no lock is held.
    pub(crate) fn close(&self, if_unused: bool, if_empty: bool) -> Result<Remains, Error> {
        let mut state = self.state.lock();
        // Messages that are out do not count, and emptiness is looked at first: as in RabbitMQ.
        if if_empty && !state.ready.entries.is_empty() {
            return Err(Error::precondition(format!(
                "{} not empty",
                self.resource()
            )));
        }
        if if_unused && state.consumers.len() > 0 {
            return Err(Error::precondition(format!("{} in use", self.resource())));
        }
        state.deleted = true;
        let ready = std::mem::take(&mut state.ready);
        let leases = std::mem::take(&mut state.leases);
        let mut wakes = Wakes::default();
        // Under the lock, so that an owner who removes its consumer knows that no notice follows.
        std::mem::take(&mut state.consumers).cancel_all(&mut wakes);
        drop(state);
        wakes.wake();
        Ok(Remains {
            ready,
            _leases: leases,
        })
    }

    /// True once the queue was deleted.
    pub fn is_deleted(&self) -> bool {
        self.state.lock().deleted
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    pub fn append(&mut self, messages: impl Iterator<Item = Message>) {
        if !self.deleted {
            self.ready.append(messages);
        }
    }
}
