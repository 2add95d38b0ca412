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
    targets: Vec<Target>,
}

/// A route, and what spares most messages the change of its reference count: that would wait for all
/// that has just been written of the message.
#[derive(Debug)]
struct Target {
    route: Arc<Route>,
    /// To be given out, and taken back.
    spare: Option<Arc<Route>>,
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
        let target = |queue| Target {
            route: Arc::new(Route::to(smallvec![queue], Vec::new(), false)),
            spare: None,
        };
        let targets: Vec<Target> = queues.into_iter().map(target).collect();
        (!targets.is_empty()).then(|| Spread {
            exchange: exchange.name.as_bytes().into(),
            targets,
        })
    }

    /// Where a message to that exchange goes, if it is this one, and the number of that target.
    #[inline]
    pub fn route(&mut self, exchange: &[u8], routing_key: &[u8]) -> Option<(usize, Arc<Route>)> {
        if *self.exchange != *exchange {
            return None;
        }
        let at = spread_position(&[routing_key], self.targets.len())?;
        let Target { route, spare } = &mut self.targets[at];
        Some((at, spare.take().unwrap_or_else(|| route.clone())))
    }

    /// Takes back what [`Spread::route`] has given out.
    #[inline]
    pub fn take_back(&mut self, at: usize, route: Arc<Route>) {
        if let Some(target) = self.targets.get_mut(at)
            && Arc::ptr_eq(&target.route, &route)
        {
            target.spare = Some(route);
        }
    }
}
