//! Quorum queues count how often a message comes back, and let it go when that is too often.

mod support;

use amqp::FieldValue;
use client::{Connection, FieldTable, PropertiesBuilder};
use support::durable::*;
use support::rules::*;
use support::*;
use testkit::Broker;

const COUNT: &str = "x-delivery-count";

/// A quorum queue with a limit, `None` for the default, and one for its dead letters.
async fn declare_limited(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    limit: Option<i32>,
) {
    let dead = format!("{queue} dead");
    let mut arguments = dead_letters_to(&dead);
    if let Some(limit) = limit {
        arguments.insert("x-delivery-limit", limit);
    }
    declare_as(connection, channel, queue, &quorum(arguments)).await;
    declare_durable(connection, channel, &dead).await;
}

async fn publish_one(broker: &Broker, queue: &str, number: u64) {
    let mut publisher = Publisher::open(broker).await;
    publisher.persistent(queue, &numbered(number, 8));
    publisher.all_confirmed().await;
    publisher.connection.close().await.expect("close-ok");
}

/// How often a message has come back, as the broker says.
fn times(count: i64) -> Option<FieldValue> {
    (count > 0).then_some(FieldValue::I64(count))
}

/// The only message of the queue of dead letters.
async fn dead_letter(broker: &Broker, queue: &str) -> Letter {
    let (mut connection, channel) = open(broker).await;
    drain_from(&mut connection, channel, &format!("{queue} dead")).await;
    let letter = receive_letter(&mut connection).await;
    assert_quiet(&mut connection).await;
    letter
}

#[test]
fn header_counts_returns_and_is_absent_before_the_first() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "counted", None).await;
        publish_one(&broker, "counted", 1).await;
        consume_from(&mut connection, channel, "counted", 10).await;
        for returns in 0..10 {
            let letter = receive_letter(&mut connection).await;
            assert_eq!(letter.header(COUNT), times(returns));
            assert_eq!(letter.delivery.redelivered, returns > 0);
            connection.nack(channel, letter.delivery.tag, false, true);
        }
    });
}

#[test]
fn header_is_added_to_those_of_the_publisher() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "headers", None).await;
        let headers = FieldTable::new().with("mine", 5);
        let properties = PropertiesBuilder::default()
            .text(client::Property::ContentType, "text/plain")
            .headers(&headers)
            .delivery_mode(2)
            .text(client::Property::AppId, "app");
        send(
            &mut connection,
            channel,
            "headers",
            properties.clone(),
            b"message",
        );
        consume_from(&mut connection, channel, "headers", 10).await;
        let first = receive_letter(&mut connection).await;
        assert_eq!(first.properties, properties.finish());
        connection.reject(channel, first.delivery.tag, true);
        let second = receive_letter(&mut connection).await;
        assert_eq!(second.header("mine"), Some(FieldValue::I32(5)));
        assert_eq!(second.header(COUNT), Some(FieldValue::I64(1)));
        for property in [client::Property::ContentType, client::Property::AppId] {
            let text = second.properties().text(property);
            assert_eq!(text, first.properties().text(property));
        }
    });
}

#[test]
fn message_that_comes_back_once_more_than_permitted_is_dead() {
    within(seconds(10), async {
        let broker = shared();
        for limit in [0, 1, 2, 5] {
            let queue = format!("limit {limit}");
            let (mut connection, channel) = open(&broker).await;
            declare_limited(&mut connection, channel, &queue, Some(limit)).await;
            publish_one(&broker, &queue, 7).await;
            consume_from(&mut connection, channel, &queue, 10).await;
            for returns in 0..=i64::from(limit) {
                let letter = receive_letter(&mut connection).await;
                assert_eq!(letter.header(COUNT), times(returns));
                connection.nack(channel, letter.delivery.tag, false, true);
            }
            assert_quiet(&mut connection).await;
            let letter = dead_letter(&broker, &queue).await;
            assert_eq!(letter.number(), 7);
            let expected = [(queue.clone(), "delivery_limit".into(), 1)];
            assert_eq!(letter.obituary(), expected);
            assert_eq!(messages_in(&broker, &queue).await, Some(0));
        }
    });
}

