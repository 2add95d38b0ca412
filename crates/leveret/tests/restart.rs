//! Definitions over the end of the process: what is there again, and that it works as before.

mod support;

use amqp::FieldValue;
use client::{Connection, ConsumeOptions, Error, ExchangeOptions, Options, QueueOptions};
use support::durable::*;
use support::folder::Folder;
use support::routes::*;
use support::*;
use testkit::Broker;

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
