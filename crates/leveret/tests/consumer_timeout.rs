//! Consumers that keep a message for too long lose their channel.

mod support;

use std::time::{Duration, Instant};

use client::{Connection, ConsumeOptions, Error, FieldTable};
use support::rules::*;
use support::*;
use testkit::Broker;

fn timeout(milliseconds: i32) -> FieldTable {
    FieldTable::new().with("x-consumer-timeout", milliseconds)
}

/// A queue with these arguments and so many messages.
async fn filled(
    broker: &Broker,
    queue: &str,
    arguments: FieldTable,
    count: u64,
) -> (Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    declare_as(&mut connection, channel, queue, &transient(arguments)).await;
    for number in 0..count {
        publish(&mut connection, channel, queue, &numbered(number, 8));
    }
    synchronize(&mut connection, channel).await;
    (connection, channel)
}

async fn consume_with(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    arguments: FieldTable,
) {
    let options = ConsumeOptions {
        arguments,
        ..ConsumeOptions::default()
    };
    let consuming = connection.consume(channel, queue, &options).await;
    consuming.expect("a consumer");
}

/// The channel ends for that reason, at that time.
async fn assert_times_out(connection: &mut Connection, channel: u16, since: Instant, after: u64) {
    let (code, text) = closed(connection, channel).await;
    let took = since.elapsed();
    assert_eq!(code, 406, "{text}");
    let expected = format!(
        "PRECONDITION_FAILED - delivery acknowledgement on channel {channel} timed out. Timeout \
         value used: {after} ms. This timeout value can be configured, see consumers doc guide to \
         learn more"
    );
    assert!(text.starts_with(&expected), "{text}");
    assert_on_time(took, after);
}

fn assert_on_time(took: Duration, after: u64) {
    assert!(took + millis(2) >= millis(after), "{took:?} < {after} ms");
    assert!(took < millis(after + 1_500), "{took:?} for {after} ms");
}

#[test]
fn channel_that_keeps_a_message_for_too_long_is_closed() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "kept", timeout(400), 3).await;
        connection.qos(channel, 2, false).await.expect("qos-ok");
        let since = Instant::now();
        consume_with(&mut connection, channel, "kept", FieldTable::new()).await;
        receive_all(&mut connection, 2).await;
        assert_times_out(&mut connection, channel, since, 400).await;
        // The connection goes on, and the messages are back.
        let channel = connection.open_channel().await.expect("a channel");
        drain_from(&mut connection, channel, "kept").await;
        let back = receive_all(&mut connection, 3).await;
        let back: Vec<(u64, bool)> = back.iter().map(|d| (d.number(), d.redelivered)).collect();
        assert_eq!(back, [(0, true), (1, true), (2, false)]);
        assert_healthy(&broker).await;
    });
}

#[test]
fn others_get_what_was_kept_for_too_long() {
    within(seconds(10), async {
        let broker = shared();
        let (mut slow, channel) = filled(&broker, "passed on", timeout(400), 1).await;
        let since = Instant::now();
        consume_with(&mut slow, channel, "passed on", FieldTable::new()).await;
        receive(&mut slow).await;
        let (mut other, other_channel) = open(&broker).await;
        consume_with(&mut other, other_channel, "passed on", FieldTable::new()).await;
        slow.flush().await.expect("sent");
        let delivery = receive(&mut other).await;
        assert_on_time(since.elapsed(), 400);
        assert!(delivery.redelivered);
        other.ack(other_channel, delivery.tag, false);
        assert_times_out(&mut slow, channel, since, 400).await;
        assert_quiet(&mut other).await;
    });
}

#[test]
fn consumer_may_have_a_timeout_of_its_own() {
    within(seconds(10), async {
        let broker = shared();
        for (queue, arguments) in [("own", FieldTable::new()), ("other", timeout(60_000))] {
            let (mut connection, channel) = filled(&broker, queue, arguments, 1).await;
            let since = Instant::now();
            consume_with(&mut connection, channel, queue, timeout(300)).await;
            receive(&mut connection).await;
            assert_times_out(&mut connection, channel, since, 300).await;
        }
        // A longer one than the queue's, too.
        let (mut connection, channel) = filled(&broker, "longer", timeout(200), 1).await;
        let since = Instant::now();
        consume_with(&mut connection, channel, "longer", timeout(700)).await;
        receive(&mut connection).await;
        assert_times_out(&mut connection, channel, since, 700).await;
    });
}

