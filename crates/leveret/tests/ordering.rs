//! Nothing confirmed is lost, nothing acknowledged comes again, and everything has its place in the
//! queue, whatever consumers do and however they end.

mod support;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use client::method::basic;
use client::{Connection, ConsumeOptions, Event, RawConnection, ShortStr};
use testkit::Broker;
use tokio::task::LocalSet;

use support::*;
use testkit::Random;

/// Producers put their own number above this bit.
const PRODUCER: u32 = 32;

fn id(producer: u64, sequence: u64) -> u64 {
    producer << PRODUCER | sequence
}

/// Publishes numbered messages to the queues in turn, with at most 200 unconfirmed; returns how
/// many are confirmed: all, unless it leaves early.
async fn produce(
    broker: &Broker,
    producer: u64,
    queues: &[String],
    count: u64,
    leave_after: u64,
) -> u64 {
    let (mut connection, channel) = open(broker).await;
    connection.confirm_select(channel).await.expect("select-ok");
    let (mut published, mut confirmed) = (0, 0);
    while confirmed < count {
        while published < count.min(confirmed + 200) {
            let queue = &queues[published as usize % queues.len()];
            let body = numbered(id(producer, published), 60);
            publish(&mut connection, channel, queue, &body);
            published += 1;
        }
        match connection.next().await.expect("an event") {
            Event::Confirm(confirm) => confirmed = confirmed_up_to(confirmed, &confirm),
            other => panic!("a confirm expected, got {other:?}"),
        }
        if confirmed >= leave_after {
            break;
        }
    }
    confirmed
}

/// What the consumers know together.
#[derive(Default)]
struct Ledger {
    /// Acknowledged, and the broker has acted on it: must never come again.
    settled: RefCell<BTreeSet<u64>>,
    /// Acknowledged on a connection that ended at once: may come again.
    unsure: RefCell<BTreeSet<u64>>,
    finished: Cell<bool>,
}

/// A consumer that behaves in every way that is allowed, and leaves without a word.
struct Unsteady<'a> {
    broker: &'a Broker,
    queues: &'a [String],
    ledger: &'a Ledger,
    random: Random,
    connection: Connection,
    channel: u16,
    tag: String,
    acknowledged: Vec<u64>,
}

impl<'a> Unsteady<'a> {
    async fn start(
        broker: &'a Broker,
        queues: &'a [String],
        ledger: &'a Ledger,
        seed: u64,
    ) -> Unsteady<'a> {
        let (connection, channel) = open(broker).await;
        let mut unsteady = Unsteady {
            broker,
            queues,
            ledger,
            random: Random::new(seed),
            connection,
            channel,
            tag: String::new(),
            acknowledged: Vec::new(),
        };
        unsteady.consume().await;
        unsteady
    }

    async fn consume(&mut self) {
        let (channel, queue) = (self.channel, self.random.below(self.queues.len()));
        let prefetch = 1 + self.random.below(50) as u16;
        let limited = self.connection.qos(channel, prefetch, false).await;
        limited.expect("qos-ok");
        let options = ConsumeOptions::default();
        let consuming = self
            .connection
            .consume(channel, &self.queues[queue], &options);
        self.tag = consuming.await.expect("consume-ok");
    }

    async fn run(mut self) {
        while !self.ledger.finished.get() {
            let next = tokio::time::timeout(millis(50), self.connection.next()).await;
            if let Ok(event) = next
                && let Some(delivery) = received(&event.expect("an event"))
            {
                self.delivered(&delivery);
            }
            match self.random.below(300) {
                0 => self.reconnect().await,
                1 | 2 => self.reopen().await,
                3..6 => self.recover().await,
                6..10 => self.change_queue().await,
                10..20 => self.settle().await,
                _ => {}
            }
        }
        self.settle().await;
    }

    fn delivered(&mut self, delivery: &Received) {
        // Left in the read buffer when its channel was closed.
        if delivery.channel != self.channel {
            return;
        }
        let id = delivery.number();
        let again = self.ledger.settled.borrow().contains(&id);
        assert!(!again, "{id:#x} was acknowledged and came again");
        let (channel, tag) = (self.channel, delivery.tag);
        match self.random.below(20) {
            0 => self.connection.nack(channel, tag, false, true),
            1 => self.connection.reject(channel, tag, true),
            // Kept: returned by whatever ends the channel.
            2 => {}
            _ => {
                self.connection.ack(channel, tag, false);
                self.acknowledged.push(id);
            }
        }
    }

    /// After a round trip the broker has acted on all acknowledgements.
    async fn settle(&mut self) {
        synchronize(&mut self.connection, self.channel).await;
        let settled = self.acknowledged.drain(..);
        self.ledger.settled.borrow_mut().extend(settled);
    }

    async fn change_queue(&mut self) {
        let cancelling = self.connection.cancel(self.channel, &self.tag);
        cancelling.await.expect("cancel-ok");
        self.consume().await;
    }

    async fn recover(&mut self) {
        self.settle().await;
        let recover = basic::Recover { requeue: true };
        self.connection.send(self.channel, recover);
        // What comes before the answer has been returned by it.
        until(&mut self.connection, |event| {
            is_reply(event, "basic.recover-ok").then_some(())
        })
        .await;
    }

    /// Closes the channel; the next one has a number of its own.
    async fn reopen(&mut self) {
        self.settle().await;
        let closing = self.connection.close_channel(self.channel);
        closing.await.expect("close-ok");
        self.channel += 1;
        let opening = self.connection.open_channel_as(self.channel);
        opening.await.expect("open-ok");
        self.consume().await;
    }

    /// Drops the connection in the middle of everything.
    async fn reconnect(&mut self) {
        self.connection.try_flush();
        (self.connection, self.channel) = open(self.broker).await;
        let unsure = self.acknowledged.drain(..);
        self.ledger.unsure.borrow_mut().extend(unsure);
        self.consume().await;
    }
}

