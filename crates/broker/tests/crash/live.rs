//! What a running broker holds, as the model sees it.

use std::collections::BTreeMap;

use crate::durable::Durable;
use crate::topology::{Target, Topology};
use crate::universe::{Name, QueueKind, queue_kind};

#[derive(Debug)]
pub struct Entry {
    pub id: u64,
    pub persistent: bool,
    pub redelivered: bool,
    /// It is out on a lease.
    pub out: bool,
}

#[derive(Debug)]
pub struct LiveQueue {
    pub kind: &'static QueueKind,
    /// No two queues have the same.
    pub number: u32,
    /// Messages by place.
    pub entries: BTreeMap<u64, Entry>,
    next_place: u64,
    pub consumers: usize,
    pub consumed: bool,
    /// Everything before that place has been out for delivery.
    pub delivered: u64,
    /// The model's log says so up to there.
    pub delivered_logged: u64,
}

#[derive(Debug, Default)]
pub struct Live {
    pub queues: BTreeMap<Name, LiveQueue>,
    pub topology: Topology,
}

impl LiveQueue {
    pub fn new(name: Name, number: u32) -> LiveQueue {
        LiveQueue {
            kind: queue_kind(name),
            number,
            entries: BTreeMap::new(),
            next_place: 0,
            consumers: 0,
            consumed: false,
            delivered: 0,
            delivered_logged: 0,
        }
    }

    /// Adds a message; returns its place.
    pub fn add(&mut self, id: u64, persistent: bool) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        let entry = Entry {
            id,
            persistent,
            redelivered: false,
            out: false,
        };
        self.entries.insert(place, entry);
        place
    }

    pub fn ready(&self) -> usize {
        self.entries.values().filter(|entry| !entry.out).count()
    }

    pub fn out(&self) -> usize {
        self.entries.len() - self.ready()
    }

    /// The message whose turn it is.
    pub fn first_ready(&self) -> Option<u64> {
        let ready = self.entries.iter().find(|(_, entry)| !entry.out);
        ready.map(|(place, _)| *place)
    }

    /// Takes a message out for good; its number if the log must say so.
    pub fn remove(&mut self, place: u64) -> Option<u64> {
        let entry = self.entries.remove(&place)?;
        (self.kind.durable && entry.persistent).then_some(entry.id)
    }

    /// Drops what is ready; returns how many, and the numbers of those that the log must hear of.
    pub fn purge(&mut self) -> (usize, Vec<u64>) {
        let ready = self.entries.iter().filter(|(_, entry)| !entry.out);
        let places: Vec<u64> = ready.map(|(place, _)| *place).collect();
        let removed = places.iter().filter_map(|place| self.remove(*place));
        let removed = removed.collect();
        (places.len(), removed)
    }
}

impl Live {
    /// What is there after a restart.
    pub fn restored(durable: &Durable) -> Live {
        let mut live = Live {
            topology: durable.topology.clone(),
            ..Live::default()
        };
        for (name, kept) in &durable.queues {
            let mut queue = LiveQueue::new(name, kept.number);
            queue.consumed = kept.consumed;
            queue.delivered = kept.delivered;
            queue.delivered_logged = kept.delivered;
            for (place, id) in &kept.messages {
                queue.next_place = *place;
                queue.add(*id, true);
                let entry = queue.entries.get_mut(place).expect("just added");
                entry.redelivered = *place < kept.delivered;
            }
            queue.next_place = queue.next_place.max(kept.delivered);
            live.queues.insert(name, queue);
        }
        live
    }

    /// The queue of that name, if it is still the one of that number.
    pub fn queue(&mut self, name: Name, number: u32) -> Option<&mut LiveQueue> {
        self.queues
            .get_mut(name)
            .filter(|queue| queue.number == number)
    }

    pub fn remove_queue(&mut self, name: Name) -> Option<LiveQueue> {
        let removed = self.queues.remove(name);
        if removed.is_some() {
            self.topology.remove_target(Target::Queue(name));
        }
        removed
    }
}
