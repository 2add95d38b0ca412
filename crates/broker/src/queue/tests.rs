//! The queue against a plain model: what is ready, what is out, in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use store::{MessageHead, Resident as _, Store};

use super::*;
use crate::outbox::{ConsumerHandle, Outbox, Outgoing};
use crate::prefetch::ChannelPrefetch;
use crate::test_support;

fn message(number: u64) -> Message {
    let head = MessageHead {
        exchange: b"",
        routing_key: b"q",
        properties: &[0, 0],
        persistent: !number.is_multiple_of(3),
        priority: 0,
        times: None,
        has_bcc: false,
    };
    Message::new(&head, &number.to_be_bytes())
}

fn number(message: &Message) -> u64 {
    u64::from_be_bytes(message.body().try_into().expect("eight bytes"))
}

/// A queue and its store.
struct Stored {
    queue: Arc<Queue>,
    store: Arc<Store>,
}

impl Stored {
    fn new(store: Arc<Store>) -> Self {
        let queue = test_support::queue(&store, "q");
        Stored { queue, store }
    }

    fn take(&self, no_ack: bool) -> Option<Got> {
        self.queue
            .get(&self.store, no_ack)
            .expect("the disk is sound")
    }
}

impl std::ops::Deref for Stored {
    type Target = Arc<Queue>;

    fn deref(&self) -> &Arc<Queue> {
        &self.queue
    }
}

fn queue() -> Stored {
    Stored::new(test_support::store())
}

/// One connection with one channel, as the queue sees it.
#[derive(Default)]
struct Client {
    outbox: Arc<Outbox>,
    channel: Arc<ChannelPrefetch>,
}

impl Client {
    fn options(&self, handle: u32, prefetch: u16, no_ack: bool) -> ConsumerOptions {
        ConsumerOptions {
            no_ack,
            exclusive: false,
            prefetch,
            channel: self.channel.clone(),
            outbox: self.outbox.clone(),
            handle: ConsumerHandle(handle),
            priority: 0,
            timeout: None,
            stream: None,
        }
    }

    fn consume(&self, queue: &Arc<Queue>, handle: u32, prefetch: u16) -> ConsumerId {
        let id = queue
            .add_consumer(self.options(handle, prefetch, false))
            .expect("nothing is exclusive");
        queue.resume(id);
        id
    }

    /// Takes what has arrived, and lets stalled consumers go on until nothing more comes.
    fn drain(&self, queue: &Queue, consumers: &BTreeMap<u32, ConsumerId>) -> Vec<Delivery> {
        let mut all = Vec::new();
        loop {
            let (mut items, mut stalled) = (Vec::new(), Vec::new());
            self.outbox.drain(&mut items, &mut stalled);
            if items.is_empty() && stalled.is_empty() {
                return all;
            }
            all.extend(items.into_iter().filter_map(|item| match item {
                Outgoing::Delivery(delivery) => Some(delivery),
                Outgoing::Cancelled(_) | Outgoing::TimedOut(..) | Outgoing::Rebalance(_) => None,
            }));
            for handle in stalled {
                if let Some(id) = consumers.get(&handle.0) {
                    queue.resume(*id);
                }
            }
        }
    }
}

/// Removes a consumer; what is on its way to it stays there.
fn remove(queue: &Queue, id: ConsumerId) {
    queue.remove_consumers(&[(id, ConsumerHandle(0))], &Outbox::default(), &[]);
}

fn lease(delivery: &Delivery) -> LeaseId {
    let lease = delivery.origin.to_settle();
    lease.expect("a delivery with a lease")
}

