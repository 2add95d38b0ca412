//! Queues with `x-max-priority`: who comes first.

mod support;

use client::{Connection, FieldTable, PropertiesBuilder};
use support::durable::*;
use support::folder::size_of;
use support::rules::*;
use support::*;
use testkit::{Broker, Random};

fn up_to(highest: i32) -> FieldTable {
    FieldTable::new().with("x-max-priority", highest)
}

fn of_priority(priority: u8) -> PropertiesBuilder {
    PropertiesBuilder::default()
        .delivery_mode(2)
        .priority(priority)
}

/// A channel, and a new durable queue of that name.
async fn with_queue(broker: &Broker, queue: &str, arguments: FieldTable) -> (Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    declare_as(&mut connection, channel, queue, &durable(arguments)).await;
    (connection, channel)
}

/// Publishes numbers with these priorities.
async fn fill(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    messages: impl IntoIterator<Item = (u64, u8)>,
) {
    for (number, priority) in messages {
        let body = numbered(number, 8);
        send(connection, channel, queue, of_priority(priority), &body);
    }
    synchronize(connection, channel).await;
}

/// Takes all messages; returns the numbers that they begin with.
async fn take(connection: &mut Connection, channel: u16, queue: &str) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(message) = get(connection, channel, queue, true).await {
        all.push(number(&message.body));
    }
    all
}

/// Random priorities, and their numbers in the order in which they must come.
fn shuffled(count: u64, highest: u8, seed: u64) -> (Vec<(u64, u8)>, Vec<u64>) {
    let mut random = Random::new(seed);
    let mut priority = || random.below(usize::from(highest) + 1) as u8;
    let messages: Vec<(u64, u8)> = (0..count).map(|n| (n, priority())).collect();
    let mut sorted = messages.clone();
    sorted.sort_by_key(|(number, priority)| (std::cmp::Reverse(*priority), *number));
    let order = sorted.into_iter().map(|(number, _)| number).collect();
    (messages, order)
}

#[test]
fn higher_priority_comes_first_and_equals_keep_their_order() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = with_queue(&broker, "by priority", up_to(9)).await;
        let (messages, order) = shuffled(2_000, 9, 1);
        fill(&mut connection, channel, "by priority", messages.clone()).await;
        let count = look_at(&mut connection, channel, "by priority").await;
        assert_eq!(count.messages, 2_000);
        let got = take(&mut connection, channel, "by priority").await;
        assert_eq!(got, order);
        fill(&mut connection, channel, "by priority", messages).await;
        drain_from(&mut connection, channel, "by priority").await;
        let letters = letters_until_quiet(&mut connection, millis(200)).await;
        assert_eq!(numbers(&letters), order);
    });
}

#[test]
fn priority_beyond_the_highest_counts_as_the_highest_and_none_as_zero() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = with_queue(&broker, "beyond", up_to(3)).await;
        let plain = PropertiesBuilder::default;
        let body = |number| numbered(number, 8);
        send(&mut connection, channel, "beyond", plain(), &body(1));
        send(&mut connection, channel, "beyond", of_priority(0), &body(2));
        send(&mut connection, channel, "beyond", of_priority(3), &body(3));
        send(
            &mut connection,
            channel,
            "beyond",
            of_priority(200),
            &body(4),
        );
        send(&mut connection, channel, "beyond", of_priority(3), &body(5));
        send(&mut connection, channel, "beyond", of_priority(4), &body(6));
        send(&mut connection, channel, "beyond", of_priority(1), &body(7));
        send(&mut connection, channel, "beyond", plain(), &body(8));
        drain_from(&mut connection, channel, "beyond").await;
        let letters = letters_until_quiet(&mut connection, millis(150)).await;
        assert_eq!(numbers(&letters), [3, 4, 5, 6, 7, 1, 2, 8]);
        // What the message says of itself is not changed.
        let said = letters[1].properties().get(client::Property::Priority);
        assert_eq!(said, Some(amqp::Value::U8(200)));
    });
}

