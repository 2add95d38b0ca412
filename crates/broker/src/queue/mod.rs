//! A queue: messages in order, consumers with credit, leases for what is out.
//!
//! One short mutex guards the state; under it a publisher assigns sequence numbers and hands
//! messages to consumers' outboxes. It is never held across I/O or `.await`. Invariant: whenever
//! the mutex is free, either nothing is ready or no consumer has credit.

mod append;
mod arguments;
mod consumers;
mod dead_letter;
mod declare;
mod delay;
mod delivery;
mod expiry;
mod groups;
mod lane;
mod lease_times;
mod leases;
mod limits;
mod line;
mod offset;
mod paging;
mod policy;
mod ready;
mod rules;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_ready;
#[cfg(test)]
mod tests_rules;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use amqp::FieldTable;
use parking_lot::{Mutex, MutexGuard};
use store::{Durability, Lsn, Message, QueueStore, Record, RecoveredQueue, Store};

pub use arguments::QueueKind;
pub(crate) use arguments::{
    consumer_priority, consumer_timeout, refuse_arguments_of_others, validate_arguments,
};
pub use consumers::{ConsumerId, ConsumerOptions};
pub(crate) use dead_letter::{Dead, Onward, Reason};
pub use declare::QueueOptions;
pub(crate) use delay::{X_DELAY, delay};
pub use delivery::{Got, Wakes};
pub use leases::{LeaseId, Outcome};
pub(crate) use limits::Refused;
pub use offset::{Filter, Start, StreamOptions};
pub(crate) use rules::{After, Traits};
pub(crate) use settings::{DeadLetterTo, Settings};
pub use store::QueueSeq;

use crate::burial;
use crate::clock::Millis;
use crate::error::{Error, Resource};
use crate::name::ConnectionId;
use crate::outbox::Delivery;
use crate::policy::Applied;
use crate::timer::Timer;
use crate::vhost::VHost;
use consumers::Consumers;
use groups::Groups;
use lane::{Lane, LaneId, LaneResident, Lanes};
use leases::Leases;
use line::Line;
use ready::Ready;
use rules::{Delay, Rules};

/// At most this many messages are moved under one hold of the lock, where the work allows it.
pub(crate) const MAX_PER_HOLD: usize = 128;

/// Bytes of a backlog's next messages that are kept in memory, at most.
const MAX_WINDOW: usize = 2 * 1024 * 1024;

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Unique for ever; the order in which several queues are locked, and the number of its (first)
    /// stream in the log.
    pub id: u64,
    /// Its name.
    pub name: Arc<str>,
    /// The vhost that it is in.
    pub vhost: Arc<str>,
    /// Its type.
    pub kind: QueueKind,
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
    /// What publishers must know of its rules.
    pub(crate) traits: Traits,
    /// The vhost itself, where there is one.
    pub(crate) vhost_ref: Weak<VHost>,
    timer: Arc<Timer>,
    /// What applies to quorum queues that say nothing themselves.
    consumer_timeout: Option<Millis>,
    me: Weak<Queue>,
    /// What the store calls; by lane.
    residents: Vec<Arc<LaneResident>>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    lanes: Lanes,
    leases: Leases,
    consumers: Consumers,
    /// `None` for a queue that only keeps messages in order.
    rules: Option<Box<Rules>>,
    deleted: bool,
}

/// A position that the log must reach before what was done may be confirmed.
pub type Logged = (Lsn, Durability);

/// Where a queue is, and what it goes by.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub vhost: Arc<str>,
    pub vhost_ref: Weak<VHost>,
    pub timer: Arc<Timer>,
    /// The exchange whose messages wait here for their time; `None` for a queue of clients.
    pub delays_for: Option<Arc<str>>,
    /// How long a consumer may keep a message of a quorum queue that says nothing itself.
    pub consumer_timeout: Option<Millis>,
}

impl Surroundings {
    /// What the queue of an exchange that delays messages is called in the log.
    pub fn queue_name(&self) -> Arc<str> {
        let exchange = self.delays_for.as_deref().unwrap_or_default();
        format!("delayed messages of {exchange}").into()
    }
}

/// The messages of a queue that was closed.
#[derive(Debug)]
pub(crate) struct Remains {
    count: usize,
    _ready: Vec<Ready>,
    _leases: Leases,
    _rules: Option<Box<Rules>>,
}

