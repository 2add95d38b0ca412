//! The event exchange: `amq.rabbitmq.event` tells what happens in the broker.

#[path = "../support/mod.rs"]
mod support;

mod administration;

use std::collections::BTreeMap;
use std::future::Future as _;
use std::task::Poll;

use client::{
    Connection, ConsumeOptions, Error, ExchangeOptions, FieldTable, FieldValue, Options, Property,
    QueueOptions,
};
use testkit::Broker;

use support::durable::{bind, declare_durable, get};
use support::in_process::InProcess;
use support::*;

const EVENTS: &str = "events";
const EXCHANGE: &str = "amq.rabbitmq.event";

/// A queue that gets events.
struct Listening {
    connection: Connection,
    channel: u16,
}

/// An event: its routing key and headers.
type Event = (String, FieldTable);

impl Listening {
    /// To the keys that a pattern matches.
    async fn to(options: &Options, pattern: &str) -> Listening {
        let mut connection = connect_with(options).await;
        let channel = connection.open_channel().await.expect("a channel");
        declare(&mut connection, channel, EVENTS).await;
        bind(&mut connection, channel, EVENTS, EXCHANGE, pattern).await;
        let mut listening = Listening {
            connection,
            channel,
        };
        listening.all().await;
        listening
    }

    async fn next(&mut self) -> Option<Event> {
        let got = get(&mut self.connection, self.channel, EVENTS, true).await?;
        assert_eq!((&*got.exchange, got.body.len()), (EXCHANGE, 0));
        let properties = got.properties();
        let mode = properties.get(Property::DeliveryMode);
        assert_eq!(mode.and_then(|mode| mode.as_i64()), Some(2));
        let mut headers = properties
            .headers()
            .expect("headers")
            .to_owned()
            .expect("sound");
        let Some(FieldValue::I64(ms)) = headers.remove("timestamp_in_ms") else {
            panic!("{headers:?}");
        };
        let seconds = properties.get(Property::Timestamp).expect("a timestamp");
        assert_eq!(
            seconds.to_owned(),
            Ok(FieldValue::Timestamp(ms as u64 / 1_000))
        );
        Some((got.routing_key, headers))
    }

