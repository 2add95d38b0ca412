//! Exchanges and bindings over the end of the process: messages go where they went before.

mod support;

use client::{Connection, ExchangeOptions, FieldTable};
use support::durable::*;
use support::routes::*;
use support::*;

#[test]
fn exchanges_of_all_types_route_as_before() {
    within(seconds(30), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            let queues = ["one", "two"];
            for queue in queues {
                declare_durable(&mut connection, channel, queue).await;
            }
            for kind in ["direct", "fanout", "topic", "headers"] {
                declare_exchange(&mut connection, channel, kind, kind, &durable_exchange()).await;
            }
            let all = FieldTable::new().with("x-match", "all");
            let all = all.with("colour", "red").with("size", 5);
            let any = FieldTable::new().with("x-match", "any");
            let any = any.with("colour", "blue").with("size", 5);
            for (queue, exchange, key, arguments) in [
                ("one", "direct", "a", none()),
                ("two", "direct", "b", none()),
                ("two", "direct", "c", none()),
                ("one", "fanout", "", none()),
                ("two", "fanout", "ignored", none()),
                ("one", "topic", "a.*.c", none()),
                ("two", "topic", "a.#", none()),
                ("one", "headers", "", &all),
                ("two", "headers", "", &any),
            ] {
                let bound = connection.bind(channel, queue, exchange, key, arguments);
                bound.await.expect("a binding");
            }
            connection.close().await.expect("close-ok");
            for round in 0..2 {
                let red = FieldTable::new().with("colour", "red").with("size", 5);
                let blue = FieldTable::new().with("colour", "blue");
                for (exchange, key, headers, expected) in [
                    ("direct", "a", none(), &["one"][..]),
                    ("direct", "b", none(), &["two"]),
                    ("direct", "c", none(), &["two"]),
                    ("direct", "d", none(), &[]),
                    ("fanout", "any", none(), &["one", "two"]),
                    ("topic", "a.b.c", none(), &["one", "two"]),
                    ("topic", "a", none(), &["two"]),
                    ("topic", "b", none(), &[]),
                    ("headers", "", &red, &["one", "two"]),
                    ("headers", "", &blue, &["two"]),
                    ("headers", "", none(), &[]),
                ] {
                    let found = reached(&broker, exchange, key, headers, &queues).await;
                    assert_eq!(found, expected, "{ending:?} {round}: {exchange} {key}");
                }
                if round == 0 {
                    ending.restart(&mut broker);
                }
            }
        }
    });
}

#[test]
fn options_of_exchanges_are_what_they_were() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        for queue in ["caught", "inside"] {
            declare_durable(&mut connection, channel, queue).await;
        }
        let internal = ExchangeOptions {
            internal: true,
            ..durable_exchange()
        };
        let with_alternate = ExchangeOptions {
            arguments: FieldTable::new().with("alternate-exchange", "amq.fanout"),
            ..durable_exchange()
        };
        let auto_delete = ExchangeOptions {
            auto_delete: true,
            ..durable_exchange()
        };
        for (name, options) in [
            ("internal", &internal),
            ("alternating", &with_alternate),
            ("brief", &auto_delete),
            ("transient", &ExchangeOptions::default()),
        ] {
            declare_exchange(&mut connection, channel, name, "direct", options).await;
        }
        bind(&mut connection, channel, "caught", "amq.fanout", "").await;
        bind(&mut connection, channel, "inside", "internal", "key").await;
        bind(&mut connection, channel, "inside", "brief", "key").await;
        let joined = connection.bind_exchange(channel, "internal", "amq.direct", "key", none());
        joined.await.expect("a binding");
        Ending::Killed.restart(&mut broker);
        assert!(!exchange_is_there(&broker, "transient").await);
        let queues = ["caught", "inside"];
        let found = reached(&broker, "alternating", "nowhere", none(), &queues).await;
        assert_eq!(found, ["caught"]);
        let found = reached(&broker, "amq.direct", "key", none(), &queues).await;
        assert_eq!(found, ["inside"], "through the internal exchange");
        let refused = ask(&broker, async |connection, channel| {
            let none = client::Properties::default();
            let flags = client::PublishFlags::NONE;
            connection.publish(channel, "internal", "key", flags, none, b"x")?;
            connection.confirm_select(channel).await
        });
        let (code, text) = refused.await.expect_err("it is internal");
        assert_eq!(code, 403, "{text}");
        // The auto-delete exchange goes with its last binding.
        let (mut connection, channel) = open(&broker).await;
        let unbound = connection.unbind(channel, "inside", "brief", "key", none());
        unbound.await.expect("unbind-ok");
        assert!(!exchange_is_there(&broker, "brief").await);
        Ending::Killed.restart(&mut broker);
        assert!(!exchange_is_there(&broker, "brief").await);
    });
}

