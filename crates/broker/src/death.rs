//! What a dead letter says of itself: `x-death` and its like, and where it may not go again.
//!
//! Source: RabbitMQ's documentation "Dead Letter Exchanges", and `rabbit_dead_letter` of release
//! 3.13 for the order of entries and the types of values.

use amqp::{DecodeError, FieldTable, FieldValue, Properties, Property};
use store::{Message, MessageHead, Times};

use crate::queue::{DeadLetterTo, Reason};

const X_DEATH: &str = "x-death";
/// The header with further routing keys.
pub(crate) const CC: &str = "CC";
/// The same, which consumers do not see.
pub(crate) const BCC: &str = "BCC";

/// A message's deaths so far, the last one first, and whatever else its headers hold.
pub(crate) struct Deaths {
    /// Without `x-death`.
    headers: FieldTable,
    entries: Vec<FieldTable>,
}

/// How and when a message left its queue.
pub(crate) struct Death<'a> {
    pub queue: &'a str,
    pub reason: Reason,
    /// Milliseconds of the Unix epoch.
    pub now: u64,
}

impl Deaths {
    /// What the message says.
    pub fn of(message: &Message) -> Result<Deaths, DecodeError> {
        let properties = Properties::from_wire(message.properties());
        let mut headers = match properties.headers() {
            Some(headers) => headers.to_owned()?,
            None => FieldTable::new(),
        };
        let entries = match headers.remove(X_DEATH) {
            Some(FieldValue::Array(entries)) => entries.into_iter().filter_map(entry).collect(),
            _ => Vec::new(),
        };
        // Publishers may send several of them. Only one is read where the next death looks for
        // what came round.
        while headers.remove(X_DEATH).is_some() {}
        Ok(Deaths { headers, entries })
    }

    /// True if the message, on its way to that queue, comes back to where it has died already, with
    /// nobody having refused it in between: it would go round for ever.
    pub fn comes_round(&self, queue: &str, reason: Reason) -> bool {
        let died_in = |entry: &FieldTable| text(entry, "queue") == Some(queue);
        let was_rejected = |entry: &FieldTable| text(entry, "reason") == Some("rejected");
        if reason == Reason::Rejected {
            return false;
        }
        match self.entries.iter().position(died_in) {
            Some(at) => !self.entries[..=at].iter().any(was_rejected),
            None => false,
        }
    }

