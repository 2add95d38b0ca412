//! Who gets which message, how many at a time, and what happens to consumers and their queues when
//! one of them ends.

mod support;

use std::collections::BTreeMap;

use client::method::{basic, channel};
use client::{
    Connection, ConsumeOptions, Error, Event, FieldTable, Method, Options, QueueOptions,
    RawConnection, ShortStr,
};
use testkit::Broker;

use support::*;

/// A connection, a channel, and a new queue with numbered messages.
async fn filled(broker: &Broker, queue: &str, count: u64) -> (Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    declare(&mut connection, channel, queue).await;
    fill(&mut connection, channel, queue, 0..count).await;
    (connection, channel)
}

async fn fill(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    numbers: std::ops::Range<u64>,
) {
    for number in numbers {
        publish(connection, channel, queue, &numbered(number, 8));
    }
    synchronize(connection, channel).await;
}

async fn consume(connection: &mut Connection, channel: u16, queue: &str, tag: &str) {
    let options = ConsumeOptions {
        consumer_tag: tag.to_owned(),
        ..ConsumeOptions::default()
    };
    let consuming = connection.consume(channel, queue, &options).await;
    consuming.expect("a consumer");
}

fn numbers(deliveries: &[Received]) -> Vec<u64> {
    deliveries.iter().map(Received::number).collect()
}

/// Exactly these come, in this order, and then nothing.
async fn assert_receives(connection: &mut Connection, expected: std::ops::Range<u64>) {
    let count = (expected.end - expected.start) as usize;
    let all = receive_all(connection, count).await;
    assert_eq!(numbers(&all), expected.collect::<Vec<_>>());
    assert_quiet(connection).await;
}

#[test]
fn four_consumers_take_turns() {
    within(seconds(10), async {
        let broker = shared();
        let (mut publisher, publishing) = filled(&broker, "turns", 0).await;
        let mut consumers = Vec::new();
        for _ in 0..4 {
            let (mut consumer, channel) = open(&broker).await;
            consume(&mut consumer, channel, "turns", "").await;
            consumers.push(consumer);
        }
        fill(&mut publisher, publishing, "turns", 0..4_000).await;
        let mut first = Vec::new();
        for consumer in &mut consumers {
            let all = numbers(&receive_all(consumer, 1_000).await);
            assert!(all.windows(2).all(|pair| pair[1] == pair[0] + 4), "{all:?}");
            first.push(all[0]);
        }
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
    });
}

#[test]
fn consumers_of_one_connection_take_turns_too() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "own-turns", 0).await;
        for tag in ["a", "b", "c", "d"] {
            consume(&mut connection, channel, "own-turns", tag).await;
        }
        fill(&mut connection, channel, "own-turns", 0..400).await;
        let all = receive_all(&mut connection, 400).await;
        assert_eq!(numbers(&all), (0..400).collect::<Vec<_>>());
        for round in all.chunks(4) {
            let tags: Vec<&str> = round.iter().map(|delivery| &*delivery.consumer).collect();
            assert_eq!(tags, ["a", "b", "c", "d"]);
        }
    });
}

/// A consumer with its hands full is passed over, and holds nobody up.
#[test]
fn consumer_that_does_not_acknowledge_gets_its_share_only() {
    within(seconds(10), async {
        let broker = shared();
        let (mut slow, channel) = filled(&broker, "share", 0).await;
        slow.qos(channel, 3, false).await.expect("qos-ok");
        consume(&mut slow, channel, "share", "slow").await;
        let (mut fast, fast_channel) = open(&broker).await;
        fast.qos(fast_channel, 3, false).await.expect("qos-ok");
        consume(&mut fast, fast_channel, "share", "fast").await;
        let (mut publisher, publishing) = open(&broker).await;
        fill(&mut publisher, publishing, "share", 0..300).await;
        for _ in 0..297 {
            let delivery = receive(&mut fast).await;
            fast.ack(fast_channel, delivery.tag, false);
        }
        assert_quiet(&mut fast).await;
        let held = receive_all(&mut slow, 3).await;
        assert!(held.iter().all(|delivery| delivery.number() < 6));
        assert_quiet(&mut slow).await;
    });
}

