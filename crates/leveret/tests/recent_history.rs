//! `x-recent-history`: an exchange that remembers its last messages, and gives them to whoever comes
//! later.

mod support;

use client::{
    Connection, Error, ExchangeOptions, FieldTable, FieldValue, Properties, PropertiesBuilder,
    Property, PublishFlags, QueueOptions,
};

use support::durable::{Publisher, bind, get};
use support::*;

const KIND: &str = "x-recent-history";

fn with_length(length: impl Into<FieldValue>) -> ExchangeOptions {
    ExchangeOptions {
        arguments: FieldTable::new().with("x-recent-history-length", length),
        ..ExchangeOptions::default()
    }
}

async fn declare_exchange(connection: &mut Connection, channel: u16, name: &str, length: i32) {
    let options = with_length(length);
    let declared = connection.declare_exchange(channel, name, KIND, &options);
    declared.await.expect("declare-ok");
}

fn send(connection: &mut Connection, channel: u16, exchange: &str, number: u64) {
    send_with(connection, channel, exchange, &[0, 0], number);
}

fn send_with(conn: &mut Connection, channel: u16, exchange: &str, properties: &[u8], number: u64) {
    let properties = Properties::from_wire(properties);
    let (key, body) = (format!("key.{number}"), numbered(number, 8));
    let sent = conn.publish(
        channel,
        exchange,
        &key,
        PublishFlags::NONE,
        properties,
        &body,
    );
    sent.expect("short names");
}

/// A new queue, bound to the exchange.
async fn late_queue(connection: &mut Connection, channel: u16, exchange: &str) -> String {
    let exclusive = QueueOptions::exclusive();
    let declared = connection.declare_queue(channel, "", &exclusive).await;
    let queue = declared.expect("declare-ok").name;
    bind(connection, channel, &queue, exchange, "").await;
    queue
}

async fn numbers_in(connection: &mut Connection, channel: u16, queue: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(message) = get(connection, channel, queue, true).await {
        numbers.push(number(&message.body));
    }
    numbers
}

#[test]
fn a_new_queue_gets_the_last_twenty_in_order() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let none = ExchangeOptions::default();
        let declared = connection.declare_exchange(channel, "recent", KIND, &none);
        declared.await.expect("declare-ok");
        for number in 0..25 {
            send(&mut connection, channel, "recent", number);
        }
        let queue = late_queue(&mut connection, channel, "recent").await;
        let first = get(&mut connection, channel, &queue, true).await;
        let first = first.expect("a message");
        assert_eq!(
            (&*first.exchange, &*first.routing_key, number(&first.body)),
            ("recent", "key.5", 5)
        );
        assert!(!first.redelivered);
        let rest = numbers_in(&mut connection, channel, &queue).await;
        assert_eq!(rest, (6..25).collect::<Vec<_>>());
        // And what comes later once, as from a fanout exchange.
        send(&mut connection, channel, "recent", 25);
        let later = numbers_in(&mut connection, channel, &queue).await;
        assert_eq!(later, [25]);
    });
}

#[test]
fn only_a_binding_that_is_new_brings_the_history() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-again", 3).await;
        for number in 0..5 {
            send(&mut connection, channel, "recent-again", number);
        }
        let queue = late_queue(&mut connection, channel, "recent-again").await;
        bind(&mut connection, channel, &queue, "recent-again", "").await;
        let once = numbers_in(&mut connection, channel, &queue).await;
        assert_eq!(once, [2, 3, 4]);
        bind(&mut connection, channel, &queue, "recent-again", "other").await;
        let again = numbers_in(&mut connection, channel, &queue).await;
        assert_eq!(again, [2, 3, 4]);
    });
}

#[test]
fn a_message_may_ask_not_to_be_kept() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-some", 10).await;
        let early = late_queue(&mut connection, channel, "recent-some").await;
        let marked = |value: FieldValue| {
            let headers = FieldTable::new().with("x-recent-history-no-store", value);
            PropertiesBuilder::default().headers(&headers).finish()
        };
        let (yes, one, no) = (marked(true.into()), marked(1.into()), marked(false.into()));
        for (number, properties) in [&yes, &one, &no, &yes].into_iter().enumerate() {
            send_with(
                &mut connection,
                channel,
                "recent-some",
                properties,
                number as u64,
            );
        }
        let late = late_queue(&mut connection, channel, "recent-some").await;
        // As the plugin has it: only what is true counts.
        assert_eq!(numbers_in(&mut connection, channel, &late).await, [1, 2]);
        let all = numbers_in(&mut connection, channel, &early).await;
        assert_eq!(all, [0, 1, 2, 3]);
    });
}

