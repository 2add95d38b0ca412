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
    /// Exchanges, queues and bindings, as they are kept.
    pub definitions: BTreeSet<Definition>,
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
        let exchanges = &self.topology.exchanges;
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
            definitions: definitions(&self.topology, self.queues.keys().copied()),
        }
    }
}

/// A definition's kind, and the names in its key.
pub type Definition = (char, Vec<String>);

fn definitions(topology: &Topology, queues: impl Iterator<Item = Name>) -> BTreeSet<Definition> {
    let definition = |kind, names: &[Name]| {
        let names = ["/"].iter().chain(names).map(|name| (*name).to_owned());
        (kind, names.collect())
    };
    let exchanges = topology
        .exchanges
        .iter()
        .map(|name| definition('x', &[name]));
    let queues = queues.map(|name| definition('q', &[name]));
    let bindings = topology.bindings.iter().map(|binding| {
        let (kind, target) = match binding.target {
            Target::Queue(name) => ("q", name),
            Target::Exchange(name) => ("e", name),
        };
        definition('b', &[binding.source, kind, target, binding.key])
    });
    exchanges.chain(queues).chain(bindings).collect()
}

/// What a key of the store's definitions says, if it is one of those.
pub fn definition_of(key: &[u8]) -> Option<Definition> {
    let (kind, mut rest) = key.split_first()?;
    let mut names = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (name, after) = after.split_at(u16::from_be_bytes(*length).into());
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = after;
    }
    b"xqb".contains(kind).then(|| (char::from(*kind), names))
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
