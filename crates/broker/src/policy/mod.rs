//! Policies: settings for all queues and exchanges whose names match a pattern, made by users or,
//! above them, by operators.
//!
//! A policy never changes: setting it again replaces it. The vhost's topology holds them
//! ([`Policies`]) and tells each queue and exchange what applies to it ([`Applied`]).

mod applied;
mod apply_to;
mod erlang;
mod keys;
mod policies;

use std::sync::Arc;

use amqp::FieldTable;

pub use applied::Applied;
pub use apply_to::{ApplyTo, Target};
pub(crate) use policies::Policies;

use crate::pattern::Pattern;

/// Who made a policy. An operator's limits what users' policies and arguments may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Authority {
    /// A user with the tag `policymaker`.
    User,
    /// Whoever runs the node.
    Operator,
}

/// A policy.
#[derive(Debug, PartialEq)]
pub struct Policy {
    /// Unique among the vhost's policies of one authority.
    pub name: Arc<str>,
    /// Which names it is for.
    pub pattern: Pattern,
    /// What it is for.
    pub apply_to: ApplyTo,
    /// Of those that match, the one with the highest applies alone.
    pub priority: i64,
    /// What it sets, in the order of the keys.
    pub definition: FieldTable,
}

impl Policy {
    /// A policy whose definition is checked: known keys, values as RabbitMQ takes them.
    ///
    /// # Errors
    /// RabbitMQ's text that says what is wrong.
    pub fn new(
        authority: Authority,
        name: &str,
        pattern: &str,
        apply_to: &str,
        priority: i64,
        definition: FieldTable,
    ) -> Result<Policy, String> {
        let apply_to =
            ApplyTo::from_name(apply_to).ok_or_else(|| ApplyTo::unrecognised(apply_to))?;
        let pattern = Pattern::new(pattern).map_err(|reason| {
            format!("pattern should be regular expression but is invalid: {reason}")
        })?;
        let mut entries: Vec<_> = definition.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        let definition: FieldTable = entries
            .into_iter()
            .map(|(key, value)| (key.into(), value.clone()))
            .collect();
        keys::validate(authority, &definition)?;
        Ok(Policy {
            name: name.into(),
            pattern,
            apply_to,
            priority,
            definition,
        })
    }

    /// True where it is for an entity of that kind and name. As in RabbitMQ one that sets what
    /// that type of queue does not know is not for it at all.
    fn is_for(&self, target: Target, name: &str) -> bool {
        self.apply_to.covers(target)
            && keys::fit(&self.definition, target)
            && self.pattern.matches(name)
    }
}

#[cfg(test)]
mod tests;
