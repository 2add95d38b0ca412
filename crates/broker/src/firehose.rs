//! The firehose: while a vhost is traced, a copy of every message that is published in it, and of every
//! one that is delivered, goes to its exchange `amq.rabbitmq.trace`.
//!
//! A copy has the body of its original, whose properties and way its headers tell. Copies are not
//! copied again. Source: RabbitMQ's documentation "Firehose Tracer", and release 3.10 for the order and
//! the types of the headers.

use std::sync::Arc;

use amqp::{FieldTable, FieldValue, Properties, Property, Value};
use store::{Message, MessageHead};

use crate::death::BCC;
use crate::exchange::Exchange;
use crate::internal_publish;
use crate::queue::Queue;
use crate::routing::Route;
use crate::session::{REPLY_TO, Session};

/// The exchange that copies are sent to.
pub(crate) const EXCHANGE: &str = "amq.rabbitmq.trace";
/// Bytes of queues' names that a copy tells at most: a content header has to fit into a frame.
const MAX_QUEUE_NAMES: usize = 32 * 1024;
/// A routing key's bytes.
const MAX_KEY: usize = 255;

impl Session {
    /// A client has published a message on that channel. Its route says that it is traced.
    pub fn trace_publish(&self, channel: u16, route: &Route, message: &Message) {
        if !self.copies_are_wanted() {
            return;
        }
        let headers = self.place(self.origin(message), channel);
        let headers = headers.with("routed_queues", self.routed_queues(route, message));
        self.send_copy("publish.", message.exchange(), &headers, message);
    }

    /// The queues that a message is routed to. Those that the default exchange leads to need not be
    /// there, as in RabbitMQ.
    fn routed_queues(&self, route: &Route, message: &Message) -> FieldValue {
        let names: Vec<Vec<u8>> = match message.exchange() {
            b"" => internal_publish::routing_keys(message).into_vec(),
            _ => self.known_queues(route),
        };
        let mut bytes = 0;
        let shown = names.into_iter().filter(|name| {
            bytes += name.len() + 5;
            bytes <= MAX_QUEUE_NAMES && !name.starts_with(REPLY_TO.as_bytes())
        });
        FieldValue::Array(shown.map(FieldValue::LongStr).collect())
    }

    /// Without those that clients cannot see, where messages wait for their time.
    fn known_queues(&self, route: &Route) -> Vec<Vec<u8>> {
        let is_known = |queue: &&Arc<Queue>| {
            let known = self.vhost.queue(&queue.name);
            known.is_some_and(|known| known.id == queue.id)
        };
        let known = route.queues.iter().filter(is_known);
        known.map(|queue| queue.name.as_bytes().to_vec()).collect()
    }

    /// A message of that queue is on its way to a consumer, or to whoever has asked for it.
    pub fn trace_delivery(
        &self,
        channel: u16,
        queue: &Queue,
        redelivered: bool,
        message: &Message,
    ) {
        let hidden = queue.name.starts_with(REPLY_TO);
        if hidden || is_copy(message) || !self.copies_are_wanted() {
            return;
        }
        let redelivered = FieldValue::I32(redelivered.into());
        let headers = self.origin(message).with("redelivered", redelivered);
        let headers = self.place(headers, channel);
        self.send_copy("deliver.", queue.name.as_bytes(), &headers, message);
    }

    /// True if copies lead anywhere: each has a body of its own.
    fn copies_are_wanted(&self) -> bool {
        let topology = self.vhost.read();
        let exchange = topology.exchanges.get(EXCHANGE);
        exchange.is_some_and(Exchange::has_bindings)
    }

    /// What the message itself says.
    fn origin(&self, message: &Message) -> FieldTable {
        let exchange = FieldValue::LongStr(message.exchange().to_vec());
        let keys = internal_publish::routing_keys(message);
        let keys = keys.into_iter().map(FieldValue::LongStr).collect();
        FieldTable::new()
            .with("exchange_name", exchange)
            .with("routing_keys", FieldValue::Array(keys))
            .with(
                "properties",
                properties(Properties::from_wire(message.properties())),
            )
            .with("node", self.vhost.events.node())
    }

    /// Where that has happened.
    fn place(&self, headers: FieldTable, channel: u16) -> FieldTable {
        headers
            .with("vhost", &*self.vhost.name)
            .with("connection", &*self.client_name())
            .with("channel", i32::from(channel))
            .with("user", &*self.user.name)
    }

    fn send_copy(&self, prefix: &str, of: &[u8], headers: &FieldTable, message: &Message) {
        let mut key = [prefix.as_bytes(), of].concat();
        key.truncate(MAX_KEY);
        let properties = amqp::PropertiesBuilder::default().headers(headers).finish();
        let head = MessageHead {
            exchange: EXCHANGE.as_bytes(),
            routing_key: &key,
            properties: &properties,
            persistent: false,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        let copy = Message::new(&head, message.body());
        internal_publish::publish(&self.vhost, EXCHANGE, &copy);
    }
}

/// True for a copy, and for one that has become a dead letter: it would be copied for ever.
fn is_copy(message: &Message) -> bool {
    let came_from = || {
        let headers = Properties::from_wire(message.properties()).headers()?;
        headers.get("x-first-death-exchange")?.as_long_str()
    };
    message.exchange() == EXCHANGE.as_bytes() || came_from() == Some(EXCHANGE.as_bytes())
}

/// Properties by name, from the last to the first. All numbers are of one type, 32 bits wide: a
/// timestamp loses those above.
fn properties(properties: Properties<'_>) -> FieldTable {
    let mut table = FieldTable::new();
    for property in Property::ALL.into_iter().rev() {
        let value = match properties.get(property) {
            None => continue,
            Some(Value::U8(number)) => FieldValue::I32(number.into()),
            Some(Value::Timestamp(seconds)) => FieldValue::I32(seconds as i32),
            Some(value) => value.to_owned().unwrap_or(FieldValue::Void),
        };
        table.insert(name(property), without_bcc(value));
    }
    table
}

/// Recipients that only the broker is to know stay its secret.
fn without_bcc(value: FieldValue) -> FieldValue {
    match value {
        FieldValue::Table(mut headers) => {
            headers.remove(BCC);
            FieldValue::Table(headers)
        }
        other => other,
    }
}

fn name(property: Property) -> &'static str {
    match property {
        Property::ContentType => "content_type",
        Property::ContentEncoding => "content_encoding",
        Property::Headers => "headers",
        Property::DeliveryMode => "delivery_mode",
        Property::Priority => "priority",
        Property::CorrelationId => "correlation_id",
        Property::ReplyTo => "reply_to",
        Property::Expiration => "expiration",
        Property::MessageId => "message_id",
        Property::Timestamp => "timestamp",
        Property::Type => "type",
        Property::UserId => "user_id",
        Property::AppId => "app_id",
        Property::ClusterId => "cluster_id",
    }
}
