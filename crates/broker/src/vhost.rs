//! A vhost: a name space of exchanges, queues and bindings.
//!
//! One read-write lock guards the topology. The generation changes with it, so that publishers
//! may keep routes without taking the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

use crate::exchange::{Exchange, ExchangeKind, ExchangeOptions};
use crate::queue::Queue;
use crate::topology::Topology;

/// Exchanges that every vhost has, with their types.
const PREDECLARED: [(&str, ExchangeKind); 7] = [
    ("", ExchangeKind::Direct),
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
    ("amq.rabbitmq.trace", ExchangeKind::Topic),
];

/// A vhost.
pub struct VHost {
    /// Its name.
    pub name: Arc<str>,
    topology: RwLock<Topology>,
    generation: AtomicU64,
}

impl VHost {
    pub(crate) fn new(name: Arc<str>) -> Self {
        let mut topology = Topology::default();
        for (name, kind) in PREDECLARED {
            let mut options = ExchangeOptions::durable(kind);
            options.internal = name == "amq.rabbitmq.trace";
            topology.insert_exchange(Exchange::new(name.into(), options));
        }
        VHost {
            name,
            topology: RwLock::new(topology),
            generation: AtomicU64::new(0),
        }
    }

    /// Changes whenever a route might.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Topology> {
        self.topology.read()
    }

    /// Changes the topology. If routes may have changed, the generation moves before the lock is
    /// released, so whoever sees the change done also sees the routes stale.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Topology) -> R) -> R {
        let mut topology = self.topology.write();
        let result = change(&mut topology);
        if topology.take_changed() {
            self.generation.fetch_add(1, Ordering::Release);
        }
        result
    }

    /// The queue of that name.
    pub fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.read().queues.get(name).cloned()
    }

    /// Deletes a queue that the caller holds: unconditionally, if it is still there.
    pub fn delete_queue(&self, queue: &Arc<Queue>) {
        self.change(|topology| topology.remove_queue(queue));
        // Unconditional, so it cannot be refused.
        drop(queue.close(false, false));
    }
}

impl std::fmt::Debug for VHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VHost")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