#[derive(Debug, Clone)]
enum Step {
    Publish(u8),
    Get {
        no_ack: bool,
    },
    Settle {
        which: usize,
        count: usize,
        outcome: Outcome,
    },
    Consume {
        prefetch: u16,
    },
    Cancel {
        which: usize,
    },
    Drain,
    LimitChannel(u16),
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        3 => Just(Outcome::Acknowledge),
        1 => Just(Outcome::Discard),
        3 => Just(Outcome::Requeue),
    ];
    prop_oneof![
        6 => (1u8..20).prop_map(Step::Publish),
        3 => any::<bool>().prop_map(|no_ack| Step::Get { no_ack }),
        6 => (any::<usize>(), 1usize..8, outcome)
            .prop_map(|(which, count, outcome)| Step::Settle { which, count, outcome }),
        2 => (0u16..6).prop_map(|prefetch| Step::Consume { prefetch }),
        1 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        4 => Just(Step::Drain),
        1 => (0u16..8).prop_map(Step::LimitChannel),
        1 => Just(Step::Purge),
    ]
}

/// The queue, its one client, and what the model says of them.
struct World {
    queue: Stored,
    client: Client,
    consumers: BTreeMap<u32, ConsumerId>,
    next_number: u64,
    next_handle: u32,
    /// Everything that was published and neither settled, purged nor taken.
    alive: BTreeSet<u64>,
    /// What the client holds: by number, its lease and the consumer that got it, if one did.
    held: BTreeMap<u64, (LeaseId, Option<u32>)>,
    prefetch: BTreeMap<u32, u16>,
    channel_limit: u16,
    /// Numbers that were put back and must come marked as redelivered.
    returned: BTreeSet<u64>,
    /// Numbers that were on their way to a consumer when it was cancelled: another one may have
    /// got later ones already.
    overtaken: BTreeSet<u64>,
}

impl World {
    fn new(memory: usize) -> Self {
        World {
            queue: Stored::new(test_support::store_with_memory(memory)),
            client: Client::default(),
            consumers: BTreeMap::new(),
            next_number: 0,
            next_handle: 0,
            alive: BTreeSet::new(),
            held: BTreeMap::new(),
            prefetch: BTreeMap::new(),
            channel_limit: 0,
            returned: BTreeSet::new(),
            overtaken: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish(count) => {
                let numbers = self.next_number..self.next_number + u64::from(count);
                self.next_number = numbers.end;
                self.alive.extend(numbers.clone());
                self.queue.publish(numbers.map(message));
            }
            Step::Get { no_ack } => self.get(no_ack),
            Step::Settle {
                which,
                count,
                outcome,
            } => self.settle(which, count, outcome),
            Step::Consume { prefetch } => {
                let handle = self.next_handle;
                self.next_handle += 1;
                let id = self.client.consume(&self.queue, handle, prefetch);
                self.consumers.insert(handle, id);
                self.prefetch.insert(handle, prefetch);
            }
            Step::Cancel { which } => self.cancel(which),
            Step::Drain => self.drain(),
            Step::LimitChannel(limit) => {
                self.channel_limit = limit;
                if self.client.channel.set_limit(limit) {
                    self.resume_all();
                }
            }
            Step::Purge => self.purge(),
        }
    }

    fn get(&mut self, no_ack: bool) {
        let got = self.queue.take(no_ack);
        let Some(got) = got else {
            assert_eq!(self.queue.counts().ready, 0);
            return;
        };
        let number = number(&got.message);
        assert_eq!(got.redelivered, self.returned.contains(&number));
        match got.lease {
            Some(lease) => drop(self.held.insert(number, (lease, None))),
            None => {
                self.alive.remove(&number);
            }
        }
    }

    fn settle(&mut self, which: usize, count: usize, outcome: Outcome) {
        let chosen: Vec<(u64, (LeaseId, Option<u32>))> = self
            .held
            .iter()
            .skip(which % self.held.len().max(1))
            .take(count)
            .map(|(number, held)| (*number, *held))
            .collect();
        let mut counted = 0;
        for (number, (_, consumer)) in &chosen {
            self.held.remove(number);
            counted += u32::from(consumer.is_some());
            match outcome {
                Outcome::Requeue => drop(self.returned.insert(*number)),
                _ => drop(self.alive.remove(number)),
            }
        }
        let resume = counted > 0 && self.client.channel.release(counted);
        let leases: Vec<LeaseId> = chosen.iter().map(|(_, (lease, _))| *lease).collect();
        self.queue.settle(&leases, outcome);
        if resume {
            self.resume_all();
        }
    }

