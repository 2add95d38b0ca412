//! Whether each producer's messages come once each and in order.
//!
//! For each queue and producer there is one record of what has come, shared by the queue's
//! consumers; a [`Checker`] is one consumer's hand on it, and locks once per batch. Order is looked
//! at for each consumer by itself: a queue with several has no order beyond that.

mod ledger;
mod seen;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::mark::Mark;
use crate::result::ConsumerChecks;
use crate::sync::lock;
pub use ledger::{Attribution, Ledger, MARKED, Routes, Sent};
use seen::Seen;

/// Messages of one producer on one queue that a consumer notes before it takes the lock.
const BATCH: usize = 512;

/// One consumer's part.
pub struct Checker {
    ledger: Arc<Ledger>,
    consumer: u32,
    tracks: Vec<Track>,
    index: HashMap<(u32, u32), usize>,
    /// Of the message before: mostly the same.
    current: usize,
    checked: u64,
    unchecked: u64,
    redelivered: u64,
}

/// What one consumer saw of one producer on one queue.
struct Track {
    queue: u32,
    producer: u32,
    on_queue: Arc<Mutex<Seen>>,
    on_any: Option<Arc<Mutex<Seen>>>,
    /// The highest number noted, and the highest of those that were handed over.
    last: i64,
    highest: i64,
    /// Numbers, each doubled, plus one if it was redelivered.
    pending: Vec<i64>,
    own: bool,
    duplicates: u64,
    reordered: u64,
}

impl Checker {
    /// That of the consumer with this number.
    pub fn new(ledger: Arc<Ledger>, consumer: u32) -> Checker {
        Checker {
            ledger,
            consumer,
            tracks: Vec::new(),
            index: HashMap::new(),
            current: 0,
            checked: 0,
            unchecked: 0,
            redelivered: 0,
        }
    }

    /// Notes a message that came on a queue.
    #[inline]
    pub fn note(&mut self, queue: u32, mark: Option<Mark>, redelivered: bool) {
        self.redelivered += u64::from(redelivered);
        let Some(mark) = mark else {
            self.unchecked += 1;
            return;
        };
        let current = self.tracks.get(self.current);
        let same = current.is_some_and(|t| t.queue == queue && t.producer == mark.producer);
        if !same && !self.turn_to(queue, &mark) {
            self.unchecked += 1;
            return;
        }
        self.checked += 1;
        let track = &mut self.tracks[self.current];
        // Sequence numbers wrap: this is the number nearest to the last one.
        let step = mark.sequence.wrapping_sub(track.last as u32) as i32;
        let number = track.last + i64::from(step);
        track.last = track.last.max(number);
        track.pending.push(number << 1 | i64::from(redelivered));
        if track.pending.len() >= BATCH {
            track.settle(&self.ledger);
        }
    }

    /// Hands over what was noted; at the end of each batch.
    #[inline]
    pub fn settle(&mut self) {
        if let Some(track) = self.tracks.get_mut(self.current) {
            track.settle(&self.ledger);
        }
    }

    /// Makes the record of that queue and producer the current one.
    #[cold]
    fn turn_to(&mut self, queue: u32, mark: &Mark) -> bool {
        self.settle();
        let key = (queue, mark.producer);
        if let Some(index) = self.index.get(&key) {
            self.current = *index;
            return true;
        }
        let Some(records) = self.ledger.records(queue, mark) else {
            return false;
        };
        self.current = self.tracks.len();
        self.index.insert(key, self.current);
        self.tracks.push(Track {
            queue,
            producer: mark.producer,
            on_queue: records.on_queue,
            on_any: records.on_any,
            last: records.before,
            highest: i64::MIN,
            pending: Vec::with_capacity(BATCH),
            own: records.own,
            duplicates: 0,
            reordered: 0,
        });
        true
    }

    /// Adds what this consumer saw to the ledger.
    pub fn finish(mut self) {
        self.settle();
        let tracks = self
            .tracks
            .iter()
            .filter(|t| t.duplicates + t.reordered > 0);
        let found = tracks.map(|track| ConsumerChecks {
            queue: self.ledger.queue_name(track.queue),
            consumer: Some(self.consumer),
            producer: self.ledger.producer_number(track.producer),
            gaps: 0,
            duplicates: track.duplicates,
            reordered: track.reordered,
        });
        let found: Vec<ConsumerChecks> = found.collect();
        self.ledger
            .add(self.checked, self.unchecked, self.redelivered, found);
    }
}

