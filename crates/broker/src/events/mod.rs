//! The event exchange: `amq.rabbitmq.event`, as RabbitMQ's plugin of that name has it. What happens in
//! the broker is published there, one message for each event, to whoever has bound a queue.
//!
//! While nothing is bound, an event costs a look at a flag, which follows the exchange's bindings. Events
//! are never published with a lock held: changes of a topology gather them for
//! [`VHost::change_by`](crate::VHost).
//!
//! Keys, names and types of headers are those of the plugin, release 3.10; see the files of this module.

mod access;
mod clients;
mod definitions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use amqp::{FieldTable, FieldValue, PropertiesBuilder};
use parking_lot::RwLock;
use store::{Message, MessageHead};

use crate::clock::Millis;
use crate::internal_publish;
use crate::name::ConnectionId;
use crate::vhost::VHost;

pub(crate) use definitions::{
    binding_created, binding_deleted, exchange_created, exchange_deleted, queue_created,
    queue_deleted,
};

/// The exchange, in the default vhost.
pub const EXCHANGE: &str = "amq.rabbitmq.event";
/// Who does what nobody has asked for, in `user_who_performed_action`.
pub const INTERNAL_USER: &str = "rmq-internal";
/// Who does what an administrator asks for on the command line.
pub const CLI_USER: &str = "rmq-cli";

/// Something that has happened.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its kind: the routing key.
    key: &'static str,
    by: By,
    headers: FieldTable,
}

/// Who has done it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Whoever asked for it.
    Caller,
    /// The broker, in consequence of something else.
    Broker,
    /// It is not said.
    Unsaid,
}

impl Event {
    fn new(key: &'static str) -> Event {
        Event {
            key,
            by: By::Caller,
            headers: FieldTable::new(),
        }
    }

    fn with(mut self, header: &str, value: impl Into<FieldValue>) -> Event {
        self.headers.insert(header, value);
        self
    }

    /// A whole number; the plugin has one type for all of them.
    fn with_number(self, header: &str, number: impl Into<i64>) -> Event {
        self.with(header, FieldValue::I64(number.into()))
    }

    /// It is not said who has done it.
    fn by_nobody(mut self) -> Event {
        self.by = By::Unsaid;
        self
    }

    /// Nobody has asked for it: it had to follow from something else.
    pub fn in_consequence(&mut self) {
        self.by = By::Broker;
    }

    /// `caller`: who has asked for it.
    fn message(self, caller: &str, now: Millis) -> Message {
        let by = match self.by {
            By::Caller => Some(caller),
            By::Broker => Some(INTERNAL_USER),
            By::Unsaid => None,
        };
        let by = by.map(|by| ("user_who_performed_action", FieldValue::from(by)));
        let time = ("timestamp_in_ms", FieldValue::I64(now.cast_signed()));
        let of_event = self.headers.iter();
        let headers: FieldTable = by
            .into_iter()
            .chain(of_event.map(|(name, value)| (name, value.clone())))
            .chain([time])
            .map(|(name, value)| (name.into(), value))
            .collect();
        let properties = PropertiesBuilder::default()
            .headers(&headers)
            .delivery_mode(2)
            .timestamp(now / 1_000)
            .finish();
        let head = MessageHead {
            exchange: EXCHANGE.as_bytes(),
            routing_key: self.key.as_bytes(),
            properties: &properties,
            persistent: true,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        Message::new(&head, b"")
    }
}

/// The node's events.
#[derive(Debug, Default)]
pub struct Events {
    /// Something is bound to the exchange.
    wanted: AtomicBool,
    /// The vhost that has the exchange.
    home: RwLock<Weak<VHost>>,
    node: Arc<str>,
    /// When the node started, in seconds: makes the names of its connections and channels its own.
    started: u64,
}

impl Events {
    pub(crate) fn new(node: &str, now: Millis) -> Arc<Events> {
        Arc::new(Events {
            node: node.into(),
            started: now / 1_000,
            ..Events::default()
        })
    }

    /// The node's name.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// True while somebody gets them.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    pub(crate) fn set_wanted(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
    }

    /// That vhost has the exchange.
    pub(crate) fn set_home(&self, vhost: &Arc<VHost>) {
        *self.home.write() = Arc::downgrade(vhost);
    }

    /// Publishes an event, if anybody wants it; it is made only then.
    fn emit(&self, caller: &str, make: impl FnOnce() -> Event) {
        if self.wanted() {
            self.publish(caller, make());
        }
    }

    /// Publishes an event that was gathered under a lock, which is free now.
    pub(crate) fn publish(&self, caller: &str, event: Event) {
        // In a statement of its own, so that the lock is released.
        let home = self.home.read().upgrade();
        match home {
            Some(home) => {
                let message = event.message(caller, home.now());
                internal_publish::publish(&home, EXCHANGE, &message);
            }
            // The vhost was deleted, with all that was bound.
            None => self.set_wanted(false),
        }
    }

    /// What stands for a connection (`channel` 0) or a channel, where RabbitMQ has an Erlang process.
    pub(crate) fn process(&self, connection: ConnectionId, channel: u16) -> String {
        let (node, started) = (&self.node, self.started);
        format!("<{node}.{started}.{}.{channel}>", connection.0)
    }
}
