//! All records of a run, and what they add up to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::Seen;
use crate::load::mark::Mark;
use crate::result::{Checks, ConsumerChecks};
use crate::sync::lock;

/// Producers of other processes that are told apart; the rest goes unchecked, since what looks like
/// a producer's number may be anything.
const MAX_FOREIGN: usize = 1_024;
/// Numbers before the first one seen of a producer of another process that may still come.
const FOREIGN_ROOM: i64 = 65_536;
/// Set in every producer's mark: bytes that are none seldom look like one.
pub const MARKED: u32 = 1 << 31;

/// How messages are attributed to producers, and which must come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// The first own producer's mark; the others' follow.
    pub base: u32,
    /// Routing key of each own producer.
    pub keys: Vec<String>,
    /// The bodies name no producer, and there is only one.
    pub unnamed: bool,
    /// A producer's messages are spread over queues: each comes on one of them.
    pub spread: bool,
    /// Which queues a producer's messages come on, if that is known.
    pub routes: Routes,
}

/// Which queues a producer's messages come on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routes {
    /// Those bound with its key.
    ByKey,
    /// All.
    All,
    /// At least one.
    Some,
}

/// What a producer has published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Its messages up to this number are the broker's: confirmed or committed, where either is
    /// asked for.
    pub taken: u64,
    /// Ranges of those that it refused or returned.
    pub refused: Vec<(u64, u64)>,
}

impl Sent {
    /// How many must come.
    fn expected(&self) -> u64 {
        let below = |number: &u64| (*number).min(self.taken);
        let refused = self
            .refused
            .iter()
            .map(|(from, to)| below(to) - below(from));
        self.taken - refused.sum::<u64>()
    }
}

/// Shared by all consumers of a run.
#[derive(Debug)]
pub struct Ledger {
    attribution: Attribution,
    /// Messages of own producers that have been noted.
    noted: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Names, and the keys that they are bound with.
    queues: Vec<(String, String)>,
    on_queue: HashMap<(u32, u32), Arc<Mutex<Seen>>>,
    on_any: HashMap<u32, Arc<Mutex<Seen>>>,
    foreign: usize,
    checks: Checks,
}

/// The records that a message belongs to.
pub struct Records {
    pub on_queue: Arc<Mutex<Seen>>,
    pub on_any: Option<Arc<Mutex<Seen>>>,
    /// The number before the one that is expected next.
    pub before: i64,
    pub own: bool,
}

impl Ledger {
    /// An empty one.
    pub fn new(attribution: Attribution) -> Ledger {
        Ledger {
            attribution,
            noted: AtomicU64::new(0),
            state: Mutex::new(State::default()),
        }
    }

    /// The first own producer's mark.
    pub fn base(&self) -> u32 {
        self.attribution.base
    }

    /// The number of a queue, which is bound with that key.
    pub fn queue(&self, name: &str, key: &str) -> u32 {
        let mut state = lock(&self.state);
        let known = state.queues.iter().position(|(queue, _)| queue == name);
        known.unwrap_or_else(|| {
            state.queues.push((name.to_owned(), key.to_owned()));
            state.queues.len() - 1
        }) as u32
    }

    pub(super) fn queue_name(&self, queue: u32) -> String {
        lock(&self.state).name(queue).to_owned()
    }

    /// How many messages of own producers have come so far.
    pub fn noted(&self) -> u64 {
        self.noted.load(Ordering::Relaxed)
    }

    pub(super) fn add_noted(&self, count: u64) {
        self.noted.fetch_add(count, Ordering::Relaxed);
    }

    /// The records of a queue and a message's producer; `None` if it cannot be attributed.
    pub(super) fn records(&self, queue: u32, mark: &Mark) -> Option<Records> {
        let own = self.own(mark.producer).is_some();
        if !own && mark.producer & MARKED == 0 {
            return None;
        }
        let sequence = i64::from(mark.sequence);
        let mut state = lock(&self.state);
        let known = state.on_queue.contains_key(&(queue, mark.producer));
        if !own && !known {
            if state.foreign == MAX_FOREIGN {
                return None;
            }
            state.foreign += 1;
        }
        let new = || {
            Arc::new(Mutex::new(match own {
                true => Seen::from(0),
                false => Seen::foreign_from((sequence - FOREIGN_ROOM).max(0)),
            }))
        };
        let on_queue = state.on_queue.entry((queue, mark.producer));
        let on_queue = on_queue.or_insert_with(new).clone();
        let on_any = self.attribution.spread.then(|| {
            let on_any = state.on_any.entry(mark.producer);
            on_any.or_insert_with(new).clone()
        });
        let before = match own || known {
            // A consumer that joins late finds the sequence where it is by now.
            true => lock(&on_queue).highest(),
            false => sequence - 1,
        };
        Some(Records {
            on_queue,
            on_any,
            before,
            own,
        })
    }

