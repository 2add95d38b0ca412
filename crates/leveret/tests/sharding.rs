//! Sharding: queues that share an exchange's messages, and consumers that share the queues.

mod support;

use std::process::Command;

use client::{
    Connection, ConsumeOptions, Error, ExchangeOptions, FieldTable, Properties, PropertiesBuilder,
    PublishFlags, QueueOptions,
};
use testkit::Broker;

use support::durable::take_numbers;
use support::rules::publish_to;
use support::*;

/// Runs `leveret ctl` on that broker.
fn ctl(broker: &Broker, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_leveret"))
        .args(["ctl", "--quiet", "--data-dir"])
        .arg(broker.data_dir())
        .args(arguments)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn set_policy(broker: &Broker, exchange: &str, definition: &str) {
    let pattern = format!("^{exchange}$");
    ctl(broker, &["set_policy", exchange, &pattern, definition]);
}

fn shard(exchange: &str, number: usize) -> String {
    let host = host_name();
    format!("sharding: {exchange} - rabbit@{host} - {number}")
}

/// The host's name as it is in the node's: without its domain.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux");
    name.trim().split('.').next().expect("a part").to_owned()
}

async fn declare_exchange(connection: &mut Connection, channel: u16, name: &str, kind: &str) {
    let durable = ExchangeOptions {
        durable: true,
        ..ExchangeOptions::default()
    };
    let declared = connection.declare_exchange(channel, name, kind, &durable);
    declared.await.expect("declare-ok");
}

fn send(connection: &mut Connection, channel: u16, exchange: &str, numbers: std::ops::Range<u64>) {
    let (flags, none) = (PublishFlags::NONE, Properties::default());
    for number in numbers {
        let key = number.to_string();
        let sent = connection.publish(channel, exchange, &key, flags, none, &numbered(number, 8));
        sent.expect("a short key");
    }
}

async fn consume(connection: &mut Connection, name: &str, tag: &str) -> u16 {
    let channel = connection.open_channel().await.expect("open-ok");
    let options = ConsumeOptions {
        consumer_tag: tag.to_owned(),
        ..ConsumeOptions::default()
    };
    let consuming = connection.consume(channel, name, &options);
    consuming.await.expect("a consumer");
    channel
}

async fn consumers(
    connection: &mut Connection,
    channel: u16,
    exchange: &str,
    count: usize,
) -> Vec<u32> {
    let mut consumers = Vec::new();
    for number in 0..count {
        let found = look_at(connection, channel, &shard(exchange, number)).await;
        consumers.push(found.consumers);
    }
    consumers
}

#[test]
fn a_policy_makes_shards_and_messages_are_spread_over_them() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "spread", r#"{"shards-per-node": 3}"#);
        declare_exchange(&mut connection, channel, "spread", "x-modulus-hash").await;
        send(&mut connection, channel, "spread", 0..300);
        synchronize(&mut connection, channel).await;
        let mut total = 0;
        for number in 0..3 {
            let found = look_at(&mut connection, channel, &shard("spread", number)).await;
            assert!(found.messages > 30, "{number}: {}", found.messages);
            total += found.messages;
        }
        assert_eq!(total, 300);
    });
}

#[test]
fn shards_grow_with_the_policy_and_stay_when_it_goes() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "grow", "direct").await;
        set_policy(
            &broker,
            "grow",
            r#"{"shards-per-node": 1, "routing-key": "k"}"#,
        );
        look_at(&mut connection, channel, &shard("grow", 0)).await;
        set_policy(
            &broker,
            "grow",
            r#"{"shards-per-node": 3, "routing-key": "k"}"#,
        );
        let send = async |connection: &mut Connection, key: &str| {
            let (flags, none) = (PublishFlags::NONE, Properties::default());
            let sent = connection.publish(channel, "grow", key, flags, none, b"x");
            sent.expect("a short key");
            synchronize(connection, channel).await;
        };
        send(&mut connection, "k").await;
        set_policy(
            &broker,
            "grow",
            r#"{"shards-per-node": 2, "routing-key": "other"}"#,
        );
        send(&mut connection, "k").await;
        send(&mut connection, "other").await;
        ctl(&broker, &["clear_policy", "grow"]);
        send(&mut connection, "other").await;
        for number in 0..3 {
            let found = look_at(&mut connection, channel, &shard("grow", number)).await;
            assert_eq!(found.messages, 2, "{number}");
        }
    });
}

