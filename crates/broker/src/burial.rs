//! Dead-lettering: moves messages from a queue to those that its dead letter exchange leads to.
//!
//! A step locks all queues concerned, in order of id, and is one record of the log: a message is in
//! its queue or in the others, whatever happens to the process. What a step makes too long has dead
//! letters itself; they are taken from a list of work, not by recursion, since clients decide how
//! long the chain is.
//!
//! Whoever has made a message die moves it, but only so much of what follows, and nothing that has
//! to be read first: a connection that works or waits for long keeps its worker from reading other
//! connections' sockets. The rest is moved by the timer's threads, each time as much again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use amqp::Properties;
use store::{MAX_TRANSACTION, Message, Record, Times, TransactionRecord};

use crate::death::{BCC, CC, Death, Deaths};
use crate::internal_publish::{find, find_by_own_keys, remember_now};
use crate::locked::LockedQueues;
use crate::queue::{Dead, DeadLetterTo, Onward, Queue, X_DELAY, delay};
use crate::routing::Route;
use crate::vhost::VHost;

/// Queues with messages to move.
type Work = VecDeque<Arc<Queue>>;

/// What one call moves at most, a step more or less.
struct Budget {
    /// One for each queue that it goes to.
    letters: usize,
    /// Of whole messages: what has died a thousand times has headers of a hundred kilobytes, which
    /// are written anew each time.
    bytes: usize,
    /// The caller may wait for the disk.
    may_read: bool,
}

impl Budget {
    fn new(may_read: bool) -> Budget {
        Budget {
            letters: 1_024,
            bytes: 1024 * 1024,
            may_read,
        }
    }

    fn spend(&mut self, letters: &[Letter]) {
        for letter in letters {
            let size = letter.message.as_ref().map_or(0, Message::stored_len);
            let copies = letter.route.queues.len().max(1);
            self.letters = self.letters.saturating_sub(copies);
            self.bytes = self.bytes.saturating_sub(size.saturating_mul(copies));
        }
    }

    fn is_spent(&self) -> bool {
        self.letters == 0 || self.bytes == 0
    }
}

/// Moves what waits in these queues, and then in those that this made too long; what is too much for
/// one call, and what lies in a segment, waits for the timer.
pub(crate) fn bury(queues: impl IntoIterator<Item = Arc<Queue>>) {
    bury_within(queues, Budget::new(false));
}

/// As [`bury`], for threads that may wait for the disk.
pub(crate) fn bury_and_read(queues: impl IntoIterator<Item = Arc<Queue>>) {
    bury_within(queues, Budget::new(true));
}

/// Moves all that waits in a queue which is about to be deleted: what was rejected before is not lost
/// with it. What cannot go, with at-least-once, is. Not with a lock held: this may wait for the disk,
/// and for another thread that is moving them.
pub(crate) fn bury_all(queue: &Arc<Queue>) {
    let mut until = None;
    while queue.vhost_ref.strong_count() > 0 {
        // In a statement of its own, so that the lock is released.
        let progress = queue.lock().burial_progress();
        let Some(progress) = progress.filter(|progress| progress.waiting > 0) else {
            return;
        };
        // Not what comes meanwhile.
        let until = *until.get_or_insert(progress.left + progress.waiting);
        if progress.left >= until {
            return;
        }
        match progress.being_moved {
            true => std::thread::sleep(Duration::from_millis(1)),
            false => bury_and_read([queue.clone()]),
        }
    }
}

fn bury_within(queues: impl IntoIterator<Item = Arc<Queue>>, mut budget: Budget) {
    let mut work: Work = queues.into_iter().collect();
    while let Some(queue) = work.pop_front() {
        if budget.is_spent() {
            queue.bury_later();
        } else if let Some(vhost) = queue.vhost_ref.upgrade()
            && queue.lock().begin_burial()
        {
            bury_one(&queue, &vhost, &mut work, &mut budget);
        }
    }
}

fn bury_one(queue: &Arc<Queue>, vhost: &VHost, work: &mut Work, budget: &mut Budget) {
    loop {
        if budget.is_spent() {
            return leave_to_timer(queue);
        }
        // In a statement of its own, so that the lock is released.
        let next = queue.lock().next_dead();
        let Some((to, mut dead)) = next else { return };
        if budget.may_read {
            read_bodies(queue, vhost, &mut dead);
        } else {
            let at_hand = dead.iter().take_while(|dead| dead.message.is_some());
            dead.truncate(at_hand.count());
            if dead.is_empty() {
                return leave_to_timer(queue);
            }
        }
        let letters = dead.into_iter();
        let letters: Vec<Letter> = letters
            .map(|dead| Letter::new(queue, vhost, &to, dead))
            .collect();
        budget.spend(&letters);
        if !deliver(queue, vhost, &to, &letters, work) {
            return;
        }
    }
}

fn leave_to_timer(queue: &Queue) {
    queue.lock().pause_burial();
    queue.bury_later();
}

/// A dead message as it will arrive, and where.
struct Letter {
    /// `None`: there is nothing to deliver, it cannot be read.
    message: Option<Message>,
    route: Route,
}

