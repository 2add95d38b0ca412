//! Definitions over the end of the process: what is there again, and that it works as before.

mod support;

use std::sync::OnceLock;

use amqp::FieldValue;
use client::{
    Connection, ConsumeOptions, Error, ExchangeOptions, FieldTable, Options, QueueOptions,
};
use support::durable::*;
use support::folder::Folder;
use support::*;
use testkit::Broker;

/// No arguments.
fn none() -> &'static FieldTable {
    static NONE: OnceLock<FieldTable> = OnceLock::new();
    NONE.get_or_init(FieldTable::new)
}

fn durable_exchange() -> ExchangeOptions {
    ExchangeOptions {
        durable: true,
        ..ExchangeOptions::default()
    }
}

async fn declare_exchange(
    connection: &mut Connection,
    channel: u16,
    name: &str,
    kind: &str,
    options: &ExchangeOptions,
) {
    let declared = connection.declare_exchange(channel, name, kind, options);
    declared.await.unwrap_or_else(|e| panic!("{name}: {e}"));
}

async fn exchange_is_there(broker: &Broker, name: &str) -> bool {
    let passive = ExchangeOptions {
        passive: true,
        ..ExchangeOptions::default()
    };
    let found = ask(broker, async |connection, channel| {
        let declared = connection.declare_exchange(channel, name, "direct", &passive);
        declared.await
    });
    match found.await {
        Ok(()) => true,
        Err((404, _)) => false,
        Err(other) => panic!("{name}: {other:?}"),
    }
}

/// Publishes one message and says which of these queues it has reached; they are empty after that.
async fn reached<'q>(
    broker: &Broker,
    exchange: &str,
    key: &str,
    headers: &FieldTable,
    queues: &[&'q str],
) -> Vec<&'q str> {
    let mut publisher = Publisher::open(broker).await;
    let properties = client::PropertiesBuilder::default().headers(headers);
    publisher.publish(exchange, key, &properties.finish(), b"where to?");
    publisher.all_confirmed().await;
    let mut found = Vec::new();
    let (connection, channel) = (&mut publisher.connection, publisher.channel);
    for queue in queues {
        if connection.purge(channel, queue).await.expect(queue) > 0 {
            found.push(*queue);
        }
    }
    found
}

#[test]
fn durable_queues_are_there_and_others_are_not() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            let exclusive = QueueOptions {
                exclusive: true,
                ..QueueOptions::durable()
            };
            let transient = QueueOptions::default();
            let auto_delete = QueueOptions {
                auto_delete: true,
                ..QueueOptions::durable()
            };
            for (name, options) in [
                ("durable", &QueueOptions::durable()),
                ("transient", &transient),
                ("exclusive", &QueueOptions::exclusive()),
                ("exclusive and durable", &exclusive),
                ("never consumed", &auto_delete),
                ("consumed", &auto_delete),
            ] {
                let declared = connection.declare_queue(channel, name, options).await;
                declared.unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            let durable = QueueOptions::durable();
            let named = connection.declare_queue(channel, "", &durable).await;
            let named = named.expect("a name").name;
            let options = ConsumeOptions::default();
            let consuming = connection.consume(channel, "consumed", &options).await;
            consuming.expect("a consumer");
            until_written_down().await;
            if ending == Ending::Stopped {
                connection.close().await.expect("close-ok");
            }
            ending.restart(&mut broker);
            for (name, expected) in [
                ("durable", Some(0)),
                ("transient", None),
                ("exclusive", None),
                ("exclusive and durable", None),
                ("never consumed", Some(0)),
                ("consumed", None),
                (&named, Some(0)),
            ] {
                let found = messages_in(&broker, name).await;
                assert_eq!(found, expected, "{ending:?}: {name}");
            }
        }
    });
}

/// A queue that goes with its last consumer does so after a restart, too, and not before it has
/// had one.
#[test]
fn auto_delete_queue_still_goes_with_its_last_consumer() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let auto_delete = QueueOptions {
            auto_delete: true,
            ..QueueOptions::durable()
        };
        let declared = connection.declare_queue(channel, "brief", &auto_delete);
        declared.await.expect("a queue");
        let mut publisher = Publisher::open(&broker).await;
        publisher.persistent("brief", &numbered(1, 8));
        publisher.all_confirmed().await;
        Ending::Killed.restart(&mut broker);
        Ending::Killed.restart(&mut broker);
        let (mut connection, channel) = open(&broker).await;
        let options = ConsumeOptions::no_ack();
        let tag = connection.consume(channel, "brief", &options).await;
        assert_eq!(receive(&mut connection).await.number(), 1);
        connection
            .cancel(channel, &tag.expect("a tag"))
            .await
            .expect("ok");
        assert_eq!(messages_in(&broker, "brief").await, None);
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "brief").await, None);
    });
}

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

