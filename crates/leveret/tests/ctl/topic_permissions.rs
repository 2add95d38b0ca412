//! Topic permissions: set, listed, cleared, and obeyed.

use client::{
    Connection, Error, FieldTable, FieldValue, Properties, PropertiesBuilder, PublishFlags,
};

use crate::running::*;
use crate::support::*;

const SET: &str =
    "Setting topic permissions on \"amq.topic\" for user \"guest\" in vhost \"/\" ...\n";

#[test]
fn topic_permissions_are_set_listed_and_cleared() {
    let mut broker = builder().start().expect("a broker");
    let set = ["set_topic_permissions", "guest", "amq.topic", "^w", "^r"];
    assert_eq!(done(&broker, &set), SET);
    // Of an exchange that is not there, with what RabbitMQ puts names in the place of.
    let other = ["set_topic_permissions", "guest", "x", "", "^{username}-"];
    done(&broker, &other);
    let all = "Listing topic permissions for vhost \"/\" ...\n\
               user\texchange\twrite\tread\n\
               guest\tamq.topic\t^w\t^r\n\
               guest\tx\t\t^{username}-\n";
    assert_eq!(done(&broker, &["list_topic_permissions"]), all);
    // What was answered is durable.
    broker.crash_and_restart().expect("a broker");
    assert_eq!(done(&broker, &["list_topic_permissions"]), all);
    // As rabbitmqctl does, without the names of columns.
    assert_eq!(
        done(&broker, &["list_user_topic_permissions", "guest"]),
        "Listing topic permissions for user \"guest\" ...\n\
         /\tamq.topic\t^w\t^r\n\
         /\tx\t\t^{username}-\n"
    );
    assert_eq!(
        done(&broker, &["clear_topic_permissions", "guest", "amq.topic"]),
        "Clearing topic permissions on \"amq.topic\" for user \"guest\" in vhost \"/\" ...\n"
    );
    let rest = ["guest\tx\t\t^{username}-"];
    assert_eq!(rows(&broker, &["list_topic_permissions"]), rest);
    assert_eq!(
        done(&broker, &["clear_topic_permissions", "guest"]),
        "Clearing topic permissions for user \"guest\" in vhost \"/\" ...\n"
    );
    assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
    broker.crash_and_restart().expect("a broker");
    assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
}

#[test]
fn wrong_topic_permissions_are_refused() {
    let broker = builder().start().expect("a broker");
    for arguments in [
        &["set_topic_permissions", "bob", "amq.topic", "", ""][..],
        &["clear_topic_permissions", "bob"],
        &["list_user_topic_permissions", "bob"],
    ] {
        let outcome = ctl(&broker, arguments);
        let expected = "Error:\nUser \"bob\" does not exist\n";
        assert_eq!((outcome.status, &*outcome.err), (67, expected));
    }
    let wrong = ["set_topic_permissions", "guest", "amq.topic", "(", ""];
    let outcome = ctl(&broker, &wrong);
    assert_eq!((outcome.status, &*outcome.out), (69, SET));
    let start = "Error:\ninvalid topic permission: ";
    assert!(outcome.err.starts_with(start), "{}", outcome.err);
    assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
}

const REFUSED: &str = "in exchange 'amq.topic' in vhost '/' refused for user 'bob'";

/// A connection of bob's, who may do everything but what topic permissions forbid him.
async fn as_bob(broker: &testkit::Broker) -> (Connection, u16) {
    let bob = client::Options {
        user: "bob".into(),
        password: "pw".into(),
        ..options(broker)
    };
    let mut connection = connect_with(&bob).await;
    let channel = connection.open_channel().await.expect("a channel");
    (connection, channel)
}

fn add_bob(broker: &testkit::Broker) {
    done(broker, &["add_user", "bob", "pw"]);
    done(broker, &["set_permissions", "bob", ".*", ".*", ".*"]);
}

