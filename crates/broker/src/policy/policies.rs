//! All policies of a vhost, and which of them apply to what.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Applied, Authority, Policy, Target};

/// A vhost's policies, guarded by its topology's lock.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    users: BTreeMap<Arc<str>, Arc<Policy>>,
    operators: BTreeMap<Arc<str>, Arc<Policy>>,
}

impl Policies {
    fn of(&self, authority: Authority) -> &BTreeMap<Arc<str>, Arc<Policy>> {
        match authority {
            Authority::User => &self.users,
            Authority::Operator => &self.operators,
        }
    }

    fn of_mut(&mut self, authority: Authority) -> &mut BTreeMap<Arc<str>, Arc<Policy>> {
        match authority {
            Authority::User => &mut self.users,
            Authority::Operator => &mut self.operators,
        }
    }

    /// Adds a policy, in place of one of the same name.
    pub fn set(&mut self, authority: Authority, policy: Arc<Policy>) {
        self.of_mut(authority).insert(policy.name.clone(), policy);
    }

    /// True if that policy is there as it is.
    pub fn has(&self, authority: Authority, policy: &Policy) -> bool {
        let current = self.of(authority).get(&policy.name);
        current.is_some_and(|current| **current == *policy)
    }

    /// Removes a policy; false if there is none of that name.
    pub fn clear(&mut self, authority: Authority, name: &str) -> bool {
        self.of_mut(authority).remove(name).is_some()
    }

    /// All of one authority, by name.
    pub fn list(&self, authority: Authority) -> impl Iterator<Item = &Arc<Policy>> {
        self.of(authority).values()
    }

    /// What applies to an entity. Among those of equal priority the first by name does, so that it
    /// is the same one after a restart.
    pub fn applied(&self, target: Target, name: &str) -> Applied {
        let first = |policies: &BTreeMap<Arc<str>, Arc<Policy>>| {
            let mut first: Option<&Arc<Policy>> = None;
            for policy in policies.values() {
                let higher = first.is_none_or(|first| policy.priority > first.priority);
                if higher && policy.is_for(target, name) {
                    first = Some(policy);
                }
            }
            first.cloned()
        };
        Applied {
            policy: first(&self.users),
            operator: first(&self.operators),
        }
    }
}
