//! Sharding: one exchange, several queues that share its messages, and consumers that name the
//! exchange and get their part (RabbitMQ's plugin `rabbitmq_sharding`).
//!
//! A policy with `shards-per-node` makes queues `sharding: EXCHANGE - NODE - N` and binds them with
//! its `routing-key`. Shards that are there stay, whatever becomes of the policy: they may hold
//! messages. Consumers of the exchange's name share the shards among them ([`ShardMember`]).

mod group;

use std::sync::Arc;

use amqp::{FieldTable, FieldValue};

pub(crate) use group::ShardGroups;
pub use group::{ShardHandle, ShardMember};

use crate::binding::{Binding, Destination};
use crate::policy::Applied;
use crate::queue::{Queue, QueueOptions};
use crate::topology::Topology;
use crate::vhost::VHost;

/// Shards that a policy may ask for; there is no use for more on one node.
const MAX_SHARDS: i64 = 1_024;

/// What a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sharding {
    shards: usize,
    routing_key: Box<[u8]>,
}

impl Sharding {
    /// `None` where no policy asks for shards.
    pub fn of(applied: &Applied) -> Option<Sharding> {
        let shards = applied.get("shards-per-node")?.as_i64()?;
        let routing_key = match applied.get("routing-key") {
            Some(FieldValue::LongStr(key)) => key.as_slice().into(),
            _ => Box::default(),
        };
        Some(Sharding {
            shards: shards.clamp(0, MAX_SHARDS) as usize,
            routing_key,
        })
    }
}

fn shard_name(exchange: &str, node: &str, number: usize) -> String {
    format!("sharding: {exchange} - {node} - {number}")
}

impl Topology {
    /// The shards of an exchange, in order of their numbers; `None` if it has no policy that asks
    /// for any.
    pub fn shards(&self, exchange: &str, node: &str) -> Option<Vec<Arc<Queue>>> {
        let exchange = self.exchanges.get(exchange)?;
        exchange.sharded.as_ref()?;
        Some(self.existing_shards(&exchange.name, node))
    }

    fn existing_shards(&self, exchange: &str, node: &str) -> Vec<Arc<Queue>> {
        // One that was deleted leaves a gap, which the policy's number reaches over.
        let wanted = self.exchanges.get(exchange).and_then(|found| {
            let sharded = found.sharded.as_ref()?;
            Some(sharded.shards)
        });
        let mut shards = Vec::new();
        for number in 0..MAX_SHARDS as usize {
            match self.queues.get(shard_name(exchange, node, number).as_str()) {
                Some(queue) => shards.push(queue.clone()),
                None if number < wanted.unwrap_or(0) => {}
                None => break,
            }
        }
        shards
    }
}

impl VHost {
    /// Makes and binds the shards that policies ask for, and unbinds those that none asks for any
    /// more; then tells those who consume them.
    pub(crate) fn see_to_shards(&self, topology: &mut Topology) {
        for exchange in topology.take_resharded() {
            self.reshard(topology, &exchange);
            self.shard_groups.rebalance(&exchange);
        }
    }

    fn reshard(&self, topology: &mut Topology, name: &Arc<str>) {
        let Some(exchange) = topology.exchanges.get_mut(name) else {
            return;
        };
        // Those that everybody has are nobody's to shard, though a policy's pattern may match them.
        if name.is_empty() || name.starts_with("amq.") {
            return;
        }
        let wanted = Sharding::of(&exchange.applied);
        let durable = exchange.durable;
        let before = std::mem::replace(&mut exchange.sharded, wanted.clone());
        let key = |sharding: &Option<Sharding>| {
            sharding
                .as_ref()
                .map(|sharding| sharding.routing_key.clone())
        };
        let (old, new) = (key(&before), key(&wanted));
        let number = wanted.map_or(0, |sharding| sharding.shards);
        for number in 0..number {
            let shard = shard_name(name, &self.node, number);
            if !topology.queues.contains_key(shard.as_str()) {
                let options = QueueOptions {
                    durable,
                    ..QueueOptions::default()
                };
                let queue = self.make_queue(shard.as_str().into(), options);
                topology.insert_queue(queue);
            }
        }
        for shard in topology.existing_shards(name, &self.node) {
            let binding = |routing_key: &[u8]| Binding {
                source: name.clone(),
                destination: Destination::Queue(shard.clone()),
                routing_key: routing_key.into(),
                arguments: FieldTable::new(),
            };
            if let Some(old) = old.as_deref().filter(|old| Some(*old) != new.as_deref()) {
                topology.unbind(&binding(old).key());
            }
            if let Some(new) = &new {
                topology.bind(binding(new));
            }
        }
    }
}
