//! `x-delayed-message`: messages that go on after a delay.

mod support;

use std::time::Instant;

use client::{
    Connection, ExchangeOptions, FieldTable, Properties, PropertiesBuilder, PublishFlags,
    QueueOptions,
};

use support::durable::Publisher;
use support::*;

fn delayed_type(kind: &str) -> ExchangeOptions {
    ExchangeOptions {
        arguments: FieldTable::new().with("x-delayed-type", kind),
        durable: true,
        ..ExchangeOptions::default()
    }
}

async fn declare_exchange(connection: &mut Connection, channel: u16, name: &str, kind: &str) {
    let options = delayed_type(kind);
    let declared = connection.declare_exchange(channel, name, "x-delayed-message", &options);
    declared.await.expect("declare-ok");
}

/// A durable queue that is bound with that key.
async fn bound(connection: &mut Connection, channel: u16, exchange: &str, queue: &str, key: &str) {
    let durable = QueueOptions {
        durable: true,
        ..QueueOptions::default()
    };
    let declared = connection.declare_queue(channel, queue, &durable);
    declared.await.expect("declare-ok");
    let none = FieldTable::new();
    let bound = connection.bind(channel, queue, exchange, key, &none);
    bound.await.expect("bind-ok");
}

/// An exchange that delays, and a durable queue of the same name that is bound with that key.
async fn delaying(connection: &mut Connection, channel: u16, name: &str, kind: &str, key: &str) {
    declare_exchange(connection, channel, name, kind).await;
    bound(connection, channel, name, name, key).await;
}

fn properties(delay_ms: i64) -> Vec<u8> {
    PropertiesBuilder::default()
        .headers(
            &FieldTable::new()
                .with("x-delay", delay_ms)
                .with("other", "kept"),
        )
        .delivery_mode(2)
        .finish()
}

fn send(connection: &mut Connection, channel: u16, exchange: &str, key: &str, delay: i64, n: u64) {
    let properties = properties(delay);
    let properties = Properties::from_wire(&properties);
    let flags = PublishFlags::NONE;
    let sent = connection.publish(channel, exchange, key, flags, properties, &numbered(n, 8));
    sent.expect("a short key");
}

async fn consume(connection: &mut Connection, channel: u16, queue: &str) {
    let options = client::ConsumeOptions {
        no_ack: true,
        ..client::ConsumeOptions::default()
    };
    let consuming = connection.consume(channel, queue, &options);
    consuming.await.expect("a consumer");
}

#[test]
fn messages_come_in_order_of_their_times_and_never_early() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        delaying(&mut connection, channel, "delayed-order", "direct", "k").await;
        consume(&mut connection, channel, "delayed-order").await;
        let began = Instant::now();
        for delay in [900, 300, 0, 600, 100] {
            send(
                &mut connection,
                channel,
                "delayed-order",
                "k",
                delay,
                delay as u64,
            );
        }
        for expected in [0, 100, 300, 600, 900] {
            let delivery = receive(&mut connection).await;
            let after = began.elapsed();
            assert_eq!(delivery.number(), expected);
            assert!(
                after >= millis(expected.saturating_sub(2)),
                "{expected} after {after:?}"
            );
            assert!(after < millis(expected + 250), "{expected} after {after:?}");
        }
        assert_quiet(&mut connection).await;
    });
}

/// Their sign says that they were delayed, as the plugin of RabbitMQ does.
#[test]
fn headers_are_kept_and_the_delay_changes_its_sign() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        delaying(&mut connection, channel, "delayed-headers", "topic", "a.*").await;
        send(&mut connection, channel, "delayed-headers", "a.b", 50, 1);
        eventually("it arrives", seconds(5), async || {
            look_at(&mut connection, channel, "delayed-headers")
                .await
                .messages
                == 1
        })
        .await;
        let got = connection.get(channel, "delayed-headers", true).await;
        let got = got.expect("an answer").expect("a message");
        let headers = Properties::from_wire(&got.properties).headers();
        let headers = headers.expect("headers").to_owned().expect("sound ones");
        assert_eq!(
            headers.get("x-delay").and_then(|delay| delay.as_i64()),
            Some(-50)
        );
        assert_eq!(
            headers.get("other").and_then(|other| other.as_str()),
            Some("kept")
        );
        assert_eq!(
            (&*got.exchange, &*got.routing_key),
            ("delayed-headers", "a.b")
        );
    });
}