    /// The routing keys in a header: `CC` or `BCC`.
    pub fn keys_in(&self, header: &str) -> Vec<Vec<u8>> {
        match self.headers.get(header) {
            Some(FieldValue::Array(keys)) => keys
                .iter()
                .filter_map(|key| match key {
                    FieldValue::LongStr(key) => Some(key.clone()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Adds a death; the entry of the same queue and reason, if there is one, counts it.
    pub fn add(&mut self, message: &Message, death: &Death<'_>) {
        let properties = Properties::from_wire(message.properties());
        let same = |entry: &FieldTable| {
            text(entry, "queue") == Some(death.queue)
                && text(entry, "reason") == Some(death.reason.name())
        };
        let is_first = self.entries.is_empty();
        let entry = match self.entries.iter().position(same) {
            Some(at) => {
                let mut entry = self.entries.remove(at);
                let count = entry.get("count").and_then(FieldValue::as_i64).unwrap_or(1);
                entry.insert("count", FieldValue::I64(count.saturating_add(1)));
                entry
            }
            None => self.new_entry(message, death, properties),
        };
        self.entries.insert(0, entry);
        let exchange = String::from_utf8_lossy(message.exchange()).into_owned();
        let event = [
            ("reason", death.reason.name()),
            ("queue", death.queue),
            ("exchange", &exchange),
        ];
        for (name, value) in event {
            if is_first {
                self.headers.insert(&format!("x-first-death-{name}"), value);
            }
            self.headers.insert(&format!("x-last-death-{name}"), value);
        }
    }

    fn new_entry(
        &self,
        message: &Message,
        death: &Death<'_>,
        properties: Properties<'_>,
    ) -> FieldTable {
        let mut keys = vec![message.routing_key().to_vec()];
        keys.extend(self.keys_in(CC));
        let keys = keys.into_iter().map(FieldValue::LongStr).collect();
        let exchange = FieldValue::LongStr(message.exchange().to_vec());
        let mut entry = FieldTable::new();
        if let Some(expiration) = properties.text(Property::Expiration) {
            entry.insert(
                "original-expiration",
                FieldValue::LongStr(expiration.to_vec()),
            );
        }
        entry
            .with("count", FieldValue::I64(1))
            .with("reason", death.reason.name())
            .with("queue", death.queue)
            .with("time", FieldValue::Timestamp(death.now / 1_000))
            .with("exchange", exchange)
            .with("routing-keys", FieldValue::Array(keys))
    }

    /// The message as it goes on: with its deaths, without an expiration, under the new exchange
    /// and, if one is set, the new routing key. Headers are in order of their names.
    pub fn rewrite(
        self,
        message: &Message,
        to: &DeadLetterTo,
        times: Option<Times>,
    ) -> Result<Message, DecodeError> {
        let entries = self.entries.into_iter().map(FieldValue::Table).collect();
        let mut headers: Vec<(Box<str>, FieldValue)> = self.headers.into_iter().collect();
        headers.push((X_DEATH.into(), FieldValue::Array(entries)));
        headers.sort_by(|(name, _), (other, _)| name.cmp(other));
        let headers = headers.into_iter().collect();
        let properties = Properties::from_wire(message.properties());
        let properties = properties.with_headers(&headers)?;
        let properties = Properties::from_wire(&properties).without(Property::Expiration)?;
        let head = MessageHead {
            exchange: to.exchange.as_bytes(),
            routing_key: to.routing_key.as_deref().unwrap_or(message.routing_key()),
            properties: &properties,
            persistent: message.is_persistent(),
            priority: message.priority(),
            times,
            has_bcc: message.has_bcc(),
        };
        Ok(Message::new(&head, message.body()))
    }
}

/// An entry of `x-death`, if it says all that one must say.
fn entry(value: FieldValue) -> Option<FieldTable> {
    let FieldValue::Table(entry) = value else {
        return None;
    };
    let wanted = [
        "exchange",
        "queue",
        "routing-keys",
        "reason",
        "count",
        "time",
    ];
    let complete = wanted.iter().all(|name| entry.get(name).is_some());
    complete.then_some(entry)
}

fn text<'t>(table: &'t FieldTable, name: &str) -> Option<&'t str> {
    table.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use amqp::PropertiesBuilder;

    use super::*;

    fn message(headers: &FieldTable) -> Message {
        let properties = PropertiesBuilder::default().headers(headers).finish();
        let head = MessageHead {
            exchange: b"",
            routing_key: b"a",
            properties: &properties,
            persistent: false,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        Message::new(&head, b"body")
    }

    /// Dies in that queue for its length; what arrives in the next one.
    fn dies_in(message: &Message, queue: &str) -> Message {
        let mut deaths = Deaths::of(message).expect("sound headers");
        let reason = Reason::MaxLength;
        let death = Death {
            queue,
            reason,
            now: 1,
        };
        deaths.add(message, &death);
        let to = DeadLetterTo {
            exchange: "".into(),
            routing_key: None,
            at_least_once: false,
        };
        deaths.rewrite(message, &to, None).expect("sound headers")
    }

    /// A table on the wire may have several entries of one name; those who come round must not be
    /// hidden by it.
    #[test]
    fn several_histories_do_not_hide_what_comes_round() {
        let history = |text: &str| {
            let entry = FieldTable::new().with("queue", text);
            let entries = FieldValue::Array(vec![FieldValue::Table(entry)]);
            (X_DEATH.into(), entries)
        };
        let headers = ["x", "y", "z"].map(history).into_iter().collect();
        let message = dies_in(&message(&headers), "a");
        let message = dies_in(&message, "b");
        let deaths = Deaths::of(&message).expect("sound headers");
        assert!(deaths.comes_round("a", Reason::MaxLength));
        let properties = Properties::from_wire(message.properties());
        let headers = properties.headers().expect("headers").to_owned();
        let headers = headers.expect("sound headers");
        let histories = headers.iter().filter(|(name, _)| *name == X_DEATH);
        assert_eq!(histories.count(), 1);
    }
}