#[test]
fn higher_priority_comes_first_as_long_as_it_has_room() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "priority", 0).await;
        connection.qos(channel, 2, false).await.expect("qos-ok");
        for (tag, priority) in [("low", -1), ("normal", 0), ("high", 10), ("high-too", 10)] {
            let options = ConsumeOptions {
                consumer_tag: tag.to_owned(),
                arguments: FieldTable::new().with("x-priority", priority),
                ..ConsumeOptions::default()
            };
            let consuming = connection.consume(channel, "priority", &options).await;
            consuming.expect("a consumer");
        }
        fill(&mut connection, channel, "priority", 0..20).await;
        let eight = receive_all(&mut connection, 8).await;
        let who: Vec<&str> = eight.iter().map(|delivery| &*delivery.consumer).collect();
        let high = ["high", "high-too", "high", "high-too"];
        assert_eq!(who[..4], high);
        assert_eq!(who[4..], ["normal", "normal", "low", "low"]);
        assert_quiet(&mut connection).await;
        // Whoever acknowledges has room; the most important of them is served.
        connection.ack(channel, eight[7].tag, false);
        assert_eq!(receive(&mut connection).await.consumer, "low");
        connection.ack(channel, eight[0].tag, false);
        assert_eq!(receive(&mut connection).await.consumer, "high");
        assert_quiet(&mut connection).await;
    });
}

#[test]
fn prefetch_counts_for_consumers_that_start_after_it() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "later", 100).await;
        connection.qos(channel, 5, false).await.expect("qos-ok");
        consume(&mut connection, channel, "later", "five").await;
        assert_receives(&mut connection, 0..5).await;
        connection.qos(channel, 7, false).await.expect("qos-ok");
        assert_quiet(&mut connection).await;
        consume(&mut connection, channel, "later", "seven").await;
        assert_receives(&mut connection, 5..12).await;
        // Each has its own count.
        connection.ack(channel, 1, false);
        assert_eq!(receive(&mut connection).await.consumer, "five");
        connection.ack(channel, 12, false);
        assert_eq!(receive(&mut connection).await.consumer, "seven");
        connection.qos(channel, 0, false).await.expect("qos-ok");
        consume(&mut connection, channel, "later", "all").await;
        assert_receives(&mut connection, 14..100).await;
    });
}

#[test]
fn channel_wide_prefetch_changes_while_consuming() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "global", 100).await;
        connection.qos(channel, 5, true).await.expect("qos-ok");
        consume(&mut connection, channel, "global", "a").await;
        consume(&mut connection, channel, "global", "b").await;
        assert_receives(&mut connection, 0..5).await;
        // More room counts at once, for those who consume already.
        connection.qos(channel, 8, true).await.expect("qos-ok");
        assert_receives(&mut connection, 5..8).await;
        // Less counts from the next delivery on.
        connection.qos(channel, 3, true).await.expect("qos-ok");
        connection.ack(channel, 5, true);
        assert_quiet(&mut connection).await;
        connection.ack(channel, 6, false);
        assert_receives(&mut connection, 8..9).await;
        // 0 is no limit.
        connection.qos(channel, 0, true).await.expect("qos-ok");
        assert_receives(&mut connection, 9..100).await;
    });
}

#[test]
fn both_limits_hold_together() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "both", 100).await;
        connection.qos(channel, 3, false).await.expect("qos-ok");
        connection.qos(channel, 5, true).await.expect("qos-ok");
        for tag in ["a", "b", "c"] {
            consume(&mut connection, channel, "both", tag).await;
        }
        let all = receive_all(&mut connection, 5).await;
        assert_quiet(&mut connection).await;
        let mut by_tag = BTreeMap::new();
        for delivery in &all {
            *by_tag.entry(&*delivery.consumer).or_insert(0) += 1;
        }
        assert!(by_tag.values().all(|count| *count <= 3), "{by_tag:?}");
        connection.ack(channel, 0, true);
        receive_all(&mut connection, 5).await;
        assert_quiet(&mut connection).await;
    });
}

