//! The `x-` arguments of queues: which are known, and which values they take.

use amqp::{FieldTable, FieldValue};
use store::Durability;

use super::offset::interval;
use crate::arguments::{assert_equivalent, type_name};
use crate::error::{Error, Resource};

const QUEUE_TYPE: &str = "x-queue-type";
/// What confirms of this queue wait for, where it is not what the node's do.
const DURABILITY: &str = "x-leveret-durability";
/// Whether of each message group one message at a time is out.
pub(super) const MESSAGE_GROUPS: &str = "x-leveret-message-groups";
/// Ten years in milliseconds: the longest that RabbitMQ lets a timer run.
const MAX_EXPIRY: i64 = 315_360_000_000;

/// What values an argument takes.
enum Kind {
    /// A whole number in this range; the texts for below and above.
    Number {
        zero: bool,
        max: Option<(i64, &'static str)>,
    },
    /// Any whole number.
    Integer,
    /// A flag.
    Flag,
    /// Text, one of these.
    OneOf(&'static [&'static str], fn(&str) -> String),
    /// Any text.
    Text,
    /// A number and a unit of time.
    Age,
    /// An exchange's name; RabbitMQ words a wrong type of it otherwise.
    ExchangeName,
    /// Text, given together with another argument.
    TextWith(&'static str, &'static str),
    /// Exactly this number.
    Exactly(i64, fn(&str) -> String),
}

/// An argument that declarations compare.
pub(super) struct Argument {
    pub name: &'static str,
    kind: Kind,
    /// RabbitMQ's queue types that take it: classic, quorum, stream.
    types: [bool; 3],
}

const fn argument(name: &'static str, kind: Kind, types: [bool; 3]) -> Argument {
    Argument { name, kind, types }
}

const ALL: [bool; 3] = [true, true, true];
const NOT_STREAM: [bool; 3] = [true, true, false];
const CLASSIC: [bool; 3] = [true, false, false];
const QUORUM: [bool; 3] = [false, true, false];
const STREAM: [bool; 3] = [false, false, true];

/// Every argument that is compared on redeclaration, in the order of comparison.
pub(super) const KNOWN: &[Argument] = &[
    argument(
        "x-expires",
        Kind::Number {
            zero: false,
            max: Some((MAX_EXPIRY, "value_too_large")),
        },
        NOT_STREAM,
    ),
    argument(
        "x-message-ttl",
        Kind::Number {
            zero: true,
            max: Some((MAX_EXPIRY, "value_too_large")),
        },
        NOT_STREAM,
    ),
    argument("x-dead-letter-exchange", Kind::ExchangeName, NOT_STREAM),
    argument(
        "x-dead-letter-routing-key",
        Kind::TextWith("x-dead-letter-exchange", "routing_key_but_no_dlx_defined"),
        NOT_STREAM,
    ),
    argument(
        "x-dead-letter-strategy",
        Kind::OneOf(&["at-most-once", "at-least-once"], |_| {
            "invalid_dlx_strategy".to_owned()
        }),
        QUORUM,
    ),
    argument(
        "x-max-length",
        Kind::Number {
            zero: true,
            max: None,
        },
        NOT_STREAM,
    ),
    argument(
        "x-max-length-bytes",
        Kind::Number {
            zero: true,
            max: None,
        },
        ALL,
    ),
    argument(
        "x-max-in-memory-length",
        Kind::Number {
            zero: true,
            max: None,
        },
        QUORUM,
    ),
    argument(
        "x-max-in-memory-bytes",
        Kind::Number {
            zero: true,
            max: None,
        },
        QUORUM,
    ),
    argument(
        "x-max-priority",
        Kind::Number {
            zero: true,
            max: Some((255, "max_value_exceeded")),
        },
        CLASSIC,
    ),
    argument(
        "x-overflow",
        Kind::OneOf(
            &["drop-head", "reject-publish", "reject-publish-dlx"],
            |_| "invalid_overflow".to_owned(),
        ),
        NOT_STREAM,
    ),
    argument(
        "x-queue-mode",
        Kind::OneOf(&["default", "lazy"], |mode| {
            format!("\"unsupported queue mode '{mode}'\"")
        }),
        CLASSIC,
    ),
    argument(
        "x-queue-version",
        Kind::Exactly(2, |version| {
            format!("\"unsupported queue version '{version}'\"")
        }),
        CLASSIC,
    ),
    argument("x-single-active-consumer", Kind::Flag, NOT_STREAM),
    argument("x-delivery-limit", Kind::Integer, QUORUM),
    argument(
        "x-consumer-timeout",
        Kind::Number {
            zero: false,
            max: None,
        },
        NOT_STREAM,
    ),
    argument(
        "x-quorum-initial-group-size",
        Kind::Number {
            zero: false,
            max: None,
        },
        QUORUM,
    ),
    argument("x-max-age", Kind::Age, STREAM),
    argument(
        "x-stream-max-segment-size-bytes",
        Kind::Number {
            zero: true,
            max: None,
        },
        STREAM,
    ),
    argument(
        "x-stream-filter-size-bytes",
        Kind::Number {
            zero: true,
            max: None,
        },
        STREAM,
    ),
    argument(
        "x-initial-cluster-size",
        Kind::Number {
            zero: false,
            max: None,
        },
        STREAM,
    ),
    argument(
        DURABILITY,
        Kind::OneOf(&["fsync", "os"], |_| "invalid_durability".to_owned()),
        ALL,
    ),
    argument(MESSAGE_GROUPS, Kind::Flag, NOT_STREAM),
    argument("x-message-deduplication", Kind::Flag, ALL),
    argument(
        "x-cache-size",
        Kind::Number {
            zero: false,
            max: None,
        },
        ALL,
    ),
    argument(
        "x-cache-ttl",
        Kind::Number {
            zero: false,
            max: Some((MAX_EXPIRY, "value_too_large")),
        },
        ALL,
    ),
    argument("x-deduplication-header", Kind::Text, ALL),
    argument(
        "x-queue-leader-locator",
        Kind::OneOf(
            &["client-local", "balanced", "random", "least-leaders"],
            |_| "invalid_queue_locator_arg".to_owned(),
        ),
        ALL,
    ),
    argument("x-queue-master-locator", Kind::Text, CLASSIC),
];