/// Every type of value that a table can hold, and tables in tables to the depth that is allowed.
fn arguments_of_all_types() -> FieldTable {
    let mut deep = FieldTable::new().with("bottom", true);
    for _ in 0..100 {
        deep = FieldTable::new().with("deeper", deep);
    }
    let array = vec![
        FieldValue::Void,
        FieldValue::Array(vec![FieldValue::I8(-1)]),
        FieldValue::Table(FieldTable::new().with("in", "an array")),
    ];
    FieldTable::new()
        .with("bool", true)
        .with("i8", FieldValue::I8(-8))
        .with("u8", FieldValue::U8(200))
        .with("i16", FieldValue::I16(-16_000))
        .with("u16", FieldValue::U16(60_000))
        .with("i32", -32)
        .with("u32", FieldValue::U32(4_000_000_000))
        .with("i64", FieldValue::I64(-(1 << 60)))
        .with("f32", FieldValue::F32(0.5))
        .with("f64", FieldValue::F64(-1e300))
        .with("decimal", FieldValue::Decimal(2, 12_345))
        .with("text", "ü")
        .with("not text", FieldValue::LongStr(vec![0xff, 0, 0xfe]))
        .with("bytes", FieldValue::Bytes(vec![0, 255]))
        .with("timestamp", FieldValue::Timestamp(u64::MAX))
        .with("array", FieldValue::Array(array))
        .with("void", FieldValue::Void)
        .with("", "no name")
        .with("deep", deep)
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

#[test]
fn arguments_of_queues_and_exchanges_are_compared_as_before() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let arguments = arguments_of_all_types()
            .with("x-message-ttl", FieldValue::I64(3_600_000))
            .with("x-dead-letter-exchange", "amq.fanout");
        let queue = QueueOptions {
            arguments: arguments.clone(),
            ..QueueOptions::durable()
        };
        let exchange = ExchangeOptions {
            arguments: arguments_of_all_types().with("alternate-exchange", "amq.fanout"),
            ..durable_exchange()
        };
        let declared = connection.declare_queue(channel, "q", &queue).await;
        declared.expect("a queue");
        declare_exchange(&mut connection, channel, "x", "topic", &exchange).await;
        Ending::Killed.restart(&mut broker);

        let queue_as = async |options: QueueOptions| {
            ask(&broker, async |connection, channel| {
                connection.declare_queue(channel, "q", &options).await
            })
            .await
            .map(drop)
        };
        let exchange_as = async |kind: &str, options: ExchangeOptions| {
            ask(&broker, async |connection, channel| {
                let declared = connection.declare_exchange(channel, "x", kind, &options);
                declared.await
            })
            .await
        };
        queue_as(queue.clone()).await.expect("the same");
        exchange_as("topic", exchange.clone())
            .await
            .expect("the same");
        let mut other = queue.clone();
        other.arguments.insert("x-message-ttl", 3_600_001);
        assert_eq!(refusal(queue_as(other).await), (406, "x-message-ttl"));
        let other = QueueOptions::durable();
        assert_eq!(refusal(queue_as(other).await), (406, "x-message-ttl"));
        let other = QueueOptions {
            durable: false,
            ..queue.clone()
        };
        assert_eq!(refusal(queue_as(other).await), (406, "durable"));
        let other = QueueOptions {
            auto_delete: true,
            ..queue.clone()
        };
        assert_eq!(refusal(queue_as(other).await), (406, "auto_delete"));
        let other = exchange_as("direct", exchange.clone()).await;
        assert_eq!(refusal(other), (406, "type"));
        let other = exchange_as("topic", durable_exchange()).await;
        assert_eq!(refusal(other), (406, "alternate-exchange"));
    });
}

