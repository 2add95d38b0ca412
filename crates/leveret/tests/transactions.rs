//! Transactions as others see them: everything at once, or nothing.

mod support;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use client::method::queue;
use client::{
    Connection, ConsumeOptions, Event, ExchangeOptions, FieldTable, Method, Properties,
    PublishFlags, ShortStr,
};
use testkit::Broker;

use support::rules::{send, wanted_for};
use support::*;

/// A connection with a transactional channel.
async fn transactional(broker: &Broker) -> (Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    connection.tx_select(channel).await.expect("select-ok");
    (connection, channel)
}

async fn commit(connection: &mut Connection, channel: u16) {
    connection.tx_commit(channel).await.expect("commit-ok");
}

async fn count(connection: &mut Connection, channel: u16, queue: &str) -> u32 {
    look_at(connection, channel, queue).await.messages
}

/// Three queues, behind one fanout exchange and one by one.
async fn three_queues(connection: &mut Connection, channel: u16, prefix: &str) -> [String; 3] {
    let queues = [0, 1, 2].map(|index| format!("{prefix}-{index}"));
    let exchange = ExchangeOptions::default();
    let declaring = connection.declare_exchange(channel, prefix, "fanout", &exchange);
    declaring.await.expect("an exchange");
    let none = FieldTable::new();
    for queue in &queues {
        declare(connection, channel, queue).await;
        let binding = connection.bind(channel, queue, prefix, "", &none).await;
        binding.expect("a binding");
    }
    queues
}

/// What a transaction of the tests below adds to each of three queues: enough for a commit to take
/// its time.
const PER_QUEUE: u32 = 1_000;
const TRANSACTIONS: u32 = 30;

/// Publishes `PER_QUEUE` messages with the transaction's number to each queue, by turns alone and
/// to all of them.
async fn publish_transaction(
    connection: &mut Connection,
    channel: u16,
    exchange: &str,
    queues: &[String; 3],
    number: u32,
) {
    let body = numbered(number.into(), 30);
    for _ in 0..PER_QUEUE / 2 {
        for queue in queues {
            publish(connection, channel, queue, &body);
        }
        let (flags, none) = (PublishFlags::NONE, Properties::default());
        connection
            .publish(channel, exchange, "", flags, none, &body)
            .expect("short names");
    }
    connection.flush().await.expect("a transaction");
}

/// Asks for the counts of these queues in this order, many times in one go: the broker answers one
/// after the other, and as fast as it can.
async fn counts_in_a_row(connection: &mut Connection, channel: u16, queues: [&str; 3]) -> Vec<u32> {
    const TIMES: usize = 30;
    for queue in queues.iter().cycle().take(3 * TIMES) {
        let look = queue::Declare {
            queue: ShortStr::try_from(*queue).expect("a short name"),
            passive: true,
            ..Default::default()
        };
        connection.send(channel, look);
    }
    let mut counts = Vec::new();
    while counts.len() < 3 * TIMES {
        match connection.next().await.expect("an event") {
            Event::Reply {
                method: Method::QueueDeclareOk(ok),
                ..
            } => counts.push(ok.message_count),
            other => panic!("queue.declare-ok expected, got {other:?}"),
        }
    }
    counts
}

#[test]
fn no_part_of_a_transaction_is_ever_counted() {
    within(seconds(20), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        let queues = three_queues(&mut producer, channel, "counted").await;
        let finished = Cell::new(false);
        let produce = async {
            for number in 0..TRANSACTIONS {
                publish_transaction(&mut producer, channel, "counted", &queues, number).await;
                commit(&mut producer, channel).await;
            }
            finished.set(true);
        };
        let observe = async |order: [usize; 3]| {
            let (mut observer, channel) = open(&broker).await;
            let queues = order.map(|index| &*queues[index]);
            let mut seen = BTreeSet::new();
            let mut before = 0;
            while !finished.get() {
                for now in counts_in_a_row(&mut observer, channel, queues).await {
                    // The queues only ever grow, and all together: what is looked at later has no
                    // less than what was looked at before.
                    assert_eq!(now % PER_QUEUE, 0, "a part of a transaction");
                    assert!(now >= before, "{now} after {before}");
                    before = now;
                    seen.insert(now);
                }
            }
            assert!(seen.len() > 3, "{seen:?} says little");
        };
        tokio::join!(produce, observe([0, 1, 2]), observe([2, 1, 0]));
        for queue in &queues {
            let all = TRANSACTIONS * PER_QUEUE;
            assert_eq!(count(&mut producer, channel, queue).await, all);
        }
    });
}

