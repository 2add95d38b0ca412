//! Messages that expire while they lie on disk, or while the broker is down.

mod support;

use std::collections::BTreeSet;
use std::time::Instant;

use client::{FieldTable, PropertiesBuilder, Property};
use support::durable::*;
use support::folder::size_of;
use support::rules::*;
use support::*;
use testkit::{Broker, Random};

const BODY: usize = 1_000;

/// A broker with little memory for a queue, and a short log.
fn tight() -> Broker {
    with_little_memory().start().expect("a broker")
}

/// Declares a queue, and one for its dead letters that keeps them.
async fn declare_pair(broker: &Broker, queue: &str, arguments: FieldTable) {
    let (mut connection, channel) = open(broker).await;
    let dead = format!("{queue} dead");
    let mut all = dead_letters_to(&dead);
    for (name, value) in arguments.iter() {
        all.insert(name, value.clone());
    }
    declare_as(&mut connection, channel, queue, &durable(all)).await;
    declare_durable(&mut connection, channel, &dead).await;
    connection.close().await.expect("close-ok");
}

fn ttl(milliseconds: i32) -> FieldTable {
    FieldTable::new().with("x-message-ttl", milliseconds)
}

fn persistent_for(expiration: Option<u64>) -> PropertiesBuilder {
    let persistent = PropertiesBuilder::default().delivery_mode(2);
    match expiration {
        Some(expiration) => persistent.text(Property::Expiration, &expiration.to_string()),
        None => persistent,
    }
}

/// Publishes persistent messages, each with the expiration that is chosen for it.
async fn fill(
    broker: &Broker,
    queue: &str,
    numbers: std::ops::Range<u64>,
    mut expiration: impl FnMut(u64) -> Option<u64>,
) {
    let mut publisher = Publisher::open(broker).await;
    for number in numbers {
        let properties = persistent_for(expiration(number)).finish();
        publisher.publish("", queue, &properties, &numbered(number, BODY));
        while publisher.published - publisher.confirmed > 1_000 {
            publisher.confirm().await;
        }
    }
    publisher.all_confirmed().await;
    publisher.connection.close().await.expect("close-ok");
}

/// The queue's messages are in segments, for the greatest part.
fn assert_paged_out(broker: &Broker, bytes: u64) {
    let size = size_of(&broker.data_dir().join("queues"));
    assert!(size > bytes, "only {size} bytes are in segments");
}

async fn until_count(broker: &Broker, queue: &str, count: u32, limit: std::time::Duration) {
    eventually(&format!("{queue} has {count}"), limit, async || {
        messages_in(broker, queue).await == Some(count)
    })
    .await;
}

/// The dead letters of a queue, of which there must be so many before long.
async fn dead_of(broker: &Broker, queue: &str, count: u64) -> Vec<u64> {
    let dead = format!("{queue} dead");
    until_count(broker, &dead, count as u32, seconds(10)).await;
    take_numbers(broker, &dead).await
}

#[test]
fn backlog_in_segments_expires_by_itself_and_in_order() {
    const COUNT: u64 = 8_000;
    within(seconds(60), async {
        let broker = tight();
        declare_pair(&broker, "paged", ttl(4_000)).await;
        let began = Instant::now();
        fill(&broker, "paged", 0..COUNT, |_| None).await;
        assert_paged_out(&broker, 4_000_000);
        if began.elapsed() < millis(3_900) {
            assert_eq!(messages_in(&broker, "paged").await, Some(COUNT as u32));
        }
        until_count(&broker, "paged", 0, seconds(20)).await;
        assert!(began.elapsed() > millis(3_900), "{:?}", began.elapsed());
        assert!((0..COUNT).eq(dead_of(&broker, "paged", COUNT).await));
        let log = broker.log();
        assert!(!log.contains("missing"), "{log}");
    });
}

/// Nobody consumes, and no time is that of the queue: it is the messages that say when they go.
#[test]
fn backlog_in_segments_expires_by_the_expirations_of_messages() {
    const COUNT: u64 = 8_000;
    within(seconds(60), async {
        let broker = tight();
        declare_pair(&broker, "same", FieldTable::new()).await;
        fill(&broker, "same", 0..COUNT, |_| Some(3_000)).await;
        assert_paged_out(&broker, 4_000_000);
        until_count(&broker, "same", 0, seconds(15)).await;
        assert!((0..COUNT).eq(dead_of(&broker, "same", COUNT).await));
    });
}

