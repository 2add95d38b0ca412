//! Messages that expire, by their queue's `x-message-ttl` and by their own `expiration`: at their
//! time, not before it, wherever they are by then.

mod support;

use std::collections::BTreeSet;
use std::time::Instant;

use client::{Connection, FieldTable, PropertiesBuilder};
use support::durable::*;
use support::rules::*;
use support::*;
use testkit::{Broker, Random};

/// The clock counts whole milliseconds, at both ends.
const ROUNDING: u64 = 2;
/// How late a message may be in a debug build on a busy machine.
const LATE: u64 = 1_500;

/// Declares a queue whose dead letters go to `{queue} dead`, and that one.
async fn declare_pair(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    arguments: FieldTable,
) {
    let dead = format!("{queue} dead");
    let mut all = dead_letters_to(&dead);
    for (name, value) in arguments.iter() {
        all.insert(name, value.clone());
    }
    declare_as(connection, channel, queue, &durable(all)).await;
    declare_durable(connection, channel, &dead).await;
}

fn ttl(milliseconds: i32) -> FieldTable {
    FieldTable::new().with("x-message-ttl", milliseconds)
}

/// A consumer of a queue's dead letters.
async fn mourner(broker: &Broker, queue: &str) -> Connection {
    let (mut connection, channel) = open(broker).await;
    drain_from(&mut connection, channel, &format!("{queue} dead")).await;
    connection
}

/// It has come between `after` and a while later.
fn assert_on_time(letter: &Letter, sent: Instant, after: u64) {
    let took = letter.at.duration_since(sent).as_millis() as u64;
    let number = letter.number();
    assert!(took + ROUNDING >= after, "{number}: {took} < {after} ms");
    assert!(took <= after + LATE, "{number}: {took} ms for {after}");
}

#[test]
fn message_leaves_when_its_queue_says_so_and_not_before() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "ttl", ttl(300)).await;
        let mut mourner = mourner(&broker, "ttl").await;
        for number in 0..3 {
            let sent = Instant::now();
            publish(&mut connection, channel, "ttl", &numbered(number, 8));
            synchronize(&mut connection, channel).await;
            assert_eq!(look_at(&mut connection, channel, "ttl").await.messages, 1);
            let letter = receive_letter(&mut mourner).await;
            assert_eq!(letter.number(), number);
            assert_on_time(&letter, sent, 300);
            assert_eq!(letter.obituary(), [("ttl".into(), "expired".into(), 1)]);
        }
        assert_eq!(look_at(&mut connection, channel, "ttl").await.messages, 0);
    });
}

#[test]
fn without_a_dead_letter_exchange_expired_messages_are_gone() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_as(&mut connection, channel, "gone", &transient(ttl(100))).await;
        declare(&mut connection, channel, "plain").await;
        for number in 0..1_000 {
            let body = numbered(number, 8);
            publish(&mut connection, channel, "gone", &body);
            send(&mut connection, channel, "plain", wanted_for(100), &body);
        }
        synchronize(&mut connection, channel).await;
        for queue in ["gone", "plain"] {
            eventually("they expire", millis(100 + LATE), async || {
                look_at(&mut connection, channel, queue).await.messages == 0
            })
            .await;
            let got = get(&mut connection, channel, queue, true).await;
            assert!(got.is_none(), "{got:?}");
        }
    });
}

#[test]
fn message_without_time_to_wait_reaches_a_waiting_consumer_or_nobody() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "zero", ttl(0)).await;
        declare_pair(&mut connection, channel, "own", FieldTable::new()).await;
        for (queue, own) in [("zero", None), ("own", Some(0))] {
            let properties = || own.map_or_else(PropertiesBuilder::default, wanted_for);
            let mut mourner = mourner(&broker, queue).await;
            send(
                &mut connection,
                channel,
                queue,
                properties(),
                &numbered(1, 8),
            );
            synchronize(&mut connection, channel).await;
            assert_eq!(receive_letter(&mut mourner).await.number(), 1, "{queue}");
            assert_eq!(look_at(&mut connection, channel, queue).await.messages, 0);
            let (mut consumer, consuming) = open(&broker).await;
            consume_from(&mut consumer, consuming, queue, 5).await;
            for number in 10..20 {
                let body = numbered(number, 8);
                send(&mut connection, channel, queue, properties(), &body);
            }
            synchronize(&mut connection, channel).await;
            let delivered = receive_all(&mut consumer, 5).await;
            let delivered: Vec<u64> = delivered.iter().map(Received::number).collect();
            assert_eq!(delivered, [10, 11, 12, 13, 14], "{queue}");
            let dead = letters_until_quiet(&mut mourner, millis(200)).await;
            assert_eq!(numbers(&dead), [15, 16, 17, 18, 19], "{queue}");
            assert_quiet(&mut consumer).await;
        }
    });
}

