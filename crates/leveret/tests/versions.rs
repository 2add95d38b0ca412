//! The three protocol versions on one broker.

mod support;

use client::method::access;
use client::{
    Connection, ConsumeOptions, Error, ExchangeOptions, FieldTable, Options, Properties,
    PublishFlags, QueueOptions, Version,
};
use testkit::Broker;

use support::*;

const VERSIONS: [Version; 3] = [Version::V0_8, Version::V0_9, Version::V0_9_1];

async fn speak(broker: &Broker, version: Version) -> (Connection, u16) {
    let options = Options {
        version,
        ..options(broker)
    };
    let mut connection = connect_with(&options).await;
    let channel = connection.open_channel().await.expect("a channel");
    (connection, channel)
}

/// Publishes through an exchange of `publisher`'s and consumes on `consumer`, acknowledging.
async fn round_trip(
    (publisher, publishing): (&mut Connection, u16),
    (consumer, consuming): (&mut Connection, u16),
    name: &str,
) {
    let exchange = ExchangeOptions::default();
    let declared = publisher.declare_exchange(publishing, name, "direct", &exchange);
    declared.await.expect("declare-ok");
    declare(consumer, consuming, name).await;
    let none = FieldTable::new();
    let bound = consumer.bind(consuming, name, name, "key", &none).await;
    bound.expect("bind-ok");
    consumer.qos(consuming, 2, false).await.expect("qos-ok");
    let options = ConsumeOptions::default();
    let tag = consumer.consume(consuming, name, &options).await;
    let tag = tag.expect("consume-ok");
    // Bodies of one frame, of several, and of none.
    for (number, len) in [8, 300_000, 0, 131_064].into_iter().enumerate() {
        let body = vec![number as u8; len];
        let (flags, none) = (PublishFlags::MANDATORY, Properties::default());
        publisher
            .publish(publishing, name, "key", flags, none, &body)
            .expect("short names");
        publisher.flush().await.expect("a message");
        let delivery = receive(consumer).await;
        assert!(!delivery.redelivered && delivery.body == body);
        // One comes back before it is done.
        let delivery = match number {
            1 => {
                consumer.reject(consuming, delivery.tag, true);
                let again = receive(consumer).await;
                assert!(again.redelivered && again.body.len() == len);
                again
            }
            _ => delivery,
        };
        consumer.ack(consuming, delivery.tag, false);
    }
    let info = look_at(consumer, consuming, name).await;
    assert_eq!((info.messages, info.consumers), (0, 1));
    consumer.cancel(consuming, &tag).await.expect("cancel-ok");
    assert_eq!(publisher.delete_queue(publishing, name).await.ok(), Some(0));
}

#[test]
fn every_version_publishes_consumes_and_acknowledges() {
    within(seconds(10), async {
        let broker = shared();
        for version in VERSIONS {
            let (mut publisher, publishing) = speak(&broker, version).await;
            let (mut consumer, consuming) = speak(&broker, version).await;
            round_trip(
                (&mut publisher, publishing),
                (&mut consumer, consuming),
                &format!("same-{version:?}"),
            )
            .await;
            publisher.close().await.expect("close-ok");
            consumer.close().await.expect("close-ok");
        }
    });
}

#[test]
fn versions_talk_to_each_other() {
    within(seconds(10), async {
        let broker = shared();
        for from in VERSIONS {
            for to in VERSIONS {
                let (mut publisher, publishing) = speak(&broker, from).await;
                let (mut consumer, consuming) = speak(&broker, to).await;
                round_trip(
                    (&mut publisher, publishing),
                    (&mut consumer, consuming),
                    &format!("{from:?}-to-{to:?}"),
                )
                .await;
            }
        }
    });
}

/// Properties are the same on the wire in all versions.
#[test]
fn properties_survive_the_change_of_version() {
    within(seconds(10), async {
        let broker = shared();
        let (mut old, channel) = speak(&broker, Version::V0_8).await;
        declare(&mut old, channel, "properties").await;
        // Delivery mode 2 and priority 9.
        let properties = Properties::from_wire(&[0x18, 0x00, 2, 9]);
        let none = PublishFlags::NONE;
        old.publish(channel, "", "properties", none, properties, b"x")
            .expect("short names");
        synchronize(&mut old, channel).await;
        let (mut new, channel) = speak(&broker, Version::V0_9_1).await;
        let got = new.get(channel, "properties", true).await;
        let got = got.expect("an answer").expect("a message");
        assert_eq!(got.properties, [0x18, 0x00, 2, 9]);
    });
}

