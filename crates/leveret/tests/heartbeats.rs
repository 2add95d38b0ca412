//! Heartbeats over real time, with intervals of one second: who is taken for dead, and when a sign
//! of life is sent.
//!
//! The clients here are raw: they send heartbeats only when the test does.

mod support;

use std::time::{Duration, Instant};

use amqp::frame::{self, Kind};
use client::method::{basic, channel, queue};
use client::{
    Connection, ConsumeOptions, Method, Options, Properties, PublishFlags, QueueOptions,
    RawConnection, ShortStr,
};
use testkit::Broker;

use support::*;

const INTERVAL: Duration = seconds(1);
/// Whoever is not given up until then lives.
const LONG: Duration = seconds(3);

fn every_second(broker: &Broker) -> Options {
    Options {
        heartbeat: 1,
        ..options(broker)
    }
}

fn name(text: &str) -> ShortStr<'_> {
    ShortStr::try_from(text).expect("a short name")
}

/// A connection that has agreed on the interval, with channel 1 open and an exclusive queue.
async fn raw(broker: &Broker, queue: &str) -> RawConnection {
    let options = every_second(broker);
    let mut raw = RawConnection::open(&options).await.expect("a connection");
    let (tuned, _) = raw.handshake(&options).await.expect("a handshake");
    assert_eq!(tuned.heartbeat, 1);
    raw.send(1, channel::Open::default());
    raw.send(
        1,
        queue::Declare {
            queue: name(queue),
            exclusive: true,
            ..Default::default()
        },
    );
    for _ in 0..2 {
        raw.next_method().await.expect("a method").expect("more");
    }
    raw
}

fn publish_raw(raw: &mut RawConnection, queue: &str, body: &[u8]) {
    let (flags, none) = (PublishFlags::NONE, Properties::default());
    raw.output()
        .publish(1, "", queue, flags, none, body)
        .expect("short names");
}

/// What came in a span of time.
#[derive(Debug, Default)]
struct Heard {
    heartbeats: u32,
    others: u32,
    /// The broker closed the socket, this long after the start.
    ended: Option<Duration>,
}

/// Listens for a while; `act` runs every 100 ms and may send.
async fn listen(
    raw: &mut RawConnection,
    span: Duration,
    mut act: impl FnMut(u32, &mut RawConnection),
) -> Heard {
    let began = Instant::now();
    let mut heard = Heard::default();
    let mut acts = 0;
    while began.elapsed() < span {
        act(acts, raw);
        acts += 1;
        let next_act = tokio::time::Instant::from_std(began) + acts * millis(100);
        loop {
            match tokio::time::timeout_at(next_act, raw.next_frame()).await {
                Err(_) => break,
                Ok(Ok(Some(frame))) if frame.kind == Kind::Heartbeat as u8 => heard.heartbeats += 1,
                Ok(Ok(Some(_))) => heard.others += 1,
                Ok(Ok(None) | Err(_)) => {
                    heard.ended = Some(began.elapsed());
                    return heard;
                }
            }
        }
    }
    heard
}

/// The exclusive queue is gone, and its name free for others.
async fn assert_queue_is_free(broker: &Broker, queue: &str) {
    let (mut connection, channel) = open(broker).await;
    let declared = connection
        .declare_queue(channel, queue, &QueueOptions::exclusive())
        .await;
    declared.expect("the name is free");
}

#[track_caller]
fn assert_ended_after_two_to_three_intervals(heard: &Heard) {
    let ended = heard.ended.expect("the broker gives the client up");
    assert!(
        (INTERVAL * 19 / 10..INTERVAL * 7 / 2).contains(&ended),
        "ended after {ended:?}"
    );
}

#[test]
fn silent_client_is_given_up_after_two_to_three_intervals() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "silent").await;
        let heard = listen(&mut client, seconds(6), |_, _| {}).await;
        assert_ended_after_two_to_three_intervals(&heard);
        assert!(heard.heartbeats >= 1, "it was told that the broker lives");
        assert_queue_is_free(&broker, "silent").await;
        let log = broker.log();
        assert!(log.contains("missed heartbeats from client"), "{log}");
    });
}