#[test]
fn twenty_returns_are_permitted_unless_a_limit_is_set() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "twenty", None).await;
        publish_one(&broker, "twenty", 1).await;
        consume_from(&mut connection, channel, "twenty", 1).await;
        for _ in 0..21 {
            let letter = receive_letter(&mut connection).await;
            connection.nack(channel, letter.delivery.tag, false, true);
        }
        assert_quiet(&mut connection).await;
        let letter = dead_letter(&broker, "twenty").await;
        assert_eq!(letter.text("x-first-death-reason"), "delivery_limit");
    });
}

#[test]
fn limit_of_minus_one_lifts_it() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "lifted", Some(-1)).await;
        publish_one(&broker, "lifted", 1).await;
        consume_from(&mut connection, channel, "lifted", 1).await;
        for returns in 0..50 {
            let letter = receive_letter(&mut connection).await;
            assert_eq!(letter.header(COUNT), times(returns));
            connection.nack(channel, letter.delivery.tag, false, true);
        }
    });
}

#[test]
fn counts_survive_a_restart() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            declare_limited(&mut connection, channel, "kept", Some(3)).await;
            for number in 0..3 {
                publish_one(&broker, "kept", number).await;
            }
            // Of three messages one comes back twice, one once, one never.
            for expected in [0, 0, 1] {
                let mut tags = Vec::new();
                for _ in 0..=expected {
                    let got = get(&mut connection, channel, "kept", false).await;
                    tags.push(got.expect("a message").delivery_tag);
                }
                let last = tags.last().copied().unwrap_or_default();
                connection.nack(channel, last, true, true);
            }
            synchronize(&mut connection, channel).await;
            until_written_down().await;
            connection.close().await.expect("close-ok");
            ending.restart(&mut broker);
            let (mut connection, channel) = open(&broker).await;
            consume_from(&mut connection, channel, "kept", 10).await;
            for (number, returns) in [(0, 3), (1, 1), (2, 0)] {
                let letter = receive_letter(&mut connection).await;
                assert_eq!(letter.number(), number, "{ending:?}");
                assert_eq!(letter.header(COUNT), times(returns), "{ending:?}");
                connection.nack(channel, letter.delivery.tag, false, number == 0);
            }
            synchronize(&mut connection, channel).await;
            let (mut mourner, mourning) = open(&broker).await;
            drain_from(&mut mourner, mourning, "kept dead").await;
            let mut dead = Vec::new();
            for _ in 0..3 {
                let letter = receive_letter(&mut mourner).await;
                dead.push((letter.number(), letter.text("x-last-death-reason")));
            }
            dead.sort();
            let expected = ["delivery_limit", "rejected", "rejected"];
            let expected: Vec<(u64, String)> =
                (0..).zip(expected).map(|(n, r)| (n, r.into())).collect();
            assert_eq!(dead, expected, "{ending:?}");
            connection.close().await.expect("close-ok");
            mourner.close().await.expect("close-ok");
            broker.stop().expect("exit status 0");
        }
    });
}

#[test]
fn messages_that_are_gotten_count_as_well() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "gotten", Some(2)).await;
        publish_one(&broker, "gotten", 1).await;
        for returns in 0..3 {
            let got = get(&mut connection, channel, "gotten", false).await;
            let got = got.expect("a message");
            assert_eq!(header(&got.properties, COUNT), times(returns));
            assert_eq!(got.redelivered, returns > 0);
            connection.nack(channel, got.delivery_tag, false, true);
        }
        let got = get(&mut connection, channel, "gotten", false).await;
        assert!(got.is_none(), "{got:?}");
        dead_letter(&broker, "gotten").await;
    });
}

