//! The firehose: copies of what is published and delivered, in `amq.rabbitmq.trace`.

mod support;

use broker::VHostMetadata;
use client::{
    Connection, ConsumeOptions, Event, ExchangeOptions, FieldTable, FieldValue, Message,
    Properties, PropertiesBuilder, Property, PublishFlags, QueueOptions,
};

use support::durable::{bind, get};
use support::in_process::InProcess;
use support::*;

const TRACES: &str = "traces";

/// A server whose first vhost is traced, a connection, and a queue that gets all copies.
async fn traced(name: &str) -> (InProcess, Connection, u16) {
    let server = InProcess::start(name);
    let mut connection = connect_with(&server.options).await;
    let channel = connection.open_channel().await.expect("a channel");
    declare(&mut connection, channel, TRACES).await;
    bind(&mut connection, channel, TRACES, "amq.rabbitmq.trace", "#").await;
    set_tracing(&server, true);
    (server, connection, channel)
}

fn set_tracing(server: &InProcess, on: bool) {
    server
        .broker
        .vhost("/")
        .expect("it is there")
        .set_tracing(on);
}

/// All copies so far.
async fn copies(connection: &mut Connection, channel: u16) -> Vec<Message> {
    let mut copies = Vec::new();
    while let Some(copy) = get(connection, channel, TRACES, true).await {
        copies.push(copy);
    }
    copies
}

async fn keys(connection: &mut Connection, channel: u16) -> Vec<String> {
    let copies = copies(connection, channel).await;
    copies.into_iter().map(|copy| copy.routing_key).collect()
}

fn headers(copy: &Message) -> FieldTable {
    let headers = copy.properties().headers().expect("headers");
    headers.to_owned().expect("well-formed")
}

fn texts(texts: &[&str]) -> FieldValue {
    FieldValue::Array(texts.iter().map(|text| (*text).into()).collect())
}

fn send(connection: &mut Connection, channel: u16, exchange: &str, properties: &[u8]) {
    let (flags, properties) = (PublishFlags::NONE, Properties::from_wire(properties));
    let sent = connection.publish(channel, exchange, "key", flags, properties, b"body");
    sent.expect("short names");
}

#[test]
fn copies_tell_what_rabbitmq_tells() {
    within(seconds(20), async {
        let (_server, mut connection, channel) = traced("firehose-headers").await;
        for queue in ["one", "two"] {
            declare(&mut connection, channel, queue).await;
            bind(&mut connection, channel, queue, "amq.fanout", "").await;
        }
        let own = FieldTable::new()
            .with("h", 1)
            .with("CC", texts(&["copy"]))
            .with("BCC", texts(&["blind"]));
        let properties = PropertiesBuilder::default()
            .text(Property::ContentType, "text/plain")
            .headers(&own)
            .delivery_mode(2)
            .timestamp(5_000_000_000)
            .text(Property::UserId, "guest")
            .finish();
        send(&mut connection, channel, "amq.fanout", &properties);
        let got = get(&mut connection, channel, "one", false).await;
        let tag = got.expect("a message").delivery_tag;
        connection.reject(channel, tag, true);
        get(&mut connection, channel, "one", false)
            .await
            .expect("it again");
        let local = connection.local_address().expect("an address");
        let remote = format!("127.0.0.1:{}", connection.options().port);
        let copies = copies(&mut connection, channel).await;
        let kept = FieldTable::new()
            .with("user_id", "guest")
            .with("timestamp", 705_032_704)
            .with("delivery_mode", 2)
            .with(
                "headers",
                FieldTable::new().with("h", 1).with("CC", texts(&["copy"])),
            )
            .with("content_type", "text/plain");
        let origin = FieldTable::new()
            .with("exchange_name", "amq.fanout")
            .with("routing_keys", texts(&["key", "copy", "blind"]))
            .with("properties", kept)
            .with("node", "leveret@test");
        let place = |headers: FieldTable| {
            headers
                .with("vhost", "/")
                .with("connection", format!("{local} -> {remote}").as_str())
                .with("channel", i32::from(channel))
                .with("user", "guest")
        };
        let published = place(origin.clone()).with("routed_queues", texts(&["one", "two"]));
        let delivered = |again: i32| place(origin.clone().with("redelivered", again));
        let expected = [
            ("publish.amq.fanout", published),
            ("deliver.one", delivered(0)),
            ("deliver.one", delivered(1)),
        ];
        assert_eq!(copies.len(), expected.len());
        for (copy, (key, expected)) in copies.iter().zip(expected) {
            assert_eq!(
                (&*copy.exchange, &*copy.routing_key),
                ("amq.rabbitmq.trace", key)
            );
            assert_eq!(copy.body, b"body");
            assert_eq!(headers(copy), expected, "{key}");
            // Nothing of the original but its body.
            assert_eq!(copy.properties().get(Property::DeliveryMode), None);
        }
    });
}