    fn cancel(&mut self, which: usize) {
        let Some(handle) = self
            .consumers
            .keys()
            .nth(which % self.consumers.len().max(1))
            .copied()
        else {
            return;
        };
        let id = self.consumers.remove(&handle).expect("just found");
        remove(&self.queue, id);
        let unsent = self.client.outbox.withdraw(|other| other.0 == handle);
        let count = unsent.len() as u32;
        self.overtaken
            .extend(unsent.iter().map(|delivery| number(&delivery.message)));
        self.queue.take_back(unsent.into_iter());
        if count > 0 && self.client.channel.release(count) {
            self.resume_all();
        }
    }

    fn drain(&mut self) {
        let deliveries = self.client.drain(&self.queue, &self.consumers);
        let mut last = BTreeMap::new();
        for delivery in deliveries {
            let number = number(&delivery.message);
            assert_eq!(
                delivery.redelivered,
                self.returned.contains(&number),
                "{number}"
            );
            assert!(
                self.alive.contains(&number),
                "{number} came back from the dead"
            );
            if !delivery.redelivered && !self.overtaken.contains(&number) {
                let last = last.insert(delivery.consumer.0, number);
                assert!(
                    last.is_none_or(|last| last < number),
                    "{number} out of order"
                );
            }
            let held = (lease(&delivery), Some(delivery.consumer.0));
            let before = self.held.insert(number, held);
            assert!(before.is_none(), "{number} is out twice");
        }
        self.nobody_waits_in_vain();
    }

    /// With nothing on its way, a message may wait only for want of credit.
    fn nobody_waits_in_vain(&self) {
        if self.queue.counts().ready == 0 {
            return;
        }
        let counted = |of: Option<u32>| {
            let matches = |held: Option<u32>| held.is_some() && (of.is_none() || held == of);
            self.held
                .values()
                .filter(|(_, consumer)| matches(*consumer))
                .count()
        };
        let channel_is_full =
            self.channel_limit > 0 && counted(None) >= usize::from(self.channel_limit);
        for handle in self.consumers.keys() {
            let prefetch = usize::from(self.prefetch[handle]);
            let is_full = prefetch > 0 && counted(Some(*handle)) >= prefetch;
            assert!(
                is_full || channel_is_full,
                "consumer {handle} could have more"
            );
        }
    }

    fn purge(&mut self) {
        self.drain();
        let ready: BTreeSet<u64> = self
            .alive
            .iter()
            .filter(|number| !self.held.contains_key(number))
            .copied()
            .collect();
        assert_eq!(self.queue.purge(), ready.len());
        self.alive.retain(|number| !ready.contains(number));
    }

    fn resume_all(&self) {
        self.consumers
            .values()
            .for_each(|id| self.queue.resume(*id));
    }

    fn check(&self) {
        let counts = self.queue.counts();
        assert_eq!(counts.ready + counts.unacked, self.alive.len());
        assert_eq!(counts.consumers, self.consumers.len());
    }