/// Takes and acknowledges what is left in a queue.
async fn drain(broker: &Broker, queue: &str) -> Vec<Received> {
    let (mut connection, channel) = open(broker).await;
    eventually("the consumers are gone", seconds(5), async || {
        look_at(&mut connection, channel, queue).await.consumers == 0
    })
    .await;
    let left = look_at(&mut connection, channel, queue).await.messages;
    let options = ConsumeOptions::default();
    let consuming = connection.consume(channel, queue, &options).await;
    consuming.expect("a consumer");
    let all = receive_all(&mut connection, left as usize).await;
    connection.ack(channel, 0, true);
    synchronize(&mut connection, channel).await;
    assert_quiet(&mut connection).await;
    all
}

#[test]
fn every_confirmed_message_is_received_and_no_acknowledged_one_comes_again() {
    const SEED: u64 = 0x0de1_1ce5;
    const COUNT: u64 = 4_000;
    within(seconds(40), async {
        let broker = shared();
        let queues = ["unsteady-0".to_owned(), "unsteady-1".to_owned()];
        let (mut connection, channel) = open(&broker).await;
        for queue in &queues {
            declare(&mut connection, channel, queue).await;
        }
        let ledger = Ledger::default();
        let confirmed = {
            let consumers = async {
                let start = |seed| Unsteady::start(&broker, &queues, &ledger, SEED + seed);
                let run = async |seed| start(seed).await.run().await;
                tokio::join!(run(0), run(1), run(2), run(3), run(4));
            };
            let producers = async {
                let run =
                    |producer, leave_after| produce(&broker, producer, &queues, COUNT, leave_after);
                // The last one leaves without a word, messages under way.
                let (a, b, c) = tokio::join!(run(0, COUNT), run(1, COUNT), run(2, COUNT / 2));
                tokio::time::sleep(millis(500)).await;
                ledger.finished.set(true);
                [a, b, c]
            };
            tokio::join!(consumers, producers).1
        };
        let mut left = BTreeSet::new();
        for queue in &queues {
            for delivery in drain(&broker, queue).await {
                assert!(left.insert(delivery.number()), "came twice, from one queue");
            }
        }
        let (settled, unsure) = (ledger.settled.take(), ledger.unsure.take());
        assert!(settled.len() > 1_000, "only {} were settled", settled.len());
        assert_eq!(settled.intersection(&left).count(), 0, "seed {SEED:#x}");
        for (producer, count) in (0..).zip(confirmed) {
            for sequence in 0..count {
                let id = id(producer, sequence);
                assert!(
                    settled.contains(&id) || left.contains(&id) || unsure.contains(&id),
                    "{id:#x} is confirmed and lost; seed {SEED:#x}"
                );
            }
        }
    });
}

