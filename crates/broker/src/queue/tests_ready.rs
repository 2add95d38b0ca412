//! Messages that wait, against a plain map: taken from the front and from the middle, moved to disk
//! and read back, returned by consumers.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use store::{Loaded, Message, MessageHead, QueueSeq};

use super::ready::{Entry, Found, Ready};

/// All bodies are as long, so that what is guessed of those in segments is right.
const BODY: u64 = 8;

fn message(seq: u64) -> Message {
    let head = MessageHead {
        exchange: b"",
        routing_key: b"q",
        properties: &[0, 0],
        persistent: true,
        priority: 0,
        times: None,
        has_bcc: false,
    };
    Message::new(&head, &seq.to_be_bytes())
}

fn number(message: &Message) -> u64 {
    u64::from_be_bytes(message.body().try_into().expect("eight bytes"))
}

#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    /// Appends one and takes it back.
    AppendInVain,
    /// Takes the next one, after reading it if need be, and keeps it as a lease.
    Take,
    /// Takes the next one, wherever it lies.
    TakeAny,
    /// Takes out the message at a place, counted from the first that ever was.
    Remove(usize),
    /// Some that are out come back.
    PutBack {
        which: usize,
        count: usize,
    },
    /// Some that are out are done with.
    Settle {
        which: usize,
        count: usize,
    },
    /// So many more messages are written to segments.
    Write(u8),
    /// What lies in segments may be forgotten.
    Evict,
    StartRead(u8),
    EndRead,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let some = || (any::<usize>(), 1_usize..6);
    prop_oneof![
        6 => (1_u8..12).prop_map(Step::Append),
        1 => Just(Step::AppendInVain),
        6 => Just(Step::Take),
        2 => Just(Step::TakeAny),
        5 => any::<usize>().prop_map(Step::Remove),
        3 => some().prop_map(|(which, count)| Step::PutBack { which, count }),
        1 => some().prop_map(|(which, count)| Step::Settle { which, count }),
        4 => (1_u8..20).prop_map(Step::Write),
        4 => Just(Step::Evict),
        2 => (1_u8..10).prop_map(Step::StartRead),
        2 => Just(Step::EndRead),
        1 => Just(Step::Clear),
    ]
}

struct World {
    ready: Ready,
    /// What waits, by place, and whether it was out before.
    waiting: BTreeMap<u64, bool>,
    /// What is out.
    leased: BTreeSet<u64>,
    next: u64,
    /// What is before this place lies in segments, unless it is gone.
    flushed: u64,
    /// A read that is under way.
    reading: Option<Loaded>,
}

impl World {
    fn new(window: usize) -> Self {
        let nothing = std::iter::empty();
        World {
            ready: Ready::recovered((0, 0), QueueSeq(0), nothing, QueueSeq(0), window),
            waiting: BTreeMap::new(),
            leased: BTreeSet::new(),
            next: 0,
            flushed: 0,
            reading: None,
        }
    }

