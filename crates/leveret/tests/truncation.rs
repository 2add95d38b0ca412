//! A session cut short at every octet, in pieces of any size, and drowned in noise.
//!
//! The client is a byte stream written by hand, so that nothing in it waits for the broker where
//! the test does not.

mod support;

use std::time::Instant;

use amqp::frame::{self, HEADER_LEN, Header, Kind, OVERHEAD};
use amqp::method::{basic, channel, connection, queue};
use amqp::{ContentHeader, FieldTable, Method, Properties, ShortStr, Table, Version};
use client::QueueOptions;
use testkit::Broker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use support::*;
use testkit::Random;

const VERSION: Version = Version::V0_9_1;
const BODY: &[u8; 30] = b"three parts of ten octets each";

/// What a client sends in one session.
#[derive(Clone)]
struct Script {
    /// Handshake, declare, publish with three body frames, consume.
    before_delivery: Vec<u8>,
    /// Acknowledge, look at the queue, close.
    after_delivery: Vec<u8>,
}

fn name(text: &str) -> ShortStr<'_> {
    ShortStr::try_from(text).expect("a short name")
}

fn method<'a>(out: &mut Vec<u8>, channel: u16, method: impl Into<Method<'a>>) {
    frame::write_method(out, channel, VERSION, &method.into());
}

fn handshake() -> Vec<u8> {
    let mut out = VERSION.header().to_vec();
    let properties = FieldTable::new().with("product", "by hand").encode();
    let start_ok = connection::StartOk {
        client_properties: Table::from_wire(&properties),
        mechanism: name("PLAIN"),
        response: b"\0guest\0guest",
        locale: name("en_US"),
    };
    method(&mut out, 0, start_ok);
    let tune_ok = connection::TuneOk {
        channel_max: 2_047,
        frame_max: 131_072,
        heartbeat: 0,
    };
    method(&mut out, 0, tune_ok);
    let open = connection::Open {
        virtual_host: name("/"),
        ..Default::default()
    };
    method(&mut out, 0, open);
    out
}

impl Script {
    fn new(queue_name: &str) -> Script {
        let mut before = handshake();
        let queue = name(queue_name);
        let declare = queue::Declare {
            queue,
            exclusive: true,
            ..Default::default()
        };
        let publish = basic::Publish {
            routing_key: queue,
            ..Default::default()
        };
        let consume = basic::Consume {
            queue,
            consumer_tag: name("consumer"),
            ..Default::default()
        };
        method(&mut before, 1, channel::Open::default());
        method(&mut before, 1, declare);
        method(&mut before, 1, publish);
        let header = ContentHeader::basic(BODY.len() as u64, Properties::default());
        frame::write_header(&mut before, 1, &header);
        frame::write_body(&mut before, 1, BODY, (10 + OVERHEAD) as u32);
        method(&mut before, 1, consume);

        let mut after = Vec::new();
        let ack = basic::Ack {
            delivery_tag: 1,
            multiple: false,
        };
        let look = queue::Declare {
            queue,
            passive: true,
            ..Default::default()
        };
        method(&mut after, 1, ack);
        method(&mut after, 1, look);
        method(&mut after, 0, connection::Close::default());
        Script {
            before_delivery: before,
            after_delivery: after,
        }
    }

    fn len(&self) -> usize {
        self.before_delivery.len() + self.after_delivery.len()
    }
}

/// The client's end of a session.
struct Client {
    stream: TcpStream,
    answers: Vec<u8>,
}

impl Client {
    async fn connect(broker: &Broker) -> Client {
        let stream = TcpStream::connect(options(broker).address()).await;
        let stream = stream.expect("a connection");
        stream.set_nodelay(true).expect("a TCP stream");
        Client {
            stream,
            answers: Vec::new(),
        }
    }

    /// Writes; the broker may have closed the stream.
    async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Reads until the delivery has come whole.
    async fn read_delivery(&mut self) {
        while !self.answers.ends_with(&[BODY, &[frame::END][..]].concat()) {
            let read = self.stream.read_buf(&mut self.answers).await;
            assert!(read.expect("an open stream") > 0, "{:?}", self.names());
        }
    }