/// With one consumer, the first delivery of each message comes in the order of its producer,
/// without a gap; what is returned comes again marked as redelivered.
#[test]
fn first_deliveries_come_in_the_producers_order() {
    const SEED: u64 = 0x5e9_0e7ce;
    const COUNT: u64 = 3_000;
    within(seconds(30), async {
        let broker = shared();
        let queues = Rc::new(vec!["in-order".to_owned()]);
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "in-order").await;
        connection.qos(channel, 40, false).await.expect("qos-ok");
        let local = LocalSet::new();
        for producer in 0..3 {
            let (broker, queues) = (broker.clone(), queues.clone());
            local.spawn_local(
                async move { produce(&broker, producer, &queues, COUNT, COUNT).await },
            );
        }
        let consumer = async {
            let options = ConsumeOptions::default();
            let mut tag = connection.consume(channel, "in-order", &options).await;
            let mut random = Random::new(SEED);
            let mut next = BTreeMap::from([(0, 0), (1, 0), (2, 0)]);
            let mut settled = BTreeSet::new();
            while settled.len() < 3 * COUNT as usize {
                let delivery = receive(&mut connection).await;
                let id = delivery.number();
                if !delivery.redelivered {
                    let expected = next.get_mut(&(id >> PRODUCER)).expect("three producers");
                    assert_eq!(id & 0xFFFF_FFFF, *expected, "seed {SEED:#x}");
                    *expected += 1;
                }
                match random.one_in(10) {
                    true => connection.nack(channel, delivery.tag, false, true),
                    false => {
                        connection.ack(channel, delivery.tag, false);
                        assert!(settled.insert(id), "{id:#x} came again");
                    }
                }
                if random.one_in(500) {
                    let old = tag.expect("a consumer");
                    connection.cancel(channel, &old).await.expect("cancel-ok");
                    tag = connection.consume(channel, "in-order", &options).await;
                }
            }
        };
        local.run_until(consumer).await;
        local.await;
    });
}

/// A queue with that many numbered messages.
async fn filled(broker: &Broker, queue: &str, count: u64, len: usize) -> (Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    declare(&mut connection, channel, queue).await;
    for number in 0..count {
        publish(&mut connection, channel, queue, &numbered(number, len));
    }
    synchronize(&mut connection, channel).await;
    (connection, channel)
}

fn numbers(deliveries: &[Received]) -> Vec<u64> {
    deliveries.iter().map(Received::number).collect()
}

fn redelivered(deliveries: &[Received]) -> Vec<bool> {
    deliveries
        .iter()
        .map(|delivery| delivery.redelivered)
        .collect()
}

#[test]
fn requeued_messages_come_back_before_later_ones() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "requeued", 600, 8).await;
        connection.qos(channel, 300, false).await.expect("qos-ok");
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, "requeued", &options).await;
        consuming.expect("a consumer");
        let first = receive_all(&mut connection, 300).await;
        assert_eq!(numbers(&first), (0..300).collect::<Vec<_>>());
        connection.nack(channel, 0, true, true);
        let again = receive_all(&mut connection, 300).await;
        assert_eq!(numbers(&again), numbers(&first));
        assert!(again.iter().all(|delivery| delivery.redelivered));
        connection.ack(channel, 0, true);
        let rest = receive_all(&mut connection, 300).await;
        assert_eq!(numbers(&rest), (300..600).collect::<Vec<_>>());
        assert!(rest.iter().all(|delivery| !delivery.redelivered));
    });
}

/// Returned one by one and in no order, to a queue whose consumer is somebody else.
#[test]
fn requeued_messages_find_their_places_among_the_others() {
    const SEED: u64 = 0x51_0075;
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "places", 200, 8).await;
        let mut random = Random::new(SEED);
        let mut out = Vec::new();
        for expected in 0..100 {
            let got = connection.get(channel, "places", false).await;
            let got = got.expect("an answer").expect("a message");
            assert_eq!(number(&got.body), expected);
            out.push(got.delivery_tag);
        }
        // Every third stays out.
        let kept: BTreeSet<u64> = out.iter().copied().step_by(3).collect();
        out.retain(|tag| !kept.contains(tag));
        while !out.is_empty() {
            let tag = out.swap_remove(random.below(out.len()));
            connection.reject(channel, tag, true);
            if random.one_in(4) {
                synchronize(&mut connection, channel).await;
            }
        }
        synchronize(&mut connection, channel).await;
        let (mut other, other_channel) = open(&broker).await;
        let options = ConsumeOptions::no_ack();
        let consuming = other.consume(other_channel, "places", &options).await;
        consuming.expect("a consumer");
        let expected: Vec<u64> = (0..200).filter(|n| *n >= 100 || n % 3 != 0).collect();
        let all = receive_all(&mut other, expected.len()).await;
        assert_eq!(numbers(&all), expected);
        let marked: Vec<bool> = expected.iter().map(|number| *number < 100).collect();
        assert_eq!(redelivered(&all), marked);
    });
}