#[test]
fn nothing_is_copied_before_and_after() {
    within(seconds(20), async {
        let (server, mut connection, channel) = traced("firehose-off").await;
        declare(&mut connection, channel, "plain").await;
        for traced in [false, true, false] {
            set_tracing(&server, traced);
            // The same route each time: it must be looked up again.
            publish(&mut connection, channel, "plain", b"x");
            let got = get(&mut connection, channel, "plain", true).await;
            assert!(got.is_some());
            let keys = keys(&mut connection, channel).await;
            match traced {
                true => assert_eq!(keys, ["publish.", "deliver.plain"]),
                false => assert_eq!(keys, [""; 0]),
            }
        }
    });
}

#[test]
fn consumers_of_copies_make_no_copies() {
    within(seconds(20), async {
        let (server, mut connection, channel) = traced("firehose-loop").await;
        declare(&mut connection, channel, "watched").await;
        let mut reader = connect_with(&server.options).await;
        let reading = reader.open_channel().await.expect("a channel");
        for queue in [TRACES, "watched"] {
            let no_ack = ConsumeOptions::no_ack();
            let consuming = reader.consume(reading, queue, &no_ack);
            consuming.await.expect("a consumer");
        }
        const COUNT: usize = 1_000;
        for number in 0..COUNT {
            publish(
                &mut connection,
                channel,
                "watched",
                &numbered(number as u64, 8),
            );
        }
        connection.flush().await.expect("sent");
        // The message itself, the copy of its publish, and that of its delivery.
        let mut received = 0;
        while received < 3 * COUNT {
            receive(&mut reader).await;
            received += 1;
        }
        assert_quiet(&mut reader).await;
    });
}

/// Its delivery would make a copy, that a dead letter, that a copy …
#[test]
fn copies_that_become_dead_letters_make_no_copies() {
    within(seconds(20), async {
        let (_server, mut connection, channel) = traced("firehose-dead").await;
        let arguments = FieldTable::new()
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", "dead")
            .with("x-max-length", 0);
        let options = QueueOptions {
            arguments,
            ..QueueOptions::exclusive()
        };
        declare(&mut connection, channel, "dead").await;
        let declared = connection.declare_queue(channel, "dying", &options).await;
        declared.expect("declare-ok");
        bind(
            &mut connection,
            channel,
            "dying",
            "amq.rabbitmq.trace",
            "publish.#",
        )
        .await;
        publish(&mut connection, channel, "nowhere", b"x");
        let dead = get(&mut connection, channel, "dead", true).await;
        assert!(dead.is_some());
        assert_eq!(keys(&mut connection, channel).await, ["publish."]);
    });
}

/// A message that goes straight to the queue of copies is one like any other.
#[test]
fn a_message_for_the_queue_of_copies_is_copied_once() {
    within(seconds(20), async {
        let (_server, mut connection, channel) = traced("firehose-direct").await;
        publish(&mut connection, channel, TRACES, b"x");
        let keys = keys(&mut connection, channel).await;
        // Whichever came first.
        let mut sorted = keys.clone();
        sorted.sort();
        assert_eq!(sorted, ["deliver.traces", "publish.", "traces"], "{keys:?}");
    });
}

