//! Fanout exchange: a message goes to every binding's destination.

use std::sync::Arc;

use ahash::HashMap;

use super::{Head, Router, Visit};
use crate::binding::Binding;

#[derive(Default)]
pub(super) struct Fanout {
    /// By address, so that removing one of many is O(1).
    bindings: HashMap<usize, Arc<Binding>>,
}

impl Router for Fanout {
    fn add(&mut self, binding: &Arc<Binding>) {
        self.bindings
            .insert(Arc::as_ptr(binding).addr(), binding.clone());
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        self.bindings.remove(&Arc::as_ptr(binding).addr());
    }

    fn route<'r>(&'r self, _: &Head<'_>, visit: Visit<'_, 'r>) {
        self.bindings
            .values()
            .for_each(|binding| visit(&binding.destination));
    }
}