/// In any order, most of them neither first nor in memory when their time comes.
#[test]
fn messages_leave_from_the_middle_of_a_backlog_in_segments() {
    const COUNT: u64 = 8_000;
    within(seconds(60), async {
        let broker = tight();
        declare_pair(&broker, "middle", FieldTable::new()).await;
        let mut random = Random::new(1);
        let mut staying = Vec::new();
        fill(&broker, "middle", 0..COUNT, |number| {
            if random.one_in(3) {
                staying.push(number);
                return random.one_in(2).then_some(3_600_000);
            }
            Some(3_000 + random.below(3_000) as u64)
        })
        .await;
        assert_paged_out(&broker, 4_000_000);
        until_count(&broker, "middle", staying.len() as u32, seconds(20)).await;
        fill(&broker, "middle", COUNT..COUNT + 100, |_| None).await;
        staying.extend(COUNT..COUNT + 100);
        assert_eq!(take_numbers(&broker, "middle").await, staying);
        let count = COUNT as u32 + 100 - staying.len() as u32;
        until_count(&broker, "middle dead", count, seconds(10)).await;
        let dead: BTreeSet<u64> = take_numbers(&broker, "middle dead")
            .await
            .into_iter()
            .collect();
        assert_eq!(dead.len() as u32, count, "some died twice");
        assert!(staying.iter().all(|number| !dead.contains(number)));
    });
}

/// Bodies that are let go of while the messages are out, and come back too late.
#[test]
fn requeued_messages_of_a_backlog_in_segments_expire() {
    const COUNT: u64 = 4_000;
    within(seconds(60), async {
        for (queue, all, own) in [("of all", Some(4_000), None), ("own", None, Some(4_000))] {
            let broker = tight();
            let arguments = all.map_or_else(FieldTable::new, ttl);
            declare_pair(&broker, queue, arguments).await;
            fill(&broker, queue, 0..COUNT, |_| own).await;
            let (mut connection, channel) = open(&broker).await;
            consume_from(&mut connection, channel, queue, 2_000).await;
            receive_all(&mut connection, 2_000).await;
            tokio::time::sleep(millis(4_200)).await;
            connection.close().await.expect("close-ok");
            until_count(&broker, queue, 0, seconds(15)).await;
            let mut dead = dead_of(&broker, queue, COUNT).await;
            dead.sort_unstable();
            assert!((0..COUNT).eq(dead), "{queue}: some are missing");
        }
    });
}

/// What expires while a consumer works through a long backlog does not reach it.
#[test]
fn consumer_of_a_backlog_in_segments_gets_only_what_has_not_expired() {
    const COUNT: u64 = 8_000;
    within(seconds(60), async {
        let broker = tight();
        declare_pair(&broker, "worked off", FieldTable::new()).await;
        let began = Instant::now();
        let expiration = |number| (number % 3 > 0).then_some(2_500);
        fill(&broker, "worked off", 0..COUNT, expiration).await;
        let filled = began.elapsed();
        tokio::time::sleep(millis(2_700)).await;
        let (mut connection, channel) = open(&broker).await;
        consume_from(&mut connection, channel, "worked off", 100).await;
        for number in (0..COUNT).step_by(3) {
            let next = tokio::time::timeout(seconds(10), receive(&mut connection)).await;
            let delivery = next.unwrap_or_else(|_| panic!("{number} does not come"));
            assert_eq!(delivery.number(), number, "filled in {filled:?}");
            connection.ack(channel, delivery.tag, false);
        }
        assert_quiet(&mut connection).await;
        assert_eq!(messages_in(&broker, "worked off").await, Some(0));
        let count = (COUNT - COUNT.div_ceil(3)) as u32;
        until_count(&broker, "worked off dead", count, seconds(10)).await;
    });
}

/// Thousands that die at once have to be read; messages of other queues have their time as well.
#[test]
fn backlog_that_expires_does_not_hold_up_other_queues() {
    const COUNT: u64 = 8_000;
    within(seconds(60), async {
        let broker = tight();
        declare_pair(&broker, "crowd", FieldTable::new()).await;
        declare_pair(&broker, "single", FieldTable::new()).await;
        let began = Instant::now();
        let due = |after: u64| after.saturating_sub(began.elapsed().as_millis() as u64);
        fill(&broker, "crowd", 0..COUNT, |number| {
            (number > 0).then(|| due(4_000))
        })
        .await;
        assert_paged_out(&broker, 4_000_000);
        let (mut mourner, mourning) = open(&broker).await;
        drain_from(&mut mourner, mourning, "single dead").await;
        let (mut connection, channel) = open(&broker).await;
        let mut sent = Vec::new();
        for number in 0..20 {
            let expiration = due(4_050 + 50 * number);
            sent.push((Instant::now(), expiration));
            let properties = wanted_for(expiration);
            let body = numbered(number, 8);
            send(&mut connection, channel, "single", properties, &body);
        }
        connection.flush().await.expect("sent");
        for (number, (sent, expiration)) in sent.into_iter().enumerate() {
            let letter = receive_letter(&mut mourner).await;
            assert_eq!(letter.number(), number as u64);
            let late = (letter.at - sent).saturating_sub(millis(expiration));
            assert!(late < millis(700), "{number} is {late:?} late");
        }
        until_count(&broker, "crowd", 1, seconds(20)).await;
        until_count(&broker, "crowd dead", COUNT as u32 - 1, seconds(20)).await;
    });
}