    /// Which of the own producers it is.
    fn own(&self, producer: u32) -> Option<u32> {
        if producer == 0 {
            return self.attribution.unnamed.then_some(0);
        }
        let number = producer.wrapping_sub(self.attribution.base);
        ((number as usize) < self.attribution.keys.len()).then_some(number)
    }

    /// The mark under which an own producer's messages are recorded.
    fn mark(&self, number: u32) -> u32 {
        match self.attribution.unnamed {
            true => 0,
            false => self.attribution.base.wrapping_add(number),
        }
    }

    /// An own producer's number, or for another one its mark.
    pub(super) fn producer_number(&self, producer: u32) -> u32 {
        self.own(producer).unwrap_or(producer)
    }

    pub(super) fn add(
        &self,
        checked: u64,
        unchecked: u64,
        redelivered: u64,
        found: Vec<ConsumerChecks>,
    ) {
        let checks = &mut lock(&self.state).checks;
        checks.checked += checked;
        checks.unchecked += unchecked;
        checks.redelivered += redelivered;
        checks.duplicates += found.iter().map(|part| part.duplicates).sum::<u64>();
        checks.reordered += found.iter().map(|part| part.reordered).sum::<u64>();
        checks.by_consumer.extend(found);
    }

    /// True once all that must come has. `sent` is what each own producer has published.
    pub fn complete(&self, sent: &[Sent]) -> bool {
        let state = lock(&self.state);
        self.missing(&state, sent, true)
            .iter()
            .all(|part| part.gaps == 0)
    }

    /// Adds up. Unless `all_came`, what is missing at the end is under way.
    pub fn conclude(&self, sent: &[Sent], all_came: bool) -> Checks {
        let state = lock(&self.state);
        let mut checks = state.checks.clone();
        let parts = self.missing(&state, sent, all_came);
        checks.gaps = parts.iter().map(|part| part.gaps).sum();
        let foreign = state
            .on_queue
            .iter()
            .filter(|((_, producer), _)| self.own(*producer).is_none());
        checks.foreign_gaps = foreign.map(|(_, seen)| lock(seen).missing_between()).sum();
        checks
            .by_consumer
            .extend(parts.into_iter().filter(|part| part.gaps > 0));
        checks.by_consumer.sort_by(|a, b| {
            (&a.queue, a.consumer, a.producer).cmp(&(&b.queue, b.consumer, b.producer))
        });
        checks
    }

    /// What is missing of each own producer, on each queue or, where messages are spread, on all
    /// together.
    fn missing(&self, state: &State, sent: &[Sent], all_came: bool) -> Vec<ConsumerChecks> {
        let nothing = Sent::default();
        let mut parts = Vec::new();
        for number in 0..self.attribution.keys.len() as u32 {
            let sent = sent.get(number as usize).unwrap_or(&nothing);
            let mark = self.mark(number);
            let part = |queue: &str, gaps| ConsumerChecks {
                queue: queue.to_owned(),
                producer: number,
                gaps,
                ..ConsumerChecks::default()
            };
            if self.attribution.spread {
                let gaps = match state.on_any.get(&mark) {
                    Some(seen) => missing(seen, sent, all_came),
                    None if all_came => sent.expected(),
                    None => 0,
                };
                parts.push(part("", gaps));
                continue;
            }
            let mut recorded = false;
            for (queue, (name, key)) in state.queues.iter().enumerate() {
                let gaps = match state.on_queue.get(&(queue as u32, mark)) {
                    Some(seen) => missing(seen, sent, all_came),
                    None if all_came && self.reaches(number, key) => sent.expected(),
                    None => continue,
                };
                recorded = true;
                parts.push(part(name, gaps));
            }
            if !recorded && all_came {
                parts.push(part("", sent.expected()));
            }
        }
        parts
    }

    /// Whether a producer's messages reach a queue bound with that key for certain.
    fn reaches(&self, producer: u32, key: &str) -> bool {
        match self.attribution.routes {
            Routes::All => true,
            Routes::ByKey => self.attribution.keys[producer as usize] == key,
            Routes::Some => false,
        }
    }
}

impl State {
    fn name(&self, queue: u32) -> &str {
        let queue = self.queues.get(queue as usize);
        queue.map_or("", |(name, _)| name)
    }
}

/// How many messages of an own producer have not come on a record, of those that must.
fn missing(seen: &Mutex<Seen>, sent: &Sent, all_came: bool) -> u64 {
    let mut seen = lock(seen);
    let highest = seen.highest();
    let expected = if all_came { sent.taken } else { 0 };
    let last = highest.max(expected as i64 - 1);
    // What was refused counts as if it had come; that does not make it the highest.
    for (from, to) in &sent.refused {
        let to = (*to as i64).min(last + 1);
        for number in *from as i64..to {
            seen.add(number);
        }
    }
    seen.missing_up_to(last)
}
