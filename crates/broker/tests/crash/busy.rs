//! The machine crashes while threads publish, consume and delete, and the store's own threads
//! write: no two runs are the same, so this is for what only shows between threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use broker::{Broker, LogPositions, Outcome, Publish, Publisher, Session, Settings, Transaction};
use store::Store;
use testkit::{FaultyDisk, Random, Survival};

use crate::universe::{Name, id, message, queue_kind};
use crate::world::{BUDGET, DIR, session};

const QUEUES: [Name; 3] = ["first", "second", "os"];
/// Where the two messages of a transaction go.
const PAIR: [Name; 2] = ["second", "first"];
const PUBLISHERS: u64 = 3;

struct Node {
    disk: FaultyDisk,
    store: Arc<Store>,
    broker: Arc<Broker>,
    next_id: AtomicU64,
    stop: AtomicBool,
}

/// What a publisher knows of a message.
struct Published {
    id: u64,
    queue: Name,
    positions: LogPositions,
}

fn start(disk: &FaultyDisk, next_id: u64, threads: bool) -> Arc<Node> {
    let opened = Store::open(Arc::new(disk.clone()), Path::new(DIR), BUDGET, threads);
    let (store, recovered) = opened.unwrap_or_else(|error| panic!("cannot start: {error}"));
    let broker = Broker::new(Settings::default(), store.clone(), recovered);
    Arc::new(Node {
        disk: disk.clone(),
        store,
        broker: broker.unwrap_or_else(|error| panic!("cannot start: {error}")),
        next_id: AtomicU64::new(next_id),
        stop: AtomicBool::new(false),
    })
}

impl Node {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.store.failure().is_some()
    }

    /// Publishes to all queues in turn; gives what it knows.
    fn publish(&self, session: &Session, random: &mut Random) -> Vec<Published> {
        let mut publisher = Publisher::default();
        let mut published = Vec::new();
        while !self.is_over() {
            let queue = random.pick(&QUEUES);
            for _ in 0..=random.below(4) {
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                let publish = Publish {
                    exchange: b"",
                    routing_key: queue.as_bytes(),
                    properties: &amqp::PropertySummary::default(),
                    all_properties: amqp::Properties::default(),
                };
                let route = publisher.route(session, &publish).expect("it may").route;
                let size = random.pick(&[20, 300, 300, 3_000]);
                publisher.push(route, message(id, "", queue, true, size));
                publisher.flush();
                published.push(Published {
                    id,
                    queue,
                    positions: publisher.logged(),
                });
            }
            // As a connection does that waits for its confirms.
            if let Some((lsn, durability)) = publisher.logged().missing(&self.store) {
                self.store.wait(lsn, durability, Waker::noop());
            }
            thread::sleep(Duration::from_micros(random.below(300) as u64));
        }
        published
    }

    /// Commits transactions of two messages, one for each of two queues.
    fn transact(&self, session: &Session, random: &mut Random) -> Vec<Published> {
        let mut publisher = Publisher::default();
        let mut published = Vec::new();
        while !self.is_over() {
            let mut transaction = Transaction::default();
            let first = self.next_id.fetch_add(2, Ordering::Relaxed);
            for (id, queue) in (first..).zip(PAIR) {
                let publish = Publish {
                    exchange: b"",
                    routing_key: queue.as_bytes(),
                    properties: &amqp::PropertySummary::default(),
                    all_properties: amqp::Properties::default(),
                };
                let route = publisher.route(session, &publish).expect("it may").route;
                let message = message(id, "", queue, true, 500);
                transaction.publish(route, message).expect("it is small");
            }
            let mut positions = LogPositions::default();
            positions.add(
                transaction
                    .commit(&self.store)
                    .expect("there is room")
                    .expect("it must survive"),
            );
            published.extend((first..).zip(PAIR).map(|(id, queue)| Published {
                id,
                queue,
                positions,
            }));
            thread::sleep(Duration::from_micros(random.below(300) as u64));
        }
        published
    }

    /// Takes messages and acknowledges most of them; gives those that it did.
    fn consume(&self, session: &Session, random: &mut Random) -> BTreeSet<u64> {
        let mut acknowledged = BTreeSet::new();
        let mut held = Vec::new();
        while !self.is_over() {
            let Ok((queue, got)) = session.get(random.pick(&QUEUES), false) else {
                break;
            };
            if let Some(got) = got {
                let lease = got.lease.expect("it is to be acknowledged");
                held.push((queue, lease, id(&got.message)));
            }
            if held.len() > 40 {
                for (queue, lease, id) in held.drain(..) {
                    if random.below(10) > 0 {
                        acknowledged.insert(id);
                        queue.settle(&[lease], Outcome::Acknowledge);
                    } else {
                        queue.settle(&[lease], Outcome::Requeue);
                    }
                }
            }
        }
        acknowledged
    }

    /// Queues come and go, so that there is always something to clean up.
    fn come_and_go(&self, session: &Session, random: &mut Random) {
        let kind = queue_kind("third");
        while !self.is_over() {
            let declared = session.declare_queue(kind.name, kind.options());
            let queue = declared.expect("it may").queue;
            for id in 0..random.below(60) as u64 {
                let message = message(id, "", kind.name, random.one_in(2), 1_000);
                queue.publish(std::iter::once(message));
            }
            thread::sleep(Duration::from_micros(random.below(3_000) as u64));
            let deleted = session.delete_queue(kind.name, false, false);
            deleted.expect("it may");
        }
    }
}

