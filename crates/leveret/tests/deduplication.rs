//! `x-message-deduplication`: what has come lately is not taken again.

mod support;

use client::{Event, ExchangeOptions, FieldTable, PropertiesBuilder, QueueOptions};
use testkit::Broker;

use support::durable::{Publisher, ask, take_numbers};
use support::*;

fn properties(headers: &FieldTable) -> Vec<u8> {
    let properties = PropertiesBuilder::default().headers(headers);
    properties.delivery_mode(2).finish()
}

fn named(id: &str) -> FieldTable {
    FieldTable::new().with("x-deduplication-header", id)
}

async fn declare_with(broker: &Broker, queue: &str, arguments: FieldTable) -> Publisher {
    let mut publisher = Publisher::open(broker).await;
    let options = QueueOptions {
        durable: true,
        arguments: arguments.with("x-message-deduplication", true),
        ..QueueOptions::default()
    };
    let (connection, channel) = (&mut publisher.connection, publisher.channel);
    let declared = connection.declare_queue(channel, queue, &options);
    declared.await.expect("declare-ok");
    publisher
}

/// Publishes messages with these identities, numbered from 0 on; all are confirmed.
async fn send(publisher: &mut Publisher, queue: &str, ids: &[&str]) {
    for (number, id) in ids.iter().enumerate() {
        let body = numbered(number as u64, 8);
        publisher.publish("", queue, &properties(&named(id)), &body);
    }
    publisher.all_confirmed().await;
}

#[test]
fn what_has_come_is_confirmed_and_dropped() {
    within(seconds(20), async {
        let broker = shared();
        let mut publisher = declare_with(&broker, "dedup-once", FieldTable::new()).await;
        send(
            &mut publisher,
            "dedup-once",
            &["a", "b", "a", "c", "b", "a"],
        )
        .await;
        assert_eq!(take_numbers(&broker, "dedup-once").await, [0, 1, 3]);
        // Also after it has gone.
        send(&mut publisher, "dedup-once", &["a", "d"]).await;
        assert_eq!(take_numbers(&broker, "dedup-once").await, [1]);
    });
}

#[test]
fn messages_that_do_not_say_what_they_are_all_come() {
    within(seconds(20), async {
        let broker = shared();
        let mut publisher = declare_with(&broker, "dedup-none", FieldTable::new()).await;
        for number in 0..3 {
            let other = FieldTable::new().with("another header", "the same");
            publisher.publish("", "dedup-none", &properties(&other), &numbered(number, 8));
        }
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "dedup-none").await, [0, 1, 2]);
    });
}

#[test]
fn the_window_is_bounded_by_count() {
    within(seconds(20), async {
        let broker = shared();
        let size = FieldTable::new().with("x-cache-size", 2);
        let mut publisher = declare_with(&broker, "dedup-size", size).await;
        send(
            &mut publisher,
            "dedup-size",
            &["a", "b", "c", "c", "a", "b"],
        )
        .await;
        assert_eq!(take_numbers(&broker, "dedup-size").await, [0, 1, 2, 4, 5]);
    });
}

#[test]
fn the_window_is_bounded_by_time() {
    within(seconds(20), async {
        let broker = shared();
        let ttl = FieldTable::new().with("x-cache-ttl", 300);
        let mut publisher = declare_with(&broker, "dedup-time", ttl).await;
        send(&mut publisher, "dedup-time", &["a", "a"]).await;
        tokio::time::sleep(millis(400)).await;
        send(&mut publisher, "dedup-time", &["a", "a"]).await;
        assert_eq!(take_numbers(&broker, "dedup-time").await, [0, 0]);
        // A message may say for itself for how long it is to be known.
        let short = named("b").with("x-cache-ttl", 50);
        publisher.publish("", "dedup-time", &properties(&short), &numbered(5, 8));
        publisher.all_confirmed().await;
        tokio::time::sleep(millis(100)).await;
        publisher.publish("", "dedup-time", &properties(&short), &numbered(6, 8));
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "dedup-time").await, [5, 6]);
    });
}

#[test]
fn another_header_may_say_what_a_message_is() {
    within(seconds(20), async {
        let broker = shared();
        let header = FieldTable::new().with("x-deduplication-header", "order");
        let mut publisher = declare_with(&broker, "dedup-header", header).await;
        for (number, order) in [(0, 17), (1, 18), (2, 17)] {
            let headers = FieldTable::new().with("order", order);
            publisher.publish(
                "",
                "dedup-header",
                &properties(&headers),
                &numbered(number, 8),
            );
        }
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "dedup-header").await, [0, 1]);
    });
}

/// Those that are there, and those that are not any more.
#[test]
fn what_has_come_is_known_after_a_crash() {
    within(seconds(30), async {
        let mut broker = builder().start().expect("a broker");
        let mut publisher = declare_with(&broker, "q", FieldTable::new()).await;
        send(&mut publisher, "q", &["taken"]).await;
        assert_eq!(take_numbers(&broker, "q").await, [0]);
        send(&mut publisher, "q", &["waiting"]).await;
        support::durable::until_written_down().await;
        broker.crash_and_restart().expect("it starts again");
        let mut publisher = Publisher::open(&broker).await;
        send(&mut publisher, "q", &["taken", "waiting", "new"]).await;
        assert_eq!(take_numbers(&broker, "q").await, [0, 2]);
    });
}

