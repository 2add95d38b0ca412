//! What policies may set: each key, the values that it takes, and RabbitMQ's words for others.

use amqp::{FieldTable, FieldValue};

use super::erlang::{Term, pairs};
use super::{Authority, Target};

/// What values a key takes.
enum Values {
    /// A whole number of at least that.
    AtLeast(i64),
    /// One of these numbers.
    Numbers(&'static [i64]),
    /// Text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An age like `7D`.
    Age,
    /// A list of exchanges, as federation takes it, or whatever high availability took.
    Anything,
}

/// A key of a policy's definition.
struct Key {
    name: &'static str,
    values: Values,
    /// What follows the wrong value in the error.
    wrong: &'static str,
    /// Operators may set it.
    operator: bool,
    /// Queue types that know it: classic, quorum, stream.
    types: [bool; 3],
}

const fn key(name: &'static str, values: Values, wrong: &'static str) -> Key {
    Key {
        name,
        values,
        wrong,
        operator: false,
        types: [true; 3],
    }
}

impl Key {
    const fn of(self, types: [bool; 3]) -> Key {
        Key { types, ..self }
    }

    const fn operators_too(self) -> Key {
        Key {
            operator: true,
            ..self
        }
    }
}

const NOT_STREAM: [bool; 3] = [true, true, false];
const CLASSIC: [bool; 3] = [true, false, false];
const QUORUM: [bool; 3] = [false, true, false];
const STREAM: [bool; 3] = [false, false, true];

/// All keys.
const KEYS: &[Key] = &[
    key(
        "alternate-exchange",
        Values::Text,
        "is not a valid alternate exchange name",
    ),
    key(
        "consumer-timeout",
        Values::AtLeast(0),
        "is not a valid consumer timeout",
    )
    .of(NOT_STREAM),
    key(
        "consumer-disconnected-timeout",
        Values::AtLeast(0),
        "is not a valid consumer disconnected timeout",
    )
    .of(QUORUM),
    key(
        "dead-letter-exchange",
        Values::Text,
        "is not a valid dead letter exchange name",
    )
    .of(NOT_STREAM),
    key(
        "dead-letter-routing-key",
        Values::Text,
        "is not a valid dead letter routing key",
    )
    .of(NOT_STREAM),
    key(
        "dead-letter-strategy",
        Values::OneOf(&["at-most-once", "at-least-once"]),
        "is not a valid dead letter strategy",
    )
    .of(QUORUM),
    key(
        "delayed-retry-max",
        Values::AtLeast(0),
        "is not a valid delayed retry maximum",
    )
    .of(QUORUM)
    .operators_too(),
    key(
        "delayed-retry-min",
        Values::AtLeast(0),
        "is not a valid delayed retry minimum",
    )
    .of(QUORUM)
    .operators_too(),
    key(
        "delayed-retry-type",
        Values::Text,
        "is not a valid delayed retry type",
    )
    .of(QUORUM)
    .operators_too(),
    key(
        "delivery-limit",
        Values::AtLeast(0),
        "is not a valid delivery limit",
    )
    .of(QUORUM)
    .operators_too(),
    key("expires", Values::AtLeast(1), "is not a valid queue expiry")
        .of(NOT_STREAM)
        .operators_too(),
    key(
        "federation-upstream",
        Values::Text,
        "is not a valid federation upstream name",
    ),
    key(
        "federation-upstream-pattern",
        Values::Text,
        "is not a valid federation upstream pattern",
    ),
    key(
        "federation-upstream-set",
        Values::Text,
        "is not a valid federation upstream set name",
    ),
    key(
        "ha-mode",
        Values::OneOf(&["all", "exactly", "nodes"]),
        "is not a valid ha-mode value",
    )
    .of(CLASSIC),
    key("ha-params", Values::Anything, "").of(CLASSIC),
    key("ha-promote-on-failure", Values::Anything, "").of(CLASSIC),
    key("ha-promote-on-shutdown", Values::Anything, "").of(CLASSIC),
    key("ha-sync-batch-size", Values::Anything, "").of(CLASSIC),
    key("ha-sync-mode", Values::Anything, "").of(CLASSIC),
    key(
        "initial-cluster-size",
        Values::AtLeast(0),
        "is not a valid cluster size",
    )
    .of(STREAM),
    key("max-age", Values::Age, "is not a valid max age").of(STREAM),
    key(
        "max-in-memory-bytes",
        Values::AtLeast(0),
        "is not a valid maximum memory in bytes",
    )
    .of(QUORUM)
    .operators_too(),
    key(
        "max-in-memory-length",
        Values::AtLeast(0),
        "is not a valid maximum memory in bytes",
    )
    .of(QUORUM)
    .operators_too(),
    key(
        "max-length",
        Values::AtLeast(0),
        "is not a valid maximum length",
    )
    .of(NOT_STREAM)
    .operators_too(),
    key(
        "max-length-bytes",
        Values::AtLeast(0),
        "is not a valid maximum length in bytes",
    )
    .operators_too(),
    key(
        "message-ttl",
        Values::AtLeast(0),
        "is not a valid message TTL",
    )
    .of(NOT_STREAM)
    .operators_too(),
    key(
        "overflow",
        Values::OneOf(&["drop-head", "reject-publish", "reject-publish-dlx"]),
        "is not a valid overflow value",
    )
    .of(NOT_STREAM)
    .operators_too(),
    key(
        "queue-leader-locator",
        Values::OneOf(&["client-local", "balanced", "random", "least-leaders"]),
        "is not a valid queue leader locator value",
    ),
    key(
        "queue-master-locator",
        Values::OneOf(&["min-masters", "client-local", "random"]),
        "invalid queue-master-locator value",
    )
    .of(CLASSIC),
    key(
        "queue-mode",
        Values::OneOf(&["default", "lazy"]),
        "is not a valid queue-mode value",
    )
    .of(CLASSIC),
    key(
        "queue-version",
        Values::Numbers(&[1, 2]),
        "is not a valid queue-version value",
    )
    .of(CLASSIC)
    .operators_too(),
    // What it may be depends on another key.
    key("routing-key", Values::Anything, ""),
    key("shards-per-node", Values::AtLeast(0), ""),
    // Its name before 3.11.
    key(
        "max-segment-size",
        Values::AtLeast(0),
        "is not a valid segment size",
    )
    .of(STREAM),
    key(
        "stream-filter-size-bytes",
        Values::AtLeast(0),
        "is not a valid filter size",
    )
    .of(STREAM),
    key(
        "stream-max-segment-size-bytes",
        Values::AtLeast(0),
        "is not a valid segment size",
    )
    .of(STREAM),
    key(
        "target-group-size",
        Values::AtLeast(1),
        "is not a valid target group size",
    )
    .of(QUORUM)
    .operators_too(),
];

/// Checks a definition.
///
/// # Errors
/// RabbitMQ's text for the first thing that is wrong.
pub(super) fn validate(authority: Authority, definition: &FieldTable) -> Result<(), String> {
    if definition.is_empty() {
        return Err("no policy provided".to_owned());
    }
    let unknown: FieldTable = definition
        .iter()
        .filter(|(name, _)| find(authority, name).is_none())
        .map(|(name, value)| (name.into(), value.clone()))
        .collect();
    if !unknown.is_empty() {
        return Err(format!(
            "{} are not recognised policy settings",
            pairs(&unknown)
        ));
    }
    for (name, value) in definition.iter() {
        if let Some(key) = find(authority, name) {
            key.check(value)?;
        }
    }
    belong_together(definition)
}

fn find(authority: Authority, name: &str) -> Option<&'static Key> {
    let key = KEYS.iter().find(|key| key.name == name)?;
    (authority == Authority::User || key.operator).then_some(key)
}