    async fn all(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    async fn keys(&mut self) -> Vec<String> {
        let all = self.all().await;
        all.into_iter().map(|(key, _)| key).collect()
    }

    /// Waits for the next event, which has to be of that kind.
    async fn expect(&mut self, key: &str) -> FieldTable {
        let mut found = None;
        eventually(key, seconds(5), async || {
            found = self.next().await;
            found.is_some()
        })
        .await;
        let (found, headers) = found.expect("an event");
        assert_eq!(found, key, "{headers:?}");
        headers
    }
}

fn texts(texts: &[&str]) -> FieldValue {
    FieldValue::Array(texts.iter().map(|text| (*text).into()).collect())
}

fn by_guest() -> FieldTable {
    FieldTable::new().with("user_who_performed_action", "guest")
}

fn by_broker() -> FieldTable {
    FieldTable::new().with("user_who_performed_action", "rmq-internal")
}

#[test]
fn queues_exchanges_and_bindings_come_and_go() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let mut events = Listening::to(&options(&broker), "#").await;
        let (connection, channel) = (&mut events.connection, events.channel);
        let arguments = FieldTable::new().with("x-max-length", 5);
        let options = QueueOptions {
            arguments,
            ..QueueOptions::durable()
        };
        for _ in 0..2 {
            let declared = connection.declare_queue(channel, "q", &options).await;
            declared.expect("declare-ok");
        }
        let exchange = ExchangeOptions {
            auto_delete: true,
            arguments: FieldTable::new().with("alternate-exchange", "y"),
            ..ExchangeOptions::default()
        };
        let declared = connection.declare_exchange(channel, "x", "topic", &exchange);
        declared.await.expect("declare-ok");
        let arguments = FieldTable::new().with("k", 1);
        for _ in 0..2 {
            let bound = connection.bind(channel, "q", "x", "a.b", &arguments).await;
            bound.expect("bind-ok");
        }
        let deleted = connection.delete_queue(channel, "q").await;
        deleted.expect("delete-ok");
        let binding = |headers: FieldTable| {
            headers
                .with("vhost", "/")
                .with("arguments", texts(&["{<<\"k\">>,signedint,1}"]))
                .with("routing_key", "a.b")
                .with("destination_kind", "queue")
                .with("destination_name", "q")
                .with("source_kind", "exchange")
                .with("source_name", "x")
        };
        let named = |headers: FieldTable, name: &str| headers.with("name", name).with("vhost", "/");
        let queue = by_guest()
            .with("type", "rabbit_classic_queue")
            .with("exclusive", false)
            .with("owner_pid", "")
            .with("arguments", texts(&["{<<\"x-max-length\">>,signedint,5}"]))
            .with("auto_delete", false)
            .with("durable", true);
        let exchange = by_guest()
            .with("policy", "")
            .with(
                "arguments",
                texts(&["{<<\"alternate-exchange\">>,longstr,<<\"y\">>}"]),
            )
            .with("internal", false)
            .with("auto_delete", true)
            .with("durable", false)
            .with("type", "topic");
        let expected = [
            ("queue.created", named(queue, "q")),
            ("exchange.created", named(exchange, "x")),
            ("binding.created", binding(by_guest())),
            // What follows from the queue's end is nobody's doing.
            ("binding.deleted", binding(by_broker())),
            ("exchange.deleted", named(by_broker(), "x")),
            (
                "queue.deleted",
                named(by_guest().with("type", "rabbit_classic_queue"), "q"),
            ),
        ];
        let expected = expected.map(|(key, headers)| (key.to_owned(), headers));
        assert_eq!(events.all().await, expected);
    });
}

#[test]
fn connections_channels_and_consumers_come_and_go() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let mut events = Listening::to(&options(&broker), "#").await;
        let named = Options {
            connection_name: Some("my name".into()),
            ..options(&broker)
        };
        let mut connection = connect_with(&named).await;
        let login = events.expect("user.authentication.success").await;
        let local = connection.local_address().expect("an address");
        let name = format!("{local} -> 127.0.0.1:{}", named.port);
        for (header, value) in [
            ("connection_name", &*name),
            ("name", "guest"),
            ("auth_mechanism", "PLAIN"),
            ("protocol", "{0,9,1}"),
            ("peer_host", "{127,0,0,1}"),
            ("connection_type", "network"),
        ] {
            assert_eq!(login.get(header), Some(&value.into()), "{login:?}");
        }
        assert_eq!(login.get("user_who_performed_action"), None);
        let created = events.expect("connection.created").await;
        let port = FieldValue::I64(local.port().into());
        assert_eq!(created.get("peer_port"), Some(&port));
        for (header, value) in [
            ("user_who_performed_action", "guest"),
            ("name", &*name),
            ("user_provided_name", "my name"),
            ("vhost", "/"),
            ("user", "guest"),
            ("ssl_cipher", ""),
            ("type", "network"),
        ] {
            assert_eq!(created.get(header), Some(&value.into()), "{created:?}");
        }
        let pid = created.get("pid").cloned().expect("a pid");
        let channel = connection.open_channel().await.expect("a channel");
        let opened = events.expect("channel.created").await;
        assert_eq!(opened.get("connection"), Some(&pid));
        let channel_name = format!("{name} ({channel})");
        assert_eq!(opened.get("name"), Some(&channel_name.as_str().into()));
        let channel_pid = opened.get("pid").cloned().expect("a pid");
        let exclusive = QueueOptions::exclusive();
        let declared = connection.declare_queue(channel, "q", &exclusive).await;
        declared.expect("declare-ok");
        let owner = events.expect("queue.created").await.remove("owner_pid");
        assert_eq!(owner.as_ref(), Some(&pid));
        let options = ConsumeOptions {
            consumer_tag: "tag".into(),
            arguments: FieldTable::new().with("x-priority", 3),
            ..ConsumeOptions::default()
        };
        connection.qos(channel, 7, false).await.expect("qos-ok");
        let consuming = connection.consume(channel, "q", &options).await;
        consuming.expect("consume-ok");
        let consumer = by_guest()
            .with("arguments", texts(&["{<<\"x-priority\">>,signedint,3}"]))
            .with("prefetch_count", 7_i64)
            .with("queue", "q")
            .with("vhost", "/")
            .with("channel", channel_pid.clone())
            .with("ack_required", true)
            .with("exclusive", false)
            .with("consumer_tag", "tag");
        assert_eq!(events.expect("consumer.created").await, consumer);
        connection.close().await.expect("close-ok");
        let gone = events.expect("consumer.deleted").await;
        assert_eq!(gone.get("consumer_tag"), Some(&"tag".into()));
        let closed = events.expect("channel.closed").await;
        assert_eq!(closed, by_guest().with("pid", channel_pid));
        events.expect("queue.deleted").await;
        let closed = events.expect("connection.closed").await;
        assert_eq!(closed.get("pid"), Some(&pid));
        assert_eq!(
            closed.get("client_properties"),
            created.get("client_properties")
        );
    });
}

