//! Dead-lettering: moves messages from a queue to those that its dead letter exchange leads to.
//!
//! A step locks all queues concerned, in order of id, and is one record of the log: a message is in
//! its queue or in the others, whatever happens to the process. What a step makes too long has dead
//! letters itself; they are taken from a list of work, not by recursion, since clients decide how
//! long the chain is.

use std::collections::VecDeque;
use std::sync::Arc;

use store::{MAX_TRANSACTION, Message, Record, Times, TransactionRecord};

use crate::death::{Death, Deaths};
use crate::exchange::Head;
use crate::locked::LockedQueues;
use crate::queue::{Dead, DeadLetterTo, Queue};
use crate::routing::{Route, route};
use crate::vhost::VHost;

/// Queues with messages to move.
type Work = VecDeque<Arc<Queue>>;

/// Moves what waits in these queues, and then in those that this made too long.
pub(crate) fn bury(queues: impl IntoIterator<Item = Arc<Queue>>) {
    let mut work: Work = queues.into_iter().collect();
    while let Some(queue) = work.pop_front() {
        if let Some(vhost) = queue.vhost_ref.upgrade()
            && queue.lock().begin_burial()
        {
            bury_one(&queue, &vhost, &mut work);
        }
    }
}

fn bury_one(queue: &Arc<Queue>, vhost: &VHost, work: &mut Work) {
    loop {
        // In a statement of its own, so that the lock is released.
        let next = queue.lock().next_dead();
        let Some((to, dead)) = next else { return };
        let letters = dead.into_iter();
        let letters: Vec<Letter> = letters
            .map(|dead| Letter::new(queue, vhost, &to, dead))
            .collect();
        if !deliver(queue, vhost, &to, &letters, work) {
            return;
        }
    }
}

/// A dead message as it will arrive, and where.
struct Letter {
    /// `None`: there is nothing to deliver, it cannot be read.
    message: Option<Message>,
    route: Route,
}

impl Letter {
    fn new(queue: &Queue, vhost: &VHost, to: &DeadLetterTo, mut dead: Dead) -> Letter {
        if dead.message.is_none() {
            dead.message = read(queue, vhost, &dead);
        }
        let (message, route) = match &dead.message {
            Some(message) => address(queue, vhost, to, message, &dead),
            None => (None, Route::default()),
        };
        Letter { message, route }
    }

    /// Bytes that it adds to a record.
    fn size(&self) -> usize {
        let size = self.message.as_ref().map_or(0, Message::stored_len);
        size.saturating_mul(self.route.queues.len())
    }
}

/// The message, from its segment.
fn read(queue: &Queue, vhost: &VHost, dead: &Dead) -> Option<Message> {
    let load = queue.lock().plan_dead(dead)?;
    match vhost.store.load_now(load) {
        Ok(loaded) => loaded
            .messages
            .into_iter()
            .find(|(seq, _)| *seq == dead.seq)
            .map(|(_, message)| message),
        Err(error) => {
            tracing::error!(queue = %queue.name, %error, "cannot read a message to dead-letter it");
            None
        }
    }
}

fn address(
    queue: &Queue,
    vhost: &VHost,
    to: &DeadLetterTo,
    message: &Message,
    dead: &Dead,
) -> (Option<Message>, Route) {
    let now = queue.now();
    let Ok(mut deaths) = Deaths::of(message) else {
        // Headers were checked when it was published.
        return (None, Route::default());
    };
    let death = Death {
        queue: &queue.name,
        reason: dead.reason,
        now,
    };
    deaths.add(message, &death);
    let mut keys = vec![
        to.routing_key
            .as_deref()
            .unwrap_or(message.routing_key())
            .to_vec(),
    ];
    if to.routing_key.is_none() {
        keys.extend(deaths.copies());
    }
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut found = find(vhost, &to.exchange, message, &keys);
    let before = found.queues.len();
    found
        .queues
        .retain(|target| !deaths.comes_round(&target.name, dead.reason));
    if found.queues.len() < before {
        tracing::warn!(
            queue = %queue.name, vhost = %queue.vhost,
            "a dead letter came round to a queue where it had died: it is dropped there"
        );
    }
    let times = found.timed.then_some(Times {
        arrival: now,
        expiration: None,
    });
    match deaths.rewrite(message, to, times) {
        Ok(letter) => (Some(letter), found),
        Err(_) => (None, found),
    }
}

fn find(vhost: &VHost, exchange: &str, message: &Message, keys: &[&[u8]]) -> Route {
    let topology = vhost.read();
    if !topology.exchanges.contains_key(exchange) {
        return Route::default();
    }
    let properties = amqp::Properties::from_wire(message.properties());
    let head = Head {
        keys,
        headers: properties.headers(),
        properties,
    };
    route(&topology, exchange, &head)
}

/// Moves the letters, in order; false if one of them cannot go now.
fn deliver(
    from: &Arc<Queue>,
    vhost: &VHost,
    to: &DeadLetterTo,
    letters: &[Letter],
    work: &mut Work,
) -> bool {
    let targets = letters.iter().flat_map(|letter| &letter.route.queues);
    let mut locked = LockedQueues::lock(targets.chain([from]));
    let mut shared = TransactionRecord::default();
    // A record has a largest size. Beyond it a crash may leave a message in both queues.
    let fits = letters.iter().map(Letter::size).sum::<usize>() < MAX_TRANSACTION / 2;
    let mut all_went = true;
    for letter in letters {
        let mut record = match fits {
            true => Record::Shared(&mut shared),
            false => Record::Own,
        };
        all_went = letter.deliver(&mut locked, to.at_least_once, &mut record);
        if !all_went {
            break;
        }
        if let Some(source) = locked.get_mut(from.id) {
            source.bury_first();
        }
    }
    if let Some(source) = locked.get_mut(from.id) {
        if !all_went {
            source.put_off_burial();
        }
        if fits {
            source.log_gone_in(&mut Record::Shared(&mut shared));
        }
    }
    locked.commit(&vhost.store, &shared);
    work.extend(locked.release());
    all_went
}

impl Letter {
    /// Appends the message to its queues; false if it must stay where it is.
    fn deliver(
        &self,
        locked: &mut LockedQueues<'_>,
        at_least_once: bool,
        record: &mut Record<'_>,
    ) -> bool {
        let Some(message) = &self.message else {
            return true;
        };
        let targets = &self.route.queues;
        if at_least_once {
            let takes = |queue: &Arc<Queue>| {
                let state = locked.get(queue.id);
                state.is_some_and(|state| state.takes(message))
            };
            if targets.is_empty() || !targets.iter().all(takes) {
                return false;
            }
        }
        for queue in targets {
            if let Some(state) = locked.get_mut(queue.id) {
                // As a publisher's message that is refused: nobody can be told.
                let _ = state.offer(message.clone(), record);
            }
        }
        true
    }
}