#[test]
fn queue_of_priority_zero_and_queue_without_any_keep_the_order_of_arrival() {
    within(seconds(10), async {
        let broker = shared();
        for (queue, arguments) in [("zero", up_to(0)), ("without", FieldTable::new())] {
            let (mut connection, channel) = with_queue(&broker, queue, arguments).await;
            let (messages, _) = shuffled(100, 9, 2);
            fill(&mut connection, channel, queue, messages).await;
            assert!((0..100).eq(take(&mut connection, channel, queue).await));
        }
    });
}

#[test]
fn all_priorities_up_to_255_work() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = with_queue(&broker, "all", up_to(255)).await;
        let (messages, order) = shuffled(3_000, 255, 3);
        fill(&mut connection, channel, "all", messages).await;
        let (first, rest) = order.split_at(1_000);
        for expected in first {
            let got = get(&mut connection, channel, "all", true).await;
            assert_eq!(number(&got.expect("a message").body), *expected);
        }
        connection.close().await.expect("close-ok");
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(take_numbers(&broker, "all").await, rest);
        let refused = refusal_of(&broker, &durable(up_to(256))).await;
        assert!(refused.ends_with("{max_value_exceeded,256}"), "{refused}");
        let refused = refusal_of(&broker, &durable(up_to(-1))).await;
        assert!(refused.ends_with("{value_negative,-1}"), "{refused}");
    });
}

#[test]
fn requeued_message_returns_to_its_place_within_its_priority() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = with_queue(&broker, "requeued", up_to(5)).await;
        let messages = [(1, 0), (2, 5), (3, 5), (4, 3), (5, 5), (6, 0), (7, 3)];
        fill(&mut connection, channel, "requeued", messages).await;
        let mut tags = Vec::new();
        for expected in [2, 3, 5, 4, 7] {
            let got = get(&mut connection, channel, "requeued", false).await;
            let got = got.expect("a message");
            assert_eq!(number(&got.body), expected);
            tags.push(got.delivery_tag);
        }
        fill(&mut connection, channel, "requeued", [(8, 5), (9, 3)]).await;
        for tag in [tags[4], tags[0], tags[3], tags[2]] {
            connection.nack(channel, tag, false, true);
        }
        connection.ack(channel, tags[1], false);
        drain_from(&mut connection, channel, "requeued").await;
        let letters = letters_until_quiet(&mut connection, millis(150)).await;
        assert_eq!(numbers(&letters), [2, 5, 8, 4, 7, 9, 1, 6]);
        let marks: Vec<bool> = letters.iter().map(|l| l.delivery.redelivered).collect();
        assert_eq!(marks, [true, true, false, true, true, false, false, false]);
    });
}

/// What a consumer had been given and has not acknowledged, with all that was on its way.
#[test]
fn closed_channel_returns_messages_of_all_priorities_to_their_places() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = with_queue(&broker, "closed", up_to(9)).await;
        let (messages, order) = shuffled(3_000, 9, 4);
        fill(&mut connection, channel, "closed", messages).await;
        for prefetch in [0, 700] {
            let (mut consumer, consuming) = open(&broker).await;
            consume_from(&mut consumer, consuming, "closed", prefetch).await;
            let letters = receive_all(&mut consumer, 500).await;
            let got: Vec<u64> = letters.iter().map(Received::number).collect();
            assert_eq!(got, order[..500]);
            consumer.close_channel(consuming).await.expect("close-ok");
        }
        assert_eq!(take(&mut connection, channel, "closed").await, order);
    });
}