#[test]
fn a_channel_that_fails_closes_once() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let mut events = Listening::to(&options(&broker), "channel.closed").await;
        let (mut connection, channel) = open(&broker).await;
        let passive = QueueOptions {
            passive: true,
            ..QueueOptions::default()
        };
        let missing = connection.declare_queue(channel, "missing", &passive).await;
        missing.expect_err("it is missing");
        connection.close().await.expect("close-ok");
        events.expect("channel.closed").await;
        tokio::time::sleep(millis(100)).await;
        assert_eq!(events.keys().await, [""; 0]);
    });
}

#[test]
fn a_consumer_ends_with_its_queue_or_when_it_is_cancelled() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let mut events = Listening::to(&options(&broker), "consumer.*").await;
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "q").await;
        for cancelled in [true, false] {
            let options = ConsumeOptions::no_ack();
            let tag = connection.consume(channel, "q", &options).await;
            let tag = tag.expect("consume-ok");
            let created = events.expect("consumer.created").await;
            assert_eq!(created.get("ack_required"), Some(&false.into()));
            match cancelled {
                true => connection.cancel(channel, &tag).await.expect("cancel-ok"),
                false => drop(connection.delete_queue(channel, "q").await.expect("ok")),
            }
            let deleted = events.expect("consumer.deleted").await;
            assert_eq!(deleted.get("consumer_tag"), created.get("consumer_tag"));
        }
        // Direct replies have a queue and a consumer that nobody is to know of.
        let options = ConsumeOptions::no_ack();
        let replies = "amq.rabbitmq.reply-to";
        let consuming = connection.consume(channel, replies, &options).await;
        consuming.expect("consume-ok");
        connection.close().await.expect("close-ok");
        tokio::time::sleep(millis(100)).await;
        assert_eq!(events.keys().await, [""; 0]);
    });
}

#[test]
fn a_login_that_fails_is_told() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let mut events = Listening::to(&options(&broker), "user.#").await;
        let wrong = Options {
            user: "nobody".into(),
            ..options(&broker)
        };
        let refused = Connection::connect(&wrong).await;
        refused.map(drop).expect_err("nobody is nobody");
        let failure = events.expect("user.authentication.failure").await;
        assert_eq!(failure.get("name"), Some(&"nobody".into()));
        let Some(FieldValue::Array(error)) = failure.get("error") else {
            panic!("{failure:?}");
        };
        // A list of characters.
        let error = error.iter().filter_map(FieldValue::as_i64);
        let error: String = error.map(|c| c as u8 as char).collect();
        assert_eq!(error, "user 'nobody' - invalid credentials");
    });
}

