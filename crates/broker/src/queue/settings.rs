//! What a queue does beyond keeping messages in order: its arguments and the policies that apply to
//! it, put together.
//!
//! Which of them counts where several say something is `policy::Applied`'s to know.

use std::sync::Arc;

use amqp::{FieldTable, FieldValue};

use super::arguments::{MESSAGE_GROUPS, QueueKind};
use super::offset::interval;
use crate::deduplication::Deduplication;
use crate::policy::Applied;

/// Where messages go that leave the queue without having been acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadLetterTo {
    pub exchange: Arc<str>,
    /// Instead of the message's own.
    pub routing_key: Option<Arc<[u8]>>,
    /// None leaves before another queue has it.
    pub at_least_once: bool,
}

/// What happens to a message for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Overflow {
    /// The oldest makes room.
    #[default]
    DropHead,
    /// It is refused.
    Reject,
    /// It is refused, and dead-lettered.
    RejectAndDeadLetter,
}

/// The rules of one queue. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub kind: QueueKind,
    /// How long messages stay.
    pub message_ttl: Option<u64>,
    /// How long the queue stays while nobody uses it.
    pub expires: Option<u64>,
    /// Messages that may wait.
    pub max_length: Option<u64>,
    /// Bytes of bodies that may wait.
    pub max_length_bytes: Option<u64>,
    pub overflow: Overflow,
    pub dead_letter: Option<DeadLetterTo>,
    /// How often a message may come back.
    pub delivery_limit: Option<u32>,
    /// How long a consumer may keep a message.
    pub consumer_timeout: Option<u64>,
    /// Messages that have come lately are not taken again.
    pub deduplication: Option<Deduplication>,
    /// How long a stream keeps messages.
    pub max_age: Option<u64>,
    /// Of each message group one message at a time is out.
    pub message_groups: bool,
}

/// What a queue of type quorum permits, where nothing is said (RabbitMQ 4).
const QUORUM_DELIVERY_LIMIT: u32 = 20;

/// Arguments and policies.
struct Sources<'a> {
    arguments: &'a FieldTable,
    applied: &'a Applied,
}

impl<'a> Sources<'a> {
    fn get(&self, key: &str) -> Option<&'a FieldValue> {
        self.applied.get_with(key, self.arguments)
    }

    /// A number that is not negative.
    fn limit(&self, key: &str) -> Option<u64> {
        u64::try_from(self.get(key)?.as_i64()?).ok()
    }

    fn text(&self, key: &str) -> Option<&'a [u8]> {
        match self.get(key)? {
            FieldValue::LongStr(text) => Some(text),
            _ => None,
        }
    }

    fn dead_letter(&self, overflow: Overflow) -> Option<DeadLetterTo> {
        let exchange = std::str::from_utf8(self.text("dead-letter-exchange")?).ok()?;
        let strategy = self.text("dead-letter-strategy");
        Some(DeadLetterTo {
            exchange: exchange.into(),
            routing_key: self.text("dead-letter-routing-key").map(Arc::from),
            // As in RabbitMQ only where nothing is dropped to make room.
            at_least_once: strategy == Some(b"at-least-once") && overflow == Overflow::Reject,
        })
    }

    fn delivery_limit(&self, kind: QueueKind) -> Option<u32> {
        if kind != QueueKind::Quorum {
            return None;
        }
        match self.get("delivery-limit").and_then(FieldValue::as_i64) {
            None => Some(QUORUM_DELIVERY_LIMIT),
            // A negative one lifts the limit.
            Some(limit) if limit < 0 => None,
            Some(limit) => Some(u32::try_from(limit).unwrap_or(u32::MAX)),
        }
    }
}

impl Settings {
    /// Puts together what was declared with what policies say. `consumer_timeout` is that of quorum
    /// queues for which neither says anything.
    pub fn new(
        arguments: &FieldTable,
        applied: &Applied,
        consumer_timeout: Option<u64>,
    ) -> Settings {
        let sources = Sources { arguments, applied };
        let kind = QueueKind::of(arguments);
        let overflow = match sources.text("overflow") {
            Some(b"reject-publish") => Overflow::Reject,
            Some(b"reject-publish-dlx") => Overflow::RejectAndDeadLetter,
            _ => Overflow::DropHead,
        };
        Settings {
            kind,
            message_ttl: sources.limit("message-ttl"),
            expires: sources.limit("expires"),
            max_length: sources.limit("max-length"),
            max_length_bytes: sources.limit("max-length-bytes"),
            overflow,
            dead_letter: sources.dead_letter(overflow),
            delivery_limit: sources.delivery_limit(kind),
            consumer_timeout: sources
                .limit("consumer-timeout")
                .or(consumer_timeout.filter(|_| kind == QueueKind::Quorum)),
            deduplication: Deduplication::of(arguments),
            max_age: sources.text("max-age").and_then(interval),
            message_groups: arguments.get(MESSAGE_GROUPS) == Some(&FieldValue::Bool(true)),
        }
    }

    /// True if the queue only keeps messages in order.
    pub fn is_plain(&self) -> bool {
        *self == Settings::default()
    }

    /// It matters when messages came.
    pub fn is_timed(&self) -> bool {
        self.message_ttl.is_some() || self.kind == QueueKind::Stream
    }

    /// A new message may be refused.
    pub fn may_reject(&self) -> bool {
        let limited = self.max_length.is_some() || self.max_length_bytes.is_some();
        limited && self.overflow != Overflow::DropHead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Authority, Policy};

    fn settings(arguments: &FieldTable) -> Settings {
        Settings::new(arguments, &Applied::default(), None)
    }

    #[test]
    fn quorum_queues_limit_deliveries_unless_told_otherwise() {
        let quorum = FieldTable::new().with("x-queue-type", "quorum");
        let limit = |table: &FieldTable| settings(table).delivery_limit;
        assert_eq!(limit(&quorum), Some(20));
        assert_eq!(limit(&quorum.clone().with("x-delivery-limit", -1)), None);
        let (operator, three) = (
            Authority::Operator,
            FieldTable::new().with("delivery-limit", 3),
        );
        let policy = Policy::new(operator, "p", "", "all", 0, three).expect("a policy");
        let applied = Applied {
            operator: Some(Arc::new(policy)),
            ..Applied::default()
        };
        let lifted = quorum.clone().with("x-delivery-limit", -1);
        let limited = Settings::new(&lifted, &applied, None).delivery_limit;
        assert_eq!(limited, Some(3), "operators have the last word");
        assert_eq!(limit(&quorum.with("x-delivery-limit", 3)), Some(3));
        assert_eq!(limit(&FieldTable::new().with("x-delivery-limit", 3)), None);
    }

    #[test]
    fn at_least_once_needs_a_queue_that_refuses() {
        let table = FieldTable::new()
            .with("x-queue-type", "quorum")
            .with("x-dead-letter-exchange", "x")
            .with("x-dead-letter-strategy", "at-least-once");
        let at_least_once = |table: &FieldTable| {
            let to = settings(table).dead_letter;
            to.expect("it names an exchange").at_least_once
        };
        assert!(!at_least_once(&table));
        assert!(at_least_once(&table.with("x-overflow", "reject-publish")));
    }

    #[test]
    fn a_queue_without_arguments_is_plain() {
        assert!(settings(&FieldTable::new()).is_plain());
        assert!(settings(&FieldTable::new().with("x-queue-mode", "lazy")).is_plain());
        assert!(!settings(&FieldTable::new().with("x-max-length", 0)).is_plain());
    }
}