/// Settings that make no sense without, or beside, another one.
fn belong_together(definition: &FieldTable) -> Result<(), String> {
    let has = |name| definition.get(name).is_some();
    let needs_mode = ["ha-params", "ha-sync-mode", "ha-promote-on-shutdown"];
    if needs_mode.into_iter().any(has) && !has("ha-mode") {
        return Err(
            "ha-mode must be specified to specify ha-params, ha-sync-mode or \
             ha-promote-on-shutdown"
                .to_owned(),
        );
    }
    if has("federation-upstream") && has("federation-upstream-set") {
        return Err("cannot specify federation-upstream and federation-upstream-set".to_owned());
    }
    check_routing_key(definition, has("shards-per-node"))?;
    Ok(())
}

/// The key that shards are bound with makes no sense without shards.
fn check_routing_key(definition: &FieldTable, has_shards: bool) -> Result<(), String> {
    match definition.get("routing-key") {
        None => Ok(()),
        Some(_) if !has_shards => Err("shards-per-node must be specified".to_owned()),
        Some(FieldValue::LongStr(_)) => Ok(()),
        Some(other) => Err(format!(
            "routing-key should be binary, actually was {}",
            Term(other)
        )),
    }
}

/// True where a queue of that type knows all that the definition sets. Exchanges do not mind.
pub(super) fn fit(definition: &FieldTable, target: Target) -> bool {
    let place = match target {
        Target::Exchange => return true,
        Target::ClassicQueue => 0,
        Target::QuorumQueue => 1,
        Target::Stream => 2,
    };
    definition.iter().all(|(name, _)| {
        let key = KEYS.iter().find(|key| key.name == name);
        key.is_none_or(|key| key.types[place])
    })
}

impl Key {
    fn check(&self, value: &FieldValue) -> Result<(), String> {
        let text = value.as_str();
        let right = match &self.values {
            Values::AtLeast(least) => value.as_i64().is_some_and(|number| number >= *least),
            Values::Numbers(numbers) => value.as_i64().is_some_and(|n| numbers.contains(&n)),
            Values::Text => text.is_some(),
            Values::OneOf(texts) => text.is_some_and(|text| texts.contains(&text)),
            Values::Age => text.is_some_and(is_age),
            Values::Anything => true,
        };
        if right {
            return Ok(());
        }
        let term = Term(value);
        Err(match (self.name, value.as_i64()) {
            (name @ "shards-per-node", None) => {
                format!("{name} should be a number, actually was {term}")
            }
            (name @ "shards-per-node", Some(_)) => {
                format!("{name} should be greater than 0, actually was {term}")
            }
            _ => format!("{term} {}", self.wrong),
        })
    }
}

/// A whole number and a unit: years, months, days, hours, minutes or seconds.
fn is_age(text: &str) -> bool {
    let number = text.strip_suffix(['Y', 'M', 'D', 'h', 'm', 's']);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
