//! One load, resolved: what the options say, with their defaults filled in and checked against each
//! other. `command/` makes it of a command line, scenarios make it of their parameters, `load/` acts
//! on it. The defaults are PerfTest's.

use std::path::PathBuf;
use std::time::Duration;

use client::FieldTable;

/// One load on one broker, or on the nodes of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `-d`: what each line of output begins with.
    pub id: String,
    /// `-h`, `-H`: where to connect, with `-M`, `-b` and `-se` applied. Never empty.
    pub brokers: Vec<client::Options>,
    /// `-cal`: which of several the next connection goes to.
    pub allocation: Allocation,
    /// `-sst`, `-sul`: wait so long at first for so many of them to accept connections.
    pub wait_for_brokers: Option<(Duration, usize)>,
    /// Exchange, queues, bindings.
    pub topology: Topology,
    /// Who publishes.
    pub producers: Producers,
    /// What is published.
    pub payload: Payload,
    /// Who consumes.
    pub consumers: Consumers,
    /// When it ends.
    pub limits: Limits,
    /// What is printed meanwhile.
    pub output: Output,
    /// `-ms`: messages carry wall clock milliseconds instead of monotonic nanoseconds.
    pub use_millis: bool,
    /// `--verify`: messages that are missing, doubled or out of order make the run fail; consumers
    /// go on until all that was sent has come.
    pub verify: bool,
    /// At the end the named queues are deleted, and the exchange if nothing else is bound to it.
    pub clean_up: bool,
    /// `--threads`: how many threads carry the connections; 0 for as many as there are cores.
    pub threads: usize,
}

/// How connections are spread over brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// Any.
    #[default]
    Random,
    /// In turn.
    RoundRobin,
}

/// Exchange, queues and bindings.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// `-e`: empty for the default exchange.
    pub exchange: String,
    /// `-t`.
    pub exchange_type: String,
    /// `-p`: exchange and queues exist; they are bound, but not declared.
    pub predeclared: bool,
    /// `-u`, `-qp`, `-qf`.
    pub queues: Queues,
    /// `-k`: what queues are bound with and messages published with, unless random.
    pub routing_key: Option<String>,
    /// `-K`, `-rkcs`: a random key for each message.
    pub random_routing_key: Option<RandomKeys>,
    /// `-sb`.
    pub skip_binding: bool,
    /// `-ad`.
    pub auto_delete: bool,
    /// `-E`.
    pub exclusive: bool,
    /// With `-f persistent`, `-qq` and `-sq`.
    pub durable: bool,
    /// `-qa` and what other options add.
    pub arguments: FieldTable,
}

/// The queues of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queues {
    /// Each consumer declares one that the broker names; all are bound with one key.
    ServerNamed,
    /// `-u`: each consumer consumes from all of these; they are bound with one key.
    Shared(Vec<String>),
    /// `-qp`, `-qf`: agents take them in turn; each is bound with its name, or with `-k`.
    InTurn(Vec<String>),
}

/// Where random routing keys come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomKeys {
    /// Each is new.
    Fresh,
    /// `-rkcs`: so many are made beforehand and used in turn.
    Cached(usize),
}

/// Who publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Producers {
    /// `-x`: connections.
    pub count: u32,
    /// `-X`: channels of each, which publish independently.
    pub channels: u16,
    /// `-r`, `-vr`, `-P`: of each channel.
    pub rate: Rate,
    /// `-c`: messages of a channel that may be unconfirmed. 0 asks for confirms and sets no limit.
    pub confirm: Option<u32>,
    /// `-ct`.
    pub confirm_timeout: Duration,
    /// `-m`: messages per transaction.
    pub transaction: Option<u32>,
    /// `-f persistent`.
    pub persistent: bool,
    /// `-f mandatory`.
    pub mandatory: bool,
    /// `-C`: messages of each channel.
    pub limit: Option<u64>,
    /// `-prsd`: each channel starts at a random moment within this time.
    pub start_delay: Duration,
}

/// How fast a producer publishes.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// As fast as it can.
    Unlimited,
    /// `-r`: messages per second; may be below one.
    Fixed(f64),
    /// `-vr`: messages per second, and for how long; over and over.
    Variable(Vec<(f64, Duration)>),
    /// `-P`: one message each time.
    Every(Duration),
}

/// What is published.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// `-s`, `-vs`, `-B`, `-jb`.
    pub body: Body,
    /// `-T`.
    pub content_type: Option<String>,
    /// `-mp`, the names as PerfTest spells them: properties, and whatever is none as a header.
    pub properties: Vec<(String, PropertyValue)>,
}

impl Payload {
    /// Bodies without properties.
    pub fn of(body: Body) -> Payload {
        Payload {
            body,
            content_type: None,
            properties: Vec::new(),
        }
    }
}

/// A value of `-mp`.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// Digits only.
    Number(i64),
    /// Anything else.
    Text(String),
}