impl Remains {
    /// How many were ready.
    pub fn ready(&self) -> usize {
        self.count
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
    /// Messages that wait for their time.
    pub delayed: usize,
}

impl Queue {
    /// A queue with nothing in it; one store for each of its lanes.
    pub(crate) fn new(
        name: Arc<str>,
        surroundings: Surroundings,
        options: QueueOptions,
        stores: Vec<QueueStore>,
    ) -> Arc<Queue> {
        let recovered = stores.into_iter().map(|store| RecoveredQueue {
            store,
            messages: Vec::new(),
            next_seq: QueueSeq(0),
        });
        Queue::recovered(name, surroundings, options, recovered.collect())
    }

    /// A queue with what a restart has found.
    ///
    /// # Panics
    /// Without any lane.
    pub(crate) fn recovered(
        name: Arc<str>,
        surroundings: Surroundings,
        options: QueueOptions,
        mut recovered: Vec<RecoveredQueue>,
    ) -> Arc<Queue> {
        let now = surroundings.timer.clock.now();
        let delay = surroundings.delays_for.clone().map(|exchange| Delay {
            exchange,
            messages: Lane::take_delayed(&mut recovered),
        });
        let kind = QueueKind::of(&options.arguments);
        let is_stream = kind == QueueKind::Stream;
        let stream = is_stream.then(|| Lane::take_stream(&mut recovered));
        let lanes = Lanes::new(recovered.into_iter().map(Lane::new));
        let mut lanes = lanes.expect("a queue has a lane");
        let delaying = delay.is_some();
        if delaying || is_stream {
            lanes.lowest().holds_nothing_ready();
        }
        let Surroundings {
            vhost,
            vhost_ref,
            timer,
            delays_for: _,
            consumer_timeout,
        } = surroundings;
        let none = Applied::default();
        let settings = Settings::new(&options.arguments, &none, consumer_timeout);
        let rules = (!settings.is_plain() || delay.is_some()).then(|| {
            let mut rules = Rules::new(settings, now);
            rules.delay = delay;
            rules.stream = stream;
            rules
        });
        let traits = Traits::new(rules.as_ref().map(|rules| &rules.settings), delaying);
        let one_at_a_time = arguments::has_single_active_consumer(&options.arguments);
        let gives_way = kind == QueueKind::Quorum;
        let consumers = Consumers::new(one_at_a_time.then(|| Line::new(gives_way)));
        let id = lanes.lowest().store.stream().0;
        let logged = lanes.lowest().store.is_logged();
        let mut state = State {
            lanes,
            leases: Leases::default(),
            consumers,
            rules,
            deleted: false,
        };
        if !delaying && !is_stream {
            state.note_recovered(now);
        }
        state.open_window(now);
        Arc::new_cyclic(|me| Queue {
            id,
            name,
            vhost,
            kind,
            durable: options.durable,
            auto_delete: options.auto_delete,
            exclusive_owner: options.exclusive,
            arguments: options.arguments,
            logged,
            consumed: AtomicBool::new(false),
            applied: Mutex::default(),
            traits,
            vhost_ref,
            timer,
            consumer_timeout,
            me: me.clone(),
            residents: LaneResident::all(me, &state.lanes),
            state: Mutex::new(state),
        })
    }

    /// Makes the store call on this queue when it has to.
    pub(crate) fn register(&self, store: &Store) {
        for (resident, stream) in self.residents.iter().zip(self.streams()) {
            let resident: Weak<dyn store::Resident> = Arc::<LaneResident>::downgrade(resident);
            store.register(stream, self.logged, resident);
        }
        let mut state = self.state.lock();
        // What it has in memory counts from the start.
        state.settle_down();
        // What its rules ask for happens once all that a restart finds is there: exchanges for
        // dead letters, above all.
        if let Some(rules) = &mut state.rules {
            let now = self.timer.clock.now();
            rules.scheduled = Some(now);
            self.timer.schedule(self.id, now, self.me.clone());
        }
    }

    /// Its streams in the log: one for each lane.
    pub(crate) fn streams(&self) -> impl Iterator<Item = store::StreamId> + use<> {
        let first = self.id;
        (first..first + self.residents.len() as u64).map(store::StreamId)
    }

