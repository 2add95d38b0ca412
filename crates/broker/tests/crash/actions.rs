//! What a client can do: each action is done, told to the model, and its answer compared with
//! what the model expects.

use std::sync::Arc;

use amqp::FieldTable;
use broker::{ConsumerHandle, ConsumerOptions, LogPositions, Outcome, Route, Transaction};
use store::{Durability, Message};

use crate::durable::{Change, Record};
use crate::live::LiveQueue;
use crate::topology::{Binding, Target};
use crate::universe::{Name, exchange_sort, message, queue_kind};
use crate::world::{Consumer, Held, World};

/// A message that is to be published.
pub struct New {
    pub id: u64,
    pub persistent: bool,
    pub message: Message,
}

/// A transaction that has not been committed.
#[derive(Default)]
pub struct Uncommitted {
    transaction: Transaction,
    published: Vec<(Arc<Route>, u64, bool)>,
    settled: Vec<(Held, Outcome)>,
}

/// Messages.
impl World {
    /// A message for that exchange and key, of about that size.
    pub fn new_message(&mut self, to: (Name, Name), persistent: bool, size: usize) -> New {
        let id = self.model.number_message();
        New {
            id,
            persistent,
            message: message(id, to.0, to.1, persistent, size),
        }
    }

    /// Publishes messages, so few that they are one run, and waits for their confirm.
    pub fn publish(&mut self, to: (Name, Name), messages: Vec<New>) {
        let route = self.route(to.0, to.1);
        let ids: Vec<(u64, bool)> = messages
            .iter()
            .map(|new| (new.id, new.persistent))
            .collect();
        for new in messages {
            self.publisher.push(route.clone(), new.message);
        }
        self.publisher.flush();
        let mut records = None;
        for queue in &route.queues {
            let kind = queue_kind(&queue.name);
            if let Some(change) = self.published(kind.name, &ids) {
                self.model.log(Record::Change(vec![change]));
                if !kind.os {
                    records = Some(self.model.appended());
                }
            }
        }
        if let Some(records) = records {
            let positions = self.publisher.logged();
            self.model.wait(positions, records);
        }
    }

    /// Messages have gone to a queue; what the log must hear of that.
    fn published(&mut self, name: Name, ids: &[(u64, bool)]) -> Option<Change> {
        let queue = self.live.queues.get_mut(name)?;
        let durable = queue.kind.durable;
        let mut added = Vec::new();
        for (id, persistent) in ids {
            let place = queue.add(*id, *persistent);
            if durable && *persistent {
                added.push((place, *id));
            }
        }
        (!added.is_empty()).then(|| Change {
            queue: name,
            removed: Vec::new(),
            added,
        })
    }

    /// Publishes as part of a transaction.
    pub fn publish_in(&mut self, within: &mut Uncommitted, to: (Name, Name), new: New) {
        let route = self.route(to.0, to.1);
        let published = within.transaction.publish(route.clone(), new.message);
        published.expect("it is not too large");
        within.published.push((route, new.id, new.persistent));
    }

    /// Ends a lease as part of a transaction.
    pub fn settle_in(&mut self, within: &mut Uncommitted, held: Held, outcome: Outcome) {
        let queue = held.queue.clone();
        let settled = within.transaction.settle(queue, held.lease, outcome);
        settled.expect("it is not too large");
        within.settled.push((held, outcome));
    }

    /// Commits, and waits for the answer.
    pub fn commit(&mut self, mut uncommitted: Uncommitted) {
        let logged = uncommitted.transaction.commit(&self.store);
        let changes = self.committed(&uncommitted);
        if !changes.is_empty() {
            self.model.log(Record::Change(changes));
        }
        if let Ok(Some(logged @ (_, Durability::Fsync))) = logged {
            let mut positions = LogPositions::default();
            positions.add(logged);
            self.model.wait(positions, self.model.appended());
        }
        let settled = uncommitted.settled.iter();
        self.release(settled.filter(|(held, _)| held.counted).count());
        self.collect();
    }

