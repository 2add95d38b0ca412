//! Messages over the end of the process: which are there again, in which order, with which marks.

mod support;

use client::{
    Connection, ConsumeOptions, ExchangeOptions, FieldTable, Message, PropertiesBuilder, Property,
};
use support::durable::*;
use support::*;
use testkit::Broker;

/// A broker with one durable queue.
async fn with_queue(queue: &str) -> Broker {
    let broker = builder().start().expect("a broker");
    let (mut connection, channel) = open(&broker).await;
    declare_durable(&mut connection, channel, queue).await;
    connection.close().await.expect("close-ok");
    broker
}

/// Publishes persistent messages that begin with these numbers, and waits for the confirms.
async fn fill(broker: &Broker, queue: &str, numbers: std::ops::Range<u64>) {
    let mut publisher = Publisher::open(broker).await;
    for number in numbers {
        publisher.persistent(queue, &numbered(number, 100));
    }
    publisher.all_confirmed().await;
    publisher.connection.close().await.expect("close-ok");
}

/// Starts a consumer with a limit and takes that many deliveries.
async fn take_out(broker: &Broker, queue: &str, count: u16) -> (Connection, u16, Vec<Received>) {
    let (mut connection, channel) = open(broker).await;
    connection.qos(channel, count, false).await.expect("qos-ok");
    let options = ConsumeOptions::default();
    let consuming = connection.consume(channel, queue, &options).await;
    consuming.expect("a consumer");
    let deliveries = receive_all(&mut connection, count.into()).await;
    (connection, channel, deliveries)
}

/// Number and mark of each message.
fn marks(messages: &[Message]) -> Vec<(u64, bool)> {
    let marks = messages.iter();
    marks.map(|m| (number(&m.body), m.redelivered)).collect()
}

fn all_properties() -> Vec<u8> {
    let headers = FieldTable::new()
        .with("text", "Grüße")
        .with("number", -5)
        .with("nested", FieldTable::new().with("deeper", true));
    PropertiesBuilder::default()
        .text(Property::ContentType, "text/plain")
        .text(Property::ContentEncoding, "utf-8")
        .headers(&headers)
        .delivery_mode(2)
        .priority(7)
        .text(Property::CorrelationId, "correlation")
        .text(Property::ReplyTo, "replies")
        .text(Property::Expiration, "86400000")
        .text(Property::MessageId, "id")
        .timestamp(1_600_000_000)
        .text(Property::Type, "type")
        .text(Property::UserId, "guest")
        .text(Property::AppId, "application")
        .text(Property::ClusterId, "cluster")
        .finish()
}

#[test]
fn persistent_messages_come_back_in_order_with_all_that_belongs_to_them() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("kept").await;
            let mut publisher = Publisher::open(&broker).await;
            let (connection, channel) = (&mut publisher.connection, publisher.channel);
            bind(connection, channel, "kept", "amq.topic", "a.*").await;
            let large = testkit::Random::new(1).bytes(1 << 20);
            let bodies = [&b""[..], b"small", &large, b"", &[0; 131_072 - 8], b"last"];
            for body in bodies {
                publisher.publish("amq.topic", "a.key", &all_properties(), body);
                publisher.publish("", "kept", &persistent(), body);
            }
            publisher.all_confirmed().await;
            drop(publisher);
            ending.restart(&mut broker);
            let kept = take_all(&broker, "kept").await;
            assert_eq!(kept.len(), 2 * bodies.len(), "{ending:?}");
            for (pair, body) in kept.chunks(2).zip(bodies) {
                let [full, plain] = pair else {
                    unreachable!("an even number");
                };
                assert!(full.body == body && plain.body == body, "{ending:?}");
                assert_eq!(full.properties, all_properties());
                assert_eq!(plain.properties, persistent());
                assert_eq!(full.exchange, "amq.topic");
                assert_eq!(full.routing_key, "a.key");
                assert_eq!((&*plain.exchange, &*plain.routing_key), ("", "kept"));
                assert!(!full.redelivered && !plain.redelivered);
            }
            broker.stop().expect("exit status 0");
        }
    });
}

