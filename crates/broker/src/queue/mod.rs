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
mod paging;
mod policy;
mod ready;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use amqp::FieldTable;
use parking_lot::{Mutex, MutexGuard};
use store::{Durability, Lsn, Message, QueueStore, Record, RecoveredQueue};

pub(crate) use arguments::{consumer_priority, unsupported};
pub use consumers::{ConsumerId, ConsumerOptions};
pub use declare::QueueOptions;
pub use delivery::{Got, Wakes};
pub use leases::{LeaseId, Outcome};
pub use store::QueueSeq;

use crate::error::{Error, Resource};
use crate::name::ConnectionId;
use crate::outbox::Delivery;
use crate::policy::Applied;
use consumers::Consumers;
use leases::Leases;
use ready::{Entry, Ready};

/// At most this many messages are moved under one hold of the lock, where the work allows it.
pub(crate) const MAX_PER_HOLD: usize = 128;

/// Bytes of a backlog's next messages that are kept in memory, at most.
const MAX_WINDOW: usize = 2 * 1024 * 1024;

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Unique for ever; the order in which several queues are locked, and the number of its stream
    /// in the log.
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
    /// It is there again after a restart, with its persistent messages.
    pub logged: bool,
    /// It has had a consumer.
    pub(crate) consumed: AtomicBool,
    /// The policies that apply; a lock of its own, under which nothing else is locked.
    applied: Mutex<Applied>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    ready: Ready,
    leases: Leases,
    consumers: Consumers,
    store: QueueStore,
    deleted: bool,
}

/// A position that the log must reach before what was done may be confirmed.
pub type Logged = (Lsn, Durability);

/// The messages of a queue that was closed.
#[derive(Debug)]
pub(crate) struct Remains {
    ready: Ready,
    _leases: Leases,
}

impl Remains {
    /// How many were ready.
    pub fn ready(&self) -> usize {
        self.ready.len()
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
    /// A queue with nothing in it.
    pub(crate) fn new(
        name: Arc<str>,
        vhost: Arc<str>,
        options: QueueOptions,
        store: QueueStore,
    ) -> Queue {
        let recovered = RecoveredQueue {
            store,
            messages: Vec::new(),
            next_seq: QueueSeq(0),
        };
        Queue::recovered(name, vhost, options, recovered)
    }

    /// A queue with what a restart has found.
    pub(crate) fn recovered(
        name: Arc<str>,
        vhost: Arc<str>,
        options: QueueOptions,
        recovered: RecoveredQueue,
    ) -> Queue {
        let store = recovered.store;
        let delivered = store.delivered();
        let messages = recovered.messages.into_iter().map(|(seq, message)| Entry {
            message: Some(message),
            seq,
            redelivered: seq < delivered,
        });
        let first = QueueSeq(0);
        let paged = store.count_from(first);
        let window = (store.budget() / 8).min(MAX_WINDOW);
        let ready = Ready::recovered(paged, first, messages, recovered.next_seq, window);
        Queue {
            id: store.stream().0,
            name,
            vhost,
            durable: options.durable,
            auto_delete: options.auto_delete,
            exclusive_owner: options.exclusive,
            arguments: options.arguments,
            logged: store.is_logged(),
            consumed: AtomicBool::new(false),
            applied: Mutex::default(),
            state: Mutex::new(State {
                ready,
                leases: Leases::default(),
                consumers: Consumers::default(),
                store,
                deleted: false,
            }),
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
    /// deleted meanwhile drops them, as it would have a moment later. Returns what a confirm must
    /// wait for, if anything.
    pub fn publish(&self, messages: impl Iterator<Item = Message>) -> Option<Logged> {
        self.change(|state| {
            let lsn = state.append(messages, &mut Record::Own)?;
            Some((lsn, state.store.durability()))
        })
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
        state.settle_down();
        drop(state);
        wakes.wake();
        result
    }

    /// Drops all ready messages; returns how many.
    pub fn purge(&self) -> usize {
        // Freed after the lock is released: dropping millions of messages takes a while.
        let dropped = self.state.lock().purge();
        dropped.len()
    }

    /// Numbers of messages and consumers now.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            ready: state.ready.len(),
            unacked: state.leases.len(),
            consumers: state.consumers.len(),
        }
    }

    /// Marks the queue as gone if the conditions hold; tells its consumers; returns what is left
    /// of it, for the caller to drop where no lock is held.
    pub(crate) fn close(&self, if_unused: bool, if_empty: bool) -> Result<Remains, Error> {
        let mut state = self.state.lock();
        // Messages that are out do not count, and emptiness is looked at first: as in RabbitMQ.
        if if_empty && !state.ready.is_empty() {
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

    /// Nothing of the queue is kept any more. After the log was told that it is gone.
    pub(crate) fn release_store(&self) {
        self.state.lock().store.close();
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
    /// Adds messages; returns where in the log they are, if they are in a record of their own.
    #[inline]
    pub fn append(
        &mut self,
        messages: impl Iterator<Item = Message>,
        record: &mut Record<'_>,
    ) -> Option<Lsn> {
        if self.deleted {
            return None;
        }
        let count = self.ready.append(messages);
        self.store.append(self.ready.last(count), record)
    }

    /// Before the lock is released: what is gone is logged, and memory is looked at.
    #[inline]
    pub fn settle_down(&mut self) {
        self.store.log_gone(&mut Record::Own);
        self.store.log_delivered();
        self.store.note_resident(self.ready.bytes());
        if self.consumers.len() > 0 {
            self.read_ahead();
        }
    }

    /// A transaction has ended these; what is gone becomes part of its record.
    pub fn settle_in(&mut self, leases: &[LeaseId], outcome: Outcome, record: &mut Record<'_>) {
        self.settle(leases, outcome);
        self.store.log_gone(record);
    }

    /// The transaction was logged at that position.
    pub fn transaction_logged(&mut self, lsn: Lsn) {
        self.store.transaction_logged(lsn);
    }

    fn purge(&mut self) -> Ready {
        let dropped = self.ready.clear();
        if !dropped.is_empty() {
            let kept = self.leases.places();
            self.store.purge(self.ready.next_seq(), &kept);
            self.store.note_resident(0);
        }
        dropped
    }
}