/// Room that is made in one queue is used by another.
#[test]
fn room_in_a_channel_goes_to_any_of_its_consumers() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "room-1", 4).await;
        declare(&mut connection, channel, "room-2").await;
        fill(&mut connection, channel, "room-2", 10..20).await;
        connection.qos(channel, 4, true).await.expect("qos-ok");
        consume(&mut connection, channel, "room-1", "one").await;
        assert_receives(&mut connection, 0..4).await;
        consume(&mut connection, channel, "room-2", "two").await;
        assert_quiet(&mut connection).await;
        connection.ack(channel, 2, true);
        assert_receives(&mut connection, 10..12).await;
        // Whatever ends a delivery makes room.
        connection.reject(channel, 3, false);
        assert_receives(&mut connection, 12..13).await;
        connection.nack(channel, 4, false, false);
        assert_receives(&mut connection, 13..14).await;
        // basic.get does not count, in either direction.
        fill(&mut connection, channel, "room-1", 4..5).await;
        let got = loop {
            // The consumer would take it, had it room.
            let got = connection.get(channel, "room-1", false).await;
            if let Some(got) = got.expect("an answer") {
                break got;
            }
        };
        connection.ack(channel, got.delivery_tag, false);
        assert_quiet(&mut connection).await;
    });
}

fn name(text: &str) -> ShortStr<'_> {
    ShortStr::try_from(text).expect("a short name")
}

/// The client cancels before it has read anything: what had been sent by then comes before
/// cancel-ok, the rest is in the queue, and between them nothing is missing.
async fn cancelled_before_reading(queue: &str, no_ack: bool) {
    const COUNT: u64 = 5_000;
    let broker = shared();
    let (mut connection, publishing) = filled(&broker, queue, 0).await;
    for number in 0..COUNT {
        let body = numbered(number, 8 * 1024);
        publish(&mut connection, publishing, queue, &body);
    }
    synchronize(&mut connection, publishing).await;
    let options = options(&broker);
    let mut raw = RawConnection::open(&options).await.expect("a connection");
    raw.handshake(&options).await.expect("a handshake");
    raw.send(1, channel::Open::default());
    raw.send(
        1,
        basic::Consume {
            queue: name(queue),
            consumer_tag: name("gone"),
            no_ack,
            ..Default::default()
        },
    );
    raw.flush().await;
    tokio::time::sleep(millis(300)).await;
    raw.send(
        1,
        basic::Cancel {
            consumer_tag: name("gone"),
            no_wait: false,
        },
    );
    raw.flush().await;
    let mut deliveries = 0;
    loop {
        let frame = raw.next_frame().await.expect("a frame").expect("more");
        if frame.kind != 1 {
            continue;
        }
        match frame.method().expect("a method") {
            Method::BasicDeliver(_) => deliveries += 1,
            Method::BasicCancelOk(_) => break,
            _ => {}
        }
    }
    assert!((1..COUNT).contains(&deliveries), "{deliveries} were sent");
    let left = look_at(&mut connection, publishing, queue).await.messages;
    assert_eq!(u64::from(left), COUNT - deliveries);
    consume(&mut connection, publishing, queue, "next").await;
    let rest = receive_all(&mut connection, left as usize).await;
    assert_eq!(numbers(&rest), (deliveries..COUNT).collect::<Vec<_>>());
    assert!(rest.iter().all(|delivery| !delivery.redelivered));
    let more = tokio::time::timeout(millis(100), raw.next_frame()).await;
    assert!(more.is_err(), "something follows cancel-ok");
}

#[test]
fn cancel_returns_what_was_under_way() {
    within(seconds(20), cancelled_before_reading("under-way", false));
}

#[test]
fn cancel_without_acks_returns_what_was_under_way() {
    within(seconds(20), cancelled_before_reading("no-acks", true));
}

/// What a client has received it may still acknowledge after cancel-ok.
#[test]
fn deliveries_outlive_their_consumer() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "outlived", 6).await;
        connection.qos(channel, 4, false).await.expect("qos-ok");
        consume(&mut connection, channel, "outlived", "c").await;
        assert_receives(&mut connection, 0..4).await;
        connection.cancel(channel, "c").await.expect("cancel-ok");
        connection.ack(channel, 2, true);
        connection.reject(channel, 3, true);
        synchronize(&mut connection, channel).await;
        let info = look_at(&mut connection, channel, "outlived").await;
        assert_eq!((info.messages, info.consumers), (3, 0));
        connection.close_channel(channel).await.expect("close-ok");
        let channel = connection.open_channel().await.expect("a channel");
        consume(&mut connection, channel, "outlived", "c").await;
        assert_receives(&mut connection, 2..6).await;
    });
}