/// RabbitMQ's queue types; the number is the place in [`Argument::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueKind {
    /// `classic`
    #[default]
    Classic = 0,
    /// `quorum`
    Quorum = 1,
    /// `stream`
    Stream = 2,
}

impl QueueKind {
    /// As reply texts call it.
    pub(crate) fn module(self) -> &'static str {
        match self {
            QueueKind::Classic => "rabbit_classic_queue",
            QueueKind::Quorum => "rabbit_quorum_queue",
            QueueKind::Stream => "rabbit_stream_queue",
        }
    }

    /// That of a queue whose arguments have been checked.
    pub(crate) fn of(arguments: &FieldTable) -> Self {
        match arguments.get(QUEUE_TYPE).and_then(FieldValue::as_str) {
            Some("quorum") => QueueKind::Quorum,
            Some("stream") => QueueKind::Stream,
            _ => QueueKind::Classic,
        }
    }

    fn from_arguments(arguments: &FieldTable, resource: Resource<'_>) -> Result<Self, Error> {
        let Some(value) = arguments.get(QUEUE_TYPE) else {
            return Ok(QueueKind::Classic);
        };
        let FieldValue::LongStr(name) = value else {
            return Err(unacceptable_type(QUEUE_TYPE, resource, value));
        };
        match name.as_slice() {
            b"classic" => Ok(QueueKind::Classic),
            b"quorum" => Ok(QueueKind::Quorum),
            b"stream" => Ok(QueueKind::Stream),
            other => {
                let other = String::from_utf8_lossy(other);
                Err(invalid(
                    QUEUE_TYPE,
                    resource,
                    &format!("\"unsupported queue type '{other}'\""),
                ))
            }
        }
    }
}

/// Checks all arguments of a new queue.
pub(super) fn validate(arguments: &FieldTable, resource: Resource<'_>) -> Result<QueueKind, Error> {
    let kind = QueueKind::from_arguments(arguments, resource)?;
    for argument in KNOWN {
        let Some(value) = arguments.get(argument.name) else {
            continue;
        };
        if !argument.types[kind as usize] {
            let (name, module) = (argument.name, kind.module());
            return Err(Error::precondition(format!(
                "invalid arg '{name}' for {resource} of queue type {module}"
            )));
        }
        argument.validate(value, arguments, resource)?;
    }
    Ok(kind)
}

/// Checks some of the arguments of something else that takes them as queues do.
pub(crate) fn validate_arguments(
    names: impl IntoIterator<Item = &'static str>,
    arguments: &FieldTable,
    resource: Resource<'_>,
) -> Result<(), Error> {
    for name in names {
        let known = KNOWN.iter().find(|argument| argument.name == name);
        if let (Some(argument), Some(value)) = (known, arguments.get(name)) {
            argument.validate(value, arguments, resource)?;
        }
    }
    Ok(())
}

/// Whether only one consumer at a time gets messages.
pub(super) fn has_single_active_consumer(arguments: &FieldTable) -> bool {
    arguments.get("x-single-active-consumer") == Some(&FieldValue::Bool(true))
}

/// How many lanes a queue with these arguments has.
pub(crate) fn lanes(arguments: &FieldTable) -> u64 {
    let highest = arguments.get("x-max-priority").and_then(FieldValue::as_i64);
    1 + highest.map_or(0, |highest| highest.clamp(0, 255) as u64)
}

/// What confirms of the queue wait for, if the arguments say so.
pub(crate) fn durability(arguments: &FieldTable) -> Option<Durability> {
    Durability::from_name(arguments.get(DURABILITY)?.as_str()?)
}

/// Fails with 406 where basic.consume names an argument that only queues of another type know.
pub(crate) fn refuse_arguments_of_others(
    arguments: &FieldTable,
    kind: QueueKind,
    resource: Resource<'_>,
) -> Result<(), Error> {
    let (others, module) = match kind {
        QueueKind::Stream => ("x-priority", kind.module()),
        _ => ("x-stream-offset", kind.module()),
    };
    match arguments.get(others) {
        None => Ok(()),
        Some(_) => Err(Error::precondition(format!(
            "invalid arg '{others}' for {resource} of queue type {module}"
        ))),
    }
}

