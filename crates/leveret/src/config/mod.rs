//! The configuration of a Leveret node: from `rabbitmq.conf` syntax, environment variables and
//! flags to one resolved [`Config`].
//!
//! Raw and resolved are different types. [`Flags`], [`Environment`] and the settings of a parsed
//! file say what the user wrote; [`Config`] says what the node does, with every default filled in
//! and every value checked. The table of options in [`options`] is the only place that names a
//! key, its environment variable, its default and its meaning; the reference page
//! `docs/configuration.md` is generated from it.

pub mod document;
mod draft;
mod environment;
mod error;
mod interpolation;
mod key;
mod locate;
mod option;
mod options;
mod rabbitmq_keys;
mod resolve;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use store::Durability;

pub use environment::Environment;
pub use error::{ConfigError, Warning};
pub use locate::DEFAULT_CONFIG_FILE;

/// What the command line says about the configuration.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`: the file to read.
    pub config_file: Option<PathBuf>,
    /// `--data-dir`: where messages and definitions are kept.
    pub data_dir: Option<PathBuf>,
}

/// The outcome of [`load`]: a usable configuration and what the user should know about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The resolved options.
    pub config: Config,
    /// Things that are ignored or overridden; to be logged once, at start.
    pub warnings: Vec<Warning>,
    /// The file that was read, if there was one.
    pub file: Option<PathBuf>,
}

/// The resolved options of a node. Every field is valid; see `docs/configuration.md` for the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Addresses to accept AMQP connections on; empty with `listeners.tcp = none`. `[::]` stands
    /// for all interfaces, IPv6 and IPv4; where the machine has no IPv6, bind `0.0.0.0` instead.
    /// Port 0 lets the operating system choose.
    pub listeners: Vec<SocketAddr>,
    /// Options of the listening sockets and of the connections they accept.
    pub tcp_listen_options: TcpListenOptions,
    /// Time a client has from connecting to the end of the AMQP handshake; `None` is no limit.
    pub handshake_timeout: Option<Duration>,

    /// Name of the user that is created when the data directory is new.
    pub default_user: String,
    /// That user's password.
    pub default_pass: Password,
    /// The virtual host that is created when the data directory is new.
    pub default_vhost: String,
    /// Permissions of the default user in the default virtual host.
    pub default_permissions: Permissions,
    /// Tags of the default user, in the order given.
    pub default_user_tags: Vec<String>,
    /// Users that may connect from this machine only.
    pub loopback_users: Vec<String>,

    /// Files and directories of definitions to import at the start, in order.
    pub definitions: Vec<PathBuf>,

    /// Heartbeat interval proposed to clients, in seconds; 0 turns heartbeats off.
    pub heartbeat: u16,
    /// Largest frame proposed to clients, in bytes with its 8 bytes of framing; 0 is no limit.
    pub frame_max: u32,
    /// Largest frame before the connection is tuned, in bytes.
    pub initial_frame_max: u32,
    /// Most channels in one connection; 0 is no limit, which means 65535.
    pub channel_max: u16,
    /// How long a consumer of a quorum queue may keep a message, in milliseconds; 0 = for ever.
    pub consumer_timeout: u64,
    /// Largest message body, in bytes.
    pub max_message_size: u64,

    /// This process's memory use at which publishers are paused.
    pub vm_memory_high_watermark: ResourceLimit,
    /// Free space of the data directory's disk below which publishers are paused.
    pub disk_free_limit: ResourceLimit,

    /// Where messages and definitions are kept. Relative to the working directory.
    pub data_dir: PathBuf,
    /// What confirms of persistent messages wait for.
    pub durability: Durability,
    /// Bytes of memory for the waiting messages of one queue.
    pub queue_memory: u64,
    /// Bytes of log above which messages move to files of their queues.
    pub log_size: u64,
    /// Bytes of one file of the log.
    pub log_file_size: u64,
    /// Name of this node, in the form `name@host`.
    pub node_name: String,
    /// Name of the cluster; the node's name where none is given.
    pub cluster_name: String,
    /// Threads that serve connections.
    pub worker_threads: NonZeroUsize,

    /// What is logged, and how.
    pub log: LogConfig,
}

/// Options of the listening sockets and of the connections they accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpListenOptions {
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// `TCP_NODELAY`: send small segments at once.
    pub nodelay: bool,
}

/// The three patterns of a user's permissions in a virtual host, as regular expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Resources that may be declared and deleted.
    pub configure: String,
    /// Resources that may be published to.
    pub write: String,
    /// Resources that may be consumed from.
    pub read: String,
}

/// A limit on a resource, as bytes or measured by this machine's memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ResourceLimit {
    /// A multiple of the machine's memory; 0.4 is 40 percent of it.
    Relative(f64),
    /// Bytes.
    Absolute(u64),
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// Whether anything is logged at all.
    pub console: bool,
    /// The least severe level that is logged.
    pub level: LogLevel,
    /// Lines for people or lines for programs.
    pub format: LogFormat,
    /// A filter from `LEVERET_LOG` that takes the place of `level`.
    pub filter: Option<String>,
}

/// Levels of severity; RabbitMQ's finer ones are folded into these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Log nothing.
    None,
    /// RabbitMQ's `error`, `critical`, `alert` and `emergency`.
    Error,
    /// RabbitMQ's `warning`.
    Warning,
    /// RabbitMQ's `info` and `notice`.
    Info,
    /// RabbitMQ's `debug`.
    Debug,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Plaintext,
    /// One JSON object a line.
    Json,
}

/// A password that does not show in logs: `Debug` prints stars.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Wraps a password in clear text.
    pub fn new(clear: impl Into<String>) -> Self {
        Self(clear.into())
    }

    /// The password in clear text; never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}

/// Finds the configuration file, reads it, and resolves it with the environment and the flags.
///
/// # Errors
/// The file cannot be read, or something in it or in the environment is wrong; all such problems
/// are reported together.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, ConfigError> {
    let file = locate::config_file(flags, environment, DEFAULT_CONFIG_FILE.as_ref())?;
    let text = match &file {
        Some(path) => std::fs::read(path).map_err(|source| ConfigError::Unreadable {
            path: path.clone(),
            source,
        })?,
        None => Vec::new(),
    };
    let origin = file.clone().unwrap_or_default();
    let (config, warnings) = resolve::resolve(&origin, &text, flags, environment)?;
    Ok(Loaded {
        config,
        warnings,
        file,
    })
}
