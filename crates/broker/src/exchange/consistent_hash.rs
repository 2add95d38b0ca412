//! `x-consistent-hash`: a message goes to one destination, by the hash of its routing key, or of a
//! header or property. Binding keys are weights: how many shares of the messages a binding gets.
//!
//! A jump consistent hash (Lamping and Veach, 2014) over the shares, so that a binding more takes
//! messages away from the others and moves none between them.

use std::sync::Arc;

use amqp::{FieldTable, Property, Value};

use super::hash::{Hash, of_keys};
use super::{Head, Router, Visit};
use crate::arguments::type_name;
use crate::binding::Binding;
use crate::error::Error;

const HASH_HEADER: &str = "hash-header";
const HASH_PROPERTY: &str = "hash-property";

/// What is hashed.
#[derive(Debug, Default, PartialEq, Eq)]
enum HashOn {
    #[default]
    RoutingKey,
    Header(Box<str>),
    Property(PropertyName),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PropertyName {
    CorrelationId,
    MessageId,
    Timestamp,
}

impl PropertyName {
    fn from_name(name: &str) -> Option<PropertyName> {
        match name {
            "correlation_id" => Some(PropertyName::CorrelationId),
            "message_id" => Some(PropertyName::MessageId),
            "timestamp" => Some(PropertyName::Timestamp),
            _ => None,
        }
    }
}

impl HashOn {
    fn from_arguments(arguments: &FieldTable) -> Result<HashOn, Error> {
        let text = |name| {
            let value = arguments.get(name)?;
            Some(value.as_str().ok_or_else(|| {
                Error::precondition(format!(
                    "invalid type '{}' for arg '{name}'",
                    type_name(value)
                ))
            }))
        };
        match (
            text(HASH_HEADER).transpose()?,
            text(HASH_PROPERTY).transpose()?,
        ) {
            (None, None) => Ok(HashOn::RoutingKey),
            (Some(header), None) => Ok(HashOn::Header(header.into())),
            (None, Some(property)) => PropertyName::from_name(property)
                .map(HashOn::Property)
                .ok_or_else(|| Error::precondition(format!("Unsupported property: {property}"))),
            (Some(_), Some(_)) => Err(Error::precondition(
                "hash-header and hash-property are mutually exclusive".to_owned(),
            )),
        }
    }
}

/// Checks the arguments of a new exchange.
pub(super) fn validate(arguments: &FieldTable) -> Result<(), Error> {
    HashOn::from_arguments(arguments).map(drop)
}

/// Checks a binding key, which is a weight.
pub(super) fn validate_key(key: &[u8]) -> Result<(), Error> {
    match weight(key) {
        Some(1..) => Ok(()),
        Some(0) => Err(Error::precondition(
            "The binding key must be greater than 0".to_owned(),
        )),
        // As Erlang writes binaries.
        None if key.is_empty() => Err(Error::precondition(
            "The binding key must be an integer: <<>>".to_owned(),
        )),
        None => Err(Error::precondition(format!(
            "The binding key must be an integer: <<\"{}\">>",
            String::from_utf8_lossy(key)
        ))),
    }
}

/// 0 stands for all that is not above it.
fn weight(key: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(key).ok()?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.is_empty();
    match number {
        true if negative => Some(0),
        // Weights beyond this leave nothing for the others anyway.
        true => Some(digits.parse::<u64>().unwrap_or(MAX_WEIGHT).min(MAX_WEIGHT)),
        false => None,
    }
}

/// So that the sum of all weights fits.
const MAX_WEIGHT: u64 = 1 << 32;

#[derive(Default)]
pub(super) struct ConsistentHash {
    hash_on: HashOn,
    /// In the order in which they were made, each with the sum of weights up to its own.
    bindings: Vec<(u64, Arc<Binding>)>,
}

impl ConsistentHash {
    /// An empty one; arguments have been checked.
    pub fn new(arguments: &FieldTable) -> ConsistentHash {
        ConsistentHash {
            hash_on: HashOn::from_arguments(arguments).unwrap_or_default(),
            bindings: Vec::new(),
        }
    }

    fn total(&self) -> u64 {
        self.bindings.last().map_or(0, |(sum, _)| *sum)
    }

