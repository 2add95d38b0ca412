//! Bindings: from an exchange to a queue or another exchange.
//!
//! A binding is its source, destination, routing key and arguments; declaring the same one twice
//! leaves one.

use std::sync::Arc;

use amqp::FieldTable;

use crate::Queue;

/// Where a binding leads.
#[derive(Debug, Clone)]
pub enum Destination {
    /// To a queue.
    Queue(Arc<Queue>),
    /// To the exchange of that name in the same vhost.
    Exchange(Arc<str>),
}

impl Destination {
    /// The queue's or exchange's name.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Destination::Queue(queue) => &queue.name,
            Destination::Exchange(name) => name,
        }
    }

    /// What the destination is called in the index by destination.
    pub(crate) fn key(&self) -> DestinationKey {
        match self {
            Destination::Queue(queue) => DestinationKey::Queue(queue.name.clone()),
            Destination::Exchange(name) => DestinationKey::Exchange(name.clone()),
        }
    }
}

/// A destination's kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum DestinationKey {
    Queue(Arc<str>),
    Exchange(Arc<str>),
}

/// A binding.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The exchange that messages come from.
    pub source: Arc<str>,
    /// Where they go.
    pub destination: Destination,
    /// Routing or binding key, as bytes.
    pub routing_key: Box<[u8]>,
    /// Arguments: header values to match, among others.
    pub arguments: FieldTable,
}

impl Binding {
    /// Its identity.
    pub(crate) fn key(&self) -> BindingKey {
        BindingKey {
            source: self.source.clone(),
            destination: self.destination.key(),
            routing_key: self.routing_key.clone(),
            arguments: canonical(&self.arguments),
        }
    }
}

/// What two declarations of the same binding have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BindingKey {
    pub source: Arc<str>,
    pub destination: DestinationKey,
    pub routing_key: Box<[u8]>,
    /// The arguments' encoding, sorted by name.
    pub arguments: Box<[u8]>,
}

fn canonical(arguments: &FieldTable) -> Box<[u8]> {
    if arguments.is_empty() {
        return Box::default();
    }
    let mut entries: Vec<_> = arguments.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    let sorted: FieldTable = entries
        .into_iter()
        .map(|(name, value)| (name.into(), value.clone()))
        .collect();
    sorted.encode().into()
}