/// What basic.consume takes; returns the consumer's priority.
pub(crate) fn consumer_priority(
    arguments: &FieldTable,
    resource: Resource<'_>,
) -> Result<i64, Error> {
    if let Some(value) = arguments.get("x-cancel-on-ha-failover")
        && !matches!(value, FieldValue::Bool(_))
    {
        return Err(unacceptable_type(
            "x-cancel-on-ha-failover",
            resource,
            value,
        ));
    }
    match arguments.get("x-priority") {
        None => Ok(0),
        Some(value) => whole_number("x-priority", value, resource),
    }
}

/// How long a consumer may keep a message, if basic.consume says so; milliseconds.
pub(crate) fn consumer_timeout(
    arguments: &FieldTable,
    resource: Resource<'_>,
) -> Result<Option<u64>, Error> {
    const NAME: &str = "x-consumer-timeout";
    let Some(value) = arguments.get(NAME) else {
        return Ok(None);
    };
    match whole_number(NAME, value, resource)? {
        0 => Err(invalid(NAME, resource, "{value_zero,0}")),
        number => u64::try_from(number)
            .map(Some)
            .map_err(|_| invalid(NAME, resource, &format!("{{value_negative,{number}}}"))),
    }
}

/// The queue type counts as `classic` where it is absent.
pub(super) fn assert_same_type(
    resource: Resource<'_>,
    received: &FieldTable,
    current: &FieldTable,
) -> Result<(), Error> {
    let type_of = |arguments: &FieldTable| QueueKind::from_arguments(arguments, resource);
    if type_of(received)? == type_of(current)? {
        return Ok(());
    }
    assert_equivalent(QUEUE_TYPE, resource, received, current)
}

impl Argument {
    fn validate(
        &self,
        value: &FieldValue,
        all: &FieldTable,
        resource: Resource<'_>,
    ) -> Result<(), Error> {
        let name = self.name;
        match &self.kind {
            Kind::Number { zero, max } => {
                let number = self.number(value, resource)?;
                let wrong = match number {
                    i64::MIN..0 => "value_negative",
                    0 if !zero => "value_zero",
                    _ => match max {
                        Some((max, text)) if number > *max => text,
                        _ => return Ok(()),
                    },
                };
                Err(invalid(name, resource, &format!("{{{wrong},{number}}}")))
            }
            Kind::Exactly(wanted, text) => match self.number(value, resource)? {
                number if number == *wanted || number == 1 => Ok(()),
                number if number < 0 => Err(invalid(
                    name,
                    resource,
                    &format!("{{value_negative,{number}}}"),
                )),
                number => Err(invalid(name, resource, &text(&number.to_string()))),
            },
            Kind::Integer => self.number(value, resource).map(drop),
            Kind::Flag => match value {
                FieldValue::Bool(_) => Ok(()),
                _ => Err(unacceptable_type(name, resource, value)),
            },
            Kind::OneOf(values, text) => {
                let given = self.text(value, resource)?;
                let known = values.iter().any(|value| *value == given);
                if known {
                    Ok(())
                } else {
                    Err(invalid(name, resource, &text(&given)))
                }
            }
            Kind::Text => self.text(value, resource).map(drop),
            Kind::Age => match interval(self.text(value, resource)?.as_bytes()) {
                Some(_) => Ok(()),
                None => Err(invalid(name, resource, "invalid_max_age")),
            },
            Kind::ExchangeName => match value {
                FieldValue::LongStr(_) => Ok(()),
                _ => Err(Error::precondition(format!(
                    "invalid type '{}' for arg '{name}' in {resource}",
                    type_name(value)
                ))),
            },
            Kind::TextWith(other, text) => {
                if all.get(other).is_none() {
                    return Err(invalid(name, resource, text));
                }
                self.text(value, resource).map(drop)
            }
        }
    }

    fn number(&self, value: &FieldValue, resource: Resource<'_>) -> Result<i64, Error> {
        whole_number(self.name, value, resource)
    }

    fn text(&self, value: &FieldValue, resource: Resource<'_>) -> Result<String, Error> {
        match value {
            FieldValue::LongStr(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(unacceptable_type(self.name, resource, value)),
        }
    }
}

fn whole_number(name: &str, value: &FieldValue, resource: Resource<'_>) -> Result<i64, Error> {
    value.as_i64().ok_or_else(|| {
        let text = format!("\"expected integer, got {}\"", type_name(value));
        invalid(name, resource, &text)
    })
}

fn invalid(name: &str, resource: Resource<'_>, text: &str) -> Error {
    Error::precondition(format!("invalid arg '{name}' for {resource}: {text}"))
}

fn unacceptable_type(name: &str, resource: Resource<'_>, value: &FieldValue) -> Error {
    invalid(
        name,
        resource,
        &format!("{{unacceptable_type,{}}}", type_name(value)),
    )
}
