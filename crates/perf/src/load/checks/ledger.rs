//! All records of a run, and what they add up to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::Seen;
use crate::load::mark::Mark;
use crate::result::{Checks, ConsumerChecks};
use crate::sync::lock;

/// Producers of other processes that are told apart; the rest goes unchecked, since what looks like
/// a producer's number may be anything.
const MAX_FOREIGN: usize = 4_096;
/// Numbers before the first one seen of a producer of another process that may still come.
const FOREIGN_ROOM: i64 = 65_536;

/// How messages are attributed to producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribution {
    /// The first own producer's mark; the others' follow.
    pub base: u32,
    /// How many own producers there are.
    pub producers: u32,
    /// The bodies name no producer, and there is only one.
    pub unnamed: bool,
    /// A producer's messages are spread over queues: each comes on one of them.
    pub spread: bool,
    /// Gaps of producers of other processes count too: their messages are all expected here.
    pub expect_all: bool,
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

/// Shared by all consumers of a run.
#[derive(Debug)]
pub struct Ledger {
    attribution: Attribution,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<String>,
    on_queue: HashMap<(u32, u32), Arc<Mutex<Seen>>>,
    on_any: HashMap<u32, Arc<Mutex<Seen>>>,
    foreign: usize,
    checks: Checks,
}

/// The records that a message belongs to.
pub struct Records {
    pub on_queue: Arc<Mutex<Seen>>,
    pub on_any: Option<Arc<Mutex<Seen>>>,
    /// The number before the first one that is expected.
    pub before: i64,
}

impl Ledger {
    /// An empty one.
    pub fn new(attribution: Attribution) -> Ledger {
        Ledger {
            attribution,
            state: Mutex::new(State::default()),
        }
    }

    /// The first own producer's mark.
    pub fn base(&self) -> u32 {
        self.attribution.base
    }

    /// The number of a queue.
    pub fn queue(&self, name: &str) -> u32 {
        let mut state = lock(&self.state);
        let known = state.queues.iter().position(|queue| queue == name);
        known.unwrap_or_else(|| {
            state.queues.push(name.to_owned());
            state.queues.len() - 1
        }) as u32
    }

    pub(super) fn queue_name(&self, queue: u32) -> String {
        let state = lock(&self.state);
        state
            .queues
            .get(queue as usize)
            .cloned()
            .unwrap_or_default()
    }

    /// The records of a queue and a message's producer; `None` if it cannot be attributed.
    pub(super) fn records(&self, queue: u32, mark: &Mark) -> Option<Records> {
        let own = self.own(mark.producer).is_some();
        if mark.producer == 0 && !own {
            return None;
        }
        let sequence = i64::from(mark.sequence);
        let (first, before) = match own {
            true => (0, -1),
            false => ((sequence - FOREIGN_ROOM).max(0), sequence - 1),
        };
        let mut state = lock(&self.state);
        let known = state.on_queue.contains_key(&(queue, mark.producer));
        if !own && !known {
            if state.foreign == MAX_FOREIGN {
                return None;
            }
            state.foreign += 1;
        }
        let new = || Arc::new(Mutex::new(Seen::from(first)));
        let on_queue = state.on_queue.entry((queue, mark.producer));
        let on_queue = on_queue.or_insert_with(new).clone();
        let on_any = self.attribution.spread.then(|| {
            let on_any = state.on_any.entry(mark.producer);
            on_any.or_insert_with(new).clone()
        });
        Some(Records {
            on_queue,
            on_any,
            before,
        })
    }

    /// Which of the own producers it is.
    fn own(&self, producer: u32) -> Option<u32> {
        if producer == 0 {
            return self.attribution.unnamed.then_some(0);
        }
        let number = producer.wrapping_sub(self.attribution.base);
        (number < self.attribution.producers).then_some(number)
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

    /// Adds up. `sent` is what each own producer has published. Unless `all_came`, what is missing
    /// at the end is under way.
    pub fn conclude(&self, sent: &[Sent], all_came: bool) -> Checks {
        let state = lock(&self.state);
        let mut checks = state.checks.clone();
        let missing = |producer: u32, seen: &Mutex<Seen>| {
            let mut seen = lock(seen);
            let Some(number) = self.own(producer) else {
                return match self.attribution.expect_all {
                    true => seen.missing_between(),
                    false => 0,
                };
            };
            let sent = sent.get(number as usize);
            let refused = sent.map_or(&[][..], |sent| &sent.refused);
            for (from, to) in refused {
                for number in *from..*to {
                    seen.add(number as i64);
                }
            }
            let expected = sent.filter(|_| all_came).map_or(0, |sent| sent.taken);
            seen.missing_up_to(seen.highest().max(expected as i64 - 1))
        };
        let parts: Vec<ConsumerChecks> = match self.attribution.spread {
            true => state
                .on_any
                .iter()
                .map(|(producer, seen)| self.gaps("", *producer, missing(*producer, seen)))
                .collect(),
            false => state
                .on_queue
                .iter()
                .map(|((queue, producer), seen)| {
                    let name = state.queues.get(*queue as usize);
                    let name = name.map_or("", String::as_str);
                    self.gaps(name, *producer, missing(*producer, seen))
                })
                .collect(),
        };
        checks.gaps = parts.iter().map(|part| part.gaps).sum();
        checks
            .by_consumer
            .extend(parts.into_iter().filter(|part| part.gaps > 0));
        checks.by_consumer.sort_by(|a, b| {
            (&a.queue, a.consumer, a.producer).cmp(&(&b.queue, b.consumer, b.producer))
        });
        checks
    }

    fn gaps(&self, queue: &str, producer: u32, gaps: u64) -> ConsumerChecks {
        ConsumerChecks {
            queue: queue.to_owned(),
            producer: self.producer_number(producer),
            gaps,
            ..ConsumerChecks::default()
        }
    }
}