    /// Tells the broker that nothing more comes, and reads what it still says.
    async fn read_to_end(&mut self) {
        let _ = self.stream.shutdown().await;
        let _ = self.stream.read_to_end(&mut self.answers).await;
    }

    /// The methods of the answers.
    fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let mut rest = &self.answers[..];
        while let Some(header) = Header::decode(rest) {
            let Some(whole) = rest.get(..header.size as usize + OVERHEAD) else {
                break;
            };
            if header.kind == Kind::Method as u8 {
                let payload = &whole[HEADER_LEN..whole.len() - 1];
                names.push(Method::decode(VERSION, payload).map_or("?", |method| method.name()));
            }
            rest = &rest[whole.len()..];
        }
        names
    }
}

const ANSWERS: [&str; 9] = [
    "connection.start",
    "connection.tune",
    "connection.open-ok",
    "channel.open-ok",
    "queue.declare-ok",
    "basic.consume-ok",
    "basic.deliver",
    "queue.declare-ok",
    "connection.close-ok",
];

/// How a client leaves.
#[derive(Debug, Clone, Copy)]
enum Leave {
    /// It closes its socket with whatever is in it.
    AtOnce,
    /// It says that it will send no more, and reads to the end.
    InOrder,
}

/// Sends the script's first `cut` octets, and leaves.
async fn cut_short(mut client: Client, script: &Script, cut: usize, leave: Leave) {
    let first = cut.min(script.before_delivery.len());
    client.write(&script.before_delivery[..first]).await;
    if cut > first {
        client.read_delivery().await;
        client.write(&script.after_delivery[..cut - first]).await;
    }
    if let Leave::InOrder = leave {
        client.read_to_end().await;
        let names = client.names();
        assert!(ANSWERS.starts_with(&names), "cut at octet {cut}: {names:?}");
        if cut == script.len() {
            assert_eq!(names, ANSWERS);
        }
    }
}

/// The exclusive queue of that name can be declared anew: its owner is gone for the broker too.
async fn assert_free(connection: &mut client::Connection, queue: &str) {
    let limit = Instant::now() + seconds(5);
    loop {
        let channel = connection.open_channel().await.expect("a channel");
        let exclusive = QueueOptions::exclusive();
        match connection.declare_queue(channel, queue, &exclusive).await {
            Ok(info) => {
                assert_eq!((info.messages, info.consumers), (0, 0), "{queue}");
                return connection.close_channel(channel).await.expect("close-ok");
            }
            Err(error) => assert!(Instant::now() < limit, "{queue}: {error}"),
        }
    }
}

#[test]
fn session_cut_at_any_octet_leaves_nothing_behind() {
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        let idle = open_sockets(&broker);
        let length = Script::new("cut-0000-x").len();
        let mut running = JoinSet::new();
        for cut in 0..=length {
            for (leave, letter) in [(Leave::AtOnce, 'a'), (Leave::InOrder, 'o')] {
                let client = Client::connect(&broker).await;
                let script = Script::new(&format!("cut-{cut:04}-{letter}"));
                running.spawn(async move { cut_short(client, &script, cut, leave).await });
            }
            while running.len() > 32 {
                running
                    .join_next()
                    .await
                    .expect("one runs")
                    .expect("a whole session");
            }
        }
        while let Some(ended) = running.join_next().await {
            ended.expect("a whole session");
        }
        let mut connection = connect(&broker).await;
        for cut in 0..=length {
            for letter in ['a', 'o'] {
                assert_free(&mut connection, &format!("cut-{cut:04}-{letter}")).await;
            }
        }
        connection.close().await.expect("close-ok");
        eventually("all sockets closed", seconds(5), async || {
            open_sockets(&broker) == idle
        })
        .await;
        assert_healthy(&broker).await;
        eventually("all sockets closed", seconds(5), async || {
            open_sockets(&broker) == idle
        })
        .await;
        assert_stops_without_connections(broker).await;
    });
}