async fn exists(connection: &mut Connection, queue: &str) -> bool {
    let channel = connection.open_channel().await.expect("a channel");
    let passive = QueueOptions {
        passive: true,
        ..QueueOptions::default()
    };
    match connection.declare_queue(channel, queue, &passive).await {
        Ok(_) => {
            connection.close_channel(channel).await.expect("close-ok");
            true
        }
        Err(Error::ChannelClosed { code: 404, .. }) => false,
        Err(error) => panic!("{queue}: {error}"),
    }
}

#[test]
fn auto_delete_queue_goes_with_its_last_consumer_however_that_ends() {
    within(seconds(15), async {
        let broker = shared();
        let (mut observer, channel) = open(&broker).await;
        let auto_delete = QueueOptions {
            auto_delete: true,
            ..QueueOptions::default()
        };
        for queue in ["by-cancel", "by-channel", "by-close", "by-kill", "never"] {
            let declared = observer.declare_queue(channel, queue, &auto_delete).await;
            declared.expect("declare-ok");
        }
        // While one is left, it stays.
        consume(&mut observer, channel, "by-cancel", "one").await;
        consume(&mut observer, channel, "by-cancel", "two").await;
        observer.cancel(channel, "one").await.expect("cancel-ok");
        assert!(exists(&mut observer, "by-cancel").await);
        observer.cancel(channel, "two").await.expect("cancel-ok");
        assert!(!exists(&mut observer, "by-cancel").await);

        let other = observer.open_channel().await.expect("a channel");
        consume(&mut observer, other, "by-channel", "c").await;
        observer.close_channel(other).await.expect("close-ok");
        assert!(!exists(&mut observer, "by-channel").await);

        let (mut closing, channel) = open(&broker).await;
        consume(&mut closing, channel, "by-close", "c").await;
        closing.close().await.expect("close-ok");
        assert!(!exists(&mut observer, "by-close").await);

        let (mut killed, channel) = open(&broker).await;
        consume(&mut killed, channel, "by-kill", "c").await;
        drop(killed);
        eventually("by-kill goes", seconds(5), async || {
            !exists(&mut observer, "by-kill").await
        })
        .await;
        assert!(exists(&mut observer, "never").await);
    });
}

#[test]
fn exclusive_queue_goes_when_its_owner_is_killed() {
    within(seconds(10), async {
        let broker = shared();
        let (mut owner, channel) = open(&broker).await;
        let exclusive = QueueOptions::exclusive();
        let declared = owner.declare_queue(channel, "owned", &exclusive).await;
        declared.expect("declare-ok");
        let (mut other, channel) = open(&broker).await;
        let refused = other.declare_queue(channel, "owned", &exclusive).await;
        let refused = refused.expect_err("it is another's");
        assert_eq!(refused.reply_code(), Some(405), "{refused}");
        drop(owner);
        eventually("the queue goes", seconds(5), async || {
            let channel = other.open_channel().await.expect("a channel");
            let declared = other.declare_queue(channel, "owned", &exclusive).await;
            declared.is_ok()
        })
        .await;
    });
}

/// A client that closes and connects again at once may use the same names. Much to throw away, and
/// a broker that is busy with others, so that there is time between the answer and the end.
#[test]
fn exclusive_queues_are_gone_when_their_owner_gets_close_ok() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let keep_busy = async || {
            let (mut busy, channel) = open(&broker).await;
            loop {
                synchronize(&mut busy, channel).await;
            }
        };
        tokio::select! {
            () = keep_busy() => {}
            () = close_and_declare_again(&broker) => {}
        }
    });
}

