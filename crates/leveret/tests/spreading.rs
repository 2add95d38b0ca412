//! Exchanges that choose one of their destinations for each message: `x-consistent-hash`,
//! `x-modulus-hash`, `x-random` and `x-local-random`.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};

use client::{
    Connection, Error, ExchangeOptions, FieldTable, Properties, PropertiesBuilder, Property,
    PublishFlags, QueueOptions,
};

use support::*;

/// Declares an exchange, and queues that are bound with these keys.
async fn set_up(
    connection: &mut Connection,
    channel: u16,
    kind: &str,
    arguments: FieldTable,
    keys: &[&str],
) -> (String, Vec<String>) {
    // The tests share a broker.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let exchange = format!("spread-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let options = ExchangeOptions {
        arguments,
        ..ExchangeOptions::default()
    };
    connection
        .declare_exchange(channel, &exchange, kind, &options)
        .await
        .expect("declare-ok");
    let mut queues = Vec::new();
    for key in keys {
        let exclusive = QueueOptions::exclusive();
        let declared = connection.declare_queue(channel, "", &exclusive);
        let queue = declared.await.expect("declare-ok").name;
        let none = FieldTable::new();
        let bound = connection.bind(channel, &queue, &exchange, key, &none);
        bound.await.expect("bind-ok");
        queues.push(queue);
    }
    (exchange, queues)
}

async fn counts(connection: &mut Connection, channel: u16, queues: &[String]) -> Vec<u32> {
    let mut counts = Vec::new();
    for queue in queues {
        counts.push(look_at(connection, channel, queue).await.messages);
    }
    counts
}

fn send(connection: &mut Connection, channel: u16, exchange: &str, key: &str) {
    let (flags, none) = (PublishFlags::NONE, Properties::default());
    let sent = connection.publish(channel, exchange, key, flags, none, b"x");
    sent.expect("a short key");
}

#[test]
fn each_message_goes_to_one_queue_and_all_queues_get_some() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for kind in [
            "x-consistent-hash",
            "x-modulus-hash",
            "x-random",
            "x-local-random",
        ] {
            let none = FieldTable::new();
            let (exchange, queues) =
                set_up(&mut connection, channel, kind, none, &["1", "1", "1", "1"]).await;
            for number in 0..1_000 {
                send(
                    &mut connection,
                    channel,
                    &exchange,
                    &format!("key-{number}"),
                );
            }
            let counts = counts(&mut connection, channel, &queues).await;
            assert_eq!(counts.iter().sum::<u32>(), 1_000, "{kind}: {counts:?}");
            assert!(
                counts.iter().all(|count| *count > 100),
                "{kind}: {counts:?}"
            );
        }
    });
}

#[test]
fn a_key_keeps_its_queue() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for kind in ["x-consistent-hash", "x-modulus-hash"] {
            let none = FieldTable::new();
            let (exchange, queues) =
                set_up(&mut connection, channel, kind, none, &["3", "3", "3"]).await;
            for _ in 0..100 {
                send(&mut connection, channel, &exchange, "the same");
            }
            let mut counts = counts(&mut connection, channel, &queues).await;
            counts.sort_unstable();
            assert_eq!(counts, [0, 0, 100], "{kind}");
        }
    });
}

#[test]
fn weights_of_a_consistent_hash_are_binding_keys() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let kind = "x-consistent-hash";
        let none = FieldTable::new();
        let (exchange, queues) = set_up(&mut connection, channel, kind, none, &["1", "9"]).await;
        for number in 0..2_000 {
            send(&mut connection, channel, &exchange, &number.to_string());
        }
        let counts = counts(&mut connection, channel, &queues).await;
        assert_eq!(counts[0] + counts[1], 2_000);
        assert!((100..300).contains(&counts[0]), "{counts:?}");
    });
}

#[test]
fn a_header_or_property_may_be_hashed_instead_of_the_key() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let kind = "x-consistent-hash";
        let by_header = FieldTable::new().with("hash-header", "customer");
        let by_property = FieldTable::new().with("hash-property", "correlation_id");
        for arguments in [by_header, by_property] {
            let (exchange, queues) =
                set_up(&mut connection, channel, kind, arguments, &["1", "1", "1"]).await;
            for number in 0..300 {
                let customer = format!("c{}", number % 2);
                let properties = PropertiesBuilder::default()
                    .headers(&FieldTable::new().with("customer", customer.as_str()))
                    .text(Property::CorrelationId, &customer)
                    .finish();
                let key = number.to_string();
                let properties = Properties::from_wire(&properties);
                let flags = PublishFlags::NONE;
                let sent = connection.publish(channel, &exchange, &key, flags, properties, b"x");
                sent.expect("a short key");
            }
            let counts = counts(&mut connection, channel, &queues).await;
            assert_eq!(counts.iter().sum::<u32>(), 300);
            assert!(counts.iter().all(|count| count % 150 == 0), "{counts:?}");
            let deleted = connection.delete_exchange(channel, &exchange, false);
            deleted.await.expect("delete-ok");
        }
    });
}

#[test]
fn a_wrong_weight_or_argument_is_406() {
    within(seconds(20), async {
        let broker = shared();
        let mut connection = connect(&broker).await;
        for (key, text) in [
            ("", "The binding key must be an integer: <<>>"),
            ("zero", "The binding key must be an integer: <<\"zero\">>"),
            ("0", "The binding key must be greater than 0"),
            ("-1", "The binding key must be greater than 0"),
        ] {
            let channel = connection.open_channel().await.expect("open-ok");
            let none = ExchangeOptions::default();
            let exchange = "spread-weights";
            let declared =
                connection.declare_exchange(channel, exchange, "x-consistent-hash", &none);
            declared.await.expect("declare-ok");
            let exclusive = QueueOptions::exclusive();
            let queue = connection.declare_queue(channel, "", &exclusive);
            let queue = queue.await.expect("declare-ok").name;
            let none = FieldTable::new();
            let bound = connection.bind(channel, &queue, exchange, key, &none);
            let error = bound.await.expect_err("no weight");
            assert!(
                matches!(&error, Error::ChannelClosed { code: 406, text: said, .. }
                    if *said == format!("PRECONDITION_FAILED - {text}")),
                "{key}: {error}"
            );
        }
        let both = FieldTable::new()
            .with("hash-header", "a")
            .with("hash-property", "message_id");
        for arguments in [both, FieldTable::new().with("hash-property", "app_id")] {
            let channel = connection.open_channel().await.expect("open-ok");
            let options = ExchangeOptions {
                arguments,
                ..ExchangeOptions::default()
            };
            let declared =
                connection.declare_exchange(channel, "spread-wrong", "x-consistent-hash", &options);
            let error = declared.await.expect_err("no such thing");
            assert_eq!(error.reply_code(), Some(406), "{error}");
        }
    });
}

/// Its queues go one after the other, and messages find those that are left.
#[test]
fn what_is_left_of_the_queues_gets_all() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for kind in ["x-consistent-hash", "x-modulus-hash", "x-random"] {
            let none = FieldTable::new();
            let (exchange, queues) =
                set_up(&mut connection, channel, kind, none, &["2", "2", "2"]).await;
            for queue in &queues[..2] {
                let deleted = connection.delete_queue(channel, queue);
                deleted.await.expect("delete-ok");
            }
            for number in 0..50 {
                send(&mut connection, channel, &exchange, &number.to_string());
            }
            let left = look_at(&mut connection, channel, &queues[2]).await;
            assert_eq!(left.messages, 50, "{kind}");
        }
    });
}