/// Message bodies.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Bytes of body, at least [`HEADER`]: sequence number and time, then zeros.
    Sized(usize),
    /// Any size from the first to the second, each equally often.
    Between(usize, usize),
    /// Sizes, and for how long; over and over.
    Varying(Vec<(usize, Duration)>),
    /// Contents of files, in turn. Sequence number and time are in headers.
    Files(Vec<Vec<u8>>),
    /// Made-up JSON documents of about `size` bytes, in turn; so too.
    Json {
        /// `-s`.
        size: usize,
        /// `-bfc`: field names and values to choose from.
        fields: usize,
        /// `-bc`: documents made beforehand.
        bodies: usize,
    },
}

/// Bytes of sequence number and time at the start of a body.
pub const HEADER: usize = 12;

/// Who consumes.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumers {
    /// `-y`: connections.
    pub count: u32,
    /// `-Y`: channels of each, which consume independently.
    pub channels: u16,
    /// `-a`, `-A`.
    pub acks: Acks,
    /// `-na`, `-re`: reject instead of acknowledging, and whether to requeue.
    pub nack: Option<bool>,
    /// `-q`.
    pub qos: u16,
    /// `-Q`.
    pub global_qos: u16,
    /// `-R`: messages per second of each channel.
    pub rate: Option<f64>,
    /// `-L`, `-vl`: how long each message takes, and for how long it is so; one entry stays.
    pub latency: Vec<(Duration, Duration)>,
    /// `-n`: messages per transaction.
    pub transaction: Option<u32>,
    /// `-D`: messages of each channel.
    pub limit: Option<u64>,
    /// `-po`, `-pi`: ask for each message with basic.get, with this pause.
    pub polling: Option<Duration>,
    /// `-ca`.
    pub arguments: FieldTable,
    /// `-S`: a second between the starts of two.
    pub slow_start: bool,
    /// `-csd`: consumers start so much later than producers.
    pub start_delay: Duration,
}

/// How deliveries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// `-a`: the broker takes them as acknowledged.
    Auto,
    /// One by one.
    Each,
    /// `-A`: so many together.
    Every(u32),
}

/// When a load ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// `-z`.
    pub time: Option<Duration>,
    /// `-ew`.
    pub exit_when: ExitWhen,
    /// `-st`: how long closing may take.
    pub shutdown_timeout: Duration,
}

/// `-ew`: what ends a consumer besides its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhen {
    /// Nothing.
    #[default]
    Never,
    /// Its queue is empty, and nothing has come for a second.
    Empty,
    /// Nothing has come for a second.
    Idle,
}

/// What is printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// `-i`.
    pub interval: Duration,
    /// `-mf`.
    pub format: Format,
    /// `-o`: the lines as CSV.
    pub csv: Option<PathBuf>,
    /// `--verbose`, `--verbose-full`: each message.
    pub verbose: Verbose,
    /// A live display on a terminal; `--plain` turns it off.
    pub live: bool,
    /// No line but errors: the scenarios print tables of their own.
    pub quiet: bool,
}

/// `-mf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Each figure with its name.
    #[default]
    Default,
    /// A table.
    Compact,
}

/// `--verbose`, `--verbose-full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verbose {
    /// No.
    #[default]
    Off,
    /// What is sent, received, confirmed.
    Messages,
    /// With headers and bodies.
    Full,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            id: "test".into(),
            brokers: vec![client::Options::default()],
            allocation: Allocation::default(),
            wait_for_brokers: None,
            topology: Topology::default(),
            producers: Producers::default(),
            payload: Payload::default(),
            consumers: Consumers::default(),
            limits: Limits::default(),
            output: Output::default(),
            use_millis: false,
            verify: false,
            clean_up: false,
            threads: 0,
        }
    }
}

impl Default for Topology {
    fn default() -> Self {
        Topology {
            exchange: "direct".into(),
            exchange_type: "direct".into(),
            predeclared: false,
            queues: Queues::ServerNamed,
            routing_key: None,
            random_routing_key: None,
            skip_binding: false,
            auto_delete: true,
            exclusive: false,
            durable: false,
            arguments: FieldTable::new(),
        }
    }
}

impl Default for Producers {
    fn default() -> Self {
        Producers {
            count: 1,
            channels: 1,
            rate: Rate::Unlimited,
            confirm: None,
            confirm_timeout: Duration::from_secs(30),
            transaction: None,
            persistent: false,
            mandatory: false,
            limit: None,
            start_delay: Duration::ZERO,
        }
    }
}

impl Default for Payload {
    fn default() -> Self {
        Payload {
            body: Body::Sized(HEADER),
            content_type: None,
            properties: Vec::new(),
        }
    }
}

impl Default for Consumers {
    fn default() -> Self {
        Consumers {
            count: 1,
            channels: 1,
            acks: Acks::Each,
            nack: None,
            qos: 0,
            global_qos: 0,
            rate: None,
            latency: Vec::new(),
            transaction: None,
            limit: None,
            polling: None,
            arguments: FieldTable::new(),
            slow_start: false,
            start_delay: Duration::ZERO,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: None,
            exit_when: ExitWhen::default(),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

impl Output {
    /// Nothing: for scenarios, which print tables of their own.
    pub fn none() -> Output {
        Output {
            quiet: true,
            live: false,
            ..Output::default()
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Output {
            interval: Duration::from_secs(1),
            format: Format::default(),
            csv: None,
            verbose: Verbose::default(),
            live: true,
            quiet: false,
        }
    }
}