/// A network that has gone takes what is sent and answers nothing: receiving deliveries is no sign
/// of life.
#[test]
fn client_that_only_receives_is_given_up() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "fed").await;
        let (mut publisher, channel) = open(&broker).await;
        declare(&mut publisher, channel, "feed").await;
        let queue = name("feed");
        let no_ack = true;
        client.send(
            1,
            basic::Consume {
                queue,
                no_ack,
                ..Default::default()
            },
        );
        client.flush().await;
        let heard = listen(&mut client, seconds(6), |_, _| {
            publish(&mut publisher, channel, "feed", b"x");
            publisher.try_flush();
        })
        .await;
        assert_ended_after_two_to_three_intervals(&heard);
        assert!(heard.others > 10, "deliveries came until then");
    });
}

#[test]
fn idle_client_that_sends_heartbeats_lives() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "idle").await;
        let heard = listen(&mut client, LONG, |acts, raw| {
            if acts % 9 == 0 {
                raw.send_bytes(&frame::HEARTBEAT);
            }
        })
        .await;
        assert_eq!(heard.ended, None);
        // One at least in every interval, and not many more.
        assert!((2..=7).contains(&heard.heartbeats), "{heard:?}");
    });
}

/// Any octet is a sign of life (0-9-1 section 4.2.7), on both sides.
#[test]
fn busy_connection_needs_no_heartbeats_in_either_direction() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "busy").await;
        let heard = listen(&mut client, LONG, |_, raw| {
            raw.send(1, channel::Flow { active: true });
        })
        .await;
        assert_eq!(heard.ended, None);
        assert!(heard.others >= 25, "{heard:?}");
        assert_eq!(heard.heartbeats, 0, "{heard:?}");
    });
}

#[test]
fn client_that_only_publishes_gets_heartbeats() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "one-way").await;
        let heard = listen(&mut client, LONG, |_, raw| {
            publish_raw(raw, "one-way", b"x");
        })
        .await;
        assert_eq!(heard.ended, None);
        assert!((2..=7).contains(&heard.heartbeats), "{heard:?}");
    });
}

/// The last 28 octets of a message, one at a time.
#[test]
fn every_octet_of_a_frame_is_a_sign_of_life() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "octets").await;
        let mut message = message("octets", &[7; 30]).into_iter();
        let at_once = message.len() - 28;
        let begin: Vec<u8> = message.by_ref().take(at_once).collect();
        client.send_bytes(&begin);
        let heard = listen(&mut client, LONG, |_, raw| {
            raw.send_bytes(&message.next().map_or(vec![], |octet| vec![octet]));
        })
        .await;
        assert_eq!(heard.ended, None);
        let (mut owner, queue) = (client, name("octets"));
        owner.send(
            1,
            basic::Get {
                queue,
                no_ack: true,
                ..Default::default()
            },
        );
        let answer = owner.next_method().await.expect("a method");
        assert!(
            matches!(answer, Some((1, Method::BasicGetOk(_)))),
            "{answer:?}"
        );
    });
}

/// A publish to a queue, as it is on the wire.
fn message(queue: &str, body: &[u8]) -> Vec<u8> {
    let publish = basic::Publish {
        routing_key: name(queue),
        ..Default::default()
    };
    let header = amqp::ContentHeader::basic(body.len() as u64, Properties::default());
    let mut bytes = Vec::new();
    frame::write_method(&mut bytes, 1, amqp::Version::V0_9_1, &publish.into());
    frame::write_header(&mut bytes, 1, &header);
    frame::write_body(&mut bytes, 1, body, 131_072);
    bytes
}

/// A client that takes its time, as one does that works on each message, but keeps sending
/// heartbeats: it is slow, not gone.
#[test]
fn slow_reader_that_sends_heartbeats_lives() {
    within(seconds(15), async {
        let broker = shared();
        let mut client = raw(&broker, "slow").await;
        let (mut publisher, channel) = open(&broker).await;
        declare(&mut publisher, channel, "backlog").await;
        for _ in 0..1_000 {
            publish(&mut publisher, channel, "backlog", &[7; 32 * 1024]);
        }
        synchronize(&mut publisher, channel).await;
        let queue = name("backlog");
        let no_ack = true;
        client.send(
            1,
            basic::Consume {
                queue,
                no_ack,
                ..Default::default()
            },
        );
        client.flush().await;
        for _ in 0..7 {
            tokio::time::sleep(INTERVAL / 2).await;
            client.send_bytes(&frame::HEARTBEAT);
            client.flush().await;
        }
        let mut bytes = 0;
        while bytes < 1_000 * 32 * 1024 {
            let frame = client.next_frame().await.expect("a frame");
            let frame = frame.expect("the broker did not give the client up");
            if frame.kind == Kind::Body as u8 {
                bytes += frame.payload.len();
            }
        }
    });
}