/// Whoever has received one message of a transaction finds the others in their queues.
#[test]
fn first_message_of_a_transaction_means_that_all_are_there() {
    within(seconds(20), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        let queues = three_queues(&mut producer, channel, "siblings").await;
        let produce = async {
            for number in 1..=TRANSACTIONS {
                publish_transaction(&mut producer, channel, "siblings", &queues, number).await;
                commit(&mut producer, channel).await;
            }
        };
        // No queue is both consumed and counted.
        let watch = async |counted: usize| {
            let (mut connection, channel) = open(&broker).await;
            let options = ConsumeOptions::no_ack();
            let consuming = connection.consume(channel, &queues[1], &options).await;
            consuming.expect("a consumer");
            let mut last = 0;
            while last < TRANSACTIONS {
                let number = receive(&mut connection).await.number() as u32;
                if number > last {
                    last = number;
                    let there = count(&mut connection, channel, &queues[counted]).await;
                    let expected = number * PER_QUEUE;
                    assert!(there >= expected, "{there} of {expected}");
                }
            }
        };
        tokio::join!(produce, watch(0), watch(2));
    });
}

/// Transactions that are rolled back leave no gap between those that are not.
#[test]
fn consumers_of_several_queues_get_whole_transactions_in_order() {
    within(seconds(20), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        let queues = three_queues(&mut producer, channel, "whole").await;
        let produce = async {
            for number in 0..TRANSACTIONS {
                publish_transaction(&mut producer, channel, "whole", &queues, number).await;
                match number % 3 {
                    1 => producer.tx_rollback(channel).await.expect("rollback-ok"),
                    _ => commit(&mut producer, channel).await,
                }
            }
        };
        let consume = async {
            let (mut connection, channel) = open(&broker).await;
            for queue in &queues {
                let options = ConsumeOptions {
                    consumer_tag: queue.clone(),
                    ..ConsumeOptions::no_ack()
                };
                let consuming = connection.consume(channel, queue, &options).await;
                consuming.expect("a consumer");
            }
            let expected: Vec<u64> = (0..TRANSACTIONS)
                .filter(|number| number % 3 != 1)
                .flat_map(|number| [u64::from(number); PER_QUEUE as usize])
                .collect();
            let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
            for _ in 0..expected.len() * queues.len() {
                let delivery = receive(&mut connection).await;
                let number = delivery.number();
                seen.entry(delivery.consumer).or_default().push(number);
            }
            for queue in &queues {
                assert!(seen[queue] == expected, "{queue}");
            }
            assert_quiet(&mut connection).await;
        };
        tokio::join!(produce, consume);
    });
}

#[test]
fn commit_of_20_000_messages_appears_at_once() {
    const COUNT: u32 = 20_000;
    within(seconds(20), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        declare(&mut producer, channel, "many").await;
        for number in 0..COUNT {
            publish(
                &mut producer,
                channel,
                "many",
                &numbered(number.into(), 100),
            );
        }
        producer.flush().await.expect("20,000 messages");
        assert_eq!(count(&mut producer, channel, "many").await, 0);
        let finished = Cell::new(false);
        let committing = async {
            commit(&mut producer, channel).await;
            finished.set(true);
        };
        let watching = async {
            let (mut observer, channel) = open(&broker).await;
            while !finished.get() {
                let seen = count(&mut observer, channel, "many").await;
                assert!(seen == 0 || seen == COUNT, "{seen} of {COUNT}");
            }
            assert_eq!(count(&mut observer, channel, "many").await, COUNT);
            let options = ConsumeOptions::no_ack();
            let consuming = observer.consume(channel, "many", &options).await;
            consuming.expect("a consumer");
            for number in 0..COUNT {
                assert_eq!(receive(&mut observer).await.number(), u64::from(number));
            }
        };
        tokio::join!(committing, watching);
    });
}

