//! Direct exchange: a message goes where the binding key equals its routing key.

use std::sync::Arc;

use ahash::HashMap;

use super::{Head, Router, Visit};
use crate::binding::Binding;

#[derive(Default)]
pub(super) struct Direct {
    by_key: HashMap<Box<[u8]>, Vec<Arc<Binding>>>,
}

impl Router for Direct {
    fn add(&mut self, binding: &Arc<Binding>) {
        self.by_key
            .entry(binding.routing_key.clone())
            .or_default()
            .push(binding.clone());
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        if let Some(bindings) = self.by_key.get_mut(&binding.routing_key) {
            bindings.retain(|other| !Arc::ptr_eq(other, binding));
            if bindings.is_empty() {
                self.by_key.remove(&binding.routing_key);
            }
        }
    }

    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        for key in message.keys {
            if let Some(bindings) = self.by_key.get(*key) {
                bindings
                    .iter()
                    .for_each(|binding| visit(&binding.destination));
            }
        }
    }
}
