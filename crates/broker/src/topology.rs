//! Exchanges, queues and bindings of one vhost, and the indexes between them.
//!
//! Plain data behind the vhost's lock; knows nothing of users or connections.

use std::sync::Arc;

use ahash::{HashMap, HashSet};

use crate::binding::{Binding, BindingKey, DestinationKey};
use crate::exchange::Exchange;
use crate::queue::Queue;

#[derive(Default)]
pub(crate) struct Topology {
    pub exchanges: HashMap<Arc<str>, Exchange>,
    pub queues: HashMap<Arc<str>, Arc<Queue>>,
    /// Bindings by where they lead, so that a destination can go without a search.
    by_destination: HashMap<DestinationKey, HashSet<BindingKey>>,
}

impl Topology {
    /// Adds a binding whose ends exist; false if the same one is there already.
    pub fn bind(&mut self, binding: Binding) -> bool {
        let key = binding.key();
        let Some(exchange) = self.exchanges.get_mut(&binding.source) else {
            return false;
        };
        if !exchange.bind(key.clone(), binding) {
            return false;
        }
        self.by_destination
            .entry(key.destination.clone())
            .or_default()
            .insert(key);
        true
    }

    /// Removes a binding, and the auto-delete exchange that it was the last of.
    pub fn unbind(&mut self, key: &BindingKey) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&key.source) else {
            return false;
        };
        if !exchange.unbind(key) {
            return false;
        }
        let exhausted = exchange.auto_delete && !exchange.has_bindings();
        if let Some(keys) = self.by_destination.get_mut(&key.destination) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_destination.remove(&key.destination);
            }
        }
        if exhausted {
            self.remove_exchange(&key.source);
        }
        true
    }

    /// Removes an exchange with all bindings from it and to it.
    pub fn remove_exchange(&mut self, name: &Arc<str>) -> bool {
        let Some(mut exchange) = self.exchanges.remove(name) else {
            return false;
        };
        for key in exchange.take_bindings() {
            if let Some(keys) = self.by_destination.get_mut(&key.destination) {
                keys.remove(&key);
            }
        }
        self.unbind_destination(&DestinationKey::Exchange(name.clone()));
        true
    }

    /// Removes a queue, if it is still that one, with all bindings to it.
    pub fn remove_queue(&mut self, queue: &Arc<Queue>) -> bool {
        if !self
            .queues
            .get(&queue.name)
            .is_some_and(|current| Arc::ptr_eq(current, queue))
        {
            return false;
        }
        self.queues.remove(&queue.name);
        self.unbind_destination(&DestinationKey::Queue(queue.name.clone()));
        true
    }

    fn unbind_destination(&mut self, destination: &DestinationKey) {
        let keys = self.by_destination.remove(destination).unwrap_or_default();
        for key in &keys {
            self.unbind(key);
        }
    }
}