#[test]
fn transient_messages_do_not_come_back_and_leave_no_gap() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("mixed").await;
            let mut publisher = Publisher::open(&broker).await;
            let transient = PropertiesBuilder::default().delivery_mode(1).finish();
            for number in 0..300 {
                let body = numbered(number, 50);
                match number % 3 {
                    0 => publisher.persistent("mixed", &body),
                    1 => publisher.publish("", "mixed", &transient, &body),
                    _ => publisher.publish("", "mixed", &[0, 0], &body),
                }
            }
            publisher.all_confirmed().await;
            assert_eq!(messages_in(&broker, "mixed").await, Some(300));
            drop(publisher);
            ending.restart(&mut broker);
            let expected: Vec<u64> = (0..300).step_by(3).collect();
            assert_eq!(messages_in(&broker, "mixed").await, Some(100), "{ending:?}");
            assert_eq!(take_numbers(&broker, "mixed").await, expected, "{ending:?}");
        }
    });
}

/// One message, several queues: each has its own copy, and its own end.
#[test]
fn message_survives_in_every_durable_queue_that_it_was_routed_to() {
    within(seconds(20), async {
        let mut broker = with_queue("one").await;
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "two").await;
        declare(&mut connection, channel, "transient").await;
        for queue in ["one", "two", "transient"] {
            bind(&mut connection, channel, queue, "amq.fanout", "").await;
        }
        let mut publisher = Publisher::open(&broker).await;
        for number in 0..50 {
            let body = numbered(number, 2_000);
            publisher.publish("amq.fanout", "", &persistent(), &body);
        }
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "one").await.len(), 50);
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "one").await, Some(0));
        assert!((0..50).eq(take_numbers(&broker, "two").await));
        assert_eq!(messages_in(&broker, "transient").await, None);
    });
}

#[test]
fn what_was_out_for_delivery_comes_back_redelivered_and_the_rest_does_not() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("out").await;
            fill(&broker, "out", 0..10).await;
            let (mut connection, channel, out) = take_out(&broker, "out", 4).await;
            assert!(out.iter().all(|delivery| !delivery.redelivered));
            // The second is done with, so that the fifth goes out.
            connection.ack(channel, out[1].tag, false);
            assert_eq!(receive(&mut connection).await.number(), 4);
            until_written_down().await;
            if ending == Ending::Stopped {
                connection.close().await.expect("close-ok");
            }
            ending.restart(&mut broker);
            let expected: Vec<(u64, bool)> = [0, 2, 3, 4, 5, 6, 7, 8, 9]
                .map(|number| (number, number < 5))
                .into();
            let left = take_all(&broker, "out").await;
            assert_eq!(marks(&left), expected, "{ending:?}");
        }
    });
}

/// The mark is not for one restart only.
#[test]
fn redelivered_mark_survives_a_second_restart() {
    within(seconds(20), async {
        let mut broker = with_queue("twice").await;
        fill(&broker, "twice", 0..4).await;
        let (connection, channel) = open(&broker).await;
        let mut connection = connection;
        let got = connection.get(channel, "twice", false).await;
        assert!(got.expect("an answer").is_some());
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        Ending::Killed.restart(&mut broker);
        fill(&broker, "twice", 4..6).await;
        Ending::Stopped.restart(&mut broker);
        let expected = [0, 1, 2, 3, 4, 5].map(|number| (number, number < 1));
        assert_eq!(marks(&take_all(&broker, "twice").await), expected);
    });
}

#[test]
fn settled_messages_stay_gone() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("settled").await;
            fill(&broker, "settled", 0..12).await;
            let (mut connection, channel, out) = take_out(&broker, "settled", 10).await;
            connection.ack(channel, out[1].tag, true);
            connection.ack(channel, out[4].tag, false);
            connection.reject(channel, out[6].tag, false);
            connection.nack(channel, out[8].tag, false, false);
            // With the credit for those five the last two come.
            receive_all(&mut connection, 2).await;
            until_written_down().await;
            if ending == Ending::Stopped {
                connection.close().await.expect("close-ok");
            }
            ending.restart(&mut broker);
            let left = take_numbers(&broker, "settled").await;
            assert_eq!(left, [2, 3, 5, 7, 9, 10, 11], "{ending:?}");
        }
    });
}

