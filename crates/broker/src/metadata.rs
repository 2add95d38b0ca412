//! What is said about a vhost besides its name.

use amqp::{FieldTable, FieldValue};

/// What is said about a vhost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VHostMetadata {
    /// For people.
    pub description: String,
    /// Words that people sort vhosts by.
    pub tags: Vec<String>,
    /// The type of queues that are declared without one: `classic`, `quorum` or `stream`.
    pub default_queue_type: Option<String>,
}

/// The types that a vhost may have as its default.
pub(crate) const QUEUE_TYPES: [&str; 3] = ["classic", "quorum", "stream"];

const QUEUE_TYPE: &str = "x-queue-type";

impl VHostMetadata {
    /// Gives a declaration without a type the default one, if a queue of that type can have the
    /// other properties: what is not durable, or goes by itself, is a classic queue in any case.
    pub(crate) fn add_queue_type(&self, arguments: &mut FieldTable, durable: bool, goes: bool) {
        let Some(default) = &self.default_queue_type else {
            return;
        };
        if arguments.get(QUEUE_TYPE).is_some() {
            return;
        }
        if default == "classic" || (durable && !goes) {
            arguments.insert(QUEUE_TYPE, default.as_str());
        }
    }

    /// As definitions keep it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let tags = self.tags.iter().map(|tag| FieldValue::from(tag.as_str()));
        let mut table = FieldTable::new()
            .with("description", &*self.description)
            .with("tags", FieldValue::Array(tags.collect()));
        if let Some(default) = &self.default_queue_type {
            table.insert("default_queue_type", default.as_str());
        }
        table.encode()
    }
}
