//! `x-leveret-message-groups`: of each group one message at a time is out.

mod support;

use std::collections::{HashMap, HashSet};

use client::{
    Connection, ConsumeOptions, FieldTable, Properties, PropertiesBuilder, PublishFlags,
    QueueOptions,
};

use support::*;

async fn declare_grouped(connection: &mut Connection, channel: u16, queue: &str) {
    let options = QueueOptions {
        arguments: FieldTable::new().with("x-leveret-message-groups", true),
        ..QueueOptions::default()
    };
    let declared = connection.declare_queue(channel, queue, &options);
    declared.await.expect("declare-ok");
}

/// The number in a body is the group times 1,000,000 and the place in the group.
fn body(group: u64, place: u64) -> Vec<u8> {
    numbered(group * 1_000_000 + place, 8)
}

fn group_of(delivery: &Received) -> u64 {
    delivery.number() / 1_000_000
}

fn place_of(delivery: &Received) -> u64 {
    delivery.number() % 1_000_000
}

fn send(connection: &mut Connection, channel: u16, queue: &str, group: u64, place: u64) {
    let name = format!("group {group}");
    let headers = FieldTable::new().with("x-leveret-message-group", name.as_str());
    let properties = PropertiesBuilder::default().headers(&headers).finish();
    let (flags, properties) = (PublishFlags::NONE, Properties::from_wire(&properties));
    let sent = connection.publish(channel, "", queue, flags, properties, &body(group, place));
    sent.expect("a short key");
}

async fn consume(connection: &mut Connection, channel: u16, queue: &str, prefetch: u16) {
    let limited = connection.qos(channel, prefetch, false);
    limited.await.expect("qos-ok");
    let options = ConsumeOptions::default();
    let consuming = connection.consume(channel, queue, &options);
    consuming.await.expect("a consumer");
}

fn ack(connection: &mut Connection, delivery: &Received) {
    connection.ack(delivery.channel, delivery.tag, false);
}

#[test]
fn the_next_of_a_group_comes_when_the_one_before_is_done() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_grouped(&mut connection, channel, "groups-next").await;
        for (group, place) in [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)] {
            send(&mut connection, channel, "groups-next", group, place);
        }
        consume(&mut connection, channel, "groups-next", 10).await;
        let first = receive_all(&mut connection, 2).await;
        let found: Vec<_> = first
            .iter()
            .map(|one| (group_of(one), place_of(one)))
            .collect();
        assert_eq!(found, [(1, 1), (2, 1)]);
        assert_quiet(&mut connection).await;
        let counts = look_at(&mut connection, channel, "groups-next").await;
        assert_eq!(counts.messages, 3);
        ack(&mut connection, &first[0]);
        let next = receive(&mut connection).await;
        assert_eq!((group_of(&next), place_of(&next)), (1, 2));
        assert_quiet(&mut connection).await;
    });
}

#[test]
fn a_message_that_comes_back_goes_before_the_others_of_its_group() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_grouped(&mut connection, channel, "groups-back").await;
        for place in 1..=3 {
            send(&mut connection, channel, "groups-back", 1, place);
        }
        consume(&mut connection, channel, "groups-back", 10).await;
        let first = receive(&mut connection).await;
        connection.reject(channel, first.tag, true);
        let again = receive(&mut connection).await;
        assert_eq!((place_of(&again), again.redelivered), (1, true));
        connection.reject(channel, again.tag, false);
        let next = receive(&mut connection).await;
        assert_eq!((place_of(&next), next.redelivered), (2, false));
        assert_quiet(&mut connection).await;
    });
}

#[test]
fn messages_without_a_group_wait_for_nobody() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_grouped(&mut connection, channel, "groups-none").await;
        for number in 0..5 {
            publish(
                &mut connection,
                channel,
                "groups-none",
                &numbered(number, 8),
            );
        }
        consume(&mut connection, channel, "groups-none", 10).await;
        assert_eq!(receive_all(&mut connection, 5).await.len(), 5);
    });
}

#[test]
fn basic_get_finds_what_is_behind_a_busy_group() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_grouped(&mut connection, channel, "groups-get").await;
        for (group, place) in [(1, 1), (1, 2), (2, 1)] {
            send(&mut connection, channel, "groups-get", group, place);
        }
        let mut found = Vec::new();
        for _ in 0..3 {
            let got = connection.get(channel, "groups-get", false).await;
            found.push(got.expect("an answer").map(|got| number(&got.body)));
        }
        assert_eq!(found, [Some(1_000_001), Some(2_000_001), None]);
    });
}

/// Many consumers, few messages out at a time, some of them refused: every group in order, and
/// everything comes.
#[test]
fn each_group_is_in_order_over_many_consumers() {
    within(seconds(60), async {
        const GROUPS: u64 = 50;
        const PLACES: u64 = 100;
        let broker = shared();
        let (mut publisher, channel) = open(&broker).await;
        declare_grouped(&mut publisher, channel, "groups-many").await;
        for place in 0..PLACES {
            for group in 0..GROUPS {
                send(&mut publisher, channel, "groups-many", group, place);
            }
        }
        synchronize(&mut publisher, channel).await;
        let (mut connection, _) = open(&broker).await;
        for _ in 0..8 {
            let channel = connection.open_channel().await.expect("open-ok");
            consume(&mut connection, channel, "groups-many", 5).await;
        }
        let mut next: HashMap<u64, u64> = HashMap::new();
        let mut refused = HashSet::new();
        let mut done = 0;
        while done < GROUPS * PLACES {
            let delivery = receive(&mut connection).await;
            let expected = next.entry(group_of(&delivery)).or_default();
            assert_eq!(
                place_of(&delivery),
                *expected,
                "group {}",
                group_of(&delivery)
            );
            if delivery.number() % 7 == 0 && refused.insert(delivery.number()) {
                connection.reject(delivery.channel, delivery.tag, true);
                continue;
            }
            *expected += 1;
            done += 1;
            ack(&mut connection, &delivery);
        }
        assert_quiet(&mut connection).await;
    });
}

/// 100,000 messages of one group before those of another: nobody looks through all of them each
/// time.
#[test]
fn a_long_line_of_one_group_is_worked_through_at_speed() {
    within(seconds(60), async {
        const COUNT: u64 = 30_000;
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_grouped(&mut connection, channel, "groups-long").await;
        for place in 0..COUNT {
            send(&mut connection, channel, "groups-long", 1, place);
        }
        consume(&mut connection, channel, "groups-long", 100).await;
        for place in 0..COUNT {
            let delivery = receive(&mut connection).await;
            assert_eq!(place_of(&delivery), place);
            ack(&mut connection, &delivery);
        }
        assert_quiet(&mut connection).await;
    });
}