/// The reply code, and which argument is named in its text.
fn refusal(answer: Result<(), (u16, String)>) -> (u16, &'static str) {
    let (code, text) = answer.expect_err("a difference");
    let arguments = [
        "x-message-ttl",
        "durable",
        "auto_delete",
        "type",
        "alternate-exchange",
    ];
    let named = arguments
        .iter()
        .find(|argument| text.contains(&format!("arg '{argument}'")));
    (code, named.unwrap_or_else(|| panic!("{text}")))
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
            let unbind = client::method::exchange::Unbind {
                destination: "to".try_into().expect("short"),
                source: "from".try_into().expect("short"),
                ..Default::default()
            };
            let unbound = connection.call::<client::method::exchange::UnbindOk>(channel, unbind);
            unbound.await.expect("unbind-ok");
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

/// The keys `default_*` count once: with an empty data directory.
#[test]
fn first_user_and_vhost_are_those_of_the_first_start() {
    within(seconds(20), async {
        let folder = Folder::new("users");
        let first = builder()
            .data_dir(folder.path())
            .config("default_user = alice")
            .config("default_pass = first secret")
            .config("default_vhost = shop")
            .config("default_permissions.write = ^orders$")
            .start();
        let first = match first {
            Ok(broker) => broker,
            Err(error) => panic!("{error}"),
        };
        let login = |broker: &Broker, user: &str, password: &str, vhost: &str| Options {
            user: user.into(),
            password: password.into(),
            vhost: vhost.into(),
            ..options(broker)
        };
        let mut connection = connect_with(&login(&first, "alice", "first secret", "shop")).await;
        let channel = connection.open_channel().await.expect("a channel");
        declare_durable(&mut connection, channel, "orders").await;
        connection.close().await.expect("close-ok");
        first.stop().expect("exit status 0");

        let second = builder()
            .data_dir(folder.path())
            .config("default_user = bob")
            .config("default_pass = second secret")
            .config("default_vhost = office")
            .start()
            .expect("a broker");
        let mut connection = connect_with(&login(&second, "alice", "first secret", "shop")).await;
        let channel = connection.open_channel().await.expect("a channel");
        assert_eq!(
            look_at(&mut connection, channel, "orders").await.messages,
            0
        );
        for (user, password, vhost) in [
            ("bob", "second secret", "office"),
            ("bob", "second secret", "shop"),
            ("alice", "second secret", "shop"),
            ("guest", "guest", "/"),
        ] {
            let refused = Connection::connect(&login(&second, user, password, vhost)).await;
            let refused = refused.err().expect("nobody of that name");
            assert!(matches!(refused, Error::LoginRefused { .. }), "{refused}");
        }
        for vhost in ["office", "/"] {
            let login = login(&second, "alice", "first secret", vhost);
            let refused = Connection::connect(&login).await;
            let refused = refused.err().expect("no such vhost");
            assert!(matches!(refused, Error::VhostRefused { .. }), "{refused}");
        }
    });
}

/// Whatever had been answered is there, however soon the end comes.
#[test]
fn answered_definitions_are_there_after_a_crash_in_their_midst() {
    within(seconds(30), async {
        let mut broker = builder().start().expect("a broker");
        for round in 0..4 {
            let mut connection = connect(&broker).await;
            let channel = connection.open_channel().await.expect("a channel");
            let mut last = 0;
            let durable = QueueOptions::durable();
            let names = async {
                for number in 0.. {
                    let (name, key) = (format!("{round}-{number}"), format!("key-{number}"));
                    let declared = connection.declare_queue(channel, &name, &durable).await;
                    declared.expect("a queue");
                    bind(&mut connection, channel, &name, "amq.topic", &key).await;
                    last = number;
                }
            };
            let lived = millis(100 + 37 * round);
            let _ = tokio::time::timeout(lived, names).await;
            assert!(last > 0, "nothing was declared");
            Ending::Killed.restart(&mut broker);
            for number in 0..=last {
                let name = format!("{round}-{number}");
                assert_eq!(messages_in(&broker, &name).await, Some(0), "{name}");
                let key = format!("key-{number}");
                let found = reached(&broker, "amq.topic", &key, none(), &[&name]).await;
                assert_eq!(found, [&name], "{key}");
            }
        }
    });
}

/// A queue of an earlier run that never held a message, and one that is declared after it: they
/// have nothing in common.
#[test]
fn queues_of_different_runs_keep_their_messages_apart() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            for (run, queue) in ["first", "second", "third"].into_iter().enumerate() {
                let (mut connection, channel) = open(&broker).await;
                declare_durable(&mut connection, channel, queue).await;
                bind(&mut connection, channel, queue, "amq.fanout", "").await;
                connection.close().await.expect("close-ok");
                // The last run publishes; before that the queues are empty.
                if run < 2 {
                    ending.restart(&mut broker);
                }
            }
            let mut publisher = Publisher::open(&broker).await;
            for queue in ["first", "second", "third"] {
                publisher.persistent(queue, queue.as_bytes());
            }
            publisher.publish("amq.fanout", "", &persistent(), b"all");
            publisher.all_confirmed().await;
            drop(publisher);
            ending.restart(&mut broker);
            for queue in ["first", "second", "third"] {
                let messages = take_all(&broker, queue).await;
                let bodies: Vec<&[u8]> = messages.iter().map(|m| &*m.body).collect();
                assert_eq!(bodies, [queue.as_bytes(), b"all"], "{ending:?}: {queue}");
            }
        }
    });
}

/// More of them than fit into what the manifest has reserved, over several starts.
#[test]
fn thousands_of_definitions_survive_several_starts() {
    const COUNT: usize = 3_000;
    within(seconds(40), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        for number in 0..COUNT {
            let name = format!("queue-{number}");
            let declare = client::method::queue::Declare {
                queue: (&*name).try_into().expect("short"),
                durable: true,
                no_wait: true,
                ..Default::default()
            };
            connection.send(channel, declare);
        }
        declare_durable(&mut connection, channel, "last").await;
        connection.close().await.expect("close-ok");
        for ending in [Ending::Stopped, Ending::Killed, Ending::Stopped] {
            ending.restart(&mut broker);
        }
        let (mut connection, channel) = open(&broker).await;
        for number in 0..COUNT {
            look_at(&mut connection, channel, &format!("queue-{number}")).await;
        }
        look_at(&mut connection, channel, "last").await;
    });
}
