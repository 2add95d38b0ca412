//! What can be measured, and what comes out.

use std::time::Duration;

use crate::measure::Figures;

/// One thing to measure.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: Kind,
}

/// How it is measured.
#[derive(Debug, Clone)]
pub enum Kind {
    /// One producer, one queue, one consumer.
    Stream(Stream),
    /// W2: as many channels on one connection, one message under way in each.
    PingPong { channels: u16 },
    /// Time to start, and memory then.
    Start,
    /// Memory per idle connection.
    Connections,
}

/// A stream of messages through one queue.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Bytes of body.
    pub body: usize,
    /// Consumer acknowledgements and publisher confirms.
    pub reliable: bool,
    /// Durable queue, persistent messages.
    pub durable: bool,
}

/// What a case gave.
#[derive(Debug)]
pub enum Outcome {
    Rounds(Vec<Figures>),
    Start(StartFigures),
    Connections(ConnectionFigures),
}

/// The case `start`.
#[derive(Debug, Clone, Copy)]
pub struct StartFigures {
    pub time: Duration,
    pub rss: u64,
}

/// The case `connections`.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionFigures {
    pub count: usize,
    pub opened_per_second: f64,
    /// Broker memory after, and growth per connection; `None` where its process is unknown.
    pub rss: Option<u64>,
    pub rss_each: Option<f64>,
}

/// Every case, in order.
pub fn all() -> Vec<Case> {
    let stream = |name, about, body, reliable, durable| Case {
        name,
        about,
        kind: Kind::Stream(Stream {
            body,
            reliable,
            durable,
        }),
    };
    let ping_pong = |name, about, channels| Case {
        name,
        about,
        kind: Kind::PingPong { channels },
    };
    vec![
        Case {
            name: "start",
            about: "time to start and memory when idle",
            kind: Kind::Start,
        },
        stream("16b", "16 bytes, transient, no acks", 16, false, false),
        stream("1k", "1 KiB, transient, no acks", 1024, false, false),
        stream(
            "16b-acks",
            "16 bytes, transient, acks and confirms",
            16,
            true,
            false,
        ),
        stream(
            "1k-acks",
            "1 KiB, transient, acks and confirms",
            1024,
            true,
            false,
        ),
        stream(
            "1k-durable",
            "1 KiB, persistent, acks and confirms",
            1024,
            true,
            true,
        ),
        ping_pong("w2-1", "ping-pong, 1 channel", 1),
        ping_pong("w2-10", "ping-pong, 10 channels of one connection", 10),
        ping_pong("w2-50", "ping-pong, 50 channels of one connection", 50),
        ping_pong("w2-500", "ping-pong, 500 channels of one connection", 500),
        Case {
            name: "connections",
            about: "idle connections with one open channel each",
            kind: Kind::Connections,
        },
    ]
}

/// The cases as text.
pub fn list() -> String {
    let lines: Vec<String> = all()
        .iter()
        .map(|case| format!("{:<12} {}", case.name, case.about))
        .collect();
    lines.join("\n")
}