/// As consumers come and go: each shard has one at least, and none many more than another.
#[test]
fn consumers_share_the_shards_and_share_anew_when_others_come_and_go() {
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "share", r#"{"shards-per-node": 4}"#);
        declare_exchange(&mut connection, channel, "share", "x-modulus-hash").await;
        let mut others = Vec::new();
        for count in 1..=6_usize {
            let mut other = connect(&broker).await;
            consume(&mut other, "share", "mine").await;
            others.push(other);
            eventually("it is shared anew", seconds(5), async || {
                let mut found = consumers(&mut connection, channel, "share", 4).await;
                found.sort_unstable();
                found == [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]][count.saturating_sub(4)]
            })
            .await;
        }
        while others.len() > 1 {
            others.pop();
            eventually("it is shared anew", seconds(5), async || {
                let found = consumers(&mut connection, channel, "share", 4).await;
                found.iter().all(|count| (1..=2).contains(count))
            })
            .await;
        }
        send(&mut connection, channel, "share", 0..100);
        synchronize(&mut connection, channel).await;
        let last = &mut others[0];
        let mut numbers: Vec<u64> = receive_all(last, 100)
            .await
            .iter()
            .map(Received::number)
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn a_consumer_gets_shards_that_come_later_and_ends_with_its_tag() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "later", "x-modulus-hash").await;
        set_policy(&broker, "later", r#"{"shards-per-node": 1}"#);
        let consuming = consume(&mut connection, "later", "the tag").await;
        set_policy(&broker, "later", r#"{"shards-per-node": 3}"#);
        eventually("it consumes all", seconds(5), async || {
            consumers(&mut connection, channel, "later", 3).await == [1, 1, 1]
        })
        .await;
        send(&mut connection, channel, "later", 0..30);
        for delivery in receive_all(&mut connection, 30).await {
            assert_eq!(delivery.consumer, "the tag");
            connection.ack(consuming, delivery.tag, false);
        }
        let third = shard("later", 2);
        let deleted = connection.delete_queue(channel, &third);
        deleted.await.expect("delete-ok");
        connection
            .cancel(consuming, "the tag")
            .await
            .expect("cancel-ok");
        assert_eq!(
            consumers(&mut connection, channel, "later", 2).await,
            [0, 0]
        );
        assert_quiet(&mut connection).await;
    });
}

#[test]
fn basic_get_finds_what_is_in_any_shard() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "get", r#"{"shards-per-node": 3}"#);
        declare_exchange(&mut connection, channel, "get", "x-modulus-hash").await;
        send(&mut connection, channel, "get", 0..20);
        synchronize(&mut connection, channel).await;
        let mut found = Vec::new();
        while let Some(got) = connection
            .get(channel, "get", true)
            .await
            .expect("an answer")
        {
            found.push(number(&got.body));
        }
        found.sort_unstable();
        assert_eq!(found, (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn declaring_the_exchanges_name_is_declaring_the_first_shard() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "first", r#"{"shards-per-node": 2}"#);
        declare_exchange(&mut connection, channel, "first", "x-modulus-hash").await;
        let durable = QueueOptions {
            durable: true,
            ..QueueOptions::default()
        };
        let declared = connection.declare_queue(channel, "first", &durable);
        assert_eq!(declared.await.expect("declare-ok").name, shard("first", 0));
        assert_eq!(
            look_at(&mut connection, channel, "first").await.name,
            shard("first", 0)
        );
        let transient = QueueOptions::default();
        let declared = connection.declare_queue(channel, "first", &transient);
        let error = declared.await.expect_err("it is durable");
        assert_eq!(error.reply_code(), Some(406), "{error}");
    });
}

#[test]
fn what_cannot_be_done_to_all_shards_is_406() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "refused", r#"{"shards-per-node": 2}"#);
        declare_exchange(&mut connection, channel, "refused", "x-modulus-hash").await;
        for operation in ["delete", "purge", "bind", "unbind"] {
            let channel = connection.open_channel().await.expect("open-ok");
            let none = FieldTable::new();
            let result = match operation {
                "delete" => connection.delete_queue(channel, "refused").await.map(drop),
                "purge" => connection.purge(channel, "refused").await.map(drop),
                "bind" => {
                    connection
                        .bind(channel, "refused", "amq.fanout", "", &none)
                        .await
                }
                _ => {
                    connection
                        .unbind(channel, "refused", "amq.fanout", "", &none)
                        .await
                }
            };
            let error = result.expect_err("it is refused");
            let text =
                format!("PRECONDITION_FAILED - Can't {operation} sharded queue: <<\"refused\">>");
            assert!(
                matches!(&error, Error::ChannelClosed { code: 406, text: said, .. } if *said == text),
                "{operation}: {error}"
            );
        }
    });
}

