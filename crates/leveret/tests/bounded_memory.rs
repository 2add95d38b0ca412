//! What one client can make the broker hold: little, whatever it sends and however little it reads.
//!
//! Every test has a broker of its own, and looks at the memory of the process. What may be held for
//! a connection is its outbox, its output buffer, and one read of input: a few MB with what the
//! allocator keeps.

mod support;

use client::method::{basic, channel};
use client::{
    Connection, ConsumeOptions, Event, ExchangeOptions, FieldTable, Method, Properties,
    PublishFlags, RawConnection, ShortStr,
};
use testkit::Broker;

use support::*;

const MIB: u64 = 1 << 20;
/// What a connection may cost, with a margin for the allocator.
const FEW: u64 = 12 * MIB;

fn rss(broker: &Broker) -> u64 {
    broker.rss().expect("a running broker")
}

/// Memory above what it was before; 0 where there is less.
fn growth(broker: &Broker, before: u64) -> u64 {
    rss(broker).saturating_sub(before)
}

#[track_caller]
fn assert_grown_by_less_than(limit: u64, broker: &Broker, before: u64) {
    let grown = growth(broker, before);
    assert!(
        grown < limit,
        "{:.1} MiB more, limit {} MiB",
        grown as f64 / MIB as f64,
        limit / MIB
    );
}

/// A broker that has seen ordinary clients: what it keeps since then, such as buffers that all
/// connections of a thread share, is nobody's in particular.
async fn warm_broker() -> Broker {
    let broker = builder().start().expect("a broker");
    let mut connections = Vec::new();
    for index in 0..8 {
        let (mut connection, channel) = open(&broker).await;
        let queue = format!("warm-{index}");
        declare(&mut connection, channel, &queue).await;
        let options = ConsumeOptions::no_ack();
        let consuming = connection.consume(channel, &queue, &options).await;
        consuming.expect("a consumer");
        for _ in 0..32 {
            publish(&mut connection, channel, &queue, &[7; 100 * 1024]);
        }
        for _ in 0..2_000 {
            let active = true;
            connection.send(channel, channel::Flow { active });
        }
        connection.try_flush();
        connections.push(connection);
    }
    for connection in &mut connections {
        let (mut deliveries, mut replies) = (0, 0);
        while (deliveries, replies) != (32, 2_000) {
            match connection.next().await.expect("an event") {
                Event::Delivery(_) => deliveries += 1,
                _ => replies += 1,
            }
        }
    }
    for mut connection in connections {
        connection.close_channel(1).await.expect("close-ok");
        connection.close().await.expect("close-ok");
    }
    broker
}

/// A connection that reads only when it is told to, with channel 1 open.
async fn raw(broker: &Broker) -> RawConnection {
    let options = options(broker);
    let mut raw = RawConnection::open(&options).await.expect("a connection");
    raw.handshake(&options).await.expect("a handshake");
    raw.send(1, channel::Open::default());
    let opened = raw.next_method().await.expect("a method");
    assert!(matches!(opened, Some((1, Method::ChannelOpenOk(_)))));
    raw
}

fn name(text: &str) -> ShortStr<'_> {
    ShortStr::try_from(text).expect("a short name")
}

/// Sends what is pending until the broker stops reading.
async fn send_until_stuck(raw: &mut RawConnection) {
    let mut pending = usize::MAX;
    while raw.output().pending() < pending {
        pending = raw.output().pending();
        let _ = tokio::time::timeout(millis(400), raw.flush()).await;
    }
}

/// Publishes `megabytes` in messages of 64 KiB and consumes them on the other connection, with a
/// backlog of 4 MiB at most. Some may go to another consumer of the queue; returns how many did.
async fn pass_through(
    publisher: &mut (Connection, u16),
    consumer: &mut (Connection, u16),
    queue: &str,
    megabytes: usize,
) -> usize {
    static BODY: [u8; 64 * 1024] = [7; 64 * 1024];
    let (publisher, publishing) = (&mut publisher.0, publisher.1);
    let mut missing = 0;
    for _ in 0..megabytes.div_ceil(4) {
        for _ in 0..64 {
            publish(publisher, publishing, queue, &BODY);
        }
        synchronize(publisher, publishing).await;
        let mut count = 0;
        while count < 64 {
            let next = tokio::time::timeout(millis(500), receive(&mut consumer.0)).await;
            let Ok(delivery) = next else { break };
            consumer.0.ack(consumer.1, delivery.tag, false);
            count += 1;
        }
        missing += 64 - count;
    }
    missing
}

