//! A queue with rules against a plain model: expiry, limits, priorities, delivery limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use store::{MessageHead, Store, Times};

use super::*;
use crate::clock::Clock;
use crate::outbox::Annotation;
use crate::test_support;

/// What the queue is declared with.
#[derive(Debug, Clone, Default)]
struct Declared {
    ttl: Option<u8>,
    max_length: Option<u8>,
    rejects: bool,
    max_priority: u8,
    /// Makes it a quorum queue, which has no priorities.
    delivery_limit: Option<u8>,
    /// What leaves is to go elsewhere, and waits for that: there is no vhost.
    dead_letters: bool,
}

fn declared() -> impl Strategy<Value = Declared> {
    let some = |range| prop::option::of(range);
    let limits = (some(0_u8..40), some(0_u8..12), some(0_u8..3));
    let all = (limits, any::<bool>(), 0_u8..4, any::<bool>());
    all.prop_map(|(limits, rejects, max_priority, dead_letters)| {
        let (ttl, max_length, delivery_limit) = limits;
        Declared {
            ttl,
            max_length,
            rejects,
            max_priority: max_priority * u8::from(delivery_limit.is_none()),
            delivery_limit,
            dead_letters,
        }
    })
}

impl Declared {
    fn options(&self) -> QueueOptions {
        let mut arguments = FieldTable::new();
        if let Some(ttl) = self.ttl {
            arguments.insert("x-message-ttl", i32::from(ttl));
        }
        if let Some(max_length) = self.max_length {
            arguments.insert("x-max-length", i32::from(max_length));
        }
        if self.rejects {
            arguments.insert("x-overflow", "reject-publish");
        }
        if self.dead_letters {
            arguments.insert("x-dead-letter-exchange", "");
        }
        if self.max_priority > 0 {
            arguments.insert("x-max-priority", i32::from(self.max_priority));
        }
        if let Some(limit) = self.delivery_limit {
            arguments.insert("x-queue-type", "quorum");
            arguments.insert("x-delivery-limit", i32::from(limit));
        }
        QueueOptions {
            durable: true,
            arguments,
            ..QueueOptions::default()
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish {
        priority: u8,
        expiration: Option<u8>,
    },
    PublishSeveral {
        count: u8,
        expiration: Option<u8>,
    },
    Get {
        no_ack: bool,
    },
    Settle {
        which: usize,
        count: usize,
        outcome: Outcome,
    },
    /// Time passes, and the timer calls or is late.
    Advance {
        by: u8,
        tick: bool,
    },
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        1 => Just(Outcome::Acknowledge),
        1 => Just(Outcome::Discard),
        3 => Just(Outcome::Requeue),
    ];
    let expiration = || prop::option::of(0_u8..50);
    prop_oneof![
        8 => (0_u8..6, expiration())
            .prop_map(|(priority, expiration)| Step::Publish { priority, expiration }),
        2 => (1_u8..10, expiration())
            .prop_map(|(count, expiration)| Step::PublishSeveral { count, expiration }),
        5 => any::<bool>().prop_map(|no_ack| Step::Get { no_ack }),
        4 => (any::<usize>(), 1_usize..5, outcome)
            .prop_map(|(which, count, outcome)| Step::Settle { which, count, outcome }),
        5 => (0_u8..25, prop::bool::weighted(0.7))
            .prop_map(|(by, tick)| Step::Advance { by, tick }),
        1 => Just(Step::Purge),
    ]
}

/// A message, as the model knows it.
#[derive(Debug, Clone, Copy)]
struct Known {
    deadline: Option<u64>,
    returns: u32,
    redelivered: bool,
}

/// Highest priority first, then in order of arrival.
type Place = (std::cmp::Reverse<u8>, u64);

struct World {
    declared: Declared,
    store: Arc<Store>,
    queue: Arc<Queue>,
    timer: Arc<Timer>,
    waiting: BTreeMap<Place, Known>,
    held: BTreeMap<Place, (LeaseId, Known)>,
    next: u64,
}

impl World {
    fn new(declared: Declared, memory: usize) -> Self {
        let store = test_support::store_with_memory(memory);
        let timer = Timer::new(Clock::manual(1_000));
        let queue = test_support::queue_with(&store, "q", declared.options(), timer.clone());
        World {
            declared,
            store,
            queue,
            timer,
            waiting: BTreeMap::new(),
            held: BTreeMap::new(),
            next: 0,
        }
    }

    fn now(&self) -> u64 {
        self.timer.clock.now()
    }