/// The arguments are part of what a binding is: one that differs in a single value is another.
#[test]
fn bindings_keep_their_arguments() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            declare_durable(&mut connection, channel, "bound").await;
            let arguments = arguments_of_all_types();
            let mut other = arguments.clone();
            other.insert("deep", 1);
            for arguments in [none(), &arguments, &other] {
                let bound = connection.bind(channel, "bound", "amq.direct", "key", arguments);
                bound.await.expect("a binding");
            }
            connection.close().await.expect("close-ok");
            ending.restart(&mut broker);
            for arguments in [none(), &arguments, &other] {
                let found = reached(&broker, "amq.direct", "key", none(), &["bound"]).await;
                assert_eq!(found, ["bound"], "{ending:?}");
                let (mut connection, channel) = open(&broker).await;
                let unbound = connection.unbind(channel, "bound", "amq.direct", "key", arguments);
                unbound.await.expect("unbind-ok");
            }
            for _ in 0..2 {
                let found = reached(&broker, "amq.direct", "key", none(), &["bound"]).await;
                assert!(found.is_empty(), "{ending:?}");
                ending.restart(&mut broker);
            }
        }
    });
}

/// What is bound to something transient is bound no more when that is declared again.
#[test]
fn bindings_of_transient_things_are_gone() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            let declare_transient = async |connection: &mut Connection, channel| {
                declare(connection, channel, "transient queue").await;
                let transient = ExchangeOptions::default();
                let name = "transient exchange";
                declare_exchange(connection, channel, name, "fanout", &transient).await;
            };
            declare_durable(&mut connection, channel, "durable queue").await;
            declare_transient(&mut connection, channel).await;
            for (queue, exchange) in [
                ("transient queue", "amq.fanout"),
                ("durable queue", "transient exchange"),
            ] {
                bind(&mut connection, channel, queue, exchange, "").await;
            }
            let (from, to) = ("amq.direct", "transient exchange");
            let joined = connection.bind_exchange(channel, to, from, "key", none());
            joined.await.expect("a binding");
            connection.close().await.expect("close-ok");
            let queues = ["durable queue", "transient queue"];
            for (exchange, key, before) in [
                ("amq.fanout", "", "transient queue"),
                ("transient exchange", "", "durable queue"),
                ("amq.direct", "key", "durable queue"),
            ] {
                let found = reached(&broker, exchange, key, none(), &queues).await;
                assert_eq!(found, [before]);
            }
            ending.restart(&mut broker);
            let (mut connection, channel) = open(&broker).await;
            declare_transient(&mut connection, channel).await;
            for (exchange, key) in [
                ("amq.fanout", ""),
                ("transient exchange", ""),
                ("amq.direct", "key"),
            ] {
                let found = reached(&broker, exchange, key, none(), &queues).await;
                assert!(found.is_empty(), "{ending:?}: {exchange} to {found:?}");
            }
        }
    });
}

async fn unbind_exchange(connection: &mut Connection, channel: u16, to: &str, from: &str) {
    use client::method::exchange::{Unbind, UnbindOk};
    let unbind = Unbind {
        destination: to.try_into().expect("a short name"),
        source: from.try_into().expect("a short name"),
        ..Default::default()
    };
    let unbound = connection.call::<UnbindOk>(channel, unbind).await;
    unbound.expect("unbind-ok");
}

#[test]
fn what_was_deleted_or_unbound_stays_gone() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            for queue in ["kept", "deleted"] {
                declare_durable(&mut connection, channel, queue).await;
            }
            for name in ["from", "to", "gone"] {
                declare_exchange(
                    &mut connection,
                    channel,
                    name,
                    "fanout",
                    &durable_exchange(),
                )
                .await;
            }
            for (queue, exchange) in [
                ("kept", "amq.fanout"),
                ("deleted", "amq.fanout"),
                ("kept", "to"),
                ("kept", "gone"),
            ] {
                bind(&mut connection, channel, queue, exchange, "").await;
            }
            let joined = connection
                .bind_exchange(channel, "to", "from", "", none())
                .await;
            joined.expect("a binding");
            let unbound = connection.unbind(channel, "kept", "amq.fanout", "", none());
            unbound.await.expect("unbind-ok");
            connection
                .delete_queue(channel, "deleted")
                .await
                .expect("ok");
            unbind_exchange(&mut connection, channel, "to", "from").await;
            let deleted = connection.delete_exchange(channel, "gone", false).await;
            deleted.expect("delete-ok");
            if ending == Ending::Stopped {
                connection.close().await.expect("close-ok");
            }
            ending.restart(&mut broker);
            assert!(!exchange_is_there(&broker, "gone").await, "{ending:?}");
            // Names that come back come back empty.
            let (mut connection, channel) = open(&broker).await;
            declare_durable(&mut connection, channel, "deleted").await;
            declare_exchange(
                &mut connection,
                channel,
                "gone",
                "fanout",
                &durable_exchange(),
            )
            .await;
            let queues = ["kept", "deleted"];
            for (exchange, expected) in [
                ("amq.fanout", &[][..]),
                ("from", &[]),
                ("to", &["kept"]),
                ("gone", &[]),
            ] {
                let found = reached(&broker, exchange, "", none(), &queues).await;
                assert_eq!(found, expected, "{ending:?}: {exchange}");
            }
        }
    });
}