#[test]
fn a_new_exchange_has_the_history_routed_through_it() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-from", 5).await;
        declare_exchange(&mut connection, channel, "recent-onto", 5).await;
        let none = ExchangeOptions::default();
        let declared = connection.declare_exchange(channel, "recent-topic", "topic", &none);
        declared.await.expect("declare-ok");
        let exclusive = QueueOptions::exclusive();
        let declared = connection.declare_queue(channel, "recent-filtered", &exclusive);
        declared.await.expect("declare-ok");
        bind(
            &mut connection,
            channel,
            "recent-filtered",
            "recent-topic",
            "*.2",
        )
        .await;
        for number in 0..4 {
            send(&mut connection, channel, "recent-from", number);
        }
        let none = FieldTable::new();
        for destination in ["recent-topic", "recent-onto"] {
            let bound = connection.bind_exchange(channel, destination, "recent-from", "", &none);
            bound
                .await
                .expect("bind-ok, though most of it leads nowhere");
        }
        let filtered = numbers_in(&mut connection, channel, "recent-filtered").await;
        assert_eq!(filtered, [2]);
        // An exchange of the same type keeps what came to it that way, and what passes later.
        send(&mut connection, channel, "recent-from", 4);
        let late = late_queue(&mut connection, channel, "recent-onto").await;
        let late = numbers_in(&mut connection, channel, &late).await;
        assert_eq!(late, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn what_comes_through_other_exchanges_is_kept_routed_or_not() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-end", 5).await;
        let none = ExchangeOptions::default();
        let declared = connection.declare_exchange(channel, "recent-start", "fanout", &none);
        declared.await.expect("declare-ok");
        let none = FieldTable::new();
        let bound = connection.bind_exchange(channel, "recent-end", "recent-start", "", &none);
        bound.await.expect("bind-ok");
        send(&mut connection, channel, "recent-start", 7);
        let late = late_queue(&mut connection, channel, "recent-end").await;
        let got = get(&mut connection, channel, &late, true).await;
        assert_eq!(got.map(|got| got.exchange), Some("recent-start".into()));
    });
}

#[test]
fn dead_letters_are_kept_as_well() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-dead", 5).await;
        let arguments = FieldTable::new()
            .with("x-dead-letter-exchange", "recent-dead")
            .with("x-max-length", 0);
        let options = QueueOptions {
            arguments,
            ..QueueOptions::exclusive()
        };
        let declared = connection.declare_queue(channel, "recent-dying", &options);
        declared.await.expect("declare-ok");
        publish(&mut connection, channel, "recent-dying", &numbered(3, 8));
        synchronize(&mut connection, channel).await;
        let late = late_queue(&mut connection, channel, "recent-dead").await;
        assert_eq!(numbers_in(&mut connection, channel, &late).await, [3]);
    });
}

#[test]
fn a_transaction_is_kept_when_it_is_committed() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-tx", 5).await;
        let committing = connection.open_channel().await.expect("a channel");
        connection.tx_select(committing).await.expect("select-ok");
        for number in [1, 2] {
            send(&mut connection, committing, "recent-tx", number);
        }
        connection
            .tx_rollback(committing)
            .await
            .expect("rolled back");
        for number in [3, 4] {
            send(&mut connection, committing, "recent-tx", number);
        }
        // Bound after the publish and before the commit: the commit brings it all the same.
        let between = late_queue(&mut connection, channel, "recent-tx").await;
        assert_eq!(
            look_at(&mut connection, channel, &between).await.messages,
            0
        );
        connection.tx_commit(committing).await.expect("commit-ok");
        let after = late_queue(&mut connection, channel, "recent-tx").await;
        for queue in [&between, &after] {
            let found = numbers_in(&mut connection, channel, queue).await;
            assert_eq!(found, [3, 4]);
        }
    });
}