#[test]
fn shorter_of_both_times_counts() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "short ttl", ttl(200)).await;
        declare_pair(&mut connection, channel, "long ttl", ttl(60_000)).await;
        for (queue, expiration) in [("short ttl", 60_000), ("long ttl", 200)] {
            let mut mourner = mourner(&broker, queue).await;
            let sent = Instant::now();
            let properties = wanted_for(expiration);
            send(&mut connection, channel, queue, properties, &numbered(7, 8));
            connection.flush().await.expect("sent");
            assert_on_time(&receive_letter(&mut mourner).await, sent, 200);
        }
    });
}

#[test]
fn short_lived_message_leaves_from_behind_a_long_lived_one() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "behind", FieldTable::new()).await;
        let mut mourner = mourner(&broker, "behind").await;
        let sent = Instant::now();
        for (number, expiration) in [(1, 60_000), (2, 400), (3, 200), (5, 60_000), (6, 300)] {
            let body = numbered(number, 8);
            let properties = wanted_for(expiration);
            send(&mut connection, channel, "behind", properties, &body);
        }
        publish(&mut connection, channel, "behind", &numbered(4, 8));
        connection.flush().await.expect("sent");
        for (number, expiration) in [(3, 200), (6, 300), (2, 400)] {
            let letter = receive_letter(&mut mourner).await;
            assert_eq!(letter.number(), number);
            assert_on_time(&letter, sent, expiration);
        }
        assert_quiet(&mut mourner).await;
        drain_from(&mut connection, channel, "behind").await;
        let left = letters_until_quiet(&mut connection, millis(150)).await;
        assert_eq!(numbers(&left), [1, 5, 4]);
    });
}

/// Publishes with expirations of that range, and checks when each dies.
async fn random_expirations(broker: &Broker, queue: &str, count: u64, seed: u64) {
    let (mut connection, channel) = open(broker).await;
    let mut mourner = mourner(broker, queue).await;
    let mut random = Random::new(seed);
    let mut sent = Vec::new();
    for number in 0..count {
        let expiration = 200 + random.below(1_800) as u64;
        sent.push((Instant::now(), expiration));
        let body = numbered(number, 1_000);
        let properties = wanted_for(expiration);
        send(&mut connection, channel, queue, properties, &body);
        if number % 50 == 0 {
            connection.flush().await.expect("sent");
        }
    }
    connection.flush().await.expect("sent");
    let mut seen = BTreeSet::new();
    for _ in 0..count {
        let letter = receive_letter(&mut mourner).await;
        let (sent, expiration) = sent[letter.number() as usize];
        assert_on_time(&letter, sent, expiration);
        assert!(seen.insert(letter.number()), "{} twice", letter.number());
    }
    assert_quiet(&mut mourner).await;
    assert_eq!(look_at(&mut connection, channel, queue).await.messages, 0);
}

#[test]
fn thousands_in_random_order_leave_each_at_its_time() {
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "random", FieldTable::new()).await;
        random_expirations(&broker, "random", 5_000, 1).await;
    });
}

/// What stays keeps its order.
#[test]
fn gaps_that_expired_messages_leave_do_not_disturb_the_others() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "gaps", FieldTable::new()).await;
        let mut random = Random::new(2);
        let mut staying = Vec::new();
        for number in 0..6_000 {
            let body = numbered(number, 8);
            match random.one_in(4) {
                true => {
                    staying.push(number);
                    publish(&mut connection, channel, "gaps", &body);
                }
                false => {
                    let properties = wanted_for(1 + random.below(700) as u64);
                    send(&mut connection, channel, "gaps", properties, &body);
                }
            }
        }
        synchronize(&mut connection, channel).await;
        let count = staying.len() as u32;
        eventually("the others go", seconds(5), async || {
            look_at(&mut connection, channel, "gaps").await.messages == count
        })
        .await;
        let dead = look_at(&mut connection, channel, "gaps dead")
            .await
            .messages;
        assert_eq!(dead, 6_000 - count);
        for number in 6_000..6_010 {
            staying.push(number);
            publish(&mut connection, channel, "gaps", &numbered(number, 8));
        }
        drain_from(&mut connection, channel, "gaps").await;
        let left = letters_until_quiet(&mut connection, millis(300)).await;
        assert_eq!(numbers(&left), staying);
    });
}