/// Publishes with that key, and those of blind copies; says why not, if it must not be.
async fn publish_to(
    connection: &mut Connection,
    channel: u16,
    exchange: &str,
    key: &str,
    copies: &[&str],
) -> Result<(), String> {
    let mut properties = PropertiesBuilder::default();
    if !copies.is_empty() {
        let copies = copies.iter().copied().map(FieldValue::from).collect();
        let headers = FieldTable::new().with("BCC", FieldValue::Array(copies));
        properties = properties.headers(&headers);
    }
    let properties = properties.finish();
    let (flags, properties) = (PublishFlags::NONE, Properties::from_wire(&properties));
    let sent = connection.publish(channel, exchange, key, flags, properties, b"x");
    sent.expect("it fits");
    // Answered after what was published.
    let passive = client::QueueOptions {
        passive: true,
        ..client::QueueOptions::default()
    };
    match connection.declare_queue(channel, "q", &passive).await {
        Ok(_) => Ok(()),
        Err(Error::ChannelClosed {
            code: 403, text, ..
        }) => Err(text.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// The same, to amq.topic.
async fn publish_by(
    connection: &mut Connection,
    channel: u16,
    key: &str,
    copies: &[&str],
) -> Result<(), String> {
    publish_to(connection, channel, "amq.topic", key, copies).await
}

#[test]
fn keys_that_are_not_permitted_are_refused() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        add_bob(&broker);
        let set = ["set_topic_permissions", "bob", "amq.topic", "^a", "^r"];
        done(&broker, &set);
        // They are there after a restart.
        broker.crash_and_restart().expect("a broker");
        let (mut connection, mut channel) = as_bob(&broker).await;
        declare(&mut connection, channel, "q").await;
        for (key, permitted) in [("read", true), ("b", false), ("#", false)] {
            let bound = connection
                .bind(channel, "q", "amq.topic", key, &FieldTable::new())
                .await;
            match bound {
                Ok(()) => assert!(permitted, "{key}"),
                Err(Error::ChannelClosed {
                    code: 403, text, ..
                }) => {
                    assert!(!permitted, "{key}");
                    let expected =
                        format!("ACCESS_REFUSED - read access to topic '{key}' {REFUSED}");
                    assert_eq!(*text, *expected);
                    channel = connection.open_channel().await.expect("a channel");
                }
                Err(error) => panic!("{error}"),
            }
        }
        // Also with routes that are known by now.
        for key in ["a", "b", "abc", "a", "b", ""] {
            let published = publish_by(&mut connection, channel, key, &[]).await;
            if key.starts_with('a') {
                assert_eq!(published, Ok(()), "{key}");
                continue;
            }
            let expected = format!("ACCESS_REFUSED - write access to topic '{key}' {REFUSED}");
            assert_eq!(published, Err(expected));
            channel = connection.open_channel().await.expect("a channel");
        }
        connection.close().await.expect("close-ok");
    });
}

/// Open connections keep what they came with.
#[test]
fn topic_permissions_hold_for_those_who_come_later() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        add_bob(&broker);
        let (mut before, on) = as_bob(&broker).await;
        declare(&mut before, on, "q").await;
        done(
            &broker,
            &["set_topic_permissions", "bob", "amq.topic", "", ""],
        );
        assert_eq!(publish_by(&mut before, on, "k", &[]).await, Ok(()));
        let (mut after, channel) = as_bob(&broker).await;
        assert!(publish_by(&mut after, channel, "k", &[]).await.is_err());
        done(&broker, &["clear_topic_permissions", "bob", "amq.topic"]);
        let (mut last, channel) = as_bob(&broker).await;
        assert_eq!(publish_by(&mut last, channel, "k", &[]).await, Ok(()));
        for connection in [before, after, last] {
            connection.close().await.expect("close-ok");
        }
    });
}

/// A copy (CC, BCC) is published as well.
#[test]
fn keys_of_copies_must_be_permitted() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        add_bob(&broker);
        done(
            &broker,
            &["set_topic_permissions", "bob", "amq.topic", "^a", ""],
        );
        let (mut connection, channel) = as_bob(&broker).await;
        declare(&mut connection, channel, "q").await;
        let published = publish_by(&mut connection, channel, "a", &["ab", "ac"]).await;
        assert_eq!(published, Ok(()));
        let published = publish_by(&mut connection, channel, "a", &["ab", "b"]).await;
        let expected = format!("ACCESS_REFUSED - write access to topic 'b' {REFUSED}");
        assert_eq!(published, Err(expected));
        connection.close().await.expect("close-ok");
    });
}

