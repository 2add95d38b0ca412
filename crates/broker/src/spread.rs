//! The queues of an exchange that spreads messages by their keys (`x-modulus-hash`, as of shards), as
//! a publisher knows them: keys are too many for routes to be kept for each.

use std::sync::Arc;

use smallvec::smallvec;

use crate::binding::Destination;
use crate::exchange::{Exchange, spread_position};
use crate::queue::Queue;
use crate::routing::Route;

/// What one exchange spreads to; good until the topology changes.
#[derive(Debug)]
pub(crate) struct Spread {
    exchange: Box<[u8]>,
    /// One for each destination.
    routes: Vec<Arc<Route>>,
}

impl Spread {
    /// `None` where the routing key alone does not tell the one queue, or more is to be done than to
    /// put messages there.
    pub fn of(exchange: &Exchange) -> Option<Spread> {
        let special = exchange.history.is_some()
            || exchange.belongings.window.is_some()
            || exchange.belongings.delayed.is_some();
        if special {
            return None;
        }
        let queue = |destination: &Destination| match destination {
            Destination::Queue(queue) => Some(queue.clone()),
            Destination::Exchange(_) => None,
        };
        let queues = exchange.spreads_to()?.into_iter().map(queue);
        let queues: Vec<Arc<Queue>> = queues.collect::<Option<_>>()?;
        let routes = queues
            .into_iter()
            .map(|queue| Arc::new(Route::to(smallvec![queue], Vec::new(), false)));
        let routes: Vec<_> = routes.collect();
        (!routes.is_empty()).then(|| Spread {
            exchange: exchange.name.as_bytes().into(),
            routes,
        })
    }

    /// Where a message to that exchange goes, if it is this one.
    #[inline]
    pub fn route(&self, exchange: &[u8], routing_key: &[u8]) -> Option<Arc<Route>> {
        if *self.exchange != *exchange {
            return None;
        }
        let at = spread_position(&[routing_key], self.routes.len())?;
        Some(self.routes[at].clone())
    }
}
