//! From an exchange, routing keys and headers to queues.

use std::sync::Arc;

use ahash::HashSet;
use smallvec::SmallVec;
use store::Message;

use crate::binding::Destination;
use crate::exchange::{ExchangeWindow, Head, Passage};
use crate::queue::{Queue, delay};
use crate::topology::Topology;

/// The queues that a message goes to; each once.
#[derive(Debug, Default)]
pub struct Route {
    /// In order of id, which is the order they are locked in.
    pub queues: SmallVec<[Arc<Queue>; 2]>,
    /// True where exchange and routing key alone decided, so that the route may be kept until
    /// the topology changes.
    pub reusable: bool,
    /// True where some of the queues keep persistent messages over a restart.
    pub logged: bool,
    /// True where some of the queues must know when their messages came.
    pub timed: bool,
    /// True where some of the queues keep every message over a restart, whatever it says itself.
    pub keeps_all: bool,
    /// True where some of the queues may refuse messages.
    pub may_reject: bool,
    /// What has been published lately to the exchange, if that is not to be published again.
    pub(crate) window: Option<Arc<ExchangeWindow>>,
    /// True where more is to be done for a message than to put it in its queues: it may be
    /// refused, may have come before, is remembered on its way, or is traced.
    pub special: bool,
    /// True where what is published this way is traced.
    pub traced: bool,
    /// Those that remember messages that come this way.
    pub(crate) histories: Vec<Passage>,
}

impl Route {
    /// To these queues, in order of id.
    pub(crate) fn to(
        queues: SmallVec<[Arc<Queue>; 2]>,
        histories: Vec<Passage>,
        reusable: bool,
    ) -> Route {
        let any = |says: fn(&Queue) -> bool| queues.iter().any(|queue| says(queue));
        let may_reject = any(|queue| queue.traits.may_reject());
        Route {
            window: None,
            logged: any(|queue| queue.logged),
            keeps_all: any(Queue::keeps_all),
            timed: any(|queue| queue.traits.timed()),
            may_reject,
            special: may_reject || !histories.is_empty(),
            traced: false,
            histories,
            queues,
            reusable,
        }
    }

    /// True unless the message has come before.
    pub(crate) fn admits(&self, message: &Message) -> bool {
        self.window
            .as_ref()
            .is_none_or(|window| window.admits(message))
    }

    /// What was admitted is with its queues.
    pub(crate) fn keep_admitted(&self) {
        if let Some(window) = &self.window {
            window.keep();
        }
    }

    /// The id of the queue that the message goes to, if that is one.
    #[inline]
    pub(crate) fn only_queue(&self) -> Option<u64> {
        match &*self.queues {
            [queue] => Some(queue.id),
            _ => None,
        }
    }

    /// True if both lead to the same one queue, in the same way.
    pub(crate) fn is_like(&self, other: &Route) -> bool {
        let traits = |route: &Route| {
            let Route {
                reusable,
                logged,
                timed,
                keeps_all,
                special,
                ..
            } = route;
            (*reusable, *logged, *timed, *keeps_all, *special)
        };
        !self.special
            && self.only_queue().is_some()
            && self.only_queue() == other.only_queue()
            && traits(self) == traits(other)
    }

    /// The message as these queues keep it.
    pub(crate) fn kept(&self, message: Message) -> Message {
        match self.keeps_all {
            true => message.made_persistent(),
            false => message,
        }
    }

    /// True where what has come before is dropped.
    pub fn deduplicates(&self) -> bool {
        self.window.is_some()
    }

    /// True where exchanges on the way remember messages that come.
    pub fn is_remembered(&self) -> bool {
        !self.histories.is_empty()
    }
}

/// Up to this many, a list is searched faster than a set.
const FEW: usize = 16;

/// Finds all queues, through exchange-to-exchange bindings and alternate exchanges. Cycles end
/// where they come back to an exchange that the message has passed.
pub(crate) fn route(topology: &Topology, exchange: &str, message: &Head<'_>) -> Route {
    let mut found = Found {
        queues: SmallVec::new(),
        ids: None,
        histories: Vec::new(),
    };
    let mut reusable = true;
    if exchange.is_empty() {
        for key in message.keys {
            if let Some(queue) = std::str::from_utf8(key)
                .ok()
                .and_then(|name| topology.queues.get(name))
            {
                found.add(queue);
            }
        }
    } else {
        reusable = walk(topology, exchange, message, &mut found);
    }
    let Found {
        mut queues,
        histories,
        ids: _,
    } = found;
    queues.sort_unstable_by_key(|queue| queue.id);
    Route::to(queues, histories, reusable)
}

/// Queues, each once however often it is found, and the histories on the way.
struct Found {
    queues: SmallVec<[Arc<Queue>; 2]>,
    /// Their ids, once there are more than a few.
    ids: Option<HashSet<u64>>,
    histories: Vec<Passage>,
}

impl Found {
    fn add(&mut self, queue: &Arc<Queue>) {
        let new = if self.queues.len() <= FEW {
            !self.queues.iter().any(|known| known.id == queue.id)
        } else {
            let known = self.queues.iter().map(|known| known.id);
            let ids = self.ids.get_or_insert_with(|| known.collect());
            ids.insert(queue.id)
        };
        if new {
            self.queues.push(queue.clone());
        }
    }
}

/// Exchanges that the message has passed or will, in order.
struct Passed<'t> {
    names: SmallVec<[&'t str; 8]>,
    /// Once there are more than a few.
    set: Option<HashSet<&'t str>>,
}

impl<'t> Passed<'t> {
    fn add(&mut self, name: &'t str) {
        let new = if self.names.len() <= FEW {
            !self.names.contains(&name)
        } else {
            let names = &self.names;
            let set = self
                .set
                .get_or_insert_with(|| names.iter().copied().collect());
            set.insert(name)
        };
        if new {
            self.names.push(name);
        }
    }
}

/// Returns whether exchange and routing key alone decided.
fn walk<'t>(
    topology: &'t Topology,
    exchange: &'t str,
    message: &Head<'_>,
    found: &mut Found,
) -> bool {
    let mut reusable = true;
    let mut passed = Passed {
        names: SmallVec::from_slice(&[exchange]),
        set: None,
    };
    let mut next = 0;
    while let Some(name) = passed.names.get(next).copied() {
        next += 1;
        let Some(exchange) = topology.exchanges.get(name) else {
            continue;
        };
        reusable &= exchange.routes_by_key();
        if let Some(history) = &exchange.history {
            // A message that has to wait passes once more when its time has come.
            if exchange.belongings.delayed.is_none() || delay(message.properties).is_none() {
                found.histories.push(history.passage());
            }
        }
        let mut matched = false;
        let mut visit = |destination: &'t Destination| {
            matched = true;
            match destination {
                Destination::Queue(queue) => found.add(queue),
                Destination::Exchange(name) => passed.add(name),
            }
        };
        exchange.route(message, &mut visit);
        if !matched && let Some(alternate) = &exchange.alternate {
            passed.add(alternate);
        }
    }
    reusable
}
