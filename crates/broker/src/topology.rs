//! Exchanges, queues and bindings of one vhost, and the indexes between them.
//!
//! Plain data behind the vhost's lock; knows nothing of users or connections. Each change of what
//! survives a restart is gathered in `logged`, for the vhost to log before it gives up the lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::{HashMap, HashSet};
use store::DefinitionChange;

use crate::binding::{Binding, BindingKey, Destination, DestinationKey};
use crate::definitions;
use crate::events::{self, Event, Events};
use crate::exchange::{Belongings, Exchange, Replay};
use crate::policy::{Authority, Policies, Policy, Target};
use crate::queue::Queue;
use crate::session::REPLY_TO;

#[derive(Default)]
pub(crate) struct Topology {
    pub exchanges: HashMap<Arc<str>, Exchange>,
    pub queues: HashMap<Arc<str>, Arc<Queue>>,
    /// Bindings by where they lead, so that a destination can go without a search.
    by_destination: HashMap<DestinationKey, HashSet<BindingKey>>,
    policies: Policies,
    /// Routes may have changed since this was last taken.
    changed: bool,
    /// Changes that the log must hear of.
    logged: DefinitionChange,
    /// The vhost has gone: nothing is logged any more.
    pub dissolved: bool,
    /// What went with exchanges.
    gone: Vec<Belongings>,
    /// Exchanges whose policies ask for other shards than there are.
    resharded: BTreeSet<Arc<str>>,
    /// What the destinations of new bindings are to get.
    replays: Vec<Replay>,
    /// What has happened, for those who want to know.
    noted: Vec<Event>,
    events: Arc<Events>,
    /// The exchange that events are published to is in here.
    publishes_events: bool,
    vhost: Arc<str>,
}

impl Topology {
    pub fn new(vhost: Arc<str>, events: Arc<Events>) -> Self {
        Topology {
            vhost,
            events,
            ..Topology::default()
        }
    }

    /// What the log must hear of, since the last call.
    pub fn take_logged(&mut self) -> DefinitionChange {
        std::mem::take(&mut self.logged)
    }

