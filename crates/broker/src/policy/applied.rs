//! What applies to one queue or exchange: one policy of users, one of operators.

use std::sync::Arc;

use amqp::{FieldTable, FieldValue};

use super::Policy;

/// What applies to one queue or exchange.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// The matching policy of highest priority.
    pub policy: Option<Arc<Policy>>,
    /// The matching operator policy of highest priority.
    pub operator: Option<Arc<Policy>>,
}

/// Of two values the lower one holds. In all other cases the operator's does, or, between a policy
/// and an argument, the argument's.
const LIMITS: [&str; 8] = [
    "expires",
    "message-ttl",
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
    "consumer-timeout",
];

impl Applied {
    /// What is set, once the operator's policy has been laid over the other one.
    pub fn definition(&self) -> FieldTable {
        let mut merged = match &self.policy {
            Some(policy) => policy.definition.clone(),
            None => FieldTable::new(),
        };
        let operator = self
            .operator
            .iter()
            .flat_map(|policy| policy.definition.iter());
        for (key, value) in operator {
            let value = match merged.get(key) {
                Some(users) => stricter(key, value, users),
                None => value,
            };
            let value = value.clone();
            merged.insert(key, value);
        }
        let mut entries: Vec<_> = merged.iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        entries
            .into_iter()
            .map(|(key, value)| (key.into(), value.clone()))
            .collect()
    }

    /// What is set for that key (without `x-`).
    pub fn get(&self, key: &str) -> Option<&FieldValue> {
        let users = self
            .policy
            .as_ref()
            .and_then(|policy| policy.definition.get(key));
        let operators = self
            .operator
            .as_ref()
            .and_then(|policy| policy.definition.get(key));
        match (users, operators) {
            (Some(users), Some(operators)) => Some(stricter(key, operators, users)),
            (users, operators) => operators.or(users),
        }
    }

    /// What holds for an entity with these arguments: of a limit the lower value, otherwise the
    /// argument (`x-` and the key) before the policy.
    pub fn get_with<'a>(&'a self, key: &str, arguments: &'a FieldTable) -> Option<&'a FieldValue> {
        let argument = arguments.get(&format!("x-{key}"));
        match (argument, self.get(key)) {
            (Some(argument), Some(applied)) => Some(stricter(key, argument, applied)),
            (argument, applied) => argument.or(applied),
        }
    }

    /// True if the same policies apply: the very same, since a policy that is set again is another.
    pub fn is_same(&self, other: &Applied) -> bool {
        let same = |a: &Option<Arc<Policy>>, b: &Option<Arc<Policy>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same(&self.policy, &other.policy) && same(&self.operator, &other.operator)
    }
}

/// The lower one of two limits, where a negative one is none (`x-delivery-limit`); of other settings
/// the first.
fn stricter<'a>(key: &str, first: &'a FieldValue, second: &'a FieldValue) -> &'a FieldValue {
    let limit = |number: i64| u64::try_from(number).unwrap_or(u64::MAX);
    match (first.as_i64(), second.as_i64()) {
        (Some(a), Some(b)) if limit(b) < limit(a) && LIMITS.contains(&key) => second,
        _ => first,
    }
}