#[test]
fn closing_a_channel_returns_what_it_had_in_order() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, publishing) = filled(&broker, "closing", 30, 8).await;
        let channel = connection.open_channel().await.expect("a channel");
        connection.qos(channel, 10, false).await.expect("qos-ok");
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, "closing", &options).await;
        consuming.expect("a consumer");
        receive_all(&mut connection, 10).await;
        connection.ack(channel, 4, false);
        connection.close_channel(channel).await.expect("close-ok");
        let consuming = connection.consume(publishing, "closing", &options).await;
        consuming.expect("a consumer");
        let all = receive_all(&mut connection, 29).await;
        let expected: Vec<u64> = (0..30).filter(|number| *number != 3).collect();
        assert_eq!(numbers(&all), expected);
        let marked: Vec<bool> = expected.iter().map(|number| *number < 10).collect();
        assert_eq!(redelivered(&all), marked);
    });
}

/// A consumer that takes `queue` and reads nothing of it.
async fn deaf_consumer(broker: &Broker, queue: &str, no_ack: bool) -> RawConnection {
    let options = options(broker);
    let mut raw = RawConnection::open(&options).await.expect("a connection");
    raw.handshake(&options).await.expect("a handshake");
    raw.send(1, client::method::channel::Open::default());
    let queue = ShortStr::try_from(queue).expect("a short name");
    raw.send(
        1,
        basic::Consume {
            queue,
            no_ack,
            ..Default::default()
        },
    );
    raw.flush().await;
    tokio::time::sleep(millis(300)).await;
    raw
}

/// 40 MB are more than sockets and broker hold for a client that does not read: part of them has
/// been sent when it is killed, part is on its way inside the broker, part is in the queue.
#[test]
fn killed_consumer_loses_nothing_and_only_what_was_sent_is_marked() {
    const COUNT: u64 = 5_000;
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "killed", COUNT, 8 * 1024).await;
        let deaf = deaf_consumer(&broker, "killed", false).await;
        let ready = look_at(&mut connection, channel, "killed").await.messages;
        assert!(0 < ready && u64::from(ready) < COUNT, "{ready} are ready");
        drop(deaf);
        let all = drain(&broker, "killed").await;
        assert_eq!(numbers(&all), (0..COUNT).collect::<Vec<_>>());
        let sent = all.iter().filter(|delivery| delivery.redelivered).count();
        assert!(sent > 0, "some had been sent");
        assert!(
            all[..sent].iter().all(|delivery| delivery.redelivered),
            "the first of them, that is"
        );
        let taken = COUNT as usize - ready as usize;
        assert!(sent < taken, "{sent} marked, {taken} were out of the queue");
    });
}

/// Without acknowledgements what was sent is gone. What was not comes back.
#[test]
fn killed_consumer_without_acks_gives_back_what_was_not_sent() {
    const COUNT: u64 = 5_000;
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "no-acks", COUNT, 8 * 1024).await;
        let deaf = deaf_consumer(&broker, "no-acks", true).await;
        let ready = look_at(&mut connection, channel, "no-acks").await.messages;
        assert!(0 < ready && u64::from(ready) < COUNT, "{ready} are ready");
        drop(deaf);
        let all = drain(&broker, "no-acks").await;
        assert!(all.len() > ready as usize, "those under way came back");
        let first = COUNT - all.len() as u64;
        assert_eq!(numbers(&all), (first..COUNT).collect::<Vec<_>>());
        assert!(all.iter().all(|delivery| !delivery.redelivered));
    });
}

#[test]
fn messages_got_one_by_one_come_back_when_the_connection_is_killed() {
    within(seconds(10), async {
        let broker = shared();
        let _publisher = filled(&broker, "got", 10, 8).await;
        let (mut connection, channel) = open(&broker).await;
        for _ in 0..5 {
            let got = connection.get(channel, "got", false).await;
            assert!(got.expect("an answer").is_some());
        }
        connection.ack(channel, 2, false);
        synchronize(&mut connection, channel).await;
        drop(connection);
        let (mut observer, channel) = open(&broker).await;
        eventually("the messages return", seconds(5), async || {
            look_at(&mut observer, channel, "got").await.messages == 9
        })
        .await;
        let all = drain(&broker, "got").await;
        assert_eq!(numbers(&all), [0, 2, 3, 4, 5, 6, 7, 8, 9]);
        let marked = [true, true, true, true, false, false, false, false, false];
        assert_eq!(redelivered(&all), marked);
    });
}
