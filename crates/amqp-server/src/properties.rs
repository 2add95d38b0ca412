//! What server and client tell each other about themselves.

use amqp::{FieldTable, Table, Value, Version};

/// The RabbitMQ release that Leveret follows: clients branch on it.
const FOLLOWED_VERSION: &str = "3.13.7";

/// What connection.start says of the server. 0-8 clients know no capabilities.
pub(crate) fn server(version: Version, cluster_name: &str) -> FieldTable {
    let mut properties = FieldTable::new();
    let mut capabilities = FieldTable::new();
    if version > Version::V0_8 {
        for name in [
            "publisher_confirms",
            "exchange_exchange_bindings",
            "basic.nack",
            "consumer_cancel_notify",
            "connection.blocked",
            "consumer_priorities",
            "authentication_failure_close",
            "per_consumer_qos",
            "direct_reply_to",
        ] {
            capabilities.insert(name, true);
        }
    }
    properties.insert("capabilities", capabilities);
    properties
        .with("cluster_name", cluster_name)
        .with("copyright", "Copyright (c) the Leveret authors")
        .with("information", "Licensed under the Apache License 2.0")
        .with("platform", "Rust")
        .with("product", "Leveret")
        .with("version", FOLLOWED_VERSION)
        .with("leveret_version", env!("CARGO_PKG_VERSION"))
}

/// What a client can do, from `capabilities` in its properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClientCapabilities {
    pub consumer_cancel_notify: bool,
    pub authentication_failure_close: bool,
    pub connection_blocked: bool,
}

impl ClientCapabilities {
    pub fn from_properties(properties: Table<'_>) -> Self {
        let Some(Value::Table(capabilities)) = properties.get("capabilities") else {
            return ClientCapabilities::default();
        };
        let has = |name| capabilities.get(name) == Some(Value::Bool(true));
        ClientCapabilities {
            consumer_cancel_notify: has("consumer_cancel_notify"),
            authentication_failure_close: has("authentication_failure_close"),
            connection_blocked: has("connection.blocked"),
        }
    }
}