/// A consumer that never reads, beside one that does.
async fn consumer_that_never_reads(no_ack: bool) {
    let broker = warm_broker().await;
    let mut publisher = open(&broker).await;
    let mut consumer = open(&broker).await;
    declare(&mut publisher.0, publisher.1, "shared").await;
    let options = ConsumeOptions::default();
    let consuming = consumer.0.consume(consumer.1, "shared", &options);
    consuming.await.expect("a consumer");
    let missing = pass_through(&mut publisher, &mut consumer, "shared", 100).await;
    assert_eq!(missing, 0, "the broker is warm");

    let before = rss(&broker);
    let mut deaf = raw(&broker).await;
    let queue = name("shared");
    deaf.send(
        1,
        basic::Consume {
            queue,
            no_ack,
            ..Default::default()
        },
    );
    deaf.flush().await;
    let missing = pass_through(&mut publisher, &mut consumer, "shared", 200).await;
    let grown = growth(&broker, before);
    assert!(missing > 0, "the other consumer got nothing");

    // What is in the sockets' buffers is unacknowledged: the broker has to keep it.
    let sent = match no_ack {
        true => 0,
        false => sent_to(&mut deaf).await,
    };
    assert!(
        grown < FEW + sent,
        "{} KiB more with {missing} messages of 64 KiB under way, {} KiB of them sent",
        grown >> 10,
        sent >> 10
    );
    assert_healthy(&broker).await;
}

/// Bytes of what has been sent to a client up to now.
async fn sent_to(raw: &mut RawConnection) -> u64 {
    let mut bytes = 0;
    while let Ok(frame) = tokio::time::timeout(millis(200), raw.next_frame()).await {
        bytes += frame
            .expect("a frame")
            .expect("an open stream")
            .payload
            .len() as u64;
    }
    bytes
}

#[test]
fn consumer_that_never_reads_costs_little_beside_one_that_drains() {
    within(seconds(30), consumer_that_never_reads(false));
}

#[test]
fn consumer_without_acks_that_never_reads_costs_little() {
    within(seconds(30), consumer_that_never_reads(true));
}

/// Queues, and messages in each, of the tests that ask for all of them.
const QUEUES: usize = 1_000;
const MESSAGES: usize = 100;

/// Queues that share their messages, behind a fanout exchange: gigabytes to ask for, and megabytes
/// in the broker.
async fn copies(broker: &Broker, body: &[u8]) -> Vec<String> {
    let (mut connection, channel) = open(broker).await;
    let exchange = ExchangeOptions::default();
    let declaring = connection.declare_exchange(channel, "copies", "fanout", &exchange);
    declaring.await.expect("an exchange");
    let queues = (0..QUEUES).map(|index| format!("copy-{index:03}"));
    let queues: Vec<String> = queues.collect();
    for queue in &queues {
        declare(&mut connection, channel, queue).await;
        let none = FieldTable::new();
        let binding = connection.bind(channel, queue, "copies", "", &none);
        binding.await.expect("a binding");
    }
    for _ in 0..MESSAGES {
        let (flags, none) = (PublishFlags::NONE, Properties::default());
        connection
            .publish(channel, "copies", "", flags, none, body)
            .expect("short names");
    }
    synchronize(&mut connection, channel).await;
    queues
}

/// Asks for 100,000 messages of that size at once and reads none; then reads some.
async fn pipelined_gets(body_len: usize) {
    let broker = warm_broker().await;
    let queues = copies(&broker, &vec![7; body_len]).await;
    let mut deaf = raw(&broker).await;
    let before = rss(&broker);
    for queue in queues.iter().cycle().take(QUEUES * MESSAGES) {
        let get = basic::Get {
            queue: name(queue),
            no_ack: true,
            ..Default::default()
        };
        deaf.send(1, get);
    }
    send_until_stuck(&mut deaf).await;
    assert_grown_by_less_than(FEW, &broker, before);

    // Once it reads, it gets what it asked for.
    let (mut methods, mut bytes) = (0, 0);
    while bytes < 100_000_000 {
        let frame = deaf.next_frame().await.expect("a frame");
        let frame = frame.expect("an open stream");
        match frame.kind {
            1 => {
                methods += 1;
                let method = frame.method().expect("a method");
                assert!(matches!(method, Method::BasicGetOk(ok) if ok.delivery_tag == methods));
            }
            3 => bytes += frame.payload.len(),
            _ => {}
        }
    }
    assert_grown_by_less_than(3 * FEW, &broker, before);
    drop(deaf);
    assert_healthy(&broker).await;
}

#[test]
fn pipelined_gets_of_large_messages_are_answered_as_the_client_reads() {
    within(seconds(30), pipelined_gets(100 * 1024));
}

/// Smaller ones are copied to the output, where large ones are not.
#[test]
fn pipelined_gets_of_small_messages_are_answered_as_the_client_reads() {
    within(seconds(30), pipelined_gets(12 * 1024));
}