/// The broker's own count is down to nothing.
async fn assert_stops_without_connections(mut broker: Broker) {
    // A socket closes a moment before its connection is struck off.
    tokio::time::sleep(millis(100)).await;
    broker.terminate().expect("a running broker");
    let status = broker.wait(seconds(5)).expect("an end");
    let log = broker.log();
    assert!(status.success() && log.contains("connections=0"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

/// Sends the whole script in pieces; returns all answers, with the queue's name blotted out.
async fn in_pieces(broker: &Broker, queue: &str, mut piece: impl FnMut() -> usize) -> Vec<u8> {
    let script = Script::new(queue);
    let mut client = Client::connect(broker).await;
    for part in [&script.before_delivery, &script.after_delivery] {
        let mut rest = &part[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(piece().min(rest.len()));
            client.write(now).await;
            // A turn for the broker, so that it sees the pieces one by one.
            tokio::task::yield_now().await;
            rest = later;
        }
        if client.answers.is_empty() {
            client.read_delivery().await;
        }
    }
    client.read_to_end().await;
    assert_eq!(client.names(), ANSWERS);
    let mut answers = client.answers;
    for at in 0..answers.len() - queue.len() {
        if answers[at..].starts_with(queue.as_bytes()) {
            answers[at..at + queue.len()].fill(b'?');
        }
    }
    answers
}

#[test]
fn pieces_of_any_size_give_the_same_answers() {
    const SEED: u64 = 0x1e7e_7e70;
    within(seconds(20), async {
        let broker = shared();
        let whole = in_pieces(&broker, "piece-whole", || usize::MAX).await;
        let octets = in_pieces(&broker, "piece-octet", || 1).await;
        assert!(octets == whole, "octet by octet");
        let mut random = Random::new(SEED);
        for round in 0..60 {
            let queue = format!("piece-{round:05}");
            let answers = in_pieces(&broker, &queue, || 1 + random.below(50)).await;
            assert!(answers == whole, "round {round} of seed {SEED:#x}");
        }
        assert_healthy(&broker).await;
    });
}

/// Bodies around all sizes at which the broker does something else: none, one frame, several, and
/// those that it writes from where they are.
fn body_sizes(random: &mut Random) -> Vec<usize> {
    let mut sizes = vec![0, 1, 4_087, 4_088, 4_089, 8_176, 8_177];
    sizes.extend([16_383, 16_384, 16_385, 131_063, 131_064, 131_065, 262_128]);
    for _ in 0..40 {
        let limit = [50, 5_000, 40_000, 300_000][random.below(4)];
        sizes.push(random.below(limit));
    }
    sizes
}

/// A body in which no octet can move without being noticed.
fn telltale(size: usize) -> Vec<u8> {
    (0..size)
        .map(|at| (at * 31 + at / 251 + size) as u8)
        .collect()
}

/// Reads up to 20,000 octets at a time through a small window, so that the broker's writes end
/// anywhere; returns the bodies.
async fn read_in_pieces(
    broker: &Broker,
    queue: &str,
    count: usize,
    random: &mut Random,
) -> Vec<Vec<u8>> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a TCP socket");
    let address = options(broker).address().parse().expect("an IP address");
    let mut stream = socket.connect(address).await.expect("a connection");
    let mut request = handshake();
    method(&mut request, 1, channel::Open::default());
    let consume = basic::Consume {
        queue: name(queue),
        no_ack: true,
        ..Default::default()
    };
    method(&mut request, 1, consume);
    stream.write_all(&request).await.expect("a request");
    let (mut bodies, mut arrived) = (Vec::new(), Vec::new());
    let mut missing = 0;
    while bodies.len() < count || missing > 0 {
        let mut piece = vec![0; 1 + random.below(20_000)];
        let read = stream.read(&mut piece).await.expect("an open stream");
        assert!(read > 0, "the broker closed the stream");
        arrived.extend_from_slice(&piece[..read]);
        let mut rest = &arrived[..];
        while let Some(header) = Header::decode(rest) {
            let Some(whole) = rest.get(..header.size as usize + OVERHEAD) else {
                break;
            };
            assert_eq!(whole.last(), Some(&frame::END));
            let payload = &whole[HEADER_LEN..whole.len() - 1];
            match Kind::from_octet(header.kind) {
                Some(Kind::Header) => {
                    let header = ContentHeader::decode(payload).expect("a content header");
                    missing = header.body_size as usize;
                    bodies.push(Vec::with_capacity(missing));
                }
                Some(Kind::Body) => {
                    missing -= payload.len();
                    bodies
                        .last_mut()
                        .expect("a header before")
                        .extend_from_slice(payload);
                }
                _ => assert_eq!(missing, 0, "a method within a body"),
            }
            rest = &rest[whole.len()..];
        }
        arrived = rest.to_vec();
    }
    bodies
}

#[test]
fn messages_survive_being_written_in_pieces() {
    const SEED: u64 = 0xb0d1e5;
    within(seconds(20), async {
        let broker = shared();
        let mut random = Random::new(SEED);
        let sizes = body_sizes(&mut random);
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "read in pieces").await;
        for _ in 0..3 {
            for size in &sizes {
                publish(&mut connection, channel, "read in pieces", &telltale(*size));
            }
            synchronize(&mut connection, channel).await;
            let count = sizes.len();
            let bodies = read_in_pieces(&broker, "read in pieces", count, &mut random).await;
            for (index, (body, size)) in bodies.iter().zip(&sizes).enumerate() {
                assert!(*body == telltale(*size), "message {index} of {size} octets");
            }
        }
    });
}

/// Octets that no client would send: plain noise, frames around noise, known methods with noise for
/// arguments, and a good session with some octets changed.
fn garbage(random: &mut Random, script: &Script) -> Vec<u8> {
    const METHODS: [(u16, &[u16]); 6] = [
        (10, &[11, 31, 40, 50, 60, 61, 70]),
        (20, &[10, 20, 21, 40, 41]),
        (40, &[10, 20, 30, 40]),
        (50, &[10, 20, 30, 40, 50]),
        (60, &[10, 20, 30, 40, 70, 80, 90, 100, 110, 120]),
        (90, &[10, 20, 30]),
    ];
    let mut out = handshake();
    method(&mut out, 1, channel::Open::default());
    let len = random.below(300);
    match random.below(4) {
        0 => out.extend(random.bytes(len)),
        1 => {
            for _ in 0..=random.below(4) {
                let kind = [Kind::Method, Kind::Header, Kind::Body, Kind::Heartbeat];
                let kind = kind[random.below(4)];
                let channel = random.below(3) as u16;
                out.extend(Header::encode(kind, channel, len as u32));
                out.extend(random.bytes(len));
                out.push(frame::END);
            }
        }
        2 => {
            let (class, methods) = METHODS[random.below(METHODS.len())];
            let method = methods[random.below(methods.len())];
            out.extend(Header::encode(Kind::Method, 1, 4 + len as u32));
            out.extend(class.to_be_bytes());
            out.extend(method.to_be_bytes());
            out.extend(random.bytes(len));
            out.push(frame::END);
        }
        _ => {
            out.clone_from(&script.before_delivery);
            out.extend(&script.after_delivery);
            for _ in 0..=random.below(5) {
                let at = random.below(out.len());
                out[at] = random.draw() as u8;
            }
        }
    }
    out
}

#[test]
fn garbage_never_harms_the_broker() {
    const SEED: u64 = 0x6a7b_a9e5;
    const ROUNDS: usize = 500;
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        let idle = open_sockets(&broker);
        let mut random = Random::new(SEED);
        let mut running = JoinSet::new();
        for round in 0..ROUNDS {
            let mut client = Client::connect(&broker).await;
            let script = Script::new(&format!("noise-{round:04}"));
            let bytes = garbage(&mut random, &script);
            running.spawn(async move {
                client.write(&bytes).await;
                let ending = tokio::time::timeout(seconds(10), client.read_to_end());
                assert!(
                    ending.await.is_ok(),
                    "round {round} of seed {SEED:#x} hangs"
                );
            });
            while running.len() > 16 {
                running
                    .join_next()
                    .await
                    .expect("one runs")
                    .expect("an end");
            }
        }
        while let Some(ended) = running.join_next().await {
            ended.expect("an end");
        }
        eventually("all sockets closed", seconds(5), async || {
            open_sockets(&broker) == idle
        })
        .await;
        assert_healthy(&broker).await;
        eventually("all sockets closed", seconds(5), async || {
            open_sockets(&broker) == idle
        })
        .await;
        assert_stops_without_connections(broker).await;
    });
}