#[test]
fn wrong_type_is_406() {
    within(seconds(20), async {
        let broker = shared();
        let mut connection = connect(&broker).await;
        for options in [
            ExchangeOptions::default(),
            delayed_type("no-such-type"),
            delayed_type("x-delayed-message"),
        ] {
            let channel = connection.open_channel().await.expect("open-ok");
            let declared =
                connection.declare_exchange(channel, "delayed-bad", "x-delayed-message", &options);
            let error = declared.await.expect_err("no such type");
            let expected = "PRECONDITION_FAILED - Invalid argument, 'x-delayed-type' must be an \
                            existing exchange type";
            assert!(
                matches!(&error, client::Error::ChannelClosed { code: 406, text, .. }
                    if text == expected),
                "{error}"
            );
        }
    });
}

/// A time that lies behind when the broker starts again has come; the others are waited for.
#[test]
fn delays_outlast_a_crash() {
    within(seconds(40), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "delays", "direct").await;
        bound(&mut connection, channel, "delays", "q", "k").await;
        let began = Instant::now();
        let mut publisher = Publisher::open(&broker).await;
        for (number, delay) in [(2, 4_000), (1, 300), (3, 4_100)] {
            publisher.publish("delays", "k", &properties(delay), &numbered(number, 8));
        }
        publisher.all_confirmed().await;
        broker.kill().expect("it dies");
        tokio::time::sleep(millis(500)).await;
        broker.start_again().expect("it starts again");
        let (mut connection, channel) = open(&broker).await;
        consume(&mut connection, channel, "q").await;
        assert_eq!(receive(&mut connection).await.number(), 1);
        assert_eq!(receive(&mut connection).await.number(), 2);
        assert!(began.elapsed() >= millis(3_990), "{:?}", began.elapsed());
        assert_eq!(receive(&mut connection).await.number(), 3);
        assert_quiet(&mut connection).await;
    });
}

/// Bodies lie on disk while they wait, and are there in time.
#[test]
fn a_hundred_thousand_wait_in_little_memory() {
    within(seconds(90), async {
        let broker = builder()
            .config("leveret.queue_memory = 1MiB\n")
            .start()
            .expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "many", "fanout").await;
        bound(&mut connection, channel, "many", "q", "").await;
        const COUNT: u64 = 100_000;
        let began = Instant::now();
        let mut publisher = Publisher::open(&broker).await;
        for number in 0..COUNT {
            // In no order, all between 8 and 9 s.
            let delay = 8_000 + (number * 7_919) % 1_000;
            publisher.publish(
                "many",
                "",
                &properties(delay as i64),
                &numbered(number, 400),
            );
        }
        publisher.all_confirmed().await;
        let published = began.elapsed();
        consume(&mut connection, channel, "q").await;
        let mut seen = vec![false; COUNT as usize];
        for _ in 0..COUNT {
            let delivery = receive(&mut connection).await;
            let number = delivery.number();
            assert!(
                !std::mem::replace(&mut seen[number as usize], true),
                "{number} came twice"
            );
        }
        assert!(
            began.elapsed() >= millis(7_990),
            "published in {published:?}"
        );
        assert_quiet(&mut connection).await;
    });
}

#[test]
fn an_exchange_that_goes_takes_what_waits_with_it() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        delaying(&mut connection, channel, "delayed-gone", "direct", "k").await;
        send(&mut connection, channel, "delayed-gone", "k", 200, 1);
        let deleted = connection.delete_exchange(channel, "delayed-gone", false);
        deleted.await.expect("delete-ok");
        delaying(&mut connection, channel, "delayed-gone", "direct", "k").await;
        tokio::time::sleep(millis(500)).await;
        let left = look_at(&mut connection, channel, "delayed-gone").await;
        assert_eq!(left.messages, 0);
    });
}

/// A confirmed message is not lost to a queue that is full when its time comes.
#[test]
fn a_full_queue_is_waited_for() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "delayed-full", "direct").await;
        let arguments = FieldTable::new()
            .with("x-max-length", 1)
            .with("x-overflow", "reject-publish");
        let options = QueueOptions {
            arguments,
            ..QueueOptions::default()
        };
        let declared = connection.declare_queue(channel, "delayed-full", &options);
        declared.await.expect("declare-ok");
        let none = FieldTable::new();
        let bound = connection.bind(channel, "delayed-full", "delayed-full", "k", &none);
        bound.await.expect("bind-ok");
        for number in 0..3 {
            send(&mut connection, channel, "delayed-full", "k", 50, number);
        }
        let mut found = Vec::new();
        eventually("all arrive", seconds(10), async || {
            let got = connection.get(channel, "delayed-full", true).await;
            found.extend(got.expect("an answer").map(|got| number(&got.body)));
            found.len() == 3
        })
        .await;
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2]);
    });
}