    /// True if routes may have changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Exchanges whose policies ask for other shards than there are, since the last call.
    pub fn take_resharded(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.resharded)
    }

    /// What went with exchanges, since the last call; to be released where no lock is held.
    pub fn take_gone(&mut self) -> Vec<Belongings> {
        std::mem::take(&mut self.gone)
    }

    /// What the destinations of new bindings are to get, since the last call; where no lock is held.
    pub fn take_replays(&mut self) -> Vec<Replay> {
        std::mem::take(&mut self.replays)
    }

    /// What has happened since the last call; to be published where no lock is held.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.noted)
    }

    fn note(&mut self, event: impl FnOnce(&Events, &str) -> Event) {
        if self.events.wanted() {
            self.noted.push(event(&self.events, &self.vhost));
        }
    }

    /// Events are published to an exchange in here, while something is bound to it.
    pub fn publish_events(&mut self) {
        self.publishes_events = true;
    }

    /// Bindings of that exchange have changed.
    fn note_bindings_of(&self, exchange: &str) {
        if self.publishes_events && exchange == events::EXCHANGE {
            let found = self.exchanges.get(exchange);
            self.events
                .set_wanted(found.is_some_and(Exchange::has_bindings));
        }
    }

    pub fn insert_exchange(&mut self, mut exchange: Exchange) {
        self.changed = true;
        exchange.apply(self.policies.applied(Target::Exchange, &exchange.name));
        if exchange.is_to_be_resharded() {
            self.resharded.insert(exchange.name.clone());
        }
        self.note(|_, vhost| events::exchange_created(vhost, &exchange));
        if exchange.durable {
            let key = definitions::exchange_key(&self.vhost, &exchange.name);
            self.logged
                .define(&key, &definitions::exchange_value(&exchange));
        }
        self.exchanges.insert(exchange.name.clone(), exchange);
    }

    pub fn insert_queue(&mut self, queue: Arc<Queue>) {
        self.changed = true;
        queue.apply(self.policies.applied(queue.target(), &queue.name));
        self.log_queue(&queue, false);
        if !queue.name.starts_with(REPLY_TO) {
            self.note(|events, _| events::queue_created(events, &queue));
        }
        self.queues.insert(queue.name.clone(), queue);
    }

    /// A queue that goes with its last consumer has one: after a restart it has none, and goes.
    pub fn note_consumed(&mut self, queue: &Arc<Queue>) {
        // It may be gone already, and another one may have its name.
        if self.has(queue) {
            self.log_queue(queue, true);
        }
    }

    fn has(&self, queue: &Arc<Queue>) -> bool {
        let current = self.queues.get(&queue.name);
        current.is_some_and(|current| Arc::ptr_eq(current, queue))
    }

    fn log_queue(&mut self, queue: &Queue, consumed: bool) {
        if queue.logged {
            let key = definitions::queue_key(&self.vhost, &queue.name);
            self.logged
                .define(&key, &definitions::queue_value(queue, consumed));
        }
    }

    /// Adds policies, each in place of one of the same name, to all that they are for. Those that
    /// are there already cost nothing, so that definitions may be imported at every start.
    pub fn set_policies(
        &mut self,
        policies: impl IntoIterator<Item = (Authority, Policy)>,
    ) -> Vec<(Authority, Arc<Policy>)> {
        let mut changed = Vec::new();
        for (authority, policy) in policies {
            if self.policies.has(authority, &policy) {
                continue;
            }
            let key = definitions::policy_key(authority, &self.vhost, &policy.name);
            let value = definitions::policy_value(&policy);
            self.logged.define(&key, &value);
            let policy = Arc::new(policy);
            self.policies.set(authority, policy.clone());
            changed.push((authority, policy));
        }
        if !changed.is_empty() {
            self.apply_policies();
        }
        changed
    }

    /// Removes a policy; false if there is none of that name.
    pub fn clear_policy(&mut self, authority: Authority, name: &str) -> bool {
        let cleared = self.policies.clear(authority, name);
        if cleared {
            let key = definitions::policy_key(authority, &self.vhost, name);
            self.logged.undefine(&key);
            self.apply_policies();
        }
        cleared
    }

    /// All policies of one authority, by name.
    pub fn policies(&self, authority: Authority) -> impl Iterator<Item = &Arc<Policy>> {
        self.policies.list(authority)
    }

    /// Tells those what has changed for whom something has.
    fn apply_policies(&mut self) {
        for exchange in self.exchanges.values_mut() {
            let applied = self.policies.applied(Target::Exchange, &exchange.name);
            if !applied.is_same(&exchange.applied) {
                exchange.apply(applied);
                self.changed = true;
                if exchange.is_to_be_resharded() {
                    self.resharded.insert(exchange.name.clone());
                }
            }
        }
        for queue in self.queues.values() {
            let applied = self.policies.applied(queue.target(), &queue.name);
            if !applied.is_same(&queue.applied()) {
                queue.apply(applied);
                self.changed = true;
            }
        }
    }

    /// Removes everything: the vhost goes. What is still done to it leaves no trace.
    pub fn dissolve(&mut self) {
        let queues: Vec<Arc<Queue>> = self.queues.values().cloned().collect();
        queues.iter().for_each(|queue| self.remove_queue(queue));
        let exchanges: Vec<Arc<str>> = self.exchanges.keys().cloned().collect();
        self.remove_exchanges(exchanges);
        for authority in [Authority::User, Authority::Operator] {
            let names: Vec<Arc<str>> = self
                .policies(authority)
                .map(|policy| policy.name.clone())
                .collect();
            for name in names {
                self.clear_policy(authority, &name);
            }
        }
        self.dissolved = true;
    }

    /// Adds a binding whose ends exist; nothing changes if the same one is there already.
    pub fn bind(&mut self, binding: Binding) {
        let key = binding.key();
        let lasting = match &binding.destination {
            Destination::Queue(queue) => queue.logged,
            Destination::Exchange(name) => self
                .exchanges
                .get(name)
                .is_some_and(|exchange| exchange.durable),
        };
        let Some(exchange) = self.exchanges.get_mut(&binding.source) else {
            return;
        };
        let durable = lasting && exchange.durable;
        let destination = binding.destination.clone();
        let arguments = binding.arguments.clone();
        if exchange.bind(key.clone(), binding, durable) {
            self.changed = true;
            let history = exchange.history.as_ref();
            self.replays
                .extend(history.and_then(|history| history.replay_to(destination)));
            if durable {
                let key = definitions::binding_key(&self.vhost, &key);
                self.logged.define(&key, &[]);
            }
            self.note_bindings_of(&key.source);
            self.note(|_, vhost| events::binding_created(vhost, &key, &arguments));
            self.by_destination
                .entry(key.destination.clone())
                .or_default()
                .insert(key);
        }
    }

    /// Removes a binding, and the auto-delete exchanges that this leaves without any.
    pub fn unbind(&mut self, key: &BindingKey) {
        let exhausted = self.remove_binding(key);
        self.remove_exchanges(exhausted.into_iter().collect());
    }

    /// Removes an exchange with all bindings from it and to it.
    pub fn remove_exchange(&mut self, name: &Arc<str>) {
        self.remove_exchanges(vec![name.clone()]);
    }

    /// Removes a queue, if it is still that one, with all bindings to it.
    pub fn remove_queue(&mut self, queue: &Arc<Queue>) {
        if !self.has(queue) {
            return;
        }
        self.changed = true;
        if queue.logged {
            self.logged
                .undefine(&definitions::queue_key(&self.vhost, &queue.name));
            for stream in queue.streams() {
                self.logged.forget(stream);
            }
        }
        self.queues.remove(&queue.name);
        let before = self.noted.len();
        let exhausted = self.remove_destination(&DestinationKey::Queue(queue.name.clone()));
        self.remove_exchanges(exhausted);
        self.noted[before..]
            .iter_mut()
            .for_each(Event::in_consequence);
        if !queue.name.starts_with(REPLY_TO) {
            self.note(|_, _| events::queue_deleted(queue));
        }
    }

    /// Removes exchanges, and those that go because of it: a list of work, not a recursion, since
    /// clients decide how long the chain is.
    fn remove_exchanges(&mut self, mut names: Vec<Arc<str>>) {
        while let Some(name) = names.pop() {
            let Some(mut exchange) = self.exchanges.remove(&name) else {
                continue;
            };
            self.changed = true;
            self.note(|_, vhost| events::exchange_deleted(vhost, &name));
            if exchange.durable {
                self.logged
                    .undefine(&definitions::exchange_key(&self.vhost, &name));
            }
            let belongings = std::mem::take(&mut exchange.belongings);
            for stream in belongings.logged_streams() {
                self.logged.forget(stream);
            }
            self.gone.push(belongings);
            for (key, durable) in exchange.take_bindings() {
                self.forget(&key, durable);
            }
            names.extend(self.remove_destination(&DestinationKey::Exchange(name)));
        }
    }

    /// Removes all bindings to a destination; returns the auto-delete exchanges without any left.
    fn remove_destination(&mut self, destination: &DestinationKey) -> Vec<Arc<str>> {
        let keys = self.by_destination.remove(destination).unwrap_or_default();
        keys.iter()
            .filter_map(|key| self.remove_binding(key))
            .collect()
    }

    /// Removes a binding; returns its exchange if that is auto-delete and has none left.
    fn remove_binding(&mut self, key: &BindingKey) -> Option<Arc<str>> {
        let exchange = self.exchanges.get_mut(&key.source)?;
        let durable = exchange.unbind(key)?;
        self.changed = true;
        let exhausted = exchange.auto_delete && !exchange.has_bindings();
        self.forget(key, durable);
        exhausted.then(|| key.source.clone())
    }

    fn forget(&mut self, key: &BindingKey, durable: bool) {
        self.note(|_, vhost| events::binding_deleted(vhost, key));
        self.note_bindings_of(&key.source);
        if durable {
            self.logged
                .undefine(&definitions::binding_key(&self.vhost, key));
        }
        if let Some(keys) = self.by_destination.get_mut(&key.destination) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_destination.remove(&key.destination);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use amqp::FieldTable;

    use super::*;
    use crate::binding::Destination;
    use crate::exchange::{ExchangeKind, ExchangeOptions};
    use crate::test_support;

    #[test]
    fn a_long_chain_of_auto_delete_exchanges_goes_with_its_queue() {
        const LENGTH: usize = 100_000;
        let mut topology = Topology::default();
        let queue = test_support::queue(&test_support::store(), "q");
        topology.insert_queue(queue.clone());
        let mut destination = Destination::Queue(queue.clone());
        for index in 0..LENGTH {
            let name: Arc<str> = format!("x{index}").into();
            let options = ExchangeOptions {
                auto_delete: true,
                ..ExchangeOptions::durable(ExchangeKind::Fanout)
            };
            topology.insert_exchange(Exchange::new(name.clone(), options, Belongings::default()));
            topology.bind(Binding {
                source: name.clone(),
                destination,
                routing_key: Box::default(),
                arguments: FieldTable::new(),
            });
            destination = Destination::Exchange(name);
        }
        topology.remove_queue(&queue);
        assert!(topology.exchanges.is_empty());
        assert!(topology.by_destination.is_empty());
    }

    /// Its definition took the place of the new queue's, which was gone after a restart.
    #[test]
    fn consumer_of_a_queue_that_is_gone_defines_nothing() {
        let mut topology = Topology::default();
        let store = test_support::store();
        let [old, new] = [0, 1].map(|_| test_support::queue(&store, "q"));
        topology.insert_queue(old.clone());
        topology.remove_queue(&old);
        topology.insert_queue(new.clone());
        topology.take_logged();
        topology.note_consumed(&old);
        assert!(topology.take_logged().is_empty());
        topology.note_consumed(&new);
        assert!(!topology.take_logged().is_empty());
    }

    #[test]
    fn doing_nothing_changes_nothing() {
        let mut topology = Topology::default();
        topology.remove_exchange(&"missing".into());
        assert!(!topology.take_changed());
    }
}