/// Several at once: those that have come back too often go, the others stay.
#[test]
fn each_message_has_its_own_count() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "own", Some(1)).await;
        for number in 0..10 {
            publish(&mut connection, channel, "own", &numbered(number, 8));
        }
        consume_from(&mut connection, channel, "own", 5).await;
        let first = receive_all(&mut connection, 5).await;
        connection.nack(channel, first[4].tag, true, true);
        let again = receive_all(&mut connection, 5).await;
        assert!(again.iter().all(|delivery| delivery.redelivered));
        connection.qos(channel, 0, false).await.expect("qos-ok");
        connection.nack(channel, 0, true, true);
        // Those five are dead; the next five come for the first time.
        let next = receive_all(&mut connection, 5).await;
        let next: Vec<u64> = next.iter().map(Received::number).collect();
        assert!((5..10).eq(next));
        assert_quiet(&mut connection).await;
        let dead = take_numbers(&broker, "own dead").await;
        assert!((0..5).eq(dead));
    });
}

#[test]
fn without_a_dead_letter_exchange_the_message_is_dropped() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let arguments = FieldTable::new().with("x-delivery-limit", 1);
        declare_as(&mut connection, channel, "dropped", &quorum(arguments)).await;
        publish(&mut connection, channel, "dropped", b"message");
        for _ in 0..2 {
            let got = get(&mut connection, channel, "dropped", false).await;
            let tag = got.expect("a message").delivery_tag;
            connection.nack(channel, tag, false, true);
        }
        synchronize(&mut connection, channel).await;
        let left = look_at(&mut connection, channel, "dropped").await;
        assert_eq!(left.messages, 0);
    });
}

#[test]
fn classic_queues_do_not_count() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let arguments = dead_letters_to("classic dead").with("x-message-ttl", 60_000);
        declare_as(&mut connection, channel, "classic", &durable(arguments)).await;
        publish_one(&broker, "classic", 1).await;
        consume_from(&mut connection, channel, "classic", 1).await;
        for returns in 0..50 {
            let letter = receive_letter(&mut connection).await;
            assert_eq!(letter.header(COUNT), None);
            assert_eq!(letter.delivery.redelivered, returns > 0);
            connection.nack(channel, letter.delivery.tag, false, true);
        }
    });
}

/// A transaction that returns a message counts when it is committed.
#[test]
fn return_in_a_transaction_counts_once_committed() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_limited(&mut connection, channel, "tx", Some(1)).await;
        publish_one(&broker, "tx", 1).await;
        connection.tx_select(channel).await.expect("select-ok");
        let got = get(&mut connection, channel, "tx", false).await;
        let tag = got.expect("a message").delivery_tag;
        connection.nack(channel, tag, false, true);
        connection.tx_rollback(channel).await.expect("rollback-ok");
        connection.nack(channel, tag, false, true);
        connection.tx_commit(channel).await.expect("commit-ok");
        let got = get(&mut connection, channel, "tx", false).await;
        let got = got.expect("a message");
        assert_eq!(header(&got.properties, COUNT), times(1));
        connection.nack(channel, got.delivery_tag, false, true);
        connection.tx_commit(channel).await.expect("commit-ok");
        dead_letter(&broker, "tx").await;
    });
}

/// Also what says of itself that it need not, and comes as a dead letter.
#[test]
fn every_message_of_a_quorum_queue_survives_a_crash() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let mut publisher = Publisher::open(&broker).await;
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        declare_as(connection, channel, "all", &quorum(FieldTable::new())).await;
        declare_with(connection, channel, "passing", dead_letters_to("all")).await;
        publisher.publish("", "all", &[0, 0], &numbered(0, 8));
        publisher.publish("", "passing", &[0, 0], &numbered(1, 8));
        publisher.all_confirmed().await;
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        reject_first(connection, channel, "passing").await;
        assert_eq!(count(connection, channel, "all").await, 2);
        until_written_down().await;
        broker.crash_and_restart().expect("it starts again");
        assert_eq!(take_numbers(&broker, "all").await, [0, 1]);
    });
}