async fn close_and_declare_again(broker: &Broker) {
    let (mut other, channel) = open(broker).await;
    for _ in 0..2 {
        let (mut owner, owned) = open(broker).await;
        for queue in ["owned-much", "owned-last"] {
            let exclusive = QueueOptions::exclusive();
            let declared = owner.declare_queue(owned, queue, &exclusive).await;
            declared.expect("declare-ok");
        }
        fill(&mut owner, owned, "owned-much", 0..250_000).await;
        owner.close().await.expect("close-ok");
        let shared = QueueOptions::default();
        let declared = other.declare_queue(channel, "owned-last", &shared).await;
        declared.unwrap_or_else(|error| panic!("after close-ok: {error}"));
        let deleted = other.delete_queue(channel, "owned-last").await;
        deleted.expect("delete-ok");
    }
}

#[test]
fn consumers_of_a_deleted_queue_are_told() {
    within(seconds(10), async {
        let broker = shared();
        let (mut consumer, channel) = filled(&broker, "deleted", 3).await;
        consumer.qos(channel, 2, true).await.expect("qos-ok");
        consume(&mut consumer, channel, "deleted", "told").await;
        assert_receives(&mut consumer, 0..2).await;
        let (mut other, other_channel) = open(&broker).await;
        let gone = other.delete_queue(other_channel, "deleted").await;
        assert_eq!(gone.expect("delete-ok"), 1);
        match consumer.next().await.expect("an event") {
            Event::Cancel { consumer_tag, .. } => assert_eq!(consumer_tag.lossy(), "told"),
            event => panic!("basic.cancel expected, got {event:?}"),
        }
        // Its deliveries may be acknowledged, which makes room in the channel.
        consumer.ack(channel, 2, true);
        declare(&mut consumer, channel, "deleted").await;
        consume(&mut consumer, channel, "deleted", "told").await;
        fill(&mut consumer, channel, "deleted", 7..9).await;
        assert_receives(&mut consumer, 7..9).await;
    });
}

#[test]
fn clients_that_do_not_know_cancel_are_not_told() {
    within(seconds(10), async {
        let broker = shared();
        let options = Options {
            properties: FieldTable::new().with("capabilities", FieldTable::new()),
            ..options(&broker)
        };
        let mut consumer = connect_with(&options).await;
        let channel = consumer.open_channel().await.expect("a channel");
        declare(&mut consumer, channel, "untold").await;
        consume(&mut consumer, channel, "untold", "c").await;
        let (mut other, other_channel) = open(&broker).await;
        let gone = other.delete_queue(other_channel, "untold").await;
        gone.expect("delete-ok");
        assert_quiet(&mut consumer).await;
        synchronize(&mut consumer, channel).await;
    });
}

#[test]
fn thousand_consumers_of_one_queue_get_five_each() {
    within(seconds(30), async {
        let broker = shared();
        let (mut publisher, publishing) = filled(&broker, "thousand", 0).await;
        let mut connections = Vec::new();
        for _ in 0..10 {
            let mut connection = connect(&broker).await;
            for _ in 0..10 {
                let channel = connection.open_channel().await.expect("a channel");
                for consumer in 0..10 {
                    let tag = format!("{channel}-{consumer}");
                    consume(&mut connection, channel, "thousand", &tag).await;
                }
            }
            connections.push(connection);
        }
        let info = look_at(&mut publisher, publishing, "thousand").await;
        assert_eq!(info.consumers, 1_000);
        fill(&mut publisher, publishing, "thousand", 0..5_000).await;
        let mut all = Vec::new();
        for connection in &mut connections {
            let mut by_tag: BTreeMap<String, u32> = BTreeMap::new();
            for _ in 0..500 {
                let delivery = receive(connection).await;
                all.push(delivery.number());
                connection.ack(delivery.channel, delivery.tag, false);
                *by_tag.entry(delivery.consumer).or_default() += 1;
            }
            assert!(by_tag.len() == 100 && by_tag.values().all(|count| *count == 5));
        }
        all.sort_unstable();
        assert_eq!(all, (0..5_000).collect::<Vec<_>>());
        drop(connections);
        eventually("all consumers go", seconds(5), async || {
            look_at(&mut publisher, publishing, "thousand")
                .await
                .consumers
                == 0
        })
        .await;
    });
}