    fn committed(&mut self, uncommitted: &Uncommitted) -> Vec<Change> {
        let mut changes = Vec::new();
        for (held, outcome) in &uncommitted.settled {
            if let Some(removed) = self.end(held, *outcome) {
                change_of(&mut changes, held.name).removed.push(removed);
            }
        }
        for (route, id, persistent) in &uncommitted.published {
            for queue in &route.queues {
                let name = queue_kind(&queue.name).name;
                if let Some(change) = self.published(name, &[(*id, *persistent)]) {
                    change_of(&mut changes, name).added.extend(change.added);
                }
            }
        }
        changes
    }

    /// A lease ends; the message's number if the log must hear that it is gone.
    fn end(&mut self, held: &Held, outcome: Outcome) -> Option<u64> {
        let live = self.live.queue(held.name, held.number)?;
        match outcome {
            Outcome::Acknowledge | Outcome::Discard => live.remove(held.place),
            Outcome::Requeue => {
                let entry = live.entries.get_mut(&held.place).expect("it is out");
                entry.out = false;
                entry.redelivered = true;
                None
            }
        }
    }

    /// Ends leases of one queue.
    pub fn settle(&mut self, held: &[Held], outcome: Outcome) {
        let Some(first) = held.first() else { return };
        let removed: Vec<u64> = held
            .iter()
            .filter_map(|held| self.end(held, outcome))
            .collect();
        let leases: Vec<_> = held.iter().map(|held| held.lease).collect();
        first.queue.settle(&leases, outcome);
        self.log_removed(first.name, removed);
        self.release(held.iter().filter(|held| held.counted).count());
        self.collect();
    }

    /// Takes up to `count` deliveries from the client, all of the queue that the one at `from` is
    /// of.
    pub fn choose(&mut self, from: usize, count: usize) -> Vec<Held> {
        let number = self.held[from].number;
        let mut chosen = Vec::new();
        let mut at = from;
        while chosen.len() < count && at < self.held.len() {
            if self.held[at].number == number {
                chosen.push(self.held.remove(at));
            } else {
                at += 1;
            }
        }
        chosen
    }

    /// basic.get.
    pub fn get(&mut self, name: Name, no_ack: bool) {
        if !self.live.queues.contains_key(name) {
            assert!(self.session.get(name, no_ack).is_err());
            return;
        }
        let found = self.session.get(name, no_ack);
        let (queue, got) = found.unwrap_or_else(|error| panic!("{error}"));
        // What had to be read first may have gone to consumers that waited for it.
        let stalled = self.drain().unwrap_or_default();
        if let Some(got) = got {
            let place = self.take_first(name, &got.message, got.redelivered);
            let live = self.live.queues.get_mut(name).expect("just found");
            let number = live.number;
            if let Some(lease) = got.lease {
                live.delivered = live.delivered.max(place + 1);
                self.held.push(Held {
                    queue,
                    name,
                    number,
                    place,
                    lease,
                    counted: false,
                });
            } else {
                let removed = live.remove(place);
                self.log_removed(name, removed.into_iter().collect());
            }
        } else {
            let ready = self.live.queues[name].ready();
            assert_eq!(ready, 0, "{name:?} does not give what it has");
        }
        self.resume(stalled.into_iter());
        self.collect();
    }

    /// basic.consume; returns the consumer's handle.
    pub fn consume(&mut self, name: Name, no_ack: bool, prefetch: u16) -> u32 {
        let handle = self.next_handle;
        self.next_handle += 1;
        let options = ConsumerOptions {
            no_ack,
            exclusive: false,
            prefetch,
            channel: self.channel.clone(),
            outbox: self.outbox.clone(),
            handle: ConsumerHandle(handle),
            priority: 0,
            timeout: None,
            stream: None,
        };
        let consuming = self.session.consume(name, options, &FieldTable::new());
        let (queue, id) = consuming.unwrap_or_else(|error| panic!("{error}"));
        let live = self.live.queues.get_mut(name).expect("just found");
        live.consumers += 1;
        let number = live.number;
        let first = live.kind.auto_delete && !live.consumed;
        live.consumed = true;
        if first {
            self.defined(None, None, Some(name));
        }
        let consumer = Consumer {
            queue: queue.clone(),
            id,
            name,
            number,
        };
        self.consumers.insert(handle, consumer);
        queue.resume(id);
        self.collect();
        handle
    }

