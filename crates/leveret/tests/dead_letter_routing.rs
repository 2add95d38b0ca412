//! Where dead letters go: exchanges, routing keys, copies.

mod support;

use amqp::FieldValue;
use client::{Connection, ExchangeOptions, FieldTable, PropertiesBuilder};
use support::durable::*;
use support::rules::*;
use support::*;

async fn declare_exchange(connection: &mut Connection, channel: u16, name: &str, kind: &str) {
    let options = ExchangeOptions::default();
    let declared = connection.declare_exchange(channel, name, kind, &options);
    declared.await.unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn routing_key_is_its_own_unless_the_queue_has_one() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "keys dlx", "topic").await;
        for (queue, key) in [("own", "mine.#"), ("other", "theirs.#")] {
            declare(&mut connection, channel, queue).await;
            bind(&mut connection, channel, queue, "keys dlx", key).await;
        }
        declare_exchange(&mut connection, channel, "keys", "topic").await;
        let given = to_exchange("keys dlx").with("x-dead-letter-routing-key", "theirs.too");
        for (queue, arguments) in [("keep", to_exchange("keys dlx")), ("change", given)] {
            declare_with(&mut connection, channel, queue, arguments).await;
            bind(&mut connection, channel, queue, "keys", "#").await;
        }
        let properties = PropertiesBuilder::default();
        publish_to(
            &mut connection,
            channel,
            "keys",
            "mine.it.is",
            properties,
            b"12345678",
        );
        reject_first(&mut connection, channel, "keep").await;
        reject_first(&mut connection, channel, "change").await;
        for (queue, key, died_in) in [
            ("own", "mine.it.is", "keep"),
            ("other", "theirs.too", "change"),
        ] {
            let letter = only_letter(&broker, queue).await;
            assert_eq!((&*letter.exchange, &*letter.routing_key), ("keys dlx", key));
            let death = letter.deaths().remove(0);
            assert_eq!(death.get("queue"), text(died_in).as_ref());
            let keys = FieldValue::Array(vec!["mine.it.is".into()]);
            assert_eq!(death.get("routing-keys"), Some(&keys));
            assert_eq!(death.get("exchange"), text("keys").as_ref());
        }
    });
}

/// Documentation of RabbitMQ: with all original routing keys, those of CC and BCC included.
#[test]
fn copies_are_dead_lettered_to_all_their_keys() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_exchange(&mut connection, channel, "copies", "direct").await;
        for queue in ["to", "cc", "bcc", "only"] {
            declare(&mut connection, channel, queue).await;
            bind(&mut connection, channel, queue, "copies", queue).await;
        }
        let only = to_exchange("copies").with("x-dead-letter-routing-key", "only");
        for (queue, arguments) in [("from", to_exchange("copies")), ("from 2", only)] {
            declare_with(&mut connection, channel, queue, arguments).await;
            bind(&mut connection, channel, queue, "amq.fanout", "").await;
        }
        let keys = |key: &str| FieldValue::Array(vec![key.into()]);
        let headers = FieldTable::new()
            .with("CC", keys("cc"))
            .with("BCC", keys("bcc"));
        let properties = PropertiesBuilder::default().headers(&headers);
        publish_to(
            &mut connection,
            channel,
            "amq.fanout",
            "to",
            properties,
            b"12345678",
        );
        reject_first(&mut connection, channel, "from").await;
        reject_first(&mut connection, channel, "from 2").await;
        for queue in ["to", "cc", "only", "bcc"] {
            let found = count(&mut connection, channel, queue).await;
            assert_eq!(found, 1, "{queue}");
        }
        let letter = only_letter(&broker, "cc").await;
        assert_eq!(letter.header("CC"), Some(keys("cc")));
        assert_eq!(letter.header("BCC"), None);
        // A key that the queue sets is the only one; since 3.13 the header stays all the same.
        let letter = only_letter(&broker, "only").await;
        assert_eq!(letter.header("CC"), Some(keys("cc")));
        assert_eq!(letter.header("BCC"), None);
    });
}

#[test]
fn dead_letter_that_leads_nowhere_is_dropped() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "found").await;
        let missing = to_exchange("no such exchange");
        let unbound = to_exchange("amq.direct");
        for (queue, arguments) in [("missing", missing), ("unbound", unbound)] {
            declare_with(&mut connection, channel, queue, arguments).await;
            publish(&mut connection, channel, queue, b"12345678");
            reject_first(&mut connection, channel, queue).await;
            assert_eq!(count(&mut connection, channel, queue).await, 0);
        }
        // It is looked for each time.
        declare_exchange(&mut connection, channel, "no such exchange", "fanout").await;
        bind(&mut connection, channel, "found", "no such exchange", "").await;
        publish(&mut connection, channel, "missing", b"12345678");
        reject_first(&mut connection, channel, "missing").await;
        assert_eq!(count(&mut connection, channel, "found").await, 1);
        let deleted = connection.delete_exchange(channel, "no such exchange", false);
        deleted.await.expect("delete-ok");
        publish(&mut connection, channel, "missing", b"12345678");
        reject_first(&mut connection, channel, "missing").await;
        assert_eq!(count(&mut connection, channel, "found").await, 1);
        assert_healthy(&broker).await;
    });
}

#[test]
fn dead_letter_exchange_routes_as_any_other() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        // Internal ones take dead letters, alternate exchanges those that lead nowhere else, and
        // what is bound to another exchange goes there.
        let internal = ExchangeOptions {
            internal: true,
            arguments: FieldTable::new().with("alternate-exchange", "route alternate"),
            ..ExchangeOptions::default()
        };
        let declared = connection.declare_exchange(channel, "route dlx", "headers", &internal);
        declared.await.expect("an exchange");
        declare_exchange(&mut connection, channel, "route alternate", "fanout").await;
        declare_exchange(&mut connection, channel, "route next", "fanout").await;
        for queue in ["alternate", "next", "matching"] {
            declare(&mut connection, channel, queue).await;
        }
        bind(&mut connection, channel, "alternate", "route alternate", "").await;
        bind(&mut connection, channel, "next", "route next", "").await;
        let red = FieldTable::new().with("colour", "red");
        let bound = connection.bind(channel, "matching", "route dlx", "", &red);
        bound.await.expect("a binding");
        let bound = connection.bind_exchange(channel, "route next", "route dlx", "", &red);
        bound.await.expect("a binding");
        let arguments = to_exchange("route dlx");
        declare_with(&mut connection, channel, "route", arguments).await;
        for colour in ["red", "green"] {
            let headers = FieldTable::new().with("colour", colour);
            let properties = PropertiesBuilder::default().headers(&headers);
            send(
                &mut connection,
                channel,
                "route",
                properties,
                colour.as_bytes(),
            );
            reject_first(&mut connection, channel, "route").await;
        }
        for (queue, body) in [("matching", "red"), ("next", "red"), ("alternate", "green")] {
            let messages = take_all(&broker, queue).await;
            assert_eq!(messages.len(), 1, "{queue}");
            assert_eq!(messages[0].body, body.as_bytes(), "{queue}");
            assert_eq!(messages[0].exchange, "route dlx", "{queue}");
            assert_eq!(messages[0].routing_key, "route", "{queue}");
        }
    });
}
