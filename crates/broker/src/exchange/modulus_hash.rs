//! `x-modulus-hash`: a message goes to one destination, by the hash of its routing key modulo their
//! number. What destinations are bound with does not matter. The exchange of RabbitMQ's sharding.

use std::sync::Arc;

use super::hash::of_keys;
use super::{Head, Router, Visit};
use crate::binding::{Binding, DestinationKey};

#[derive(Default)]
pub(super) struct ModulusHash {
    /// By kind and name, each destination once, with all its bindings.
    destinations: Vec<(DestinationKey, Vec<Arc<Binding>>)>,
}

impl ModulusHash {
    fn position(&self, key: &DestinationKey) -> Result<usize, usize> {
        self.destinations
            .binary_search_by(|(other, _)| other.cmp(key))
    }
}

impl Router for ModulusHash {
    fn add(&mut self, binding: &Arc<Binding>) {
        let key = binding.destination.key();
        match self.position(&key) {
            Ok(at) => self.destinations[at].1.push(binding.clone()),
            Err(at) => self.destinations.insert(at, (key, vec![binding.clone()])),
        }
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        if let Ok(at) = self.position(&binding.destination.key()) {
            let bindings = &mut self.destinations[at].1;
            bindings.retain(|other| !Arc::ptr_eq(other, binding));
            if bindings.is_empty() {
                self.destinations.remove(at);
            }
        }
    }

    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        let count = self.destinations.len() as u64;
        if count > 0 {
            let at = (of_keys(message.keys) % count) as usize;
            if let Some(binding) = self.destinations[at].1.first() {
                visit(&binding.destination);
            }
        }
    }
}
