//! Bindings: listing them.

use std::sync::Arc;

use amqp::FieldTable;

use super::{Admin, AdminError};
use crate::binding::Destination;

/// What is told about a binding.
#[derive(Debug, Clone)]
pub struct BindingInfo {
    /// The exchange; empty for the default exchange, to which all queues are bound by their names.
    pub source: Arc<str>,
    /// Where it leads.
    pub destination: Arc<str>,
    /// It leads to a queue, else to an exchange.
    pub to_queue: bool,
    /// Routing or binding key; what is not UTF-8 in it is replaced.
    pub routing_key: String,
    /// Its arguments.
    pub arguments: FieldTable,
}

impl Admin<'_> {
    /// A vhost's bindings, by their ends; those of the default exchange first.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_bindings(&self, vhost: &str) -> Result<Vec<BindingInfo>, AdminError> {
        let vhost = self.vhost(vhost)?;
        let topology = vhost.read();
        let implicit = topology.queues.keys().map(|name| BindingInfo {
            source: "".into(),
            destination: name.clone(),
            to_queue: true,
            routing_key: name.as_ref().to_owned(),
            arguments: FieldTable::new(),
        });
        let declared = topology
            .exchanges
            .values()
            .flat_map(|exchange| exchange.bindings());
        let declared = declared.map(|binding| BindingInfo {
            source: binding.source.clone(),
            destination: binding.destination.name().clone(),
            to_queue: matches!(binding.destination, Destination::Queue(_)),
            routing_key: String::from_utf8_lossy(&binding.routing_key).into_owned(),
            arguments: binding.arguments.clone(),
        });
        let mut all: Vec<BindingInfo> = implicit.chain(declared).collect();
        drop(topology);
        all.sort_by(|a, b| {
            let key =
                |binding: &'_ BindingInfo| (binding.source.clone(), binding.destination.clone());
            key(a)
                .cmp(&key(b))
                .then_with(|| a.routing_key.cmp(&b.routing_key))
        });
        Ok(all)
    }
}