    /// A new message, and where it belongs.
    fn message(&mut self, priority: u8, expiration: Option<u8>) -> (Message, Place, Known) {
        let number = self.next;
        self.next += 1;
        let expiration = expiration.map(u64::from);
        let timed = expiration.is_some() || self.queue.traits.timed();
        let arrival = self.now();
        let head = MessageHead {
            exchange: b"",
            routing_key: b"q",
            properties: &[0, 0],
            persistent: !number.is_multiple_of(3),
            priority,
            times: timed.then_some(Times {
                arrival,
                expiration,
            }),
            has_bcc: false,
        };
        let ttl = self.declared.ttl.map(u64::from);
        let shortest = expiration.into_iter().chain(ttl).min();
        let lane = priority.min(self.declared.max_priority);
        let place = (std::cmp::Reverse(lane), number);
        let known = Known {
            deadline: shortest.map(|shortest| arrival + shortest),
            returns: 0,
            redelivered: false,
        };
        (Message::new(&head, &number.to_be_bytes()), place, known)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish {
                priority,
                expiration,
            } => {
                let (message, place, known) = self.message(priority, expiration);
                let full = |max: u8| self.waiting.len() + 1 > usize::from(max);
                // What has expired makes no room before somebody has looked.
                let is_refused =
                    self.declared.rejects && self.declared.max_length.is_some_and(full);
                let refused = self.queue.offer(message).is_err();
                assert_eq!(refused, is_refused);
                if !refused {
                    self.waiting.insert(place, known);
                }
                self.keep_rules();
            }
            Step::PublishSeveral { count, expiration } => {
                if self.declared.rejects {
                    return;
                }
                let new: Vec<_> = (0..count)
                    .map(|n| self.message(n % 4, expiration))
                    .collect();
                self.queue
                    .publish(new.iter().map(|(message, ..)| message.clone()));
                let new = new.into_iter();
                self.waiting
                    .extend(new.map(|(_, place, known)| (place, known)));
                self.keep_rules();
            }
            Step::Get { no_ack } => drop(self.get(no_ack)),
            Step::Settle {
                which,
                count,
                outcome,
            } => self.settle(which, count, outcome),
            Step::Advance { by, tick } => {
                self.timer.clock.advance(Duration::from_millis(by.into()));
                if tick {
                    self.timer.run_once();
                    self.keep_rules();
                }
            }
            Step::Purge => {
                assert_eq!(self.queue.purge(), self.waiting.len());
                self.waiting.clear();
            }
        }
    }

    /// What a queue does after each change.
    fn keep_rules(&mut self) {
        let now = self.now();
        self.waiting
            .retain(|_, known| known.deadline.is_none_or(|deadline| deadline > now));
        if let Some(max) = self.declared.max_length
            && !self.declared.rejects
        {
            while self.waiting.len() > usize::from(max) {
                self.waiting.pop_first();
            }
        }
    }

    /// The next one, which must not have expired before now.
    fn get(&mut self, no_ack: bool) -> Option<u64> {
        let now = self.now();
        let got = self
            .queue
            .get(&self.store, no_ack)
            .expect("the disk is sound");
        let good = |known: &Known| known.deadline.is_none_or(|deadline| deadline >= now);
        let expected = self.waiting.iter().find(|(_, known)| good(known));
        let expected = expected.map(|(place, known)| (*place, *known));
        let found = got.as_ref().map(|got| number(&got.message));
        assert_eq!(found, expected.map(|((_, number), _)| number));
        if let (Some(got), Some((place, known))) = (got, expected) {
            assert_eq!(got.redelivered, known.redelivered);
            let counted = self.declared.delivery_limit.map_or(0, |_| known.returns);
            assert_eq!(got.annotation, Annotation::returned(counted));
            self.waiting.remove(&place);
            if let Some(lease) = got.lease {
                self.held.insert(place, (lease, known));
            }
        }
        self.keep_rules();
        found
    }

    fn settle(&mut self, which: usize, count: usize, outcome: Outcome) {
        let skipped = which % self.held.len().max(1);
        let chosen = self.held.iter().skip(skipped).take(count);
        let chosen: Vec<_> = chosen.map(|(place, held)| (*place, *held)).collect();
        let leases: Vec<LeaseId> = chosen.iter().map(|(_, (lease, _))| *lease).collect();
        if leases.is_empty() {
            return;
        }
        self.queue.settle(&leases, outcome);
        for (place, (_, mut known)) in chosen {
            self.held.remove(&place);
            known.returns += 1;
            known.redelivered = true;
            let limit = self.declared.delivery_limit.map(u32::from);
            let too_often = limit.is_some_and(|limit| known.returns > limit);
            if outcome == Outcome::Requeue && !too_often {
                self.waiting.insert(place, known);
            }
        }
        self.keep_rules();
    }