/// What must be there, and what may be there no more.
#[derive(Default)]
struct Expected {
    confirmed: BTreeMap<u64, Name>,
    published: BTreeMap<u64, Name>,
    acknowledged: BTreeSet<u64>,
    /// The first messages of transactions; each second one has the next number.
    transactions: BTreeSet<u64>,
}

/// Lets the threads work for a while, then the machine crashes.
fn live(node: &Arc<Node>, expected: &mut Expected, random: &mut Random) {
    let worker = |seed: u64| (node.clone(), session(&node.broker), Random::new(seed));
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|_| {
            let (node, session, mut random) = worker(random.draw());
            thread::spawn(move || node.publish(&session, &mut random))
        })
        .collect();
    let (one, session, mut own) = worker(random.draw());
    let transacting = thread::spawn(move || one.transact(&session, &mut own));
    let (one, session, mut own) = worker(random.draw());
    let consumer = thread::spawn(move || one.consume(&session, &mut own));
    let (one, session, mut own) = worker(random.draw());
    let coming = thread::spawn(move || one.come_and_go(&session, &mut own));
    thread::sleep(Duration::from_millis(30 + random.below(120) as u64));
    assert_eq!(node.store.failure(), None);
    node.disk.crash_now();
    node.stop.store(true, Ordering::Relaxed);
    let transacted = transacting.join().expect("it ends");
    let firsts = transacted.iter().filter(|one| one.queue == PAIR[0]);
    expected.transactions.extend(firsts.map(|one| one.id));
    let published = publishers
        .into_iter()
        .map(|one| one.join().expect("it ends"));
    for published in published.chain([transacted]) {
        for one in published {
            let durable = !queue_kind(one.queue).os;
            if durable && one.positions.reached(&node.store) {
                expected.confirmed.insert(one.id, one.queue);
            }
            expected.published.insert(one.id, one.queue);
        }
    }
    expected
        .acknowledged
        .extend(consumer.join().expect("it ends"));
    coming.join().expect("it ends");
}

/// Reads everything out of a copy.
fn read(disk: &FaultyDisk, threads: bool) -> BTreeMap<u64, Name> {
    let node = start(&disk.restart(Survival::Everything), 0, threads);
    let session = session(&node.broker);
    let mut found = BTreeMap::new();
    for queue in QUEUES {
        let ready = session.queue(queue).map_or(0, |queue| queue.counts().ready);
        let get = || session.get(queue, true).map_or(None, |(_, got)| got);
        let all: Vec<u64> = std::iter::from_fn(get)
            .map(|got| id(&got.message))
            .collect();
        assert_eq!(all.len(), ready, "{queue:?} has not what it counts");
        for id in all {
            assert!(found.insert(id, queue).is_none(), "{id} is there twice");
        }
    }
    assert_eq!(node.store.failure(), None);
    node.disk.crash_now();
    found
}

fn check(disk: &FaultyDisk, expected: &mut Expected) {
    let found = read(disk, true);
    assert!(found == read(disk, false), "reading disturbs what is there");
    for (id, queue) in &found {
        assert_eq!(expected.published.get(id), Some(queue), "{id} in {queue:?}");
    }
    for (id, queue) in &expected.confirmed {
        let there = found.contains_key(id) || expected.acknowledged.contains(id);
        assert!(there, "{id} of {queue:?} was confirmed, and is lost");
    }
    for first in &expected.transactions {
        for (one, other) in [(*first, *first + 1), (*first + 1, *first)] {
            let there = found.contains_key(&other) || expected.acknowledged.contains(&other);
            assert!(
                there || !found.contains_key(&one),
                "{one} is there without {other}"
            );
        }
    }
    // From now on everything that is there was there before.
    expected.transactions.clear();
    expected.confirmed = found;
    expected.acknowledged.clear();
}

#[test]
fn crash_while_many_work_loses_nothing_that_was_confirmed() {
    let mut random = Random::new(1);
    for _ in 0..4 {
        let mut disk = FaultyDisk::new(random.draw());
        let mut expected = Expected::default();
        let mut confirmed = 0;
        for _ in 0..4 {
            let next_id = expected.published.len() as u64 + 1;
            let node = start(&disk, next_id, true);
            for name in QUEUES {
                let options = queue_kind(name).options();
                let declared = session(&node.broker).declare_queue(name, options);
                declared.expect("it may");
            }
            live(&node, &mut expected, &mut random);
            let survival = random.pick(&[Survival::Nothing, Survival::Random]);
            disk = disk.restart(survival);
            confirmed += expected.confirmed.len();
            check(&disk, &mut expected);
        }
        assert!(confirmed > 20, "{confirmed} messages were confirmed");
    }
}
