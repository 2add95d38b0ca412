//! Queues with `x-single-active-consumer`: one gets everything, and the next in line takes over.

mod support;

use client::{Connection, ConsumeOptions, Error, FieldTable, PropertiesBuilder};
use support::durable::*;
use support::rules::*;
use support::*;
use testkit::Broker;

fn single_active() -> FieldTable {
    FieldTable::new().with("x-single-active-consumer", true)
}

/// Three consumers in line, each with a connection of its own.
async fn three_in_line(broker: &Broker, queue: &str, prefetch: u16) -> Vec<(Connection, u16)> {
    let mut line = Vec::new();
    for _ in 0..3 {
        let (mut connection, channel) = open(broker).await;
        declare_as(&mut connection, channel, queue, &durable(single_active())).await;
        connection.qos(channel, prefetch, false).await.expect("ok");
        let options = ConsumeOptions {
            consumer_tag: "c".into(),
            ..ConsumeOptions::default()
        };
        let consuming = connection.consume(channel, queue, &options).await;
        consuming.expect("a consumer");
        line.push((connection, channel));
    }
    line
}

async fn fill(broker: &Broker, queue: &str, numbers: std::ops::Range<u64>) {
    let (mut connection, channel) = open(broker).await;
    for number in numbers {
        let properties = PropertiesBuilder::default().delivery_mode(2);
        let body = numbered(number, 8);
        send(&mut connection, channel, queue, properties, &body);
    }
    synchronize(&mut connection, channel).await;
    connection.close().await.expect("close-ok");
}

/// Exactly these come, in this order; returns the last tag.
async fn assert_receives(
    connection: &mut Connection,
    expected: impl IntoIterator<Item = u64>,
) -> u64 {
    let mut tag = 0;
    for number in expected {
        let delivery = receive(connection).await;
        assert_eq!(delivery.number(), number);
        tag = delivery.tag;
    }
    tag
}

#[test]
fn only_the_first_consumer_gets_messages() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "first", 10).await;
        fill(&broker, "first", 0..50).await;
        for _ in 0..5 {
            let (first, channel) = &mut line[0];
            let tag = assert_receives(first, []).await;
            assert_eq!(tag, 0);
            for _ in 0..10 {
                let delivery = receive(first).await;
                first.ack(*channel, delivery.tag, false);
            }
        }
        for (connection, _) in &mut line {
            assert_quiet(connection).await;
        }
        let left = messages_in(&broker, "first").await;
        assert_eq!(left, Some(0));
    });
}

/// Not even when the first has its hands full.
#[test]
fn others_wait_while_the_first_has_no_room() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "full", 3).await;
        fill(&broker, "full", 0..10).await;
        assert_receives(&mut line[0].0, 0..3).await;
        for (connection, _) in &mut line {
            assert_quiet(connection).await;
        }
        let (first, channel) = &mut line[0];
        first.ack(*channel, 0, true);
        assert_receives(first, 3..6).await;
        assert_quiet(&mut line[1].0).await;
    });
}

#[test]
fn next_in_line_takes_over_after_cancel() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "cancelled", 5).await;
        fill(&broker, "cancelled", 0..20).await;
        assert_receives(&mut line[0].0, 0..5).await;
        let (first, channel) = &mut line[0];
        first.cancel(*channel, "c").await.expect("cancel-ok");
        // What the first holds it still holds.
        assert_receives(&mut line[1].0, 5..10).await;
        assert_quiet(&mut line[2].0).await;
        let (first, channel) = &mut line[0];
        first.nack(*channel, 2, true, true);
        first.ack(*channel, 0, true);
        synchronize(first, *channel).await;
        // Once it has let go of them, the one whose turn it is gets them.
        let (second, channel) = &mut line[1];
        second.ack(*channel, 0, true);
        assert_receives(second, [0, 1, 10, 11, 12]).await;
        let (second, channel) = &mut line[1];
        second.cancel(*channel, "c").await.expect("cancel-ok");
        assert_receives(&mut line[2].0, 13..18).await;
    });
}