#[test]
fn copies_of_a_transaction_come_with_its_publishes() {
    within(seconds(20), async {
        let (_server, mut connection, channel) = traced("firehose-tx").await;
        declare(&mut connection, channel, "tx").await;
        let transacted = connection.open_channel().await.expect("a channel");
        connection.tx_select(transacted).await.expect("select-ok");
        publish(&mut connection, transacted, "tx", b"x");
        synchronize(&mut connection, transacted).await;
        assert_eq!(keys(&mut connection, channel).await, ["publish."]);
        connection.tx_commit(transacted).await.expect("commit-ok");
        assert_eq!(keys(&mut connection, channel).await, [""; 0]);
        assert_eq!(look_at(&mut connection, channel, "tx").await.messages, 1);
    });
}

/// What is refused, what leads nowhere, and long names.
#[test]
fn every_publish_has_its_copy() {
    within(seconds(20), async {
        let (_server, mut connection, channel) = traced("firehose-all").await;
        let full = FieldTable::new()
            .with("x-max-length", 0)
            .with("x-overflow", "reject-publish");
        let options = QueueOptions {
            arguments: full,
            ..QueueOptions::exclusive()
        };
        let declared = connection.declare_queue(channel, "full", &options).await;
        declared.expect("declare-ok");
        let long = "x".repeat(255);
        let none = ExchangeOptions::default();
        let declared = connection.declare_exchange(channel, &long, "fanout", &none);
        declared.await.expect("declare-ok");
        publish(&mut connection, channel, "full", b"x");
        publish(&mut connection, channel, "nowhere", b"x");
        send(&mut connection, channel, &long, &[0, 0]);
        synchronize(&mut connection, channel).await;
        let copies = copies(&mut connection, channel).await;
        let routed: Vec<_> = copies
            .iter()
            .map(|copy| headers(copy).remove("routed_queues"))
            .collect();
        // The default exchange leads to what is not there, too.
        let expected = [texts(&["full"]), texts(&["nowhere"]), texts(&[])];
        assert_eq!(routed, expected.map(Some));
        let cut = format!("publish.{}", &long[..247]);
        assert_eq!(copies[2].routing_key, cut);
        let name = headers(&copies[2]).remove("exchange_name");
        assert_eq!(name, Some(long.as_str().into()));
    });
}

#[test]
fn each_vhost_is_traced_for_itself() {
    within(seconds(20), async {
        let (server, mut connection, channel) = traced("firehose-vhosts").await;
        set_tracing(&server, false);
        let admin = server.broker.admin();
        let added = admin.add_vhost("other", VHostMetadata::default());
        added.expect("it is new");
        server
            .broker
            .vhost("other")
            .expect("it is there")
            .set_tracing(true);
        publish(&mut connection, channel, "nowhere", b"x");
        synchronize(&mut connection, channel).await;
        assert_eq!(keys(&mut connection, channel).await, [""; 0]);
    });
}

#[test]
fn a_restart_ends_tracing() {
    within(seconds(20), async {
        let (server, connection, _) = traced("firehose-restart").await;
        connection.close().await.expect("close-ok");
        let server = server.restart();
        assert!(!server.broker.vhost("/").expect("it is there").is_traced());
    });
}

#[test]
fn clients_cannot_publish_copies_themselves() {
    within(seconds(20), async {
        let (_server, mut connection, channel) = traced("firehose-internal").await;
        send(&mut connection, channel, "amq.rabbitmq.trace", &[0, 0]);
        match connection.next().await.expect("an event") {
            Event::ChannelClosed(closed) => assert_eq!(closed.code, 403),
            other => panic!("{other:?}"),
        }
    });
}