impl Letter {
    fn new(queue: &Queue, vhost: &VHost, to: &Onward, dead: Dead) -> Letter {
        let (message, route) = match (&dead.message, to) {
            (Some(message), Onward::DeadLetters(to)) => address(queue, vhost, to, message, &dead),
            (Some(message), Onward::Due(exchange)) => let_go(queue, vhost, exchange, message),
            (None, _) => (None, Route::default()),
        };
        Letter { message, route }
    }

    /// It has gone on: histories on its way keep it.
    fn remember(&self) {
        if let Some(message) = &self.message {
            remember_now(&self.route, message);
        }
    }

    /// Bytes that it adds to a record.
    fn size(&self) -> usize {
        let size = self.message.as_ref().map_or(0, Message::stored_len);
        size.saturating_mul(self.route.queues.len())
    }
}

/// Reads those that lie in segments; of what is read at once, all that is wanted is taken. One that
/// cannot be read stays without its message.
fn read_bodies(queue: &Queue, vhost: &VHost, dead: &mut [Dead]) {
    for at in 0..dead.len() {
        if dead[at].message.is_some() {
            continue;
        }
        // In a statement of its own, so that the lock is not held while it is read.
        let load = queue.lock().plan_dead(&dead[at]);
        let Some(load) = load else { continue };
        let loaded = match vhost.store.load_now(load) {
            Ok(loaded) => loaded.messages,
            Err(error) => {
                tracing::error!(queue = %queue.name, %error, "cannot read messages to move them");
                continue;
            }
        };
        let lane = dead[at].lane;
        for wanted in dead[at..].iter_mut().filter(|dead| dead.lane == lane) {
            let found = loaded.binary_search_by_key(&wanted.seq, |(seq, _)| *seq);
            if let Ok(found) = found {
                wanted
                    .message
                    .get_or_insert_with(|| loaded[found].1.clone());
            }
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
        keys.extend(deaths.keys_in(CC));
        keys.extend(deaths.keys_in(BCC));
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
        Ok(letter) => (Some(found.kept(letter)), found),
        Err(_) => (None, found),
    }
}

/// A message that has waited for as long as it was told to: from now on it does not say so any more.
/// The sign of its delay says that it was delayed, as RabbitMQ's plugin does.
fn let_go(
    queue: &Queue,
    vhost: &VHost,
    exchange: &str,
    message: &Message,
) -> (Option<Message>, Route) {
    let properties = Properties::from_wire(message.properties());
    let waited = delay(properties).and_then(|delay| i64::try_from(delay).ok());
    let headers = properties.headers().unwrap_or_default().to_owned();
    let headers = headers.map(|headers| headers.with(X_DELAY, -waited.unwrap_or_default()));
    let rewritten = headers.and_then(|headers| properties.with_headers(&headers));
    let Ok(properties) = rewritten else {
        // They were checked when it was published.
        return (None, Route::default());
    };
    let message = message.with_properties(&properties);
    let route = find_by_own_keys(vhost, exchange, &message);
    let expiration = message.times().and_then(|times| times.expiration);
    // What it may wait for in queues begins now.
    let times = (route.timed || expiration.is_some()).then(|| Times {
        arrival: queue.now(),
        expiration,
    });
    (Some(route.kept(message.with_times(times))), route)
}

/// Moves the letters, in order; false if one of them cannot go now.
fn deliver(
    from: &Arc<Queue>,
    vhost: &VHost,
    to: &Onward,
    letters: &[Letter],
    work: &mut Work,
) -> bool {
    let targets = letters.iter().flat_map(|letter| &letter.route.queues);
    let mut locked = LockedQueues::lock(targets.chain([from]));
    let mut shared = TransactionRecord::default();
    // A record has a largest size. Beyond it a crash may leave a message in both queues.
    let fits = letters.iter().map(Letter::size).sum::<usize>() < MAX_TRANSACTION / 2;
    let mut all_went = true;
    let mut gone = Vec::new();
    for letter in letters {
        let mut record = match fits {
            true => Record::Shared(&mut shared),
            false => Record::Own,
        };
        let went = letter.deliver(&mut locked, to, &mut record);
        let Some(source) = locked.get_mut(from.id) else {
            break;
        };
        match (went, to) {
            (true, _) => {
                source.bury_first();
                gone.push(letter);
            }
            (false, Onward::Due(_)) => source.put_off_first(),
            (false, Onward::DeadLetters(_)) => {
                all_went = false;
                break;
            }
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
    gone.into_iter().for_each(Letter::remember);
    all_went
}

impl Letter {
    /// Appends the message to its queues; false if it must stay where it is.
    fn deliver(&self, locked: &mut LockedQueues<'_>, to: &Onward, record: &mut Record<'_>) -> bool {
        let Some(message) = &self.message else {
            return true;
        };
        let targets = &self.route.queues;
        let all_take = || {
            targets.iter().all(|queue| {
                let state = locked.get(queue.id);
                state.is_some_and(|state| state.takes(message))
            })
        };
        let may_go = match to {
            Onward::DeadLetters(to) if to.at_least_once => !targets.is_empty() && all_take(),
            Onward::DeadLetters(_) => true,
            // It was confirmed; but what leads nowhere goes nowhere.
            Onward::Due(_) => all_take(),
        };
        if !may_go {
            return false;
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