/// Whatever ends a delivery in time, and however long the consumer has been there.
#[test]
fn nothing_happens_to_who_settles_in_time() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "in time", timeout(400), 30).await;
        connection.qos(channel, 3, false).await.expect("qos-ok");
        consume_with(&mut connection, channel, "in time", FieldTable::new()).await;
        // At most three at a time, each for less than its time, all together for longer.
        for round in 0..30 {
            let delivery = receive(&mut connection).await;
            tokio::time::sleep(millis(60)).await;
            match round % 3 {
                0 => connection.ack(channel, delivery.tag, false),
                1 => connection.reject(channel, delivery.tag, false),
                _ => connection.nack(channel, delivery.tag, false, false),
            }
            connection.flush().await.expect("sent");
        }
        tokio::time::sleep(millis(600)).await;
        assert_quiet(&mut connection).await;
        synchronize(&mut connection, channel).await;
    });
}

/// The time begins anew with every delivery.
#[test]
fn requeued_message_may_be_kept_as_long_again() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "anew", timeout(400), 1).await;
        consume_with(&mut connection, channel, "anew", FieldTable::new()).await;
        for _ in 0..4 {
            let delivery = receive(&mut connection).await;
            tokio::time::sleep(millis(200)).await;
            connection.nack(channel, delivery.tag, false, true);
        }
        let since = Instant::now();
        receive(&mut connection).await;
        assert_times_out(&mut connection, channel, since, 400).await;
    });
}

#[test]
fn other_channels_and_consumers_go_on() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, late) = filled(&broker, "late", timeout(300), 1).await;
        let busy = connection.open_channel().await.expect("a channel");
        declare(&mut connection, busy, "busy").await;
        drain_from(&mut connection, busy, "busy").await;
        consume_with(&mut connection, late, "late", FieldTable::new()).await;
        // A second consumer of the channel that is going to end, on another queue.
        drain_from(&mut connection, late, "busy").await;
        receive(&mut connection).await;
        let since = Instant::now();
        assert_times_out(&mut connection, late, since, 300).await;
        for number in 0..10 {
            publish(&mut connection, busy, "busy", &numbered(number, 8));
        }
        let all = receive_all(&mut connection, 10).await;
        assert!(all.iter().all(|delivery| delivery.channel == busy));
        // The number may be used again.
        let again = connection.open_channel_as(late).await;
        again.expect("the same number");
        drain_from(&mut connection, late, "late").await;
        assert_eq!(receive(&mut connection).await.channel, late);
    });
}

#[test]
fn consumers_without_acknowledgements_have_nothing_to_keep() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "no acks", timeout(200), 5).await;
        drain_from(&mut connection, channel, "no acks").await;
        receive_all(&mut connection, 5).await;
        tokio::time::sleep(millis(500)).await;
        assert_quiet(&mut connection).await;
        synchronize(&mut connection, channel).await;
    });
}

/// A delivery outlives its consumer, and so does its time... unless the channel has ended.
#[test]
fn channel_that_ends_by_itself_is_not_closed_again() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = filled(&broker, "ended", timeout(300), 2).await;
        consume_with(&mut connection, channel, "ended", FieldTable::new()).await;
        receive_all(&mut connection, 2).await;
        connection.close_channel(channel).await.expect("close-ok");
        let again = connection.open_channel_as(channel).await;
        again.expect("the same number");
        tokio::time::sleep(millis(500)).await;
        assert_quiet(&mut connection).await;
        synchronize(&mut connection, channel).await;
        assert_healthy(&broker).await;
    });
}

#[test]
fn timeout_that_is_none_is_refused() {
    within(seconds(10), async {
        let broker = shared();
        for (value, problem) in [(0, "{value_zero,0}"), (-1, "{value_negative,-1}")] {
            let text = refusal_of(&broker, &transient(timeout(value))).await;
            assert!(text.ends_with(problem), "{text}");
            let (mut connection, channel) = filled(&broker, "valid", FieldTable::new(), 0).await;
            let options = ConsumeOptions {
                arguments: timeout(value),
                ..ConsumeOptions::default()
            };
            match connection.consume(channel, "valid", &options).await {
                Err(Error::ChannelClosed { code, text, .. }) => {
                    assert_eq!(code, 406, "{text}");
                    assert!(text.contains("'x-consumer-timeout'"), "{text}");
                }
                other => panic!("a refusal expected, got {other:?}"),
            }
        }
    });
}