#[test]
fn messages_of_all_priorities_expire() {
    within(seconds(10), async {
        let broker = shared();
        let arguments = up_to(5)
            .with("x-message-ttl", 400)
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", "expired dead");
        let (mut connection, channel) = with_queue(&broker, "expired", arguments).await;
        declare(&mut connection, channel, "expired dead").await;
        let (messages, _) = shuffled(600, 5, 5);
        let began = std::time::Instant::now();
        fill(&mut connection, channel, "expired", messages).await;
        // Some have less time, wherever they are.
        for number in 600..700 {
            let properties = PropertiesBuilder::default()
                .priority((number % 6) as u8)
                .text(client::Property::Expiration, "100");
            let body = numbered(number, 8);
            send(&mut connection, channel, "expired", properties, &body);
        }
        synchronize(&mut connection, channel).await;
        drain_from(&mut connection, channel, "expired dead").await;
        for at in 0..700 {
            let letter = receive_letter(&mut connection).await;
            let short = letter.number() >= 600;
            assert_eq!(short, at < 100, "{at}: {}", letter.number());
            let least = if short { 98 } else { 398 };
            assert!(began.elapsed() >= millis(least), "{:?}", began.elapsed());
        }
        let left = look_at(&mut connection, channel, "expired").await;
        assert_eq!(left.messages, 0);
    });
}

/// As in RabbitMQ the head makes room: the first of the highest priority.
#[test]
fn limit_counts_messages_of_all_priorities() {
    within(seconds(10), async {
        let broker = shared();
        let arguments = up_to(2).with("x-max-length", 4);
        let (mut connection, channel) = with_queue(&broker, "limited", arguments).await;
        let messages = [(1, 0), (2, 1), (3, 2), (4, 0), (5, 2), (6, 0)];
        fill(&mut connection, channel, "limited", messages).await;
        let left = take(&mut connection, channel, "limited").await;
        assert_eq!(left, [2, 1, 4, 6]);
        let arguments = up_to(2)
            .with("x-max-length", 4)
            .with("x-overflow", "reject-publish");
        let (mut connection, channel) = with_queue(&broker, "refusing", arguments).await;
        fill(&mut connection, channel, "refusing", messages).await;
        let left = take(&mut connection, channel, "refusing").await;
        assert_eq!(left, [3, 2, 1, 4]);
    });
}

#[test]
fn order_by_priority_survives_a_restart() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = with_queue(&broker, "kept", up_to(9)).await;
            let (messages, order) = shuffled(1_000, 9, 6);
            fill(&mut connection, channel, "kept", messages).await;
            let mut tags = Vec::new();
            for _ in 0..300 {
                let got = get(&mut connection, channel, "kept", false).await;
                tags.push(got.expect("a message").delivery_tag);
            }
            for tag in tags.iter().step_by(2) {
                connection.ack(channel, *tag, false);
            }
            synchronize(&mut connection, channel).await;
            until_written_down().await;
            connection.close().await.expect("close-ok");
            ending.restart(&mut broker);
            let (mut connection, channel) = open(&broker).await;
            let more = (1_000..1_010).map(|number| (number, (number % 10) as u8));
            fill(&mut connection, channel, "kept", more).await;
            connection.close().await.expect("close-ok");
            let left = take_all(&broker, "kept").await;
            let old: Vec<u64> = left.iter().map(|m| number(&m.body)).collect();
            let old: Vec<u64> = old.into_iter().filter(|n| *n < 1_000).collect();
            let kept = order.iter().enumerate();
            let kept = kept.filter(|(at, _)| *at >= 300 || at % 2 == 1);
            assert!(kept.map(|(_, n)| *n).eq(old), "{ending:?}");
            assert_eq!(left.len(), 850 + 10);
            let priorities = left.iter().map(|message| {
                match message.properties().get(client::Property::Priority) {
                    Some(amqp::Value::U8(priority)) => priority,
                    other => panic!("a priority expected, got {other:?}"),
                }
            });
            assert!(priorities.rev().is_sorted(), "{ending:?}");
            broker.stop().expect("exit status 0");
        }
    });
}

