//! Events of queues, exchanges, bindings and vhosts.

use amqp::{FieldTable, Table};

use super::{Event, Events};
use crate::binding::{BindingKey, DestinationKey};
use crate::exchange::Exchange;
use crate::queue::Queue;
use crate::terms;
use crate::vhost::VHost;

/// The type is told since release 3.13.
pub(crate) fn queue_created(events: &Events, queue: &Queue) -> Event {
    let owner = queue.exclusive_owner;
    let owner_process = owner.map(|owner| events.process(owner, 0));
    Event::new("queue.created")
        .with("type", queue.kind.module())
        .with("exclusive", owner.is_some())
        .with("owner_pid", owner_process.as_deref().unwrap_or_default())
        .with("arguments", terms::entries(&queue.arguments))
        .with("auto_delete", queue.auto_delete)
        .with("durable", queue.durable)
        .with("name", &*queue.name)
        .with("vhost", &*queue.vhost)
}

pub(crate) fn queue_deleted(queue: &Queue) -> Event {
    Event::new("queue.deleted")
        .with("type", queue.kind.module())
        .with("name", &*queue.name)
        .with("vhost", &*queue.vhost)
}

pub(crate) fn exchange_created(vhost: &str, exchange: &Exchange) -> Event {
    let policy = exchange.applied.policy.as_deref();
    Event::new("exchange.created")
        .with("policy", policy.map_or("", |policy| &policy.name))
        .with("arguments", terms::entries(&exchange.arguments))
        .with("internal", exchange.internal)
        .with("auto_delete", exchange.auto_delete)
        .with("durable", exchange.durable)
        .with("type", &*exchange.kind.to_string())
        .with("name", &*exchange.name)
        .with("vhost", vhost)
}

pub(crate) fn exchange_deleted(vhost: &str, name: &str) -> Event {
    Event::new("exchange.deleted")
        .with("name", name)
        .with("vhost", vhost)
}

pub(crate) fn binding_created(vhost: &str, binding: &BindingKey, arguments: &FieldTable) -> Event {
    of_binding("binding.created", vhost, binding, arguments)
}

pub(crate) fn binding_deleted(vhost: &str, binding: &BindingKey) -> Event {
    let arguments = Table::from_wire(&binding.arguments).to_owned();
    let arguments = arguments.unwrap_or_default();
    of_binding("binding.deleted", vhost, binding, &arguments)
}

fn of_binding(
    key: &'static str,
    vhost: &str,
    binding: &BindingKey,
    arguments: &FieldTable,
) -> Event {
    let (kind, name) = match &binding.destination {
        DestinationKey::Queue(name) => ("queue", name),
        DestinationKey::Exchange(name) => ("exchange", name),
    };
    let routing_key = amqp::FieldValue::LongStr(binding.routing_key.to_vec());
    Event::new(key)
        .with("vhost", vhost)
        .with("arguments", terms::entries(arguments))
        .with("routing_key", routing_key)
        .with("destination_kind", kind)
        .with("destination_name", &**name)
        .with("source_kind", "exchange")
        .with("source_name", &*binding.source)
}

impl Events {
    /// A vhost is new, with its predeclared exchanges. `by`: who has made it.
    pub fn vhost_created(&self, by: &str, vhost: &VHost) {
        for event in vhost.take_events() {
            self.publish(by, event);
        }
        self.emit(by, || {
            let metadata = vhost.metadata();
            let default_queue_type = metadata.default_queue_type.as_deref();
            let tags = metadata.tags.join(",");
            let described = terms::map(&[
                ("default_queue_type", default_queue_type),
                ("description", Some(&metadata.description)),
                ("tags", Some(&tags)),
            ]);
            Event::new("vhost.created")
                .with("tags", &*tags)
                .with("description", &*metadata.description)
                .with(
                    "cluster_state",
                    FieldTable::new().with(self.node(), "running"),
                )
                .with("tracing", vhost.is_traced())
                .with("metadata", &*described)
                .with(
                    "default_queue_type",
                    default_queue_type.unwrap_or("undefined"),
                )
                .with("name", &*vhost.name)
        });
    }

    /// A vhost has gone, and what was in it. `by`: who has deleted it.
    pub fn vhost_deleted(&self, by: &str, vhost: &VHost) {
        for event in vhost.take_events() {
            self.publish(by, event);
        }
        self.emit(by, || {
            Event::new("vhost.deleted").with("name", &*vhost.name)
        });
    }
}