/// While a message is out its time may pass: it is the consumer's. It must not come back, though.
#[test]
fn requeued_message_expires_by_the_time_of_its_publication() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "back", ttl(800)).await;
        declare_pair(&mut connection, channel, "back own", FieldTable::new()).await;
        for (queue, own) in [("back", None), ("back own", Some(800))] {
            let mut mourner = mourner(&broker, queue).await;
            let sent = Instant::now();
            for number in 0..4 {
                let properties = own.map_or_else(PropertiesBuilder::default, wanted_for);
                let body = numbered(number, 8);
                send(&mut connection, channel, queue, properties, &body);
            }
            let mut tags = Vec::new();
            for number in 0..4 {
                let got = get(&mut connection, channel, queue, false).await;
                let got = got.expect("a message");
                assert_eq!(support::number(&got.body), number);
                tags.push(got.delivery_tag);
            }
            // Two before their time, one after it, one is done with after it.
            connection.nack(channel, tags[2], false, true);
            connection.nack(channel, tags[1], false, true);
            synchronize(&mut connection, channel).await;
            assert_eq!(look_at(&mut connection, channel, queue).await.messages, 2);
            for number in [1, 2] {
                let letter = receive_letter(&mut mourner).await;
                assert_eq!(letter.number(), number, "{queue}");
                assert_on_time(&letter, sent, 800);
            }
            assert_quiet(&mut mourner).await;
            connection.nack(channel, tags[0], false, true);
            connection.ack(channel, tags[3], false);
            synchronize(&mut connection, channel).await;
            let letter = receive_letter(&mut mourner).await;
            assert_eq!(letter.number(), 0, "{queue}");
            assert_quiet(&mut mourner).await;
        }
    });
}

/// What comes back goes before others, and may live longer than they do.
#[test]
fn requeued_message_does_not_keep_others_alive() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "others", FieldTable::new()).await;
        let mut mourner = mourner(&broker, "others").await;
        publish(&mut connection, channel, "others", &numbered(0, 8));
        let got = get(&mut connection, channel, "others", false).await;
        let tag = got.expect("a message").delivery_tag;
        let sent = Instant::now();
        for number in 1..4 {
            let body = numbered(number, 8);
            send(&mut connection, channel, "others", wanted_for(300), &body);
        }
        connection.nack(channel, tag, false, true);
        synchronize(&mut connection, channel).await;
        for number in 1..4 {
            let letter = receive_letter(&mut mourner).await;
            assert_eq!(letter.number(), number);
            assert_on_time(&letter, sent, 300);
        }
        let left = look_at(&mut connection, channel, "others").await;
        assert_eq!(left.messages, 1);
    });
}

/// A consumer takes and acknowledges, with pauses in which messages expire.
#[test]
fn nothing_is_delivered_after_its_time_and_nothing_is_lost_before() {
    const COUNT: u64 = 3_000;
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "busy", ttl(1_200)).await;
        let mut mourner = mourner(&broker, "busy").await;
        let (mut consumer, consuming) = open(&broker).await;
        consume_from(&mut consumer, consuming, "busy", 20).await;
        let mut random = Random::new(3);
        let mut due = Vec::new();
        let (mut delivered, mut dead) = (BTreeSet::new(), BTreeSet::new());
        for round in 0..30 {
            for number in round * COUNT / 30..(round + 1) * COUNT / 30 {
                let expiration = 50 + random.below(1_500) as u64;
                due.push(Instant::now() + millis(expiration.min(1_200)));
                let body = numbered(number, 8);
                let properties = wanted_for(expiration);
                send(&mut connection, channel, "busy", properties, &body);
            }
            connection.flush().await.expect("sent");
            for _ in 0..random.below(100) {
                let next = tokio::time::timeout(millis(20), receive_letter(&mut consumer)).await;
                let Ok(letter) = next else { break };
                let number = letter.number();
                // Those that the prefetch limit has let out wait at the client for a round.
                let late = letter.at.saturating_duration_since(due[number as usize]);
                assert!(late < millis(500), "{number} is {late:?} late");
                assert!(delivered.insert(number), "{number} twice");
                consumer.ack(consuming, letter.delivery.tag, false);
            }
            consumer.flush().await.expect("sent");
            tokio::time::sleep(millis(random.below(80) as u64)).await;
        }
        while let Ok(letter) =
            tokio::time::timeout(millis(200), receive_letter(&mut consumer)).await
        {
            assert!(delivered.insert(letter.number()));
            consumer.ack(consuming, letter.delivery.tag, false);
        }
        while let Ok(letter) =
            tokio::time::timeout(millis(LATE), receive_letter(&mut mourner)).await
        {
            let number = letter.number();
            let early = due[number as usize].saturating_duration_since(letter.at);
            assert!(early <= millis(ROUNDING), "{number} is {early:?} early");
            assert!(dead.insert(number), "{number} died twice");
        }
        assert!(delivered.is_disjoint(&dead));
        assert!(delivered.len() > 100 && dead.len() > 100, "says little");
        delivered.append(&mut dead);
        assert!((0..COUNT).eq(delivered), "some are missing");
    });
}