    /// The time of day, as the node's clock has it.
    pub(crate) fn now(&self) -> Millis {
        self.timer.clock.now()
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
            Some((lsn, state.durability()))
        })
    }

    /// Appends a message, unless there is no room for it and the queue refuses it then.
    pub(crate) fn offer(&self, message: Message) -> Result<Option<Logged>, Refused> {
        self.change(|state| {
            let lsn = state.offer(message, &mut Record::Own)?;
            Ok(lsn.map(|lsn| (lsn, state.durability())))
        })
    }

    /// Settles leases: acknowledged, discarded, or put back where they were.
    pub fn settle(&self, leases: &[LeaseId], outcome: Outcome) {
        match outcome {
            // In one go: each time messages are put back costs what lies before the last of them.
            Outcome::Requeue => self.change(|state| state.settle(leases, outcome)),
            Outcome::Acknowledge | Outcome::Discard => {
                let mut bury = false;
                for part in leases.chunks(MAX_PER_HOLD) {
                    let ((), after) = self.change_only(|state| state.settle(part, outcome));
                    bury |= after.bury;
                }
                self.do_after(After { bury });
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
        let (result, after) = self.change_only(change);
        self.do_after(after);
        result
    }

    /// As [`Queue::change`]; what comes after is the caller's to do, with [`Queue::do_after`].
    fn change_only<R>(&self, change: impl FnOnce(&mut State) -> R) -> (R, After) {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        state.refresh(&self.timer.clock);
        let result = change(&mut state);
        let after = self.finish(&mut state, &mut wakes);
        drop(state);
        wakes.wake();
        (result, after)
    }

    fn do_after(&self, After { bury }: After) {
        if bury && let Some(me) = self.me.upgrade() {
            burial::bury([me]);
        }
    }

    /// After a change, before the lock is released.
    #[inline]
    pub(crate) fn finish(&self, state: &mut MutexGuard<'_, State>, wakes: &mut Wakes) -> After {
        while state.dispatch(wakes) {
            MutexGuard::bump(state);
        }
        let after = match state.rules {
            Some(_) => self.keep_rules(state),
            None => After::default(),
        };
        state.settle_down();
        after
    }

    /// Drops all ready messages; returns how many.
    pub fn purge(&self) -> usize {
        // Freed after the lock is released: dropping millions of messages takes a while.
        let dropped = self.state.lock().purge();
        dropped.iter().map(Ready::len).sum()
    }

    /// Numbers of messages and consumers now.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            ready: state.len(),
            unacked: state.leases.len(),
            consumers: state.consumers.len(),
            delayed: state.rules.as_ref().map_or(0, |rules| rules.delayed()),
        }
    }

    /// Bytes of messages that wait in memory.
    pub fn resident_bytes(&self) -> usize {
        let state = self.state.lock();
        state.lanes.iter().map(|(_, lane)| lane.ready.bytes()).sum()
    }

    /// Marks the queue as gone if the conditions hold; tells its consumers; returns what is left
    /// of it, for the caller to drop where no lock is held.
    pub(crate) fn close(&self, if_unused: bool, if_empty: bool) -> Result<Remains, Error> {
        let state = self.state.lock();
        // Messages that are out do not count, and emptiness is looked at first: as in RabbitMQ.
        if if_empty && state.len() > 0 {
            return Err(Error::precondition(format!(
                "{} not empty",
                self.resource()
            )));
        }
        if if_unused && state.consumers.len() > 0 {
            return Err(Error::precondition(format!("{} in use", self.resource())));
        }
        Ok(self.close_locked(state))
    }

    /// Closes the queue unless somebody has used it lately.
    pub(crate) fn close_if_unused_for_too_long(&self) -> Option<Remains> {
        let mut state = self.state.lock();
        state.refresh(&self.timer.clock);
        let expired = !state.deleted && state.is_unused_for_too_long();
        expired.then(|| self.close_locked(state))
    }

    fn close_locked(&self, mut state: MutexGuard<'_, State>) -> Remains {
        state.deleted = true;
        // What is in a stream was never waiting for anybody.
        let count = match self.kind {
            QueueKind::Stream => 0,
            _ => state.len(),
        };
        let ready = state.lanes.iter_mut();
        let ready = ready
            .map(|(_, lane)| std::mem::take(&mut lane.ready))
            .collect();
        let rules = state.rules.take();
        let leases = std::mem::take(&mut state.leases);
        let mut wakes = Wakes::default();
        // Under the lock, so that an owner who removes its consumer knows that no notice follows.
        std::mem::take(&mut state.consumers).cancel_all(&mut wakes);
        drop(state);
        self.timer.forget(self.id);
        wakes.wake();
        Remains {
            count,
            _ready: ready,
            _leases: leases,
            _rules: rules,
        }
    }

    /// Nothing of the queue is kept any more. After the log was told that it is gone.
    pub(crate) fn release_store(&self) {
        let mut state = self.state.lock();
        state
            .lanes
            .iter_mut()
            .for_each(|(_, lane)| lane.store.close());
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
    /// Before the lock is released: what is gone is logged, and memory is looked at.
    #[inline]
    pub fn settle_down(&mut self) {
        if self.lanes.is_single() {
            self.lanes.lowest().settle_down();
        } else {
            self.lanes
                .iter_mut()
                .for_each(|(_, lane)| lane.settle_down());
        }
        if self.watches_first() {
            // In every lane it is the first that expires first.
            for lane in (0..self.lanes.count()).map(LaneId) {
                self.read_ahead_in(lane);
            }
        } else if self.consumers.len() > 0 {
            self.read_ahead();
        }
        if self.is_special() {
            self.settle_delayed();
        }
    }

    /// Looks at memory, and has what will be due soon read.
    #[cold]
    fn settle_delayed(&mut self) {
        if let Some(bytes) = self.stream().map(|stream| stream.bytes()) {
            return self.lanes.lowest().store.note_resident(bytes);
        }
        let Some(delay) = self.rules.as_mut().and_then(|rules| rules.delay.as_mut()) else {
            return;
        };
        let store = &mut self.lanes.lowest().store;
        store.note_resident(delay.messages.bytes());
        while let Some(from) = delay.messages.wants_load() {
            match store.plan_load(from, 1) {
                Some(load) => {
                    delay.messages.loading = true;
                    return store.request_load(load);
                }
                None => delay.messages.none_to_load(from),
            }
        }
    }

    /// What confirms of this queue wait for.
    pub fn durability(&mut self) -> Durability {
        self.lanes.lowest().store.durability()
    }

    /// A transaction has ended these; what is gone becomes part of its record.
    pub fn settle_in(&mut self, leases: &[LeaseId], outcome: Outcome, record: &mut Record<'_>) {
        self.settle(leases, outcome);
        self.log_gone_in(record);
    }

    /// What is gone becomes part of a record.
    pub fn log_gone_in(&mut self, record: &mut Record<'_>) {
        for (_, lane) in self.lanes.iter_mut() {
            lane.store.log_gone(record);
        }
    }

    /// The transaction was logged at that position.
    pub fn transaction_logged(&mut self, lsn: Lsn) {
        for (_, lane) in self.lanes.iter_mut() {
            lane.store.transaction_logged(lsn);
        }
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        let Some(rules) = &self.rules else {
            return self.lanes.len();
        };
        if let Some(stream) = &rules.stream {
            let lane = self.lanes.get(LaneId::default());
            return stream.len(lane.ready.next_seq());
        }
        self.lanes.len() + rules.groups.as_ref().map_or(0, Groups::len)
    }

    fn purge(&mut self) -> Vec<Ready> {
        let State {
            lanes,
            leases,
            rules,
            ..
        } = self;
        let purge = |(id, lane): (LaneId, &mut Lane)| {
            let dropped = lane.ready.clear();
            if !dropped.is_empty() {
                let mut kept = leases.places(id);
                if let Some(rules) = rules {
                    if let Some(groups) = &mut rules.groups {
                        groups.purge();
                    }
                    kept.extend(rules.dying.places(id));
                    kept.sort_unstable_by_key(|(seq, _)| *seq);
                }
                lane.store.purge(lane.ready.next_seq(), &kept);
                lane.store.note_resident(0);
            }
            dropped
        };
        lanes.iter_mut().map(purge).collect()
    }
}
