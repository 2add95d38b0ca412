//! `x-random` and `x-local-random`: a message goes to any one binding's destination. On one node all
//! queues are local.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hash::Hash;
use super::{Head, Router, Visit};
use crate::binding::Binding;

#[derive(Default)]
pub(super) struct Random {
    bindings: Vec<Arc<Binding>>,
    /// Of the messages so far: hashed, it looks like chance, and it is the same for all publishers.
    count: AtomicU64,
}

impl Router for Random {
    fn add(&mut self, binding: &Arc<Binding>) {
        self.bindings.push(binding.clone());
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        self.bindings.retain(|other| !Arc::ptr_eq(other, binding));
    }

    fn route<'r>(&'r self, _: &Head<'_>, visit: Visit<'_, 'r>) {
        if self.bindings.is_empty() {
            return;
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let chance = Hash::new().with(&number.to_le_bytes()).finish();
        let at = (chance % self.bindings.len() as u64) as usize;
        visit(&self.bindings[at].destination);
    }
}