    /// Writes what is too much, reads what is wanted; what was read may have expired.
    fn work(&mut self) {
        self.keep_rules();
        for round in 0..200 {
            self.store.run_once();
            self.timer.run_once();
            if round > 2 && self.queue.counts().ready == self.waiting.len() {
                return;
            }
        }
    }

    fn check(&self) {
        let counts = self.queue.counts();
        assert_eq!(counts.ready, self.waiting.len());
        assert_eq!(counts.unacked, self.held.len());
    }

    /// In the end everything comes that has not expired, in order.
    fn finish(mut self) {
        self.settle(0, usize::MAX, Outcome::Requeue);
        while self.get(true).is_some() {
            // What has come back to a segment has not expired before it has been read.
            self.work();
            self.check();
        }
        assert!(self.waiting.is_empty(), "{:?} is missing", self.waiting);
    }
}

fn number(message: &Message) -> u64 {
    u64::from_be_bytes(message.body().try_into().expect("eight bytes"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn rules_are_kept_as_the_model_says(
        declared in declared(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(declared, usize::MAX / 8);
        for step in steps {
            world.step(step);
            world.check();
        }
        world.finish();
    }

    /// So little memory that most messages lie in segments, most of the time.
    #[test]
    fn rules_are_kept_with_messages_in_segments(
        declared in declared(),
        memory in 1_usize..6_000,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(declared, memory);
        for step in steps {
            world.step(step);
            world.work();
            world.check();
        }
        world.finish();
    }
}

fn world(declared: Declared) -> World {
    World::new(declared, usize::MAX / 8)
}

/// The timer has not called yet, and the highest priority has nothing left.
#[test]
fn get_skips_what_has_expired_in_every_lane() {
    let mut world = world(Declared {
        ttl: Some(10),
        max_priority: 2,
        ..Declared::default()
    });
    for priority in [0, 1, 2] {
        world.step(Step::Publish {
            priority,
            expiration: None,
        });
    }
    world.step(Step::Advance {
        by: 20,
        tick: false,
    });
    assert_eq!(world.get(true), None);
}

#[test]
fn timer_is_told_of_the_next_deadline_whatever_was_first_before() {
    let mut world = world(Declared::default());
    for expiration in [Some(40), None, Some(10), Some(30)] {
        world.step(Step::Publish {
            priority: 0,
            expiration,
        });
    }
    for left in [3, 3, 2, 1] {
        world.step(Step::Advance { by: 10, tick: true });
        assert_eq!(world.queue.counts().ready, left);
    }
}

/// It lies in a segment, and is not read to know that.
#[test]
fn what_comes_back_too_late_takes_no_room() {
    let mut world = World::new(
        Declared {
            max_length: Some(2),
            max_priority: 1,
            ..Declared::default()
        },
        1,
    );
    let plain = |priority| Step::Publish {
        priority,
        expiration: None,
    };
    let short = Step::Publish {
        priority: 0,
        expiration: Some(1),
    };
    for step in [
        short,
        Step::Get { no_ack: false },
        Step::Advance { by: 1, tick: false },
        plain(0),
        plain(1),
    ] {
        world.step(step);
        world.work();
        world.check();
    }
    world.finish();
}

#[test]
fn what_comes_back_time_and_again_is_noted_once() {
    for memory in [1, usize::MAX / 8] {
        let mut world = World::new(Declared::default(), memory);
        world.step(Step::Publish {
            priority: 0,
            expiration: Some(40),
        });
        for _ in 0..100 {
            world.work();
            world.step(Step::Get { no_ack: false });
            world.settle(0, 1, Outcome::Requeue);
        }
        let state = world.queue.lock();
        let rules = state.rules.as_ref().expect("it has an expiration");
        assert!(rules.deadlines.overtaking() <= 1);
    }
}

#[test]
fn thousands_expire_in_steps() {
    const COUNT: usize = 5_000;
    let mut world = world(Declared {
        ttl: Some(10),
        ..Declared::default()
    });
    for _ in 0..COUNT / 10 {
        world.step(Step::PublishSeveral {
            count: 10,
            expiration: None,
        });
    }
    world.timer.clock.advance(Duration::from_millis(10));
    let mut before = COUNT;
    while before > 0 {
        world.timer.run_once();
        let now = world.queue.counts().ready;
        assert!(now < before, "{now} are left for ever");
        before = now;
    }
}