/// basic.cancel of a consumer that is not there is answered with the same tag: a call whose answers
/// can be told apart.
#[test]
fn a_million_pipelined_calls_are_answered_in_order_once_the_client_reads() {
    const CALLS: u64 = 1_000_000;
    within(seconds(60), async {
        let broker = warm_broker().await;
        let mut client = raw(&broker).await;
        let before = rss(&broker);
        for number in 0..CALLS {
            let tag = format!("{number:06}");
            let consumer_tag = name(&tag);
            client.send(
                1,
                basic::Cancel {
                    consumer_tag,
                    no_wait: false,
                },
            );
        }
        send_until_stuck(&mut client).await;
        assert!(client.output().pending() > 0, "the broker read everything");
        assert_grown_by_less_than(FEW, &broker, before);
        for number in 0..CALLS {
            let (_, method) = client.next_method().await.expect("a method").expect("more");
            let Method::BasicCancelOk(ok) = method else {
                panic!("basic.cancel-ok expected, got {method:?}");
            };
            assert_eq!(ok.consumer_tag.lossy().parse(), Ok(number));
        }
        assert_grown_by_less_than(FEW, &broker, before);
    });
}

#[test]
fn announced_bodies_cost_nothing_until_they_come() {
    const CHANNELS: u16 = 500;
    const ANNOUNCED: u64 = 128 * MIB;
    within(seconds(20), async {
        let broker = warm_broker().await;
        let mut client = raw(&broker).await;
        let before = rss(&broker);
        for channel in 2..=CHANNELS {
            client.send(channel, channel::Open::default());
        }
        for channel in 1..=CHANNELS {
            let routing_key = name("nowhere");
            client.send(
                channel,
                basic::Publish {
                    routing_key,
                    ..Default::default()
                },
            );
            let mut header = vec![0, 60, 0, 0];
            header.extend_from_slice(&ANNOUNCED.to_be_bytes());
            header.extend_from_slice(&[0, 0]);
            client.send_frame(2, channel, &header);
            client.send_frame(3, channel, b"the first of many bytes");
        }
        client.send(CHANNELS + 1, channel::Open::default());
        while client
            .next_method()
            .await
            .expect("a method")
            .expect("more")
            .0
            != CHANNELS + 1
        {}
        assert_grown_by_less_than(FEW, &broker, before);
        drop(client);
        assert_healthy(&broker).await;
    });
}

/// Buffers are for connections that use them.
#[test]
fn idle_connections_are_small() {
    const CONNECTIONS: u64 = 1_000;
    within(seconds(30), async {
        testkit::raise_open_files(20_000);
        let broker = warm_broker().await;
        // What the first of them brings about is not theirs.
        let first = connect(&broker).await;
        let before = rss(&broker);
        let mut connections = vec![first];
        for _ in 0..CONNECTIONS {
            connections.push(connect(&broker).await);
        }
        assert_grown_by_less_than(CONNECTIONS * 16 * 1024, &broker, before);
    });
}

/// An unfinished frame is held until its end comes, and not longer than its limit.
#[test]
fn frames_in_parts_are_bounded_by_the_frame_limit() {
    within(seconds(20), async {
        let broker = warm_broker().await;
        let mut clients = Vec::new();
        let before = rss(&broker);
        for _ in 0..20 {
            let mut client = raw(&broker).await;
            // A method of 120,000 bytes whose last one never comes.
            let header = amqp::frame::Header::encode(amqp::frame::Kind::Method, 1, 120_000);
            client.send_bytes(&header);
            client.send_bytes(&[0; 119_999]);
            client.flush().await;
            clients.push(client);
        }
        tokio::time::sleep(millis(300)).await;
        assert_grown_by_less_than(20 * 128 * 1024 + FEW, &broker, before);
        assert_healthy(&broker).await;
    });
}

/// What is out has to be remembered, but not for longer than it is out.
#[test]
fn acknowledged_deliveries_leave_nothing_behind() {
    const MESSAGES: usize = 100_000;
    within(seconds(40), async {
        let broker = warm_broker().await;
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "tags").await;
        let mut rounds = Vec::new();
        for _ in 0..8 {
            for number in 0..MESSAGES {
                publish(
                    &mut connection,
                    channel,
                    "tags",
                    &numbered(number as u64, 8),
                );
            }
            let options = ConsumeOptions::default();
            let tag = connection
                .consume(channel, "tags", &options)
                .await
                .expect("a tag");
            let mut last = 0;
            for _ in 0..MESSAGES {
                match connection.next().await.expect("an event") {
                    Event::Delivery(delivery) => last = delivery.delivery_tag,
                    other => panic!("a delivery expected, got {other:?}"),
                }
            }
            connection.ack(channel, last, true);
            connection.cancel(channel, &tag).await.expect("cancel-ok");
            rounds.push(rss(&broker));
        }
        // The first rounds are the allocator's; something that is left behind adds up.
        let more = rounds[7].saturating_sub(rounds[2]);
        assert!(more < 2 * FEW, "{rounds:?} bytes after each round");
    });
}