#[test]
fn unacknowledged_messages_go_to_the_successor_when_a_channel_closes() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "closed", 5).await;
        fill(&broker, "closed", 0..10).await;
        assert_receives(&mut line[0].0, 0..5).await;
        let (first, channel) = &mut line[0];
        first.ack(*channel, 2, false);
        assert_receives(first, [5]).await;
        first.close_channel(*channel).await.expect("close-ok");
        let (second, channel) = &mut line[1];
        let mut seen = Vec::new();
        while seen.len() < 9 {
            let delivery = receive(second).await;
            seen.push((delivery.number(), delivery.redelivered));
            second.ack(*channel, delivery.tag, false);
        }
        // Those that come back come first: order is what such a queue is for.
        let expected = [0, 2, 3, 4, 5, 6, 7, 8, 9].map(|number| (number, number < 6));
        assert_eq!(seen, expected);
        assert_quiet(&mut line[2].0).await;
    });
}

#[test]
fn next_in_line_takes_over_from_a_lost_connection() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "lost", 4).await;
        fill(&broker, "lost", 0..8).await;
        assert_receives(&mut line[0].0, 0..4).await;
        drop(line.remove(0));
        // Those of the lost one first: they are before the others.
        assert_receives(&mut line[0].0, 0..4).await;
        assert_quiet(&mut line[1].0).await;
        drop(line.remove(0));
        assert_receives(&mut line[0].0, 0..4).await;
        let (last, channel) = &mut line[0];
        last.ack(*channel, 0, true);
        assert_receives(last, 4..8).await;
    });
}

/// One who leaves the line while it waits changes nothing for the others.
#[test]
fn waiting_consumer_may_leave_the_line() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "left", 2).await;
        let (second, channel) = &mut line[1];
        second.cancel(*channel, "c").await.expect("cancel-ok");
        fill(&broker, "left", 0..6).await;
        assert_receives(&mut line[0].0, 0..2).await;
        // It comes back, and is the last now.
        let (second, channel) = &mut line[1];
        consume_from(second, *channel, "left", 2).await;
        let (first, channel) = &mut line[0];
        first.cancel(*channel, "c").await.expect("cancel-ok");
        assert_receives(&mut line[2].0, 2..4).await;
        assert_quiet(&mut line[1].0).await;
        let (third, channel) = &mut line[2];
        third.cancel(*channel, "c").await.expect("cancel-ok");
        assert_receives(&mut line[1].0, 4..6).await;
    });
}

#[test]
fn consumers_of_one_channel_stand_in_line_as_well() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(single_active());
        declare_as(&mut connection, channel, "same", &options).await;
        for tag in ["a", "b"] {
            let options = ConsumeOptions {
                consumer_tag: tag.into(),
                no_ack: true,
                ..ConsumeOptions::default()
            };
            let consuming = connection.consume(channel, "same", &options).await;
            consuming.expect("a consumer");
        }
        for (round, tag) in [(0, "a"), (1, "b")] {
            for number in 0..20 {
                publish(&mut connection, channel, "same", &numbered(number, 8));
            }
            for delivery in receive_all(&mut connection, 20).await {
                assert_eq!(delivery.consumer, tag, "round {round}");
            }
            connection.cancel(channel, tag).await.expect("cancel-ok");
        }
    });
}

/// A quorum queue waits until the active one has settled what it has: order is kept.
#[test]
fn active_consumer_of_a_quorum_queue_gives_way_to_a_higher_priority() {
    within(seconds(10), async {
        let broker = shared();
        let (mut first, channel) = open(&broker).await;
        declare_as(&mut first, channel, "yield", &quorum(single_active())).await;
        consume_from(&mut first, channel, "yield", 2).await;
        fill(&broker, "yield", 0..4).await;
        assert_receives(&mut first, 0..2).await;
        let (mut high, consuming) = open(&broker).await;
        let options = ConsumeOptions {
            arguments: FieldTable::new().with("x-priority", 10),
            ..ConsumeOptions::default()
        };
        let consumer = high.consume(consuming, "yield", &options).await;
        let tag = consumer.expect("a consumer");
        first.ack(channel, 1, false);
        assert_quiet(&mut first).await;
        assert_quiet(&mut high).await;
        first.nack(channel, 2, false, true);
        synchronize(&mut first, channel).await;
        let last = assert_receives(&mut high, 1..4).await;
        high.ack(consuming, last, true);
        let cancelled = high.cancel(consuming, &tag).await;
        cancelled.expect("cancel-ok");
        fill(&broker, "yield", 4..5).await;
        assert_receives(&mut first, 4..5).await;
    });
}