#[test]
fn expiration_begins_anew_and_limits_hold() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-brief", 5).await;
        let brief = PropertiesBuilder::default()
            .text(Property::Expiration, "300")
            .finish();
        for number in 0..4 {
            send_with(&mut connection, channel, "recent-brief", &brief, number);
        }
        tokio::time::sleep(millis(400)).await;
        let late = late_queue(&mut connection, channel, "recent-brief").await;
        assert_eq!(look_at(&mut connection, channel, &late).await.messages, 4);
        tokio::time::sleep(millis(400)).await;
        assert_eq!(look_at(&mut connection, channel, &late).await.messages, 0);
        for (name, overflow, expected) in [
            ("recent-head", "drop-head", [2, 3]),
            ("recent-tail", "reject-publish", [0, 1]),
        ] {
            let arguments = FieldTable::new()
                .with("x-max-length", 2)
                .with("x-overflow", overflow);
            let options = QueueOptions {
                arguments,
                ..QueueOptions::exclusive()
            };
            let declared = connection.declare_queue(channel, name, &options);
            declared.await.expect("declare-ok");
            bind(&mut connection, channel, name, "recent-brief", "").await;
            assert_eq!(numbers_in(&mut connection, channel, name).await, expected);
        }
    });
}

#[test]
fn a_wrong_length_is_406() {
    within(seconds(20), async {
        let broker = shared();
        let mut connection = connect(&broker).await;
        for (length, shown) in [
            (FieldValue::I32(0), "0"),
            (FieldValue::I64(-1), "-1"),
            (FieldValue::from("a"), "<<\"a\">>"),
            (FieldValue::Bool(true), "true"),
            (FieldValue::Void, "undefined"),
        ] {
            let channel = connection.open_channel().await.expect("open-ok");
            let options = with_length(length);
            let declared = connection.declare_exchange(channel, "recent-wrong", KIND, &options);
            let error = declared.await.expect_err("no length");
            let expected = format!(
                "PRECONDITION_FAILED - Invalid argument {shown}, 'x-recent-history-length' must \
                 be a positive integer"
            );
            assert!(
                matches!(&error, Error::ChannelClosed { code: 406, text, .. } if *text == expected),
                "{error}"
            );
        }
    });
}

/// Queues that are bound while somebody publishes: each begins somewhere, and from there on has all,
/// once and in order.
#[test]
fn between_history_and_what_follows_nothing_is_missing() {
    within(seconds(60), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "recent-busy", 20).await;
        let mut publisher = Publisher::open(&broker).await;
        let publishing = async {
            for number in 0..6_000 {
                publisher.publish("recent-busy", "", &[0, 0], &numbered(number, 8));
                if number % 50 == 49 {
                    publisher.all_confirmed().await;
                }
            }
            publisher.all_confirmed().await;
        };
        let binding = async {
            let mut queues = Vec::new();
            for _ in 0..40 {
                queues.push(late_queue(&mut connection, channel, "recent-busy").await);
                tokio::time::sleep(millis(3)).await;
            }
            queues
        };
        let ((), queues) = tokio::join!(publishing, binding);
        for queue in queues {
            let numbers = numbers_in(&mut connection, channel, &queue).await;
            let first = *numbers.first().expect("some");
            assert_eq!(numbers, (first..6_000).collect::<Vec<_>>(), "{queue}");
        }
    });
}

#[test]
fn a_restart_empties_histories() {
    within(seconds(40), async {
        let mut broker = builder().start().expect("a broker");
        let mut publisher = Publisher::open(&broker).await;
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        let durable = ExchangeOptions {
            durable: true,
            ..with_length(5)
        };
        let declared = connection.declare_exchange(channel, "kept", KIND, &durable);
        declared.await.expect("declare-ok");
        publisher.publish("kept", "", &support::durable::persistent(), &numbered(1, 8));
        publisher.all_confirmed().await;
        publisher.connection.close().await.expect("close-ok");
        broker.restart().expect("it starts again");
        let (mut connection, channel) = open(&broker).await;
        send(&mut connection, channel, "kept", 2);
        let late = late_queue(&mut connection, channel, "kept").await;
        assert_eq!(numbers_in(&mut connection, channel, &late).await, [2]);
    });
}
