//! From an exchange, routing keys and headers to queues.

use std::sync::Arc;

use amqp::Table;
use smallvec::SmallVec;

use crate::binding::Destination;
use crate::exchange::ExchangeKind;
use crate::queue::Queue;
use crate::topology::Topology;

/// The queues that a message goes to; each once.
#[derive(Debug, Default)]
pub struct Route {
    /// In order of id, which is the order they are locked in.
    pub queues: SmallVec<[Arc<Queue>; 2]>,
    /// True where exchange and routing key alone decided, so that the route may be kept until
    /// the topology changes.
    pub reusable: bool,
}

/// Finds all queues, through exchange-to-exchange bindings and alternate exchanges. Cycles end
/// where they come back to an exchange that the message has passed.
pub(crate) fn route(
    topology: &Topology,
    exchange: &str,
    routing_keys: &[&[u8]],
    headers: Option<Table<'_>>,
) -> Route {
    let mut found = Route {
        queues: SmallVec::new(),
        reusable: true,
    };
    if exchange.is_empty() {
        for key in routing_keys {
            let queue = std::str::from_utf8(key)
                .ok()
                .and_then(|name| topology.queues.get(name));
            found.queues.extend(queue.cloned());
        }
    } else {
        walk(topology, exchange, routing_keys, headers, &mut found);
    }
    found.queues.sort_unstable_by_key(|queue| queue.id);
    found.queues.dedup_by_key(|queue| queue.id);
    found
}

fn walk<'t>(
    topology: &'t Topology,
    exchange: &'t str,
    routing_keys: &[&[u8]],
    headers: Option<Table<'_>>,
    found: &mut Route,
) {
    let mut seen: SmallVec<[&str; 8]> = SmallVec::from_slice(&[exchange]);
    let mut next = 0;
    while let Some(name) = seen.get(next).copied() {
        next += 1;
        let Some(exchange) = topology.exchanges.get(name) else {
            continue;
        };
        found.reusable &= exchange.kind != ExchangeKind::Headers;
        let mut matched = false;
        let mut visit = |destination: &'t Destination| {
            matched = true;
            match destination {
                Destination::Queue(queue) => found.queues.push(queue.clone()),
                Destination::Exchange(name) => {
                    if !seen.contains(&&**name) {
                        seen.push(name);
                    }
                }
            }
        };
        for key in routing_keys {
            exchange.route(key, headers, &mut visit);
        }
        if !matched
            && let Some(alternate) = &exchange.alternate
            && !seen.contains(&&**alternate)
        {
            seen.push(alternate);
        }
    }
}
