//! A vhost: a name space of exchanges, queues and bindings.
//!
//! One read-write lock guards the topology. The generation changes with it, so that publishers
//! may keep routes without taking the lock. What survives a restart is logged under the lock, so
//! the log's order is the order of the changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{RwLock, RwLockReadGuard};
use store::{DefinitionChange, Durability, Lsn, QueueSeq, RecoveredQueue, Resident, Store};

use crate::burial;
use crate::clock::Millis;
use crate::consumers::Consumers;
use crate::deduplication::Deduplication;
use crate::events::{self, Event, Events, INTERNAL_USER};
use crate::exchange::{Belongings, Exchange, ExchangeKind, ExchangeOptions, ExchangeWindow};
use crate::firehose;
use crate::internal_publish;
use crate::metadata::VHostMetadata;
use crate::queue::{Queue, QueueOptions, Surroundings};
use crate::sharding::ShardGroups;
use crate::timer::Timer;
use crate::topology::Topology;

/// What all vhosts of a node share.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub name: Arc<str>,
    pub store: Arc<Store>,
    pub durability: Durability,
    pub timer: Arc<Timer>,
    pub events: Arc<Events>,
    /// How long a consumer of a quorum queue may keep a message, where nothing else is said.
    pub consumer_timeout: Option<u64>,
}

/// Exchanges that every vhost has, with their types.
pub(crate) const PREDECLARED: [(&str, ExchangeKind); 7] = [
    ("", ExchangeKind::Direct),
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
    (firehose::EXCHANGE, ExchangeKind::Topic),
];

/// A vhost.
pub struct VHost {
    /// Its name.
    pub name: Arc<str>,
    pub(crate) store: Arc<Store>,
    /// What confirms wait for where a queue does not say.
    pub(crate) durability: Durability,
    pub(crate) events: Arc<Events>,
    pub(crate) consumers: Consumers,
    pub(crate) shard_groups: ShardGroups,
    /// The node's name, as the names of shards have it.
    pub(crate) node: Arc<str>,
    consumer_timeout: Option<u64>,
    metadata: RwLock<VHostMetadata>,
    timer: Arc<Timer>,
    me: Weak<VHost>,
    topology: RwLock<Topology>,
    generation: AtomicU64,
    /// Where in the log the last change of definitions is.
    logged: AtomicU64,
    /// Messages are copied to the firehose.
    traced: AtomicBool,
}

impl VHost {
    pub(crate) fn new(name: Arc<str>, metadata: VHostMetadata, node: &Node) -> Arc<Self> {
        let mut topology = Topology::new(name.clone(), node.events.clone());
        for (name, kind) in PREDECLARED {
            let mut options = ExchangeOptions::durable(kind);
            options.internal = name == firehose::EXCHANGE;
            topology.insert_exchange(Exchange::new(name.into(), options, Belongings::default()));
        }
        // Every vhost has them, so the log need not say so.
        topology.take_logged();
        Arc::new_cyclic(|me| VHost {
            name,
            store: node.store.clone(),
            durability: node.durability,
            events: node.events.clone(),
            consumers: Consumers::default(),
            shard_groups: ShardGroups::default(),
            node: node.name.clone(),
            consumer_timeout: node.consumer_timeout,
            metadata: RwLock::new(metadata),
            timer: node.timer.clone(),
            me: me.clone(),
            topology: RwLock::new(topology),
            generation: AtomicU64::new(0),
            logged: AtomicU64::new(0),
            traced: AtomicBool::new(false),
        })
    }

    /// Puts back what a restart has found: the log knows it.
    pub(crate) fn restore(&self, restore: impl FnOnce(&mut Topology)) {
        let mut topology = self.topology.write();
        restore(&mut topology);
        topology.take_logged();
        topology.take_events();
        topology.take_replays();
    }

    /// Changes of definitions that were made before are durable once this position is.
    #[inline]
    pub fn definitions_logged(&self) -> Lsn {
        Lsn(self.logged.load(Ordering::Acquire))
    }