/// A producer that selects again after every commit, and before some.
#[test]
fn select_on_a_transactional_channel_keeps_the_transaction() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = transactional(&broker).await;
        declare(&mut connection, channel, "again").await;
        for round in 1..=3 {
            publish(&mut connection, channel, "again", b"before");
            connection.tx_select(channel).await.expect("select-ok");
            publish(&mut connection, channel, "again", b"after");
            assert_eq!(
                count(&mut connection, channel, "again").await,
                2 * round - 2
            );
            commit(&mut connection, channel).await;
            connection.tx_select(channel).await.expect("select-ok");
            assert_eq!(count(&mut connection, channel, "again").await, 2 * round);
        }
        publish(&mut connection, channel, "again", b"before");
        connection.tx_select(channel).await.expect("select-ok");
        publish(&mut connection, channel, "again", b"after");
        connection.tx_rollback(channel).await.expect("rollback-ok");
        commit(&mut connection, channel).await;
        assert_eq!(count(&mut connection, channel, "again").await, 6);
    });
}

/// A transactional consumer with deliveries 1 to 10 out, and the queue's observer.
async fn ten_out(broker: &Broker, queue: &str) -> [(Connection, u16); 2] {
    let (mut observer, observing) = open(broker).await;
    declare(&mut observer, observing, queue).await;
    for number in 0..30 {
        publish(&mut observer, observing, queue, &numbered(number, 8));
    }
    synchronize(&mut observer, observing).await;
    let (mut consumer, channel) = transactional(broker).await;
    consumer.qos(channel, 10, false).await.expect("qos-ok");
    let options = ConsumeOptions::default();
    let consuming = consumer.consume(channel, queue, &options).await;
    consuming.expect("a consumer");
    let first = receive_all(&mut consumer, 10).await;
    assert!(first.iter().map(Received::number).eq(0..10));
    [(consumer, channel), (observer, observing)]
}

#[test]
fn rollback_takes_acknowledgements_back() {
    within(seconds(10), async {
        let broker = shared();
        let [(mut consumer, channel), (mut observer, observing)] =
            ten_out(&broker, "taken-back").await;
        consumer.ack(channel, 5, true);
        consumer.nack(channel, 7, false, true);
        consumer.tx_rollback(channel).await.expect("rollback-ok");
        // All ten are out as before: no room, nothing returned.
        assert_quiet(&mut consumer).await;
        assert_eq!(count(&mut observer, observing, "taken-back").await, 20);
        // The same tags may be acknowledged again, for good this time.
        consumer.ack(channel, 5, true);
        commit(&mut consumer, channel).await;
        let more = receive_all(&mut consumer, 5).await;
        assert!(more.iter().map(Received::number).eq(10..15));
        drop(consumer);
        let queue = "taken-back";
        eventually("the others return", seconds(5), async || {
            count(&mut observer, observing, queue).await == 25
        })
        .await;
        let options = ConsumeOptions::no_ack();
        let consuming = observer.consume(observing, queue, &options).await;
        consuming.expect("a consumer");
        let left = receive_all(&mut observer, 25).await;
        assert!(left.iter().map(Received::number).eq(5..30));
    });
}

#[test]
fn acknowledgements_make_room_at_commit_and_not_before() {
    within(seconds(10), async {
        let broker = shared();
        let [(mut consumer, channel), (mut observer, observing)] = ten_out(&broker, "room").await;
        consumer.ack(channel, 4, true);
        consumer.flush().await.expect("an ack");
        assert_quiet(&mut consumer).await;
        assert_eq!(count(&mut observer, observing, "room").await, 20);
        commit(&mut consumer, channel).await;
        let more = receive_all(&mut consumer, 4).await;
        assert!(more.iter().map(Received::number).eq(10..14));
    });
}