/// One that steps back before it was its turn changes nothing.
#[test]
fn active_consumer_goes_on_when_the_higher_priority_leaves() {
    within(seconds(10), async {
        let broker = shared();
        let (mut first, channel) = open(&broker).await;
        declare_as(&mut first, channel, "go-on", &quorum(single_active())).await;
        consume_from(&mut first, channel, "go-on", 2).await;
        fill(&broker, "go-on", 0..4).await;
        assert_receives(&mut first, 0..2).await;
        let (mut high, consuming) = open(&broker).await;
        let options = ConsumeOptions {
            arguments: FieldTable::new().with("x-priority", 10),
            ..ConsumeOptions::default()
        };
        let consumer = high.consume(consuming, "go-on", &options).await;
        consumer.expect("a consumer");
        high.close().await.expect("close-ok");
        first.ack(channel, 2, true);
        assert_receives(&mut first, 2..4).await;
    });
}

/// The active one of a classic queue stays active, whatever priority a newcomer has.
#[test]
fn priority_of_a_newcomer_does_not_take_the_turn_away() {
    within(seconds(10), async {
        let broker = shared();
        let mut line = three_in_line(&broker, "prior", 5).await;
        let (mut high, channel) = open(&broker).await;
        let options = ConsumeOptions {
            arguments: FieldTable::new().with("x-priority", 10),
            ..ConsumeOptions::default()
        };
        let consuming = high.consume(channel, "prior", &options).await;
        consuming.expect("a consumer");
        fill(&broker, "prior", 0..3).await;
        assert_receives(&mut line[0].0, 0..3).await;
        assert_quiet(&mut high).await;
    });
}

#[test]
fn exclusive_consumer_is_refused() {
    within(seconds(10), async {
        let broker = shared();
        let options = durable(single_active());
        for others in [0, 1] {
            let (mut connection, channel) = open(&broker).await;
            declare_as(&mut connection, channel, "exclusive", &options).await;
            if others > 0 {
                consume_from(&mut connection, channel, "exclusive", 0).await;
            }
            let channel = connection.open_channel().await.expect("a channel");
            let exclusive = ConsumeOptions {
                exclusive: true,
                ..ConsumeOptions::default()
            };
            match connection.consume(channel, "exclusive", &exclusive).await {
                Err(Error::ChannelClosed { code, text, .. }) => {
                    let expected =
                        "ACCESS_REFUSED - queue 'exclusive' in vhost '/' in exclusive use";
                    assert_eq!((code, &*text), (403, expected));
                }
                other => panic!("a refusal expected, got {other:?} with {others} others"),
            }
        }
    });
}

#[test]
fn order_of_the_line_is_that_of_arrival_after_a_restart_too() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let line = three_in_line(&broker, "again", 2).await;
        fill(&broker, "again", 0..6).await;
        drop(line);
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        let mut line = three_in_line(&broker, "again", 2).await;
        assert_receives(&mut line[0].0, 0..2).await;
        assert_quiet(&mut line[1].0).await;
        drop(line.remove(0));
        assert_receives(&mut line[0].0, 0..2).await;
        assert_quiet(&mut line[1].0).await;
    });
}

#[test]
fn single_active_consumer_is_a_flag() {
    within(seconds(10), async {
        let broker = shared();
        let number = FieldTable::new().with("x-single-active-consumer", 1);
        let text = refusal_of(&broker, &durable(number)).await;
        assert!(text.contains("arg 'x-single-active-consumer'"), "{text}");
        // Said to be off it is as if nothing had been said.
        let (mut connection, channel) = open(&broker).await;
        let off = FieldTable::new().with("x-single-active-consumer", false);
        declare_as(&mut connection, channel, "off", &transient(off)).await;
        for _ in 0..2 {
            drain_from(&mut connection, channel, "off").await;
        }
        for number in 0..4 {
            publish(&mut connection, channel, "off", &numbered(number, 8));
        }
        let all = receive_all(&mut connection, 4).await;
        assert_ne!(all[0].consumer, all[1].consumer);
    });
}