    fn is_live(&self, seq: u64) -> bool {
        self.waiting.contains_key(&seq) || self.leased.contains(&seq)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append(count) => {
                let numbers = self.next..self.next + u64::from(count);
                self.next = numbers.end;
                self.waiting.extend(numbers.clone().map(|seq| (seq, false)));
                let appended = self.ready.append(numbers.clone().map(message));
                assert_eq!(appended.count, usize::from(count));
                let last = self.ready.last(appended.count).map(|(seq, _)| seq.0);
                assert!(numbers.eq(last));
            }
            Step::AppendInVain => {
                self.ready.append(std::iter::once(message(self.next)));
                let entry = self.ready.pop_last().expect("just appended");
                assert_eq!(entry.seq.0, self.next);
                self.next += 1;
            }
            Step::Take => self.take(),
            Step::TakeAny => self.take_any(),
            Step::Remove(which) => self.remove(which as u64 % (self.next + 1)),
            Step::PutBack { which, count } => self.put_back(which, count),
            Step::Settle { which, count } => {
                for seq in self.choose(which, count) {
                    self.leased.remove(&seq);
                }
            }
            Step::Write(count) => self.flushed = self.next.min(self.flushed + u64::from(count)),
            Step::Evict => {
                let flushed = self.flushed;
                let is_flushed =
                    |seq: QueueSeq| seq.0 < flushed && self.waiting.contains_key(&seq.0);
                drop(self.ready.evict(QueueSeq(flushed), is_flushed));
            }
            Step::StartRead(count) => {
                if self.reading.is_none()
                    && let Some(from) = self.ready.wants_load()
                {
                    self.reading = Some(self.read(from, count));
                    self.ready.loading = true;
                }
            }
            Step::EndRead => {
                if let Some(loaded) = self.reading.take() {
                    self.ready.loading = false;
                    self.complete(loaded);
                }
            }
            Step::Clear => {
                let dropped = self.ready.clear();
                assert_eq!(dropped.len(), self.waiting.len());
                self.waiting.clear();
            }
        }
    }

    /// What the store reads: so many places, from the first where something is.
    fn read(&self, from: QueueSeq, count: u8) -> Loaded {
        let live = (from.0..self.flushed).find(|seq| self.is_live(*seq));
        let first = live.unwrap_or_else(|| panic!("nothing is in segments from {from:?} on"));
        let end = self.flushed.min(first + u64::from(count));
        let live = (from.0..end).filter(|seq| self.is_live(*seq));
        Loaded {
            from,
            end: QueueSeq(end),
            messages: live.map(|seq| (QueueSeq(seq), message(seq))).collect(),
            lost: 0,
            look: false,
        }
    }

    fn complete(&mut self, loaded: Loaded) {
        let World {
            ready,
            waiting,
            leased,
            ..
        } = self;
        ready.loaded(loaded, QueueSeq(0), |seq| {
            waiting.contains_key(&seq.0) || leased.contains(&seq.0)
        });
    }

    fn take(&mut self) {
        while !self.ready.has_next() {
            let Some(from) = self.ready.next_load() else {
                assert!(
                    self.waiting.is_empty(),
                    "nothing to read, but {:?}",
                    self.waiting
                );
                return;
            };
            let loaded = self.read(from, 4);
            self.complete(loaded);
        }
        let (message, seq, redelivered) = self.ready.pop().expect("it has one");
        let expected = self.waiting.pop_first();
        assert_eq!(Some((seq.0, redelivered)), expected);
        assert_eq!(number(&message), seq.0);
        self.leased.insert(seq.0);
    }

    fn take_any(&mut self) {
        let World {
            waiting,
            leased,
            flushed,
            ..
        } = self;
        let next_live = |from: QueueSeq| {
            let mut places = from.0..*flushed;
            let live = places.find(|seq| waiting.contains_key(seq) || leased.contains(seq));
            live.map(QueueSeq)
        };
        let taken = self.ready.pop_any(next_live);
        let expected = self.waiting.pop_first().map(|(seq, _)| seq);
        assert_eq!(taken.map(|entry| entry.seq.0), expected);
    }

    fn remove(&mut self, seq: u64) {
        let waits = self.waiting.remove(&seq).is_some();
        match self.ready.remove(QueueSeq(seq)) {
            Found::Taken(entry) => {
                assert!(waits, "{seq} did not wait");
                assert_eq!(entry.seq.0, seq);
            }
            Found::Paged if waits => {
                assert!(seq < self.flushed, "{seq} is in no segment");
                self.ready.take_paged();
            }
            // The store would say that it is not there.
            Found::Paged => assert!(!self.leased.contains(&seq), "{seq} is out"),
            Found::No => assert!(!waits, "{seq} was not found"),
        }
    }

    fn choose(&self, which: usize, count: usize) -> Vec<u64> {
        let skipped = which % self.leased.len().max(1);
        self.leased
            .iter()
            .skip(skipped)
            .take(count)
            .copied()
            .collect()
    }

    fn put_back(&mut self, which: usize, count: usize) {
        let chosen = self.choose(which, count);
        let entries = chosen.iter().map(|seq| {
            // A body that lies in a segment is not kept.
            let kept = (*seq >= self.flushed).then(|| message(*seq));
            Entry::returned(kept, QueueSeq(*seq), BODY as u32)
        });
        self.ready.put_back(entries.collect());
        for seq in chosen {
            self.leased.remove(&seq);
            self.waiting.insert(seq, true);
        }
    }

    fn check(&mut self) {
        assert_eq!(self.ready.len(), self.waiting.len());
        assert_eq!(self.ready.is_empty(), self.waiting.is_empty());
        assert_eq!(self.ready.body_bytes(), self.waiting.len() as u64 * BODY);
        assert_eq!(self.ready.next_seq().0, self.next);
        let resident = self.ready.resident_from(QueueSeq(0));
        let resident: Vec<u64> = resident.map(|(seq, _)| seq.0).collect();
        assert!(resident.is_sorted(), "{resident:?}");
        let strange = resident.iter().find(|seq| !self.waiting.contains_key(seq));
        assert_eq!(strange, None, "it does not wait");
        let lost = self
            .waiting
            .keys()
            .find(|seq| **seq >= self.flushed && !resident.contains(seq));
        assert_eq!(lost, None, "it is neither in memory nor in a segment");
        assert_eq!(self.ready.bytes() == 0, resident.is_empty());
        if let Some(first) = self.ready.first() {
            let expected = self.waiting.first_key_value().map(|(seq, _)| *seq);
            assert_eq!(Some(first.seq.0), expected);
        }
    }

    /// In the end everything that waits comes, once and in order.
    fn finish(mut self) {
        while !self.waiting.is_empty() {
            self.take();
            self.check();
        }
        assert!(self.ready.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_waits_is_what_the_model_says(
        window in 0_usize..3_000,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut world = World::new(window);
        for step in steps {
            world.step(step);
            world.check();
        }
        world.finish();
    }
}

/// Thousands of empty places are not kept, nor searched one by one.
#[test]
fn many_gaps_are_closed() {
    const COUNT: u64 = 20_000;
    let mut world = World::new(usize::MAX / 8);
    for _ in 0..COUNT / 100 {
        world.step(Step::Append(100));
    }
    for seq in (0..COUNT).rev().filter(|seq| seq % 10 > 0) {
        world.remove(seq);
    }
    world.check();
    for _ in 0..500 {
        world.step(Step::Append(2));
        world.take();
    }
    let leased: Vec<u64> = world.leased.iter().copied().collect();
    assert!((0..5_000).step_by(10).eq(leased));
    world.put_back(0, 500);
    world.finish();
}