    /// Changes whenever a route might.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Topology> {
        self.topology.read()
    }

    /// The time of day, as the node's clock has it.
    pub(crate) fn now(&self) -> Millis {
        self.timer.clock.now()
    }

    /// Copies messages that are published and delivered to the exchange `amq.rabbitmq.trace`, until it
    /// is told to stop or the node does (RabbitMQ's firehose).
    pub fn set_tracing(&self, traced: bool) {
        self.traced.store(traced, Ordering::Release);
        // Routes say whether they are traced.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// True while messages are copied to the exchange `amq.rabbitmq.trace`.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.traced.load(Ordering::Acquire)
    }

    /// Gives it the exchange that events are published to.
    pub(crate) fn publish_events(self: &Arc<Self>) {
        let mut topology = self.topology.write();
        let options = ExchangeOptions {
            internal: true,
            ..ExchangeOptions::durable(ExchangeKind::Topic)
        };
        topology.insert_exchange(Exchange::new(
            events::EXCHANGE.into(),
            options,
            Belongings::default(),
        ));
        topology.publish_events();
        // As the predeclared ones: the log need not say so.
        topology.take_logged();
        topology.take_events();
        drop(topology);
        self.events.set_home(self);
    }

    /// What has happened in it and was not published yet; for one that is new, or has been dissolved.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        self.topology.write().take_events()
    }

    /// As [`VHost::change_by`], where nobody has asked for it.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Topology) -> R) -> R {
        self.change_by(INTERNAL_USER, change)
    }

    /// Changes the topology. If routes may have changed, the generation moves before the lock is
    /// released, so whoever sees the change done also sees the routes stale. `caller`: who has asked
    /// for it, for events.
    pub(crate) fn change_by<R>(&self, caller: &str, change: impl FnOnce(&mut Topology) -> R) -> R {
        let mut topology = self.topology.write();
        let result = change(&mut topology);
        self.see_to_shards(&mut topology);
        let logged = topology.take_logged();
        if !topology.dissolved
            && let Some(lsn) = self.store.define(logged)
        {
            self.logged.store(lsn.0, Ordering::Release);
        }
        if topology.take_changed() {
            self.generation.fetch_add(1, Ordering::Release);
        }
        let gone = topology.take_gone();
        let replays = topology.take_replays();
        let events = topology.take_events();
        drop(topology);
        for replay in replays {
            internal_publish::replay(self, &replay);
        }
        gone.into_iter().for_each(Belongings::release);
        for event in events {
            self.events.publish(caller, event);
        }
        result
    }

    /// What is said about it.
    pub fn metadata(&self) -> VHostMetadata {
        self.metadata.read().clone()
    }

    /// Sets what is said about it; `log` is called under the lock.
    pub(crate) fn set_metadata(&self, metadata: VHostMetadata, log: impl FnOnce()) {
        let mut current = self.metadata.write();
        log();
        *current = metadata;
    }

    /// Gives a declaration without a queue type the vhost's default one.
    pub(crate) fn add_queue_type(&self, options: &mut QueueOptions) {
        let goes = options.auto_delete || options.exclusive.is_some();
        let metadata = self.metadata.read();
        metadata.add_queue_type(&mut options.arguments, options.durable, goes);
    }

    /// True once it was deleted.
    pub(crate) fn is_dissolved(&self) -> bool {
        self.read().dissolved
    }

    /// Ends everything in it, in one record of the log, to which `more` adds.
    pub(crate) fn dissolve(&self, more: impl FnOnce(&mut DefinitionChange)) -> Option<Lsn> {
        let mut topology = self.topology.write();
        let queues: Vec<Arc<Queue>> = topology.queues.values().cloned().collect();
        // Unconditional, so it cannot be refused. Their messages are freed without the lock.
        let remains: Vec<_> = queues
            .iter()
            .map(|queue| queue.close(false, false))
            .collect();
        topology.dissolve();
        let mut change = topology.take_logged();
        more(&mut change);
        let lsn = self.store.define(change);
        topology.take_changed();
        let gone = topology.take_gone();
        self.generation.fetch_add(1, Ordering::Release);
        drop(topology);
        drop(remains);
        gone.into_iter().for_each(Belongings::release);
        queues.iter().for_each(|queue| queue.release_store());
        lsn
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            vhost: self.name.clone(),
            vhost_ref: self.me.clone(),
            timer: self.timer.clone(),
            delays_for: None,
            consumer_timeout: self.consumer_timeout,
        }
    }

    /// An exchange, which is not in the topology yet.
    pub(crate) fn make_exchange(&self, name: Arc<str>, options: ExchangeOptions) -> Exchange {
        let new = |wanted: bool| {
            let stores = wanted.then(|| self.store.new_queues(1, options.durable, self.durability));
            stores
                .and_then(|mut stores| stores.pop())
                .map(|store| RecoveredQueue {
                    store,
                    messages: Vec::new(),
                    next_seq: QueueSeq(0),
                })
        };
        let (delayed, window) = (new(options.delays()), new(options.deduplicates()));
        self.remake_exchange(name, options, delayed, window)
    }

    /// An exchange that a restart has found, and what has been waiting in it.
    pub(crate) fn remake_exchange(
        &self,
        name: Arc<str>,
        options: ExchangeOptions,
        delayed: Option<RecoveredQueue>,
        window: Option<RecoveredQueue>,
    ) -> Exchange {
        let delayed = delayed.map(|recovered| {
            let (surroundings, options) = self.delaying(&name, &options);
            let queue_name = surroundings.queue_name();
            let queue = Queue::recovered(queue_name, surroundings, options, vec![recovered]);
            queue.register(&self.store);
            queue
        });
        let rules = Deduplication::of(&options.arguments);
        let window = rules.zip(window).map(|(rules, recovered)| {
            let window = ExchangeWindow::new(rules, recovered, self.timer.clone());
            let resident: Weak<dyn Resident> = Arc::<ExchangeWindow>::downgrade(&window);
            self.store.register(window.stream, window.logged, resident);
            window
        });
        Exchange::new(name, options, Belongings { delayed, window })
    }

    fn delaying(
        &self,
        exchange: &Arc<str>,
        options: &ExchangeOptions,
    ) -> (Surroundings, QueueOptions) {
        let surroundings = Surroundings {
            delays_for: Some(exchange.clone()),
            ..self.surroundings()
        };
        let options = QueueOptions {
            durable: options.durable,
            ..QueueOptions::default()
        };
        (surroundings, options)
    }

    /// A queue, which is not in the topology yet.
    pub(crate) fn make_queue(&self, name: Arc<str>, options: QueueOptions) -> Arc<Queue> {
        let logged = options.durable && options.exclusive.is_none();
        let durability = options.durability().unwrap_or(self.durability);
        let stores = self.store.new_queues(options.lanes(), logged, durability);
        let queue = Queue::new(name, self.surroundings(), options, stores);
        queue.register(&self.store);
        queue
    }

    /// A queue that a restart has found.
    pub(crate) fn remake_queue(
        &self,
        name: Arc<str>,
        options: QueueOptions,
        recovered: Vec<RecoveredQueue>,
    ) -> Arc<Queue> {
        let queue = Queue::recovered(name, self.surroundings(), options, recovered);
        queue.register(&self.store);
        queue
    }

    /// The queue of that name.
    pub fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.read().queues.get(name).cloned()
    }

    /// How many queues there are.
    pub fn queue_count(&self) -> usize {
        self.read().queues.len()
    }

    /// Deletes a queue that nobody has used for too long, unless somebody has just come.
    pub(crate) fn expire_queue(&self, queue: &Arc<Queue>) {
        burial::bury_all(queue);
        let remains = self.change(|topology| {
            let remains = queue.close_if_unused_for_too_long()?;
            topology.remove_queue(queue);
            Some(remains)
        });
        if remains.is_some() {
            tracing::debug!(queue = %queue.name, vhost = %self.name, "queue expired");
            queue.release_store();
        }
    }

    /// Deletes a queue that the caller holds: unconditionally, if it is still there.
    pub fn delete_queue(&self, queue: &Arc<Queue>) {
        burial::bury_all(queue);
        self.change(|topology| topology.remove_queue(queue));
        // Unconditional, so it cannot be refused.
        drop(queue.close(false, false));
        queue.release_store();
    }
}

impl std::fmt::Debug for VHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VHost")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
