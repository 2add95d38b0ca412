//! What can be measured, and what comes out.

use std::time::Duration;

use crate::measure::Figures;
use crate::reading::Reading;

/// One thing to measure.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: Kind,
    /// The broker's log is first brought into the state that it has in the long run.
    pub seasoned: bool,
}

/// How it is measured.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Producers, queues and consumers in pairs.
    Stream(Stream),
    /// W2: as many channels on one connection, one message under way in each.
    PingPong { channels: u16 },
    /// One message at a time, beside a bare loop.
    Confirm,
    /// Latency at a fixed rate.
    Latency,
    /// Small transactions of several clients.
    Transactions,
    /// W1: transactions of different sizes.
    W1,
    /// A deep backlog.
    Backlog,
    /// Time to start, and memory then.
    Start,
    /// Memory per idle connection.
    Connections,
    /// Routing by very many bindings.
    Topic,
    /// The end of a queue with many bindings.
    Unbind,
    /// Very many queues.
    ManyQueues,
    /// Messages that expire.
    Ttl,
    /// A sharded exchange.
    Sharded,
    /// CPU time of the load tester.
    Generator,
}

impl Kind {
    /// Whether it can only be measured on a broker of bench's own.
    pub fn needs_own_broker(&self) -> bool {
        // One asks how it started, the other sets a policy.
        matches!(self, Kind::Start | Kind::Sharded)
    }
}

/// Streams of messages, each through its own queue.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub pairs: usize,
    /// Bytes of body.
    pub body: usize,
    /// Consumer acknowledgements and publisher confirms.
    pub reliable: Option<Reliable>,
    /// Durable queue, persistent messages.
    pub durable: bool,
    /// Messages sent and not received from which a producer waits.
    pub in_flight: u64,
    pub bars: Bars,
}

#[derive(Debug, Clone, Copy)]
pub struct Reliable {
    /// Messages that may be published and not confirmed.
    pub window: u64,
    /// Deliveries that may be unacknowledged.
    pub prefetch: u16,
}

/// What is asked of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bars {
    None,
    W3,
    /// As fast as W3's unit, at least, and without writing more than the messages.
    Parallel,
}

/// What cases before have given, for those that are compared with them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Earlier {
    pub w3_rate: Option<f64>,
}

/// What a case gave.
#[derive(Debug)]
pub struct Outcome {
    pub row: Row,
    pub readings: Vec<Reading>,
    /// Lines of the report.
    pub notes: Vec<String>,
}

/// What stands in the table.
#[derive(Debug)]
pub enum Row {
    Rounds(Vec<Figures>),
    Start(StartFigures),
    Connections(ConnectionFigures),
    /// Nothing but the readings below it.
    Heading,
}

impl Outcome {
    /// One that is all readings.
    pub fn of_readings(readings: Vec<Reading>, notes: Vec<String>) -> Outcome {
        Outcome {
            row: Row::Heading,
            readings,
            notes,
        }
    }
}

impl From<Row> for Outcome {
    fn from(row: Row) -> Outcome {
        Outcome {
            row,
            readings: Vec::new(),
            notes: Vec::new(),
        }
    }
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