impl Track {
    fn settle(&mut self, ledger: &Ledger) {
        if self.pending.is_empty() {
            return;
        }
        if self.own {
            ledger.add_noted(self.pending.len() as u64);
        }
        let mut on_queue = lock(&self.on_queue);
        let mut on_any = self.on_any.as_ref().map(|seen| lock(seen));
        for entry in self.pending.drain(..) {
            let (number, redelivered) = (entry >> 1, entry & 1 == 1);
            let mut fresh = on_queue.add(number);
            if let Some(on_any) = &mut on_any {
                fresh &= on_any.add(number);
            }
            if !redelivered {
                self.duplicates += u64::from(!fresh);
                self.reordered += u64::from(fresh && number < self.highest);
            }
            self.highest = self.highest.max(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(producers: u32, whole: bool) -> Arc<Ledger> {
        let attribution = Attribution {
            base: MARKED + 1_000,
            keys: vec!["key".into(); producers as usize],
            unnamed: false,
            spread: whole,
            routes: Routes::ByKey,
        };
        Arc::new(Ledger::new(attribution))
    }

    fn mark(producer: u32, sequence: u32) -> Option<Mark> {
        Some(Mark {
            sequence,
            time: 0,
            producer: MARKED + 1_000 + producer,
        })
    }

    fn taken_up_to(taken: u64) -> Sent {
        Sent {
            taken,
            refused: Vec::new(),
        }
    }

    fn checks(
        ledger: &Arc<Ledger>,
        messages: &[(u32, u32, u32, bool)],
        sent: &[u64],
    ) -> crate::result::Checks {
        let sent: Vec<Sent> = sent.iter().map(|taken| taken_up_to(*taken)).collect();
        let queue_a = ledger.queue("a", "key");
        let mut checker = Checker::new(ledger.clone(), 0);
        for (queue, producer, sequence, redelivered) in messages {
            let queue = ledger.queue(["a", "b"][*queue as usize], "key");
            assert!(queue >= queue_a);
            checker.note(queue, mark(*producer, *sequence), *redelivered);
        }
        checker.settle();
        checker.finish();
        ledger.conclude(&sent, true)
    }

    #[test]
    fn a_clean_run_passes() {
        let ledger = ledger(2, false);
        let messages: Vec<_> = (0..5_000).map(|n| (0, n % 2, n / 2, false)).collect();
        let checks = checks(&ledger, &messages, &[2_500, 2_500]);
        assert!(checks.passed(), "{checks:?}");
        assert_eq!((checks.checked, checks.unchecked), (5_000, 0));
    }

    #[test]
    fn gaps_duplicates_and_reordering_are_counted_apart() {
        let ledger = ledger(2, false);
        let messages = [
            (0, 0, 0, false),
            (0, 0, 2, false),
            (0, 0, 1, false), // out of order
            (0, 0, 1, false), // twice
            (0, 0, 2, true),  // again, and marked so
            (0, 0, 5, false), // 3 and 4 are missing
            (0, 1, 0, false),
        ];
        let checks = checks(&ledger, &messages, &[6, 3]);
        assert_eq!((checks.reordered, checks.duplicates), (1, 1));
        // 1 and 2 of the second producer never came either.
        assert_eq!((checks.gaps, checks.redelivered), (4, 1));
        let first = &checks.by_consumer;
        assert_eq!(first.len(), 3, "{first:?}");
    }

    #[test]
    fn order_is_looked_at_across_batches() {
        let ledger = ledger(1, false);
        let queue = ledger.queue("a", "key");
        let mut checker = Checker::new(ledger.clone(), 0);
        for number in [0, 2, 1, 3, 5, 4] {
            checker.note(queue, mark(0, number), false);
            checker.settle();
        }
        checker.finish();
        let checks = ledger.conclude(&[taken_up_to(6)], true);
        assert_eq!((checks.reordered, checks.gaps), (2, 0));
        assert_eq!(ledger.noted(), 6);
    }

    #[test]
    fn what_never_came_at_all_is_missing() {
        let ledger = ledger(2, false);
        let queue = ledger.queue("a", "key");
        ledger.queue("other", "another key");
        let mut checker = Checker::new(ledger.clone(), 0);
        for number in 0..5 {
            checker.note(queue, mark(0, number), false);
        }
        checker.finish();
        let sent = [taken_up_to(5), taken_up_to(3)];
        assert!(!ledger.complete(&sent));
        assert_eq!(ledger.conclude(&sent, true).gaps, 3);
        assert_eq!(ledger.conclude(&sent, false).gaps, 0);
    }

    #[test]
    fn refused_messages_make_none_below_them_missing() {
        let ledger = ledger(1, false);
        let queue = ledger.queue("a", "key");
        let mut checker = Checker::new(ledger.clone(), 0);
        for number in 0..3 {
            checker.note(queue, mark(0, number), false);
        }
        checker.finish();
        // 3 and 4 still wait in the queue.
        let sent = Sent {
            taken: 9,
            refused: vec![(5, 9)],
        };
        assert_eq!(ledger.conclude(std::slice::from_ref(&sent), false).gaps, 0);
        assert_eq!(ledger.conclude(&[sent], true).gaps, 2);
    }

    #[test]
    fn what_is_spread_over_queues_is_complete_together() {
        let spread = ledger(1, true);
        let messages = [(0, 0, 0, false), (1, 0, 1, false), (0, 0, 2, false)];
        assert!(checks(&spread, &messages, &[3]).passed());
        let whole = ledger(1, false);
        assert_eq!(checks(&whole, &messages, &[3]).gaps, 3);
    }

    #[test]
    fn what_the_broker_refused_is_not_missed() {
        let ledger = ledger(1, false);
        let queue = ledger.queue("a", "key");
        let mut checker = Checker::new(ledger.clone(), 0);
        for number in [0, 1, 5] {
            checker.note(queue, mark(0, number), false);
        }
        checker.finish();
        let sent = Sent {
            taken: 8,
            refused: vec![(2, 4), (6, 8)],
        };
        assert_eq!(ledger.conclude(&[sent], true).gaps, 1);
    }

    #[test]
    fn sequence_numbers_may_wrap() {
        let ledger = ledger(1, false);
        let queue = ledger.queue("a", "key");
        let mut checker = Checker::new(ledger.clone(), 0);
        // Not from its beginning, as in another process: what is before is not expected.
        let foreign = |sequence| {
            Some(Mark {
                sequence,
                time: 0,
                producer: MARKED + 7,
            })
        };
        for step in 0..100_u32 {
            let sequence = (u32::MAX - 50).wrapping_add(step);
            checker.note(queue, foreign(sequence), false);
        }
        checker.finish();
        let checks = ledger.conclude(&[taken_up_to(0)], true);
        assert!(checks.passed() && checks.checked == 100, "{checks:?}");
    }
}