/// A backlog that lies in segments, of every priority.
#[test]
fn long_backlog_comes_in_order_of_priority_before_and_after_a_restart() {
    const COUNT: u64 = 12_000;
    within(seconds(60), async {
        let mut broker = with_little_memory().start().expect("a broker");
        let (mut connection, channel) = with_queue(&broker, "long", up_to(4)).await;
        let (messages, order) = shuffled(COUNT, 4, 7);
        let mut publisher = Publisher::open(&broker).await;
        for (number, priority) in messages {
            let properties = of_priority(priority).finish();
            publisher.publish("", "long", &properties, &numbered(number, 1_000));
            while publisher.published - publisher.confirmed > 1_000 {
                publisher.confirm().await;
            }
        }
        publisher.all_confirmed().await;
        let stored = size_of(&broker.data_dir().join("queues"));
        assert!(stored > 4_000_000, "only {stored} bytes are in segments");
        consume_from(&mut connection, channel, "long", 100).await;
        for expected in &order[..5_000] {
            let delivery = receive(&mut connection).await;
            assert_eq!(delivery.number(), *expected);
            connection.ack(channel, delivery.tag, false);
        }
        connection.close().await.expect("close-ok");
        drop(publisher);
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        let left = messages_in(&broker, "long").await;
        assert_eq!(left, Some(COUNT as u32 - 5_000));
        assert_eq!(take_numbers(&broker, "long").await, order[5_000..]);
    });
}

#[test]
fn purge_and_delete_reach_all_priorities() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = with_queue(&broker, "purged", up_to(9)).await;
        declare_as(&mut connection, channel, "deleted", &durable(up_to(9))).await;
        let (messages, order) = shuffled(500, 9, 8);
        for queue in ["purged", "deleted"] {
            fill(&mut connection, channel, queue, messages.clone()).await;
        }
        let got = get(&mut connection, channel, "purged", false).await;
        let tag = got.expect("a message").delivery_tag;
        let purged = connection.purge(channel, "purged").await;
        assert_eq!(purged.expect("purge-ok"), 499);
        let deleted = connection.delete_queue(channel, "deleted").await;
        assert_eq!(deleted.expect("delete-ok"), 500);
        connection.nack(channel, tag, false, true);
        // Another queue of that name has nothing of it, whatever its priorities.
        declare_as(&mut connection, channel, "deleted", &durable(up_to(3))).await;
        assert!(take(&mut connection, channel, "deleted").await.is_empty());
        fill(
            &mut connection,
            channel,
            "deleted",
            [(1, 1), (2, 3), (3, 9)],
        )
        .await;
        connection.close().await.expect("close-ok");
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(take_numbers(&broker, "purged").await, order[..1]);
        assert_eq!(take_numbers(&broker, "deleted").await, [2, 3, 1]);
    });
}

#[test]
fn transaction_brings_messages_to_their_places() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = with_queue(&broker, "tx", up_to(5)).await;
        fill(&mut connection, channel, "tx", [(1, 1), (2, 2), (3, 3)]).await;
        let transacting = connection.open_channel().await.expect("a channel");
        connection.tx_select(transacting).await.expect("select-ok");
        let got = get(&mut connection, transacting, "tx", false).await;
        let tag = got.expect("a message").delivery_tag;
        connection.ack(transacting, tag, false);
        fill(
            &mut connection,
            transacting,
            "tx",
            [(4, 0), (5, 5), (6, 2), (7, 5)],
        )
        .await;
        let count = look_at(&mut connection, channel, "tx").await;
        assert_eq!(count.messages, 2);
        connection.tx_commit(transacting).await.expect("commit-ok");
        let all = take(&mut connection, channel, "tx").await;
        assert_eq!(all, [5, 7, 2, 6, 1, 4]);
    });
}

/// A waiting consumer takes what comes; what is more important overtakes what waits.
#[test]
fn important_message_overtakes_those_that_wait_for_an_acknowledgement() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = with_queue(&broker, "overtaken", up_to(9)).await;
        consume_from(&mut connection, channel, "overtaken", 1).await;
        let low = (0..5).map(|number| (number, 1));
        fill(&mut connection, channel, "overtaken", low).await;
        fill(&mut connection, channel, "overtaken", [(9, 9), (5, 5)]).await;
        for expected in [0, 9, 5, 1, 2, 3, 4] {
            let delivery = receive(&mut connection).await;
            assert_eq!(delivery.number(), expected);
            connection.ack(channel, delivery.tag, false);
        }
        assert_quiet(&mut connection).await;
    });
}