#[test]
fn transactions_work_in_every_version() {
    within(seconds(10), async {
        let broker = shared();
        for version in VERSIONS {
            let queue = format!("tx-{version:?}");
            let (mut connection, channel) = speak(&broker, version).await;
            declare(&mut connection, channel, &queue).await;
            connection.tx_select(channel).await.expect("select-ok");
            publish(&mut connection, channel, &queue, b"kept");
            connection.tx_commit(channel).await.expect("commit-ok");
            publish(&mut connection, channel, &queue, b"dropped");
            connection.tx_rollback(channel).await.expect("rollback-ok");
            let info = look_at(&mut connection, channel, &queue).await;
            assert_eq!(info.messages, 1, "{version:?}");
        }
    });
}

/// Clients of that time ask for a ticket before they do anything.
#[test]
fn access_tickets_are_given_to_whoever_asks() {
    within(seconds(10), async {
        let broker = shared();
        for version in [Version::V0_8, Version::V0_9] {
            let (mut connection, channel) = speak(&broker, version).await;
            let request = access::Request {
                realm: "/data".try_into().expect("a short name"),
                active: true,
                write: true,
                read: true,
                ..Default::default()
            };
            let ticket = connection.request_access(channel, request).await;
            assert!(ticket.expect("request-ok") > 0, "{version:?}");
        }
    });
}

/// The producer declares its exchange as auto-delete, the consumer as durable: on 0-8 only the type
/// is compared.
#[test]
fn redeclaring_an_exchange_on_0_8_compares_the_type_alone() {
    within(seconds(10), async {
        let broker = shared();
        let auto_delete = ExchangeOptions {
            auto_delete: true,
            ..Default::default()
        };
        let durable = ExchangeOptions {
            durable: true,
            ..Default::default()
        };
        let (mut old, channel) = speak(&broker, Version::V0_8).await;
        for options in [&auto_delete, &durable, &ExchangeOptions::default()] {
            let declared = old.declare_exchange(channel, "lenient", "direct", options);
            declared.await.expect("declare-ok");
        }
        let other_type = old.declare_exchange(channel, "lenient", "fanout", &auto_delete);
        let error = other_type.await.expect_err("another type");
        assert!(
            matches!(error, Error::ChannelClosed { code: 406, .. }),
            "{error}"
        );
        let (mut new, channel) = speak(&broker, Version::V0_9_1).await;
        let strict = new.declare_exchange(channel, "lenient", "direct", &durable);
        let error = strict.await.expect_err("other flags");
        assert_eq!(error.reply_code(), Some(406), "{error}");
    });
}

#[test]
fn queues_are_compared_in_every_version() {
    within(seconds(10), async {
        let broker = shared();
        for version in VERSIONS {
            let queue = format!("strict-{version:?}");
            let (mut connection, channel) = speak(&broker, version).await;
            declare(&mut connection, channel, &queue).await;
            let durable = QueueOptions::durable();
            let other = connection.declare_queue(channel, &queue, &durable).await;
            let error = other.expect_err("another queue");
            assert_eq!(error.reply_code(), Some(406), "{version:?}: {error}");
        }
    });
}

/// Versions do not get mixed up on one broker at one time.
#[test]
fn connections_of_all_versions_at_once() {
    within(seconds(10), async {
        let broker = shared();
        let work = async |version: Version| {
            let (mut publisher, publishing) = speak(&broker, version).await;
            let (mut consumer, consuming) = speak(&broker, version).await;
            for round in 0..10 {
                let name = format!("mixed-{version:?}-{round}");
                let publisher = (&mut publisher, publishing);
                round_trip(publisher, (&mut consumer, consuming), &name).await;
            }
        };
        tokio::join!(
            work(Version::V0_8),
            work(Version::V0_9),
            work(Version::V0_9_1)
        );
    });
}