#[test]
fn shards_and_their_messages_outlast_a_crash() {
    within(seconds(30), async {
        let mut broker = builder().start().expect("a broker");
        let mut publisher = support::durable::Publisher::open(&broker).await;
        declare_exchange(
            &mut publisher.connection,
            publisher.channel,
            "lasting",
            "x-modulus-hash",
        )
        .await;
        set_policy(&broker, "lasting", r#"{"shards-per-node": 2}"#);
        let persistent = support::durable::persistent();
        for number in 0..50 {
            publisher.publish(
                "lasting",
                &number.to_string(),
                &persistent,
                &numbered(number, 8),
            );
        }
        publisher.all_confirmed().await;
        broker.crash_and_restart().expect("it starts again");
        let mut connection = connect(&broker).await;
        consume(&mut connection, "lasting", "").await;
        let mut numbers: Vec<u64> = receive_all(&mut connection, 50)
            .await
            .iter()
            .map(Received::number)
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    });
}

/// Acknowledges what comes for a while; returns how many.
async fn take_for_a_while(connection: &mut Connection, channel: u16) -> usize {
    let until = tokio::time::Instant::now() + millis(50);
    let mut count = 0;
    while let Ok(event) = tokio::time::timeout_at(until, connection.next()).await {
        let tag = received(&event.expect("an event")).expect("a delivery").tag;
        connection.ack(channel, tag, false);
        count += 1;
    }
    count
}

/// What was on its way to a consumer when its shard went to another is not lost.
#[test]
fn everything_arrives_while_shards_are_shared_anew() {
    within(seconds(60), async {
        const COUNT: u64 = 160_000;
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "flow", r#"{"shards-per-node": 4}"#);
        declare_exchange(&mut connection, channel, "flow", "x-modulus-hash").await;
        let mut others = Vec::new();
        let (mut sent, mut taken) = (0, 0);
        while sent < COUNT {
            let mut other = connect(&broker).await;
            // The broker is at work on these while the next one begins to consume.
            send(&mut connection, channel, "flow", sent..sent + 4_000);
            sent += 4_000;
            connection.flush().await.expect("sent");
            let consuming = consume(&mut other, "flow", "mine").await;
            others.push((other, consuming));
            if others.len() > 6 {
                let (gone, _) = others.remove(0);
                gone.close().await.expect("close-ok");
            }
            for (other, consuming) in &mut others {
                taken += take_for_a_while(other, *consuming).await;
            }
        }
        eventually("nothing is left", seconds(30), async || {
            for (other, consuming) in &mut others {
                taken += take_for_a_while(other, *consuming).await;
            }
            let mut left = 0;
            for number in 0..4 {
                let found = look_at(&mut connection, channel, &shard("flow", number)).await;
                left += found.messages;
            }
            left == 0 && taken as u64 >= COUNT
        })
        .await;
    });
}

/// Whichever way the broker finds it: a message with headers is looked up for itself.
#[test]
fn a_key_has_one_shard() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        set_policy(&broker, "one-each", r#"{"shards-per-node": 4}"#);
        declare_exchange(&mut connection, channel, "one-each", "x-modulus-hash").await;
        let headers = PropertiesBuilder::default().headers(&FieldTable::new().with("h", 1));
        for shards in [4, 7] {
            send(&mut connection, channel, "one-each", 0..200);
            for number in 0..200_u64 {
                let (key, body) = (number.to_string(), numbered(number, 8));
                let properties = headers.clone();
                publish_to(
                    &mut connection,
                    channel,
                    "one-each",
                    &key,
                    properties,
                    &body,
                );
            }
            synchronize(&mut connection, channel).await;
            for number in 0..shards {
                let mut found = take_numbers(&broker, &shard("one-each", number)).await;
                assert!(!found.is_empty());
                found.sort_unstable();
                assert!(found.chunks(2).all(|two| two[0] == two[1]), "{found:?}");
            }
            set_policy(&broker, "one-each", r#"{"shards-per-node": 7}"#);
        }
    });
}