    fn hash(&self, message: &Head<'_>) -> u64 {
        let property = |property| message.properties.get(property);
        let value = match &self.hash_on {
            HashOn::RoutingKey => return of_keys(message.keys),
            HashOn::Header(name) => message.headers.and_then(|headers| headers.get(name)),
            HashOn::Property(PropertyName::CorrelationId) => property(Property::CorrelationId),
            HashOn::Property(PropertyName::MessageId) => property(Property::MessageId),
            HashOn::Property(PropertyName::Timestamp) => property(Property::Timestamp),
        };
        // What lacks it goes where all such go.
        let hash = value.map_or(Hash::new(), |value| hash_value(value));
        hash.finish()
    }
}

/// Numbers hash by value, whatever their width.
fn hash_value(value: Value<'_>) -> Hash {
    let hash = Hash::new();
    match value {
        Value::LongStr(text) | Value::Bytes(text) => hash.with(text),
        Value::Timestamp(seconds) => hash.with(&seconds.to_le_bytes()),
        Value::Bool(truth) => hash.with(&[u8::from(truth)]),
        Value::Table(table) => hash.with(table.as_wire()),
        value => match value.as_i64() {
            Some(number) => hash.with(&number.to_le_bytes()),
            None => hash.with(format!("{value:?}").as_bytes()),
        },
    }
}

/// Which of `buckets` a key goes to.
fn jump(mut key: u64, buckets: u64) -> u64 {
    let (mut bucket, mut next) = (0_u64, 0_u64);
    while next < buckets {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let step = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((bucket + 1) as f64 * step) as u64;
    }
    bucket
}

impl Router for ConsistentHash {
    fn add(&mut self, binding: &Arc<Binding>) {
        // Definitions of older versions may hold what is refused today.
        let weight = weight(&binding.routing_key).unwrap_or(1).max(1);
        self.bindings.push((self.total() + weight, binding.clone()));
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        let Some(at) = self
            .bindings
            .iter()
            .position(|(_, other)| Arc::ptr_eq(other, binding))
        else {
            return;
        };
        let before = at
            .checked_sub(1)
            .map_or(0, |before| self.bindings[before].0);
        let weight = self.bindings.remove(at).0 - before;
        self.bindings[at..]
            .iter_mut()
            .for_each(|(sum, _)| *sum -= weight);
    }

    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        let total = self.total();
        if total == 0 {
            return;
        }
        let share = jump(self.hash(message), total);
        let at = self.bindings.partition_point(|(sum, _)| *sum <= share);
        if let Some((_, binding)) = self.bindings.get(at) {
            visit(&binding.destination);
        }
    }
}

#[cfg(test)]
mod tests {
    use amqp::Properties;

    use super::*;
    use crate::binding::Destination;

    fn binding(name: &str, weight: &str) -> Arc<Binding> {
        Arc::new(Binding {
            source: "x".into(),
            destination: Destination::Exchange(name.into()),
            routing_key: weight.as_bytes().into(),
            arguments: FieldTable::new(),
        })
    }

    fn destination(exchange: &ConsistentHash, key: &str) -> String {
        let mut found = Vec::new();
        let head = Head {
            keys: &[key.as_bytes()],
            headers: None,
            properties: Properties::default(),
        };
        exchange.route(&head, &mut |destination| {
            found.push(destination.name().to_string())
        });
        assert_eq!(found.len(), 1, "one destination each");
        found.remove(0)
    }

    #[test]
    fn weights_share_the_messages_out() {
        let mut exchange = ConsistentHash::new(&FieldTable::new());
        exchange.add(&binding("a", "1"));
        exchange.add(&binding("b", "3"));
        let of_b = (0..10_000)
            .filter(|n| destination(&exchange, &format!("k{n}")) == "b")
            .count();
        assert!((7_200..7_800).contains(&of_b), "{of_b} of 10,000");
    }

    #[test]
    fn one_more_binding_moves_messages_to_itself_alone() {
        let mut exchange = ConsistentHash::new(&FieldTable::new());
        let (a, b, c) = (binding("a", "5"), binding("b", "5"), binding("c", "5"));
        exchange.add(&a);
        exchange.add(&b);
        let keys: Vec<String> = (0..3_000).map(|n| format!("k{n}")).collect();
        let before: Vec<String> = keys.iter().map(|key| destination(&exchange, key)).collect();
        exchange.add(&c);
        let after: Vec<String> = keys.iter().map(|key| destination(&exchange, key)).collect();
        let moved = before
            .iter()
            .zip(&after)
            .filter(|(before, after)| before != after);
        let moved: Vec<_> = moved.collect();
        assert!(moved.iter().all(|(_, after)| *after == "c"));
        assert!((800..1_200).contains(&moved.len()), "{}", moved.len());
        exchange.remove(&c);
        assert!(
            keys.iter()
                .zip(&before)
                .all(|(key, before)| destination(&exchange, key) == *before)
        );
        exchange.remove(&a);
        assert!(keys.iter().all(|key| destination(&exchange, key) == "b"));
    }

    #[test]
    fn weights_are_whole_numbers_above_zero() {
        for key in ["1", "20", "99999999999999999999999"] {
            assert!(validate_key(key.as_bytes()).is_ok(), "{key}");
        }
        for key in ["0", "-3", "", "a", "1.5", " 1"] {
            assert!(validate_key(key.as_bytes()).is_err(), "{key}");
        }
    }

    #[test]
    fn header_and_property_exclude_each_other() {
        let both = FieldTable::new()
            .with(HASH_HEADER, "h")
            .with(HASH_PROPERTY, "message_id");
        assert!(validate(&both).is_err());
        assert!(validate(&FieldTable::new().with(HASH_PROPERTY, "app_id")).is_err());
        assert!(validate(&FieldTable::new().with(HASH_HEADER, 5_i32)).is_err());
        assert!(validate(&FieldTable::new().with(HASH_PROPERTY, "timestamp")).is_ok());
    }
}