/// There is more to write at every moment of three intervals; what the client sends meanwhile has to
/// be read all the same.
#[test]
fn reader_of_a_long_backlog_that_sends_heartbeats_lives() {
    within(seconds(15), async {
        let broker = shared();
        let mut client = raw(&broker, "steady").await;
        let (mut publisher, channel) = open(&broker).await;
        declare(&mut publisher, channel, "long").await;
        for _ in 0..2_500 {
            publish(&mut publisher, channel, "long", &[7; 32 * 1024]);
        }
        synchronize(&mut publisher, channel).await;
        client.send(
            1,
            basic::Consume {
                queue: name("long"),
                no_ack: true,
                ..Default::default()
            },
        );
        client.flush().await;
        let began = Instant::now();
        let (mut bytes, mut beats) = (0, 0);
        while began.elapsed() < LONG {
            if began.elapsed() > beats * INTERVAL / 2 {
                client.send_bytes(&frame::HEARTBEAT);
                beats += 1;
            }
            let frame = client.next_frame().await.expect("a frame");
            let frame = frame.expect("the broker did not give the client up");
            bytes += frame.payload.len();
            // 20 MB a second or less.
            if frame.kind == Kind::Body as u8 {
                let due = Duration::from_secs_f64(bytes as f64 / 20e6);
                tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
            }
        }
        let left = look_at(&mut publisher, channel, "long").await.messages;
        assert!(left > 0, "the backlog was too short");
    });
}

/// Output that waits is no sign of life: the peer may be gone for good.
#[test]
fn client_that_neither_reads_nor_sends_is_given_up() {
    within(seconds(10), async {
        let broker = shared();
        let mut client = raw(&broker, "stuck").await;
        let (mut publisher, channel) = open(&broker).await;
        declare(&mut publisher, channel, "unread").await;
        for _ in 0..1_000 {
            publish(&mut publisher, channel, "unread", &[7; 32 * 1024]);
        }
        synchronize(&mut publisher, channel).await;
        client.send(
            1,
            basic::Consume {
                queue: name("unread"),
                ..Default::default()
            },
        );
        client.flush().await;
        eventually("the messages return", seconds(5), async || {
            tokio::time::sleep(millis(100)).await;
            let info = look_at(&mut publisher, channel, "unread").await;
            info.consumers == 0 && info.messages == 1_000
        })
        .await;
        assert_queue_is_free(&broker, "stuck").await;
        drop(client);
    });
}

/// Both ends of this project together, with nothing to say to each other.
#[test]
fn idle_connection_of_our_own_client_lives() {
    within(seconds(10), async {
        let broker = shared();
        let mut connection = connect_with(&every_second(&broker)).await;
        let channel = connection.open_channel().await.expect("a channel");
        declare(&mut connection, channel, "patience").await;
        let options = ConsumeOptions::no_ack();
        let consuming = connection.consume(channel, "patience", &options).await;
        consuming.expect("a consumer");
        let idle = tokio::time::timeout(LONG, connection.next()).await;
        assert!(idle.is_err(), "{idle:?}");
        publish(&mut connection, channel, "patience", b"still here");
        assert_eq!(receive(&mut connection).await.body, b"still here");
    });
}

#[test]
fn without_heartbeats_silence_is_fine() {
    within(seconds(10), async {
        let broker = builder().config("heartbeat = 1").start();
        let broker = broker.expect("a broker");
        let (mut connection, channel): (Connection, u16) = open(&broker).await;
        assert_eq!(connection.tuned().heartbeat, 0);
        tokio::time::sleep(LONG).await;
        declare(&mut connection, channel, "quiet").await;
    });
}