/// What happens before the first binding and after the last is told to nobody, and costs nothing:
/// nothing of it is there when somebody binds again.
#[test]
fn nothing_is_told_while_nothing_is_bound() {
    within(seconds(20), async {
        let server = InProcess::start("events-unbound");
        let flag = || server.broker.events.wanted();
        assert!(!flag());
        let mut events = Listening::to(&server.options, "queue.*").await;
        assert!(flag());
        let (connection, channel) = (&mut events.connection, events.channel);
        bind(connection, channel, EVENTS, EXCHANGE, "other").await;
        let none = FieldTable::new();
        for (key, still) in [("other", true), ("queue.*", false)] {
            let unbound = connection.unbind(channel, EVENTS, EXCHANGE, key, &none);
            unbound.await.expect("unbind-ok");
            assert_eq!(flag(), still);
        }
        declare(connection, channel, "unseen").await;
        bind(connection, channel, EVENTS, EXCHANGE, "#").await;
        assert!(flag());
        // Of these the new binding is the first.
        assert_eq!(events.keys().await, ["binding.created"]);
        let deleted = events.connection.delete_queue(events.channel, EVENTS).await;
        deleted.expect("delete-ok");
        assert!(!flag());
    });
}

/// A binding of a durable queue is there again before anything happens that it is to hear of.
#[test]
fn an_alarm_at_start_is_told_to_durable_queues() {
    within(seconds(40), async {
        let mut broker = builder()
            .config("disk_free_limit.absolute = 900000GB")
            .start()
            .expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, EVENTS).await;
        bind(&mut connection, channel, EVENTS, EXCHANGE, "alarm.#").await;
        connection.close().await.expect("close-ok");
        broker.restart().expect("it starts again");
        let (connection, channel) = open(&broker).await;
        let mut events = Listening {
            connection,
            channel,
        };
        let alarm = events.expect("alarm.set").await;
        assert_eq!(alarm.get("source"), Some(&"disk".into()));
    });
}

/// Events of many clients at a time: for each that has come there is one.
#[test]
fn many_clients_are_all_told() {
    within(seconds(60), async {
        let broker = builder().start().expect("a broker");
        let mut events = Listening::to(&options(&broker), "#").await;
        const CLIENTS: usize = 20;
        let come_and_go = |number: usize| {
            let broker: &Broker = &broker;
            async move {
                let (mut connection, channel) = open(broker).await;
                for round in 0..10 {
                    let queue = format!("q-{number}-{round}");
                    declare(&mut connection, channel, &queue).await;
                    bind(&mut connection, channel, &queue, "amq.fanout", "").await;
                    let deleted = connection.delete_queue(channel, &queue).await;
                    deleted.map(drop)?;
                }
                connection.close().await?;
                Ok::<_, Error>(())
            }
        };
        let clients = (0..CLIENTS).map(come_and_go);
        let mut clients: Vec<_> = clients.map(Box::pin).collect();
        std::future::poll_fn(|cx| {
            clients.retain_mut(|client| match client.as_mut().poll(cx) {
                Poll::Ready(ended) => ended.map(|()| false).expect("no error"),
                Poll::Pending => true,
            });
            match clients.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        eventually("all are told", seconds(10), async || {
            for key in events.keys().await {
                *counts.entry(key).or_default() += 1;
            }
            counts.get("connection.closed") == Some(&CLIENTS)
        })
        .await;
        for (key, expected) in [
            ("connection.created", CLIENTS),
            ("channel.created", CLIENTS),
            ("channel.closed", CLIENTS),
            ("queue.created", CLIENTS * 10),
            ("binding.created", CLIENTS * 10),
            ("binding.deleted", CLIENTS * 10),
            ("queue.deleted", CLIENTS * 10),
        ] {
            assert_eq!(counts.get(key), Some(&expected), "{key}: {counts:?}");
        }
    });
}