/// Nobody sees the publish without the acknowledgement: a message moved from queue to queue is in
/// one of them, never in both, never in none.
#[test]
fn publish_and_acknowledgement_are_one() {
    const COUNT: u64 = 500;
    within(seconds(20), async {
        let broker = shared();
        let (mut mover, channel) = transactional(&broker).await;
        for queue in ["move-from", "move-to"] {
            declare(&mut mover, channel, queue).await;
        }
        for number in 0..COUNT {
            publish(&mut mover, channel, "move-from", &numbered(number, 8));
        }
        commit(&mut mover, channel).await;
        let options = ConsumeOptions::default();
        let consuming = mover.consume(channel, "move-from", &options).await;
        consuming.expect("a consumer");
        for number in 0..COUNT {
            let delivery = receive(&mut mover).await;
            assert_eq!(delivery.number(), number);
            publish(&mut mover, channel, "move-to", &delivery.body);
            mover.ack(channel, delivery.tag, false);
            if number % 50 == 49 {
                match number % 100 {
                    49 => commit(&mut mover, channel).await,
                    // Killed before the commit: all of this batch is still in the first queue.
                    _ => break,
                }
            }
        }
        drop(mover);
        let (mut observer, channel) = open(&broker).await;
        eventually("the rest returns", seconds(5), async || {
            count(&mut observer, channel, "move-from").await == COUNT as u32 - 50
        })
        .await;
        assert_eq!(count(&mut observer, channel, "move-to").await, 50);
        let got = observer.get(channel, "move-from", true).await;
        let got = got.expect("an answer").expect("a message");
        assert_eq!((number(&got.body), got.redelivered), (50, true));
    });
}

#[test]
fn channel_closed_before_the_commit_leaves_nothing() {
    within(seconds(10), async {
        let broker = shared();
        let [(mut consumer, channel), (mut observer, observing)] =
            ten_out(&broker, "abandoned").await;
        consumer.ack(channel, 10, true);
        publish(&mut consumer, channel, "abandoned", b"never seen");
        consumer.close_channel(channel).await.expect("close-ok");
        assert_eq!(count(&mut observer, observing, "abandoned").await, 30);
        let options = ConsumeOptions::no_ack();
        let consuming = observer.consume(observing, "abandoned", &options).await;
        consuming.expect("a consumer");
        let all = receive_all(&mut observer, 30).await;
        assert!(all.iter().map(Received::number).eq(0..30));
        assert_quiet(&mut observer).await;
    });
}

/// A queue that is deleted between publish and commit takes only its own share with it.
#[test]
fn queue_deleted_before_the_commit_takes_only_its_part() {
    within(seconds(10), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        let queues = three_queues(&mut producer, channel, "deleted").await;
        publish_transaction(&mut producer, channel, "deleted", &queues, 1).await;
        let gone = producer.delete_queue(channel, &queues[1]).await;
        assert_eq!(gone.expect("delete-ok"), 0);
        commit(&mut producer, channel).await;
        assert_eq!(count(&mut producer, channel, &queues[0]).await, PER_QUEUE);
        assert_eq!(count(&mut producer, channel, &queues[2]).await, PER_QUEUE);
    });
}

#[test]
fn unroutable_mandatory_messages_return_at_commit() {
    within(seconds(10), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        let mandatory = PublishFlags::MANDATORY;
        for body in [&b"one"[..], b"two"] {
            let none = Properties::default();
            producer
                .publish(channel, "", "no such queue", mandatory, none, body)
                .expect("short names");
        }
        producer.flush().await.expect("two messages");
        assert_quiet(&mut producer).await;
        commit(&mut producer, channel).await;
        for body in [&b"one"[..], b"two"] {
            match producer.next().await.expect("an event") {
                Event::Return(returned) => assert_eq!((returned.code, returned.body), (312, body)),
                other => panic!("basic.return expected, got {other:?}"),
            }
        }
    });
}

/// It came when it was committed.
#[test]
fn time_to_wait_begins_at_the_commit() {
    within(seconds(10), async {
        let broker = shared();
        let (mut producer, channel) = transactional(&broker).await;
        declare(&mut producer, channel, "waits").await;
        send(&mut producer, channel, "waits", wanted_for(900), b"x");
        synchronize(&mut producer, channel).await;
        tokio::time::sleep(millis(1_000)).await;
        commit(&mut producer, channel).await;
        assert_eq!(count(&mut producer, channel, "waits").await, 1);
        tokio::time::sleep(millis(1_000)).await;
        assert_eq!(count(&mut producer, channel, "waits").await, 0);
    });
}