#[test]
fn requeued_messages_keep_their_places() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("requeued").await;
            fill(&broker, "requeued", 0..20).await;
            let (mut connection, channel, out) = take_out(&broker, "requeued", 10).await;
            let consumer = out[0].consumer.clone();
            connection.cancel(channel, &consumer).await.expect("ok");
            for index in [7, 3, 1] {
                connection.nack(channel, out[index].tag, false, true);
            }
            connection.ack(channel, out[2].tag, false);
            synchronize(&mut connection, channel).await;
            until_written_down().await;
            if ending == Ending::Stopped {
                connection.close().await.expect("close-ok");
            }
            ending.restart(&mut broker);
            let expected: Vec<(u64, bool)> = (0..20)
                .filter(|number| *number != 2)
                .map(|number| (number, number < 10))
                .collect();
            let left = take_all(&broker, "requeued").await;
            assert_eq!(marks(&left), expected, "{ending:?}");
        }
    });
}

/// A purge takes what waits; what is out comes back.
#[test]
fn purged_messages_stay_gone_and_those_that_are_out_come_back() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("purged").await;
            fill(&broker, "purged", 0..30).await;
            let (mut connection, channel, _) = take_out(&broker, "purged", 3).await;
            let purged = connection.purge(channel, "purged").await;
            assert_eq!(purged.expect("purge-ok"), 27);
            fill(&broker, "purged", 100..103).await;
            until_written_down().await;
            if ending == Ending::Stopped {
                connection.close().await.expect("close-ok");
            }
            ending.restart(&mut broker);
            let left = take_all(&broker, "purged").await;
            let expected = [0, 1, 2, 100, 101, 102].map(|number| (number, number < 100));
            assert_eq!(marks(&left), expected, "{ending:?}");
        }
    });
}

/// Nothing is between delete-ok and the end: the answer itself waits for the log.
#[test]
fn messages_of_a_deleted_queue_do_not_return_with_its_name() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("deleted").await;
            for round in 0..5 {
                fill(&broker, "deleted", 10 * round..10 * round + 10).await;
                let (mut connection, channel) = open(&broker).await;
                let deleted = connection.delete_queue(channel, "deleted").await;
                assert_eq!(deleted.expect("delete-ok"), 10);
                if round == 4 {
                    break;
                }
                declare_durable(&mut connection, channel, "deleted").await;
                if round % 2 == 1 {
                    drop(connection);
                    ending.restart(&mut broker);
                    assert_eq!(messages_in(&broker, "deleted").await, Some(0));
                }
            }
            ending.restart(&mut broker);
            assert_eq!(messages_in(&broker, "deleted").await, None, "{ending:?}");
        }
    });
}

#[test]
fn committed_transactions_stay_whole() {
    within(seconds(20), async {
        let mut broker = with_queue("left").await;
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "right").await;
        declare_durable(&mut connection, channel, "taken").await;
        fill(&broker, "taken", 0..5).await;
        connection.tx_select(channel).await.expect("select-ok");
        for number in 0..100 {
            let queue = if number % 2 == 0 { "left" } else { "right" };
            publish_persistent(&mut connection, channel, queue, &numbered(number, 500));
            publish(&mut connection, channel, queue, &numbered(1_000, 500));
        }
        for _ in 0..3 {
            let message = connection.get(channel, "taken", false).await;
            let tag = message.expect("an answer").expect("one").delivery_tag;
            connection.ack(channel, tag, false);
        }
        connection.tx_commit(channel).await.expect("commit-ok");
        // At once: commit-ok has waited for the log.
        Ending::Killed.restart(&mut broker);
        let even: Vec<u64> = (0..100).step_by(2).collect();
        let odd: Vec<u64> = (1..100).step_by(2).collect();
        assert_eq!(take_numbers(&broker, "left").await, even);
        assert_eq!(take_numbers(&broker, "right").await, odd);
        assert_eq!(take_numbers(&broker, "taken").await, [3, 4]);
    });
}

/// A channel with a transaction that publishes ten messages and acknowledges three of five.
async fn uncommitted(broker: &Broker) -> (Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    connection.tx_select(channel).await.expect("select-ok");
    for number in 0..10 {
        publish_persistent(&mut connection, channel, "to", &numbered(number, 500));
    }
    for _ in 0..3 {
        let message = connection.get(channel, "from", false).await;
        let tag = message.expect("an answer").expect("one").delivery_tag;
        connection.ack(channel, tag, false);
    }
    synchronize(&mut connection, channel).await;
    (connection, channel)
}

