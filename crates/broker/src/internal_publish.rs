//! Publishing from inside the broker: traces, events, and the histories of exchanges.
//!
//! Nobody's permissions are asked for, nobody waits for a confirm, and a queue that has no room is
//! passed over. Never called with a lock held.

use std::sync::Arc;

use amqp::{Properties, Value};
use smallvec::SmallVec;
use store::{Message, Times};

use crate::binding::Destination;
use crate::death::{BCC, CC};
use crate::exchange::{Head, Passage, Replay};
use crate::positions::LogPositions;
use crate::queue::{MAX_PER_HOLD, Queue};
use crate::routing::{Route, route};
use crate::vhost::VHost;

/// Sends a message to an exchange, by its own routing keys.
pub(crate) fn publish(vhost: &VHost, exchange: &str, message: &Message) {
    let route = find_by_own_keys(vhost, exchange, message);
    for queue in &route.queues {
        put(queue, [message.clone()]);
    }
    remember_now(&route, message);
}

/// Where a message leads from an exchange, with those keys; nowhere, if there is no such exchange.
pub(crate) fn find(vhost: &VHost, exchange: &str, message: &Message, keys: &[&[u8]]) -> Route {
    let topology = vhost.read();
    if !topology.exchanges.contains_key(exchange) {
        return Route::default();
    }
    let properties = Properties::from_wire(message.properties());
    let head = Head {
        keys,
        headers: properties.headers(),
        properties,
    };
    route(&topology, exchange, &head)
}

/// [`find`] with the message's own routing keys.
pub(crate) fn find_by_own_keys(vhost: &VHost, exchange: &str, message: &Message) -> Route {
    let keys = routing_keys(message);
    let keys: SmallVec<[&[u8]; 4]> = keys.iter().map(Vec::as_slice).collect();
    find(vhost, exchange, message, &keys)
}

/// A message's own routing keys: that which it was published with, and those in `CC` and `BCC`.
pub(crate) fn routing_keys(message: &Message) -> SmallVec<[Vec<u8>; 1]> {
    let mut keys = SmallVec::from_iter([message.routing_key().to_vec()]);
    if let Some(headers) = Properties::from_wire(message.properties()).headers() {
        for header in [CC, BCC] {
            if let Some(Value::Array(items)) = headers.get(header) {
                let items = items.iter().flatten();
                keys.extend(items.filter_map(|item| item.as_long_str().map(<[u8]>::to_vec)));
            }
        }
    }
    keys
}

/// Appends messages to a queue; what a confirm must wait for.
pub(crate) fn put(queue: &Queue, messages: impl IntoIterator<Item = Message>) -> LogPositions {
    let now = queue.now();
    let mut positions = LogPositions::default();
    let mut messages = messages
        .into_iter()
        .map(|message| from_now_on(message, queue, now));
    if queue.traits.may_reject() {
        for message in messages {
            // As a publisher's message that is refused: nobody is there to be told.
            let logged = queue.offer(message).ok().flatten();
            logged.into_iter().for_each(|at| positions.add(at));
        }
        return positions;
    }
    loop {
        let run: SmallVec<[Message; 1]> = messages.by_ref().take(MAX_PER_HOLD).collect();
        if run.is_empty() {
            return positions;
        }
        let logged = queue.publish(run.into_iter());
        logged.into_iter().for_each(|at| positions.add(at));
    }
}

/// What a message may wait for in a queue begins now.
fn from_now_on(message: Message, queue: &Queue, now: u64) -> Message {
    let message = match queue.keeps_all() {
        true => message.made_persistent(),
        false => message,
    };
    let expiration = message.times().and_then(|times| times.expiration);
    if expiration.is_none() && !queue.traits.timed() {
        return message;
    }
    message.with_times(Some(Times {
        arrival: now,
        expiration,
    }))
}

/// Gives a new binding's destination what is to come first.
pub(crate) fn replay(vhost: &VHost, replay: &Replay) {
    match &replay.destination {
        Destination::Queue(queue) => {
            put(queue, replay.messages.iter().cloned());
        }
        Destination::Exchange(name) => {
            for message in &replay.messages {
                publish(vhost, name, message);
            }
        }
    }
}

/// Has the histories on a publisher's message's way keep it. Returns queues that have been bound
/// since the route was found, and got neither the message nor a history with it.
pub(crate) fn remember(vhost: &VHost, found: &Route, message: &Message) -> Vec<Arc<Queue>> {
    let mut fresh: Option<Route> = None;
    let mut kept_by: SmallVec<[*const crate::exchange::History; 4]> = SmallVec::new();
    loop {
        let passages = fresh
            .as_ref()
            .map_or(&found.histories, |route| &route.histories);
        let missing = passages
            .iter()
            .filter(|passage| !kept_by.contains(&Arc::as_ptr(&passage.history)))
            .map(|passage| (Arc::as_ptr(&passage.history), passage.remember(message)))
            .collect::<SmallVec<[_; 4]>>();
        kept_by.extend(missing.iter().filter(|(_, kept)| *kept).map(|(at, _)| *at));
        if missing.iter().all(|(_, kept)| *kept) {
            break;
        }
        // Every turn of this loop needs a new binding.
        let exchange = String::from_utf8_lossy(message.exchange());
        fresh = Some(find_by_own_keys(vhost, &exchange, message));
    }
    let fresh = fresh.map(|route| route.queues).unwrap_or_default();
    let known = |queue: &Arc<Queue>| found.queues.iter().any(|other| other.id == queue.id);
    fresh.into_iter().filter(|queue| !known(queue)).collect()
}

/// Has the histories on a message's way keep it, where nobody may wait.
pub(crate) fn remember_now(route: &Route, message: &Message) {
    route
        .histories
        .iter()
        .for_each(|passage: &Passage| passage.remember_now(message));
}