    /// In the end everything that is alive comes out once, in order.
    fn finish(mut self) {
        for handle in self.consumers.keys().copied().collect::<Vec<_>>() {
            let id = self.consumers.remove(&handle).expect("just listed");
            remove(&self.queue, id);
            let unsent = self.client.outbox.withdraw(|other| other.0 == handle);
            self.queue.take_back(unsent.into_iter());
        }
        let leases: Vec<LeaseId> = self.held.values().map(|(lease, _)| *lease).collect();
        self.queue.settle(&leases, Outcome::Requeue);
        let rest: Vec<u64> = std::iter::from_fn(|| self.queue.take(true))
            .map(|got| number(&got.message))
            .collect();
        assert_eq!(rest, self.alive.into_iter().collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn behaves_as_the_model(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new(usize::MAX / 8);
        for step in steps {
            world.step(step);
            world.check();
        }
        world.finish();
    }

    /// So little memory that most messages lie in segments, most of the time.
    #[test]
    fn behaves_as_the_model_with_messages_in_segments(
        memory in 1_usize..6_000,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(memory);
        for step in steps {
            world.step(step);
            for _ in 0..3 {
                // Writes what is too much, then reads what is wanted.
                world.queue.store.run_once();
            }
            world.check();
        }
        world.finish();
    }
}

#[test]
fn consumers_take_turns() {
    let (queue, client) = (queue(), Client::default());
    let consumers: BTreeMap<u32, ConsumerId> = (0..3)
        .map(|handle| (handle, client.consume(&queue, handle, 0)))
        .collect();
    queue.publish((0..9).map(message));
    let turns: Vec<u32> = client
        .drain(&queue, &consumers)
        .iter()
        .map(|delivery| delivery.consumer.0)
        .collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn higher_priority_goes_first_while_it_has_credit() {
    let (queue, client) = (queue(), Client::default());
    client.consume(&queue, 0, 0);
    let high = ConsumerOptions {
        priority: 5,
        ..client.options(1, 2, false)
    };
    queue.add_consumer(high).expect("nothing is exclusive");
    queue.publish((0..4).map(message));
    let turns: Vec<u32> = client
        .drain(&queue, &BTreeMap::new())
        .iter()
        .map(|delivery| delivery.consumer.0)
        .collect();
    assert_eq!(turns, [1, 1, 0, 0]);
}

#[test]
fn full_outbox_leaves_messages_in_the_queue_and_draining_resumes() {
    let (queue, client) = (queue(), Client::default());
    let id = client.consume(&queue, 0, 0);
    for start in 0..100 {
        queue.publish((start * 100..(start + 1) * 100).map(message));
    }
    assert!(queue.counts().ready > 5_000, "{:?}", queue.counts());
    let drained = client.drain(&queue, &BTreeMap::from([(0, id)]));
    let numbers: Vec<u64> = drained
        .iter()
        .map(|delivery| number(&delivery.message))
        .collect();
    assert_eq!(numbers, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn channel_limit_is_shared_by_its_consumers() {
    let (queue, other_queue, client) = (queue(), queue(), Client::default());
    client.channel.set_limit(3);
    client.consume(&queue, 0, 0);
    client.consume(&other_queue, 1, 0);
    queue.publish((0..2).map(message));
    other_queue.publish((10..20).map(message));
    let drained = client.drain(&queue, &BTreeMap::new());
    assert_eq!(drained.len(), 3);
    assert_eq!(other_queue.counts().ready, 9);
}

#[test]
fn deleted_queue_drops_late_publishes_and_tells_consumers() {
    let (queue, client) = (queue(), Client::default());
    client.consume(&queue, 7, 0);
    assert_eq!(
        queue.close(false, false).map(|remains| remains.ready()),
        Ok(0)
    );
    queue.publish((0..2).map(message));
    let (mut items, mut stalled) = (Vec::new(), Vec::new());
    client.outbox.drain(&mut items, &mut stalled);
    assert!(
        matches!(items[..], [Outgoing::Cancelled(ConsumerHandle(7))]),
        "{items:?}"
    );
    assert_eq!(queue.counts(), Counts::default());
}

#[test]
fn returned_messages_find_their_places_among_the_ready() {
    let queue = queue();
    queue.publish((0..10).map(message));
    let leases: Vec<LeaseId> = (0..6)
        .filter_map(|_| queue.take(false))
        .filter_map(|got| got.lease)
        .collect();
    queue.settle(&[leases[4], leases[1]], Outcome::Requeue);
    queue.settle(&[leases[3]], Outcome::Requeue);
    let order: Vec<u64> = std::iter::from_fn(|| queue.take(true))
        .map(|got| number(&got.message))
        .collect();
    assert_eq!(order, [1, 3, 4, 6, 7, 8, 9]);
}

#[test]
fn leases_of_a_cancelled_consumer_do_not_count_for_its_successor() {
    let (queue, first, second) = (queue(), Client::default(), Client::default());
    let id = first.consume(&queue, 0, 10);
    queue.publish((0..30).map(message));
    let held = first.drain(&queue, &BTreeMap::new());
    assert_eq!(held.len(), 10);
    remove(&queue, id);
    second.consume(&queue, 0, 1);
    let leases: Vec<LeaseId> = held.iter().map(lease).collect();
    queue.settle(&leases, Outcome::Acknowledge);
    assert_eq!(second.drain(&queue, &BTreeMap::new()).len(), 1);
}

#[test]
fn consumers_that_share_an_outbox_take_turns_after_it_was_full() {
    let (queue, client) = (queue(), Client::default());
    let consumers: BTreeMap<u32, ConsumerId> = (0..3)
        .map(|handle| {
            let options = client.options(handle, 0, true);
            let id = queue.add_consumer(options).expect("nothing is exclusive");
            (handle, id)
        })
        .collect();
    for start in 0..120 {
        queue.publish((start * 100..(start + 1) * 100).map(message));
    }
    let mut received = [0; 3];
    loop {
        let (mut items, mut stalled) = (Vec::new(), Vec::new());
        client.outbox.drain(&mut items, &mut stalled);
        if items.is_empty() {
            break;
        }
        for item in items {
            if let Outgoing::Delivery(delivery) = item {
                received[delivery.consumer.0 as usize] += 1;
            }
        }
        let ids: Vec<ConsumerId> = stalled.iter().map(|handle| consumers[&handle.0]).collect();
        queue.resume_all(&ids);
    }
    assert_eq!(received.iter().sum::<i32>(), 12_000);
    assert!(
        received.iter().all(|count| (3_900..4_100).contains(count)),
        "{received:?}"
    );
}

#[test]
fn backlog_beyond_the_budget_leaves_memory_and_comes_back_in_order() {
    const BUDGET: usize = 20_000;
    let queue = Stored::new(test_support::store_with_memory(BUDGET));
    for start in (0..5_000).step_by(100) {
        queue.publish((start..start + 100).map(message));
        queue.store.run_once();
    }
    assert!(queue.resident_bytes() <= BUDGET);
    assert_eq!(queue.counts().ready, 5_000);
    // Those that come back from a consumer are in front again, wherever they lie.
    let leases: Vec<LeaseId> = (0..300)
        .filter_map(|_| queue.take(false))
        .filter_map(|got| got.lease)
        .collect();
    queue.settle(&leases[100..], Outcome::Requeue);
    queue.settle(&leases[..100], Outcome::Acknowledge);
    let order: Vec<u64> = std::iter::from_fn(|| queue.take(true))
        .map(|got| number(&got.message))
        .collect();
    assert_eq!(order, (100..5_000).collect::<Vec<_>>());
}

/// All messages of a chunk that cannot be read were taken from the count of those that wait on
/// disk, though some had been taken or were in memory: as many were missing at the end.
#[test]
fn unreadable_chunk_costs_no_other_messages() {
    let queue = Stored::new(test_support::store_with_memory(4_096));
    let mut next = 0;
    for _ in 0..4 {
        queue.publish((next..next + 50).map(message));
        next += 50;
        for _ in 0..3 {
            queue.store.run_once();
        }
    }
    let at_hand = queue.lock().lanes.lowest().ready.at_hand().count() as u64;
    assert!((1..50).contains(&at_hand));
    let (from, end) = (QueueSeq(at_hand), QueueSeq(50));
    queue.residents[0].complete_load(store::Loaded {
        from,
        end,
        messages: Vec::new(),
        look: false,
        lost: 50,
    });
    let expected: Vec<u64> = (0..at_hand).chain(50..200).collect();
    assert_eq!(queue.counts().ready, expected.len());
    let found = std::iter::from_fn(|| queue.take(true));
    let found: Vec<u64> = found.map(|got| number(&got.message)).collect();
    assert_eq!(found, expected);
}