#[test]
fn uncommitted_transactions_leave_no_trace() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = with_queue("to").await;
            let (mut connection, channel) = open(&broker).await;
            declare_durable(&mut connection, channel, "from").await;
            connection.close().await.expect("close-ok");
            fill(&broker, "from", 0..5).await;
            let open = uncommitted(&broker).await;
            until_written_down().await;
            if ending == Ending::Stopped {
                drop(open);
            }
            ending.restart(&mut broker);
            assert_eq!(take_numbers(&broker, "to").await, [0; 0], "{ending:?}");
            let expected = [0, 1, 2, 3, 4].map(|number| (number, number < 3));
            let left = take_all(&broker, "from").await;
            assert_eq!(marks(&left), expected, "{ending:?}");
        }
    });
}

#[test]
fn rolled_back_transactions_leave_no_trace() {
    within(seconds(20), async {
        let mut broker = with_queue("to").await;
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "from").await;
        fill(&broker, "from", 0..5).await;
        let (mut connection, channel) = uncommitted(&broker).await;
        connection.tx_rollback(channel).await.expect("rollback-ok");
        publish_persistent(&mut connection, channel, "to", &numbered(77, 8));
        connection.tx_commit(channel).await.expect("commit-ok");
        Ending::Killed.restart(&mut broker);
        assert_eq!(take_numbers(&broker, "to").await, [77]);
        assert_eq!(take_numbers(&broker, "from").await, [0, 1, 2, 3, 4]);
    });
}

/// Every message is at one of three places after the end: with the client, in the queue, or at
/// both, and then it is marked. This is so in the middle of a stream of them, too.
#[test]
fn no_ack_deliveries_are_gone_and_what_was_not_delivered_is_not() {
    const COUNT: u64 = 3_000;
    const BODY: usize = 8 * 1024;
    within(seconds(40), async {
        let mut broker = with_queue("no-ack").await;
        let mut publisher = Publisher::open(&broker).await;
        for number in 0..COUNT {
            publisher.persistent("no-ack", &numbered(number, BODY));
        }
        publisher.all_confirmed().await;
        let (mut connection, channel) = open(&broker).await;
        let options = ConsumeOptions::no_ack();
        let consuming = connection.consume(channel, "no-ack", &options).await;
        consuming.expect("a consumer");
        // Then the client is slow: sockets and buffers fill.
        receive_all(&mut connection, 200).await;
        until_written_down().await;
        broker.kill().expect("a running broker");
        let mut delivered = 200;
        while let Ok(event) = connection.next().await {
            let delivery = received(&event).expect("a delivery");
            assert_eq!(delivery.number(), delivered);
            delivered += 1;
        }
        broker.start_again().expect("a restart");
        let left = take_all(&broker, "no-ack").await;
        let numbers: Vec<u64> = left.iter().map(|m| number(&m.body)).collect();
        let first = numbers[0];
        assert!((first..COUNT).eq(numbers.iter().copied()), "in order");
        assert!(first >= 200, "{first} had been delivered long before");
        assert!(
            first <= delivered,
            "{first} is the first that is left, {delivered} were delivered"
        );
        for message in left.iter().take_while(|m| number(&m.body) < delivered) {
            assert!(message.redelivered, "came twice and is not marked");
        }
    });
}

/// A queue of AMQP 0-8's days is as durable.
#[test]
fn durable_exchange_and_queue_of_a_0_8_client_survive() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let old = client::Options {
            version: client::Version::V0_8,
            ..options(&broker)
        };
        let mut connection = connect_with(&old).await;
        let channel = connection.open_channel().await.expect("a channel");
        let durable = ExchangeOptions {
            durable: true,
            ..ExchangeOptions::default()
        };
        let declaring = connection.declare_exchange(channel, "X", "direct", &durable);
        declaring.await.expect("an exchange");
        declare_durable(&mut connection, channel, "old").await;
        bind(&mut connection, channel, "old", "X", "").await;
        connection.tx_select(channel).await.expect("select-ok");
        publish_persistent(&mut connection, channel, "old", &numbered(1, 8));
        connection.tx_commit(channel).await.expect("commit-ok");
        Ending::Killed.restart(&mut broker);
        let mut publisher = Publisher::open(&broker).await;
        publisher.publish("X", "", &persistent(), &numbered(2, 8));
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "old").await, [1, 2]);
    });
}