/// Queues with a time for all, with messages that have their own, and with both.
const KINDS: [(&str, Option<i32>, Option<u64>); 3] = [
    ("all", Some(2_500), None),
    ("own", None, Some(2_500)),
    ("both", Some(60_000), Some(2_500)),
];

async fn declare_kinds(broker: &Broker) {
    for (queue, all, _) in KINDS {
        declare_pair(broker, queue, all.map_or_else(FieldTable::new, ttl)).await;
    }
}

#[test]
fn time_goes_on_from_publication_over_a_restart() {
    within(seconds(60), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            declare_kinds(&broker).await;
            let began = Instant::now();
            for (queue, _, own) in KINDS {
                fill(&broker, queue, 0..20, |_| own).await;
            }
            tokio::time::sleep(millis(1_000)).await;
            ending.restart(&mut broker);
            let up = began.elapsed();
            for (queue, ..) in KINDS {
                let count = messages_in(&broker, queue).await;
                assert_eq!(count, Some(20), "{ending:?}: {queue} after {up:?}");
            }
            for (queue, ..) in KINDS {
                until_count(
                    &broker,
                    queue,
                    0,
                    millis(4_000).saturating_sub(began.elapsed()),
                )
                .await;
                let gone = began.elapsed();
                assert!(gone > millis(2_490), "{ending:?}: {queue} after {gone:?}");
                assert!((0..20).eq(dead_of(&broker, queue, 20).await));
            }
            broker.stop().expect("exit status 0");
        }
    });
}

#[test]
fn what_expired_while_the_broker_was_down_is_dead_when_it_is_up() {
    within(seconds(60), async {
        let mut broker = builder().start().expect("a broker");
        declare_kinds(&broker).await;
        for (queue, _, own) in KINDS {
            fill(&broker, queue, 0..20, |_| own).await;
        }
        broker.kill().expect("a running broker");
        tokio::time::sleep(millis(2_600)).await;
        broker.start_again().expect("a restart");
        for (queue, ..) in KINDS {
            let (mut connection, channel) = open(&broker).await;
            let got = get(&mut connection, channel, queue, true).await;
            assert!(got.is_none(), "{queue}: {got:?}");
            until_count(&broker, queue, 0, seconds(1)).await;
            let dead = dead_of(&broker, queue, 20).await;
            assert!((0..20).eq(dead.iter().copied()), "{queue}: {dead:?}");
        }
        // And once only.
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        for (queue, ..) in KINDS {
            assert_eq!(messages_in(&broker, queue).await, Some(0));
            let dead = format!("{queue} dead");
            assert_eq!(messages_in(&broker, &dead).await, Some(0));
        }
    });
}

/// Which message overtakes which has to be found out again.
#[test]
fn short_lived_messages_leave_from_behind_long_lived_ones_after_a_restart() {
    within(seconds(60), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            declare_pair(&broker, "after", FieldTable::new()).await;
            let mixed = |number| match number % 3 {
                0 => None,
                1 => Some(60_000),
                _ => Some(1_500),
            };
            fill(&broker, "after", 0..300, mixed).await;
            ending.restart(&mut broker);
            assert_eq!(messages_in(&broker, "after").await, Some(300));
            until_count(&broker, "after", 200, seconds(5)).await;
            let dead = dead_of(&broker, "after", 100).await;
            assert!((0..100).map(|n| 3 * n + 2).eq(dead), "{ending:?}");
            fill(&broker, "after", 300..303, mixed).await;
            until_count(&broker, "after", 202, seconds(5)).await;
            let left = take_numbers(&broker, "after").await;
            assert!((0..303).filter(|n| n % 3 < 2).eq(left), "{ending:?}");
            broker.stop().expect("exit status 0");
        }
    });
}

/// The same with a backlog of which nothing is in memory after the restart.
#[test]
fn backlog_in_segments_expires_after_a_restart() {
    const COUNT: u64 = 6_000;
    within(seconds(60), async {
        for (queue, all, own) in [("of all", Some(5_000), None), ("own", None, Some(5_000))] {
            let mut broker = tight();
            declare_pair(&broker, queue, all.map_or_else(FieldTable::new, ttl)).await;
            let began = Instant::now();
            fill(&broker, queue, 0..COUNT, |_| own).await;
            assert_paged_out(&broker, 3_000_000);
            Ending::Killed.restart(&mut broker);
            let left = messages_in(&broker, queue).await;
            if began.elapsed() < millis(4_900) {
                assert_eq!(left, Some(COUNT as u32), "{queue}");
            }
            until_count(&broker, queue, 0, seconds(20)).await;
            let dead = dead_of(&broker, queue, COUNT).await;
            assert!((0..COUNT).eq(dead), "{queue}");
        }
    });
}
