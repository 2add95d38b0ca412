//! What a restart leaves, as a number of records of the log say.
//!
//! The log is written in order, so whatever a crash does, what is found is what some number of its
//! records say: all those that were known to be durable, and perhaps some more. A record happens
//! as a whole. That is everything that is promised of confirms, of transactions and of the order
//! between all of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::topology::{Target, Topology};
use crate::universe::{EXCHANGES, KEYS, Name, queue_kind};

/// A record of the log, or some that nothing tells apart.
#[derive(Debug, Clone)]
pub enum Record {
    /// Queues that come, with their numbers, that go, and that have their first consumer; how
    /// exchanges and bindings are from then on.
    Define {
        new: Option<(Name, u32)>,
        gone: Option<Name>,
        consumed: Option<Name>,
        topology: Topology,
    },
    /// What happens to messages of some queues.
    Change(Vec<Change>),
    /// Everything of that queue before that place has been out for delivery.
    Delivered { queue: Name, up_to: u64 },
}

/// Persistent messages that a queue loses, and those that it gets, with their places.
#[derive(Debug, Clone)]
pub struct Change {
    pub queue: Name,
    pub removed: Vec<u64>,
    pub added: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DurableQueue {
    /// No two queues have the same.
    pub number: u32,
    /// Its messages by place.
    pub messages: BTreeMap<u64, u64>,
    pub consumed: bool,
    /// Every message before that place is marked as redelivered after a restart.
    pub delivered: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Durable {
    pub queues: BTreeMap<Name, DurableQueue>,
    pub topology: Topology,
}

/// What a broker was found to hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// Messages in order.
    pub queues: BTreeMap<Name, Vec<u64>>,
    pub exchanges: BTreeSet<Name>,
    pub routes: BTreeMap<(Name, Name), BTreeSet<Name>>,
    /// How many exchanges, queues and bindings are defined.
    pub definitions: [usize; 3],
}

impl Durable {
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Define {
                new,
                gone,
                consumed,
                topology,
            } => {
                if let Some(name) = gone {
                    self.queues.remove(name);
                }
                if let Some((name, number)) = *new {
                    let queue = DurableQueue {
                        number,
                        ..DurableQueue::default()
                    };
                    self.queues.insert(name, queue);
                }
                if let Some(queue) = consumed.and_then(|name| self.queues.get_mut(name)) {
                    queue.consumed = true;
                }
                self.topology = topology.clone();
            }
            Record::Change(changes) => changes.iter().for_each(|change| self.change(change)),
            Record::Delivered { queue, up_to } => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.delivered = queue.delivered.max(*up_to);
                }
            }
        }
    }

    fn change(&mut self, change: &Change) {
        let Some(queue) = self.queues.get_mut(change.queue) else {
            return;
        };
        queue.messages.retain(|_, id| !change.removed.contains(id));
        let added = change.added.iter();
        queue
            .messages
            .extend(added.map(|(place, id)| (*place, *id)));
    }

    /// What is there after a restart: queues whose last consumer ended with the process are not.
    pub fn restarted(&self) -> Durable {
        let mut restarted = self.clone();
        restarted
            .queues
            .retain(|name, queue| !(queue.consumed && queue_kind(name).auto_delete));
        for name in self.queues.keys() {
            if !restarted.queues.contains_key(name) {
                restarted.topology.remove_target(Target::Queue(name));
            }
        }
        restarted
    }

    pub fn contents(&self) -> Contents {
        let queues = self.queues.iter();
        let Topology {
            exchanges,
            bindings,
        } = &self.topology;
        Contents {
            queues: queues
                .map(|(name, queue)| (*name, queue.messages.values().copied().collect()))
                .collect(),
            exchanges: exchanges.clone(),
            routes: routes(|exchange, key| {
                exchanges
                    .contains(exchange)
                    .then(|| self.topology.route(exchange, key))
            }),
            definitions: [exchanges.len(), self.queues.len(), bindings.len()],
        }
    }
}

/// Where messages go, from each exchange that is there and with each key.
pub fn routes(
    mut route: impl FnMut(Name, Name) -> Option<BTreeSet<Name>>,
) -> BTreeMap<(Name, Name), BTreeSet<Name>> {
    let mut routes = BTreeMap::new();
    for exchange in &EXCHANGES {
        for key in KEYS {
            if let Some(queues) = route(exchange.name, key) {
                routes.insert((exchange.name, key), queues);
            }
        }
    }
    routes
}