#[test]
fn exchanges_are_bound_by_permitted_keys_only() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        add_bob(&broker);
        done(
            &broker,
            &["set_topic_permissions", "bob", "amq.topic", "", "^r"],
        );
        for key in ["read", "b"] {
            let (mut connection, channel) = as_bob(&broker).await;
            let none = FieldTable::new();
            let bound = connection
                .bind_exchange(channel, "amq.fanout", "amq.topic", key, &none)
                .await;
            match bound {
                Ok(()) => assert_eq!(key, "read"),
                Err(Error::ChannelClosed {
                    code: 403, text, ..
                }) => {
                    let expected = format!("ACCESS_REFUSED - read access to topic 'b' {REFUSED}");
                    assert_eq!(*text, *expected);
                }
                Err(error) => panic!("{error}"),
            }
            connection.close().await.expect("close-ok");
        }
    });
}

/// What the exchange is decides: it asks as a topic exchange, and not when it was another or is
/// delayed.
#[test]
fn the_type_of_the_exchange_decides() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        add_bob(&broker);
        done(&broker, &["set_topic_permissions", "bob", "x", "^a", "^a"]);
        let (mut connection, mut channel) = as_bob(&broker).await;
        declare(&mut connection, channel, "q").await;
        let delayed = FieldTable::new().with("x-delayed-type", "topic");
        let turned = FieldTable::new().with("x-delayed-exchange", true);
        for (kind, arguments, asks) in [
            ("direct", FieldTable::new(), false),
            ("topic", FieldTable::new(), true),
            ("x-delayed-message", delayed, false),
            ("topic", turned, true),
            ("direct", FieldTable::new(), false),
        ] {
            let options = client::ExchangeOptions {
                arguments,
                ..client::ExchangeOptions::default()
            };
            connection
                .declare_exchange(channel, "x", kind, &options)
                .await
                .expect("declare-ok");
            // On one connection, which knew the way before.
            for _ in 0..2 {
                let published = publish_to(&mut connection, channel, "x", "b", &[]).await;
                assert_eq!(published.is_err(), asks, "{kind}");
                if asks {
                    channel = connection.open_channel().await.expect("a channel");
                }
            }
            let deleted = connection.delete_exchange(channel, "x", false).await;
            deleted.expect("delete-ok");
        }
        connection.close().await.expect("close-ok");
    });
}

#[test]
fn topic_permissions_go_with_their_user() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        add_bob(&broker);
        done(
            &broker,
            &["set_topic_permissions", "bob", "amq.topic", "", ""],
        );
        done(&broker, &["delete_user", "bob"]);
        add_bob(&broker);
        let (mut connection, channel) = as_bob(&broker).await;
        declare(&mut connection, channel, "q").await;
        assert_eq!(publish_by(&mut connection, channel, "k", &[]).await, Ok(()));
        connection.close().await.expect("close-ok");
        broker.crash_and_restart().expect("a broker");
        assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
    });
}

#[test]
fn imported_topic_permissions_are_obeyed() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        add_bob(&broker);
        let definitions = r#"{"topic_permissions":
            [{"user":"bob","vhost":"/","exchange":"amq.topic","write":"^{username}$","read":""}]}"#;
        let outcome = ctl_with(&broker, &["-q", "import_definitions"], definitions);
        assert_eq!((outcome.status, &*outcome.err), (0, ""));
        let (mut connection, channel) = as_bob(&broker).await;
        declare(&mut connection, channel, "q").await;
        assert_eq!(
            publish_by(&mut connection, channel, "bob", &[]).await,
            Ok(())
        );
        assert!(
            publish_by(&mut connection, channel, "bobby", &[])
                .await
                .is_err()
        );
        connection.close().await.expect("close-ok");
    });
}
