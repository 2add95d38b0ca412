//! Exchanges: listing them.

use std::sync::Arc;

use amqp::FieldTable;

use super::{Admin, AdminError};
use crate::exchange::{Exchange, ExchangeKind};

/// What is told about an exchange.
#[derive(Debug, Clone)]
pub struct ExchangeInfo {
    /// Its name; empty for the default exchange.
    pub name: Arc<str>,
    /// Its type.
    pub kind: ExchangeKind,
    /// Survives a restart.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
    /// Takes messages from other exchanges only.
    pub internal: bool,
    /// As declared.
    pub arguments: FieldTable,
    /// The policy that applies.
    pub policy: Option<Arc<str>>,
    /// Messages that wait for their time.
    pub messages_delayed: usize,
}

fn delayed(exchange: &Exchange) -> usize {
    let queue = exchange.belongings.delayed.as_ref();
    queue.map_or(0, |queue| queue.counts().delayed)
}

impl Admin<'_> {
    /// A vhost's exchanges, by name.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_exchanges(&self, vhost: &str) -> Result<Vec<ExchangeInfo>, AdminError> {
        let vhost = self.vhost(vhost)?;
        let topology = vhost.read();
        let mut all: Vec<ExchangeInfo> = topology
            .exchanges
            .values()
            .map(|exchange| ExchangeInfo {
                name: exchange.name.clone(),
                kind: exchange.kind,
                durable: exchange.durable,
                auto_delete: exchange.auto_delete,
                internal: exchange.internal,
                arguments: exchange.arguments.clone(),
                policy: exchange.applied.policy.as_ref().map(|p| p.name.clone()),
                messages_delayed: delayed(exchange),
            })
            .collect();
        drop(topology);
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}