/// An exchange that knows what has come, and a queue bound to it.
async fn exchange_with(broker: &Broker, name: &str, queue: FieldTable) -> Publisher {
    let mut publisher = Publisher::open(broker).await;
    let options = ExchangeOptions {
        durable: true,
        arguments: FieldTable::new().with("x-message-deduplication", true),
        ..ExchangeOptions::default()
    };
    let (connection, channel) = (&mut publisher.connection, publisher.channel);
    let declared = connection.declare_exchange(channel, name, "direct", &options);
    declared.await.expect("declare-ok");
    let options = QueueOptions {
        durable: true,
        arguments: queue,
        ..QueueOptions::default()
    };
    let declared = connection.declare_queue(channel, name, &options);
    declared.await.expect("declare-ok");
    let none = FieldTable::new();
    let bound = connection.bind(channel, name, name, "k", &none);
    bound.await.expect("bind-ok");
    publisher
}

fn publish_to(publisher: &mut Publisher, exchange: &str, key: &str, id: &str, number: u64) {
    publisher.publish(exchange, key, &properties(&named(id)), &numbered(number, 8));
}

#[test]
fn an_exchange_drops_what_has_been_published_to_it() {
    within(seconds(20), async {
        let broker = shared();
        let mut publisher = exchange_with(&broker, "dedup-x", FieldTable::new()).await;
        for (number, id) in ["a", "b", "a"].iter().enumerate() {
            publish_to(&mut publisher, "dedup-x", "k", id, number as u64);
        }
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "dedup-x").await, [0, 1]);
    });
}

/// It has not been published: nobody has it.
#[test]
fn what_led_nowhere_or_was_refused_may_come_again() {
    within(seconds(20), async {
        let broker = shared();
        let full = FieldTable::new()
            .with("x-max-length", 1)
            .with("x-overflow", "reject-publish");
        let mut publisher = exchange_with(&broker, "dedup-again", full).await;
        publish_to(&mut publisher, "dedup-again", "no such key", "a", 0);
        publish_to(&mut publisher, "dedup-again", "k", "a", 1);
        publisher.all_confirmed().await;
        publish_to(&mut publisher, "dedup-again", "k", "b", 2);
        let refused = until(&mut publisher.connection, |event| match event {
            Event::Confirm(confirm) => Some(!confirm.acked),
            _ => None,
        });
        assert!(refused.await);
        assert_eq!(take_numbers(&broker, "dedup-again").await, [1]);
        let mut publisher = Publisher::open(&broker).await;
        publish_to(&mut publisher, "dedup-again", "k", "b", 3);
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "dedup-again").await, [3]);
    });
}

#[test]
fn an_exchange_knows_what_has_been_published_after_a_crash() {
    within(seconds(30), async {
        let mut broker = builder().start().expect("a broker");
        let mut publisher = exchange_with(&broker, "x", FieldTable::new()).await;
        publish_to(&mut publisher, "x", "k", "a", 0);
        publisher.all_confirmed().await;
        support::durable::until_written_down().await;
        broker.crash_and_restart().expect("it starts again");
        let mut publisher = Publisher::open(&broker).await;
        publish_to(&mut publisher, "x", "k", "a", 1);
        publish_to(&mut publisher, "x", "k", "b", 2);
        publisher.all_confirmed().await;
        assert_eq!(take_numbers(&broker, "x").await, [0, 2]);
    });
}

/// In a transaction that is rolled back it has not been published.
#[test]
fn a_transaction_counts_when_it_is_committed() {
    within(seconds(20), async {
        let broker = shared();
        let publisher = exchange_with(&broker, "dedup-tx", FieldTable::new()).await;
        drop(publisher);
        let (mut connection, channel) = open(&broker).await;
        connection.tx_select(channel).await.expect("select-ok");
        let send = |connection: &mut client::Connection, number: u64| {
            let properties = properties(&named("a"));
            let properties = client::Properties::from_wire(&properties);
            let (flags, body) = (client::PublishFlags::NONE, numbered(number, 8));
            let sent = connection.publish(channel, "dedup-tx", "k", flags, properties, &body);
            sent.expect("a short key");
        };
        send(&mut connection, 0);
        connection.tx_rollback(channel).await.expect("rollback-ok");
        send(&mut connection, 1);
        send(&mut connection, 2);
        connection.tx_commit(channel).await.expect("commit-ok");
        send(&mut connection, 3);
        connection.tx_commit(channel).await.expect("commit-ok");
        assert_eq!(take_numbers(&broker, "dedup-tx").await, [1]);
    });
}

#[test]
fn arguments_of_exchanges_are_checked_and_compared() {
    within(seconds(10), async {
        let broker = shared();
        let declare = async |arguments: FieldTable| {
            ask(&broker, async |connection, channel| {
                let arguments = arguments.clone();
                let options = ExchangeOptions {
                    arguments,
                    ..ExchangeOptions::default()
                };
                let name = "dedup-checked";
                let declared = connection.declare_exchange(channel, name, "direct", &options);
                declared.await
            })
            .await
        };
        let on = FieldTable::new().with("x-message-deduplication", true);
        for wrong in [
            FieldTable::new().with("x-message-deduplication", "yes"),
            FieldTable::new().with("x-delayed-exchange", "yes"),
            on.clone().with("x-cache-size", "many"),
            on.clone().with("x-cache-ttl", 0),
            on.clone().with("x-deduplication-header", 1),
        ] {
            let refused = declare(wrong.clone()).await.expect_err("a refusal");
            assert_eq!(refused.0, 406, "{wrong:?}");
        }
        declare(on.clone()).await.expect("declare-ok");
        declare(on).await.expect("the same");
        let other = declare(FieldTable::new()).await.expect_err("a refusal");
        assert!(other.1.contains("inequivalent arg"), "{}", other.1);
    });
}