    /// The client is gone: its consumers end, and what it has goes back.
    pub fn lose_connection(&mut self) {
        let handles: Vec<u32> = self.consumers.keys().copied().collect();
        handles.into_iter().for_each(|handle| self.cancel(handle));
        // Of queues that are gone.
        self.inbox.clear();
        while !self.held.is_empty() {
            let count = self.held.len();
            let chosen = self.choose(0, count);
            self.settle(&chosen, Outcome::Requeue);
        }
    }

    /// queue.purge.
    pub fn purge(&mut self, name: Name) {
        let purged = self.session.purge_queue(name);
        match self.live.queues.get_mut(name) {
            Some(live) => {
                let (count, removed) = live.purge();
                assert_eq!(purged.ok(), Some(count), "purged from {name:?}");
                self.log_removed(name, removed);
            }
            None => assert!(purged.is_err()),
        }
    }
}

/// What a transaction does to one queue, as far as the log must hear of it.
fn change_of(changes: &mut Vec<Change>, queue: Name) -> &mut Change {
    let at = changes.iter().position(|change| change.queue == queue);
    let at = at.unwrap_or_else(|| {
        changes.push(Change {
            queue,
            removed: Vec::new(),
            added: Vec::new(),
        });
        changes.len() - 1
    });
    &mut changes[at]
}

/// Definitions.
impl World {
    /// queue.declare.
    pub fn declare_queue(&mut self, name: Name) {
        let declared = self.session.declare_queue(name, queue_kind(name).options());
        let declared = declared.unwrap_or_else(|error| panic!("{error}"));
        match self.live.queues.get(name) {
            Some(live) => assert_eq!(declared.messages, live.ready(), "ready in {name:?}"),
            None => {
                assert_eq!(declared.messages, 0, "{name:?} is new");
                let number = self.model.number_queue();
                self.live.queues.insert(name, LiveQueue::new(name, number));
                self.defined(Some((name, number)), None, None);
            }
        }
    }

    /// queue.delete.
    pub fn delete_queue(&mut self, name: Name) {
        let deleted = self.session.delete_queue(name, false, false);
        let live = self.live.remove_queue(name);
        let count = live.as_ref().map_or(0, LiveQueue::ready);
        assert_eq!(deleted.ok(), Some(count), "deleted with {name:?}");
        if live.is_some() {
            self.defined(None, Some(name), None);
        }
        self.collect();
    }

    /// exchange.declare.
    pub fn declare_exchange(&mut self, name: Name) {
        let options = exchange_sort(name).options();
        let declared = self.session.declare_exchange(name, options, false);
        declared.unwrap_or_else(|error| panic!("{error}"));
        if self.live.topology.exchanges.insert(name) {
            self.defined(None, None, None);
        }
    }

    /// exchange.delete.
    pub fn delete_exchange(&mut self, name: Name) {
        let deleted = self.session.delete_exchange(name, false);
        deleted.unwrap_or_else(|error| panic!("{error}"));
        self.live.topology.remove_exchange(name);
        self.defined(None, None, None);
    }

    /// queue.bind or exchange.bind.
    pub fn bind(&mut self, binding: Binding) {
        let Binding {
            source,
            key,
            target,
        } = binding;
        let (session, none) = (&self.session, FieldTable::new());
        let bound = match target {
            Target::Queue(name) => session.bind_queue(name, source, key.as_bytes(), none),
            Target::Exchange(name) => session.bind_exchange(name, source, key.as_bytes(), none),
        };
        bound.unwrap_or_else(|error| panic!("{error}"));
        if self.live.topology.bindings.insert(binding) {
            self.defined(None, None, None);
        }
    }

    /// queue.unbind or exchange.unbind.
    pub fn unbind(&mut self, binding: Binding) {
        let (session, none) = (&self.session, FieldTable::new());
        let (source, key) = (binding.source, binding.key.as_bytes());
        let unbound = match binding.target {
            Target::Queue(name) => session.unbind_queue(name, source, key, none),
            Target::Exchange(name) => session.unbind_exchange(name, source, key, none),
        };
        unbound.unwrap_or_else(|error| panic!("{error}"));
        self.live.topology.unbind(&binding);
        self.defined(None, None, None);
    }
}
