//! `x-modulus-hash`: a message goes to one destination, by the hash of its routing key modulo their
//! number. What destinations are bound with does not matter. The exchange of RabbitMQ's sharding.

use std::sync::Arc;

use super::hash::of_keys;
use super::{Head, Router, Visit};
use crate::binding::{Binding, Destination, DestinationKey};

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
        if let Some(at) = position(message.keys, self.destinations.len())
            && let Some(binding) = self.destinations[at].1.first()
        {
            visit(&binding.destination);
        }
    }

    fn spreads_to(&self) -> Option<Vec<&Destination>> {
        let bindings = self.destinations.iter().map(|(_, all)| all.first());
        let destinations = bindings.map(|binding| Some(&binding?.destination));
        destinations.collect()
    }
}

/// Which of so many destinations a message goes to.
#[inline]
pub(crate) fn position(keys: &[&[u8]], count: usize) -> Option<usize> {
    let at = of_keys(keys).checked_rem(count as u64)?;
    Some(at as usize)
}