/// A consumer that comes after their time gets none of them.
#[test]
fn late_consumer_gets_only_what_has_not_expired() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "late").await;
        for number in 0..300 {
            let expiration = if number % 3 == 0 { 60_000 } else { 150 };
            let body = numbered(number, 8);
            let properties = wanted_for(expiration);
            send(&mut connection, channel, "late", properties, &body);
        }
        synchronize(&mut connection, channel).await;
        tokio::time::sleep(millis(300)).await;
        consume_from(&mut connection, channel, "late", 0).await;
        let letters = letters_until_quiet(&mut connection, millis(200)).await;
        let expected: Vec<u64> = (0..300).step_by(3).collect();
        assert_eq!(numbers(&letters), expected);
        for letter in &letters {
            let expiration = letter.properties().text(client::Property::Expiration);
            assert_eq!(expiration, Some(&b"60000"[..]));
        }
    });
}

#[test]
fn purged_and_deleted_queues_have_nothing_left_to_expire() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "purged", ttl(300)).await;
        declare_pair(&mut connection, channel, "deleted", FieldTable::new()).await;
        let mut random = Random::new(4);
        for number in 0..500 {
            for queue in ["purged", "deleted"] {
                let properties = wanted_for(100 + random.below(400) as u64);
                let body = numbered(number, 8);
                send(&mut connection, channel, queue, properties, &body);
            }
        }
        assert!(connection.purge(channel, "purged").await.expect("ok") > 0);
        let deleted = connection.delete_queue(channel, "deleted").await;
        assert!(deleted.expect("ok") > 0);
        publish(&mut connection, channel, "purged", &numbered(500, 8));
        connection.flush().await.expect("sent");
        let mut dead = mourner(&broker, "purged").await;
        let letters = letters_until_quiet(&mut dead, millis(700)).await;
        let late: Vec<u64> = numbers(&letters);
        assert_eq!(late.last(), Some(&500));
        let more = look_at(&mut connection, channel, "deleted dead").await;
        assert!(more.messages < 100, "{} of a deleted queue", more.messages);
        assert_healthy(&broker).await;
    });
}

#[test]
fn expiration_that_is_no_time_is_refused() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "valid").await;
        for (expiration, problem) in [
            ("abc", "no_integer"),
            ("", "no_integer"),
            ("1.5", "{leftover_string,\".5\"}"),
            ("12a", "{leftover_string,\"a\"}"),
            ("-1", "{value_negative,-1}"),
            ("315360000001", "{value_too_large,315360000001}"),
        ] {
            let channel = connection.open_channel().await.expect("a channel");
            let properties =
                PropertiesBuilder::default().text(client::Property::Expiration, expiration);
            send(&mut connection, channel, "valid", properties, b"refused");
            let (code, text) = closed(&mut connection, channel).await;
            let expected =
                format!("PRECONDITION_FAILED - invalid expiration '{expiration}': {problem}");
            assert_eq!((code, text), (406, expected));
        }
        for expiration in [60_000, 315_360_000_000] {
            let properties = wanted_for(expiration);
            send(&mut connection, channel, "valid", properties, b"taken");
        }
        synchronize(&mut connection, channel).await;
        assert_eq!(look_at(&mut connection, channel, "valid").await.messages, 2);
    });
}

#[test]
fn ttl_that_is_no_time_is_refused() {
    within(seconds(10), async {
        let broker = shared();
        let number = |value: i64| transient(FieldTable::new().with("x-message-ttl", value));
        for (options, problem) in [
            (number(-1), "{value_negative,-1}"),
            (number(315_360_000_001), "{value_too_large,315360000001}"),
            (
                transient(FieldTable::new().with("x-message-ttl", "5")),
                "\"expected integer, got longstr\"",
            ),
        ] {
            let text = refusal_of(&broker, &options).await;
            assert!(text.ends_with(problem), "{text}");
        }
    });
}
