//! A configuration in the making: defaults first, then what the user wrote over them. [`Draft`]
//! still knows who said what, which [`Config`] no longer needs.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use store::Durability;

use super::environment::Environment;
use super::error::{Origin, Report};
use super::option::{BuiltIn, Entry};
use super::{
    Config, LogConfig, LogFormat, LogLevel, Password, Permissions, ResourceLimit, TcpListenOptions,
    options,
};

/// The values so far; the setters in the table of options write here.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) listeners: Collection<SocketAddr>,
    pub(super) listeners_off: bool,
    pub(super) tcp_listen_options: TcpListenOptions,
    pub(super) handshake_timeout: Option<Duration>,
    pub(super) default_user: String,
    pub(super) default_pass: Password,
    pub(super) default_vhost: String,
    pub(super) default_permissions: Permissions,
    pub(super) default_user_tags: Collection<bool>,
    pub(super) loopback_users: Collection<bool>,
    pub(super) loopback_users_off: bool,
    pub(super) load_definitions: Option<PathBuf>,
    pub(super) management_load_definitions: Option<PathBuf>,
    pub(super) definitions_local_path: Option<PathBuf>,
    pub(super) heartbeat: u16,
    pub(super) frame_max: u32,
    pub(super) initial_frame_max: u32,
    pub(super) channel_max: u16,
    pub(super) consumer_timeout: u64,
    pub(super) max_message_size: u64,
    pub(super) memory: Limit,
    pub(super) disk: Limit,
    pub(super) data_dir: PathBuf,
    pub(super) durability: Durability,
    pub(super) queue_memory: u64,
    pub(super) log_size: u64,
    pub(super) log_file_size: u64,
    pub(super) node_name: Option<String>,
    pub(super) cluster_name: Option<String>,
    pub(super) worker_threads: Option<NonZeroUsize>,
    pub(super) log_console: bool,
    pub(super) log_format: LogFormat,
    pub(super) log_default_level: LogLevel,
    pub(super) log_console_level: Option<LogLevel>,
    pub(super) log_filter: Option<String>,
    /// Where a log file was asked for, which Leveret does not write.
    pub(super) log_file: Option<Origin>,
}

/// The members of a key like `listeners.tcp.$name`, in the order of the file. The first one that
/// the user writes drops the default one.
#[derive(Debug)]
pub(super) struct Collection<T> {
    members: Vec<(String, T)>,
    built_in: bool,
}

/// A limit with an absolute and a relative key, each with the place where it was written.
#[derive(Debug, Default)]
pub(super) struct Limit {
    absolute: Option<(u64, Option<Origin>)>,
    relative: Option<(f64, Option<Origin>)>,
}

impl Draft {
    /// The defaults of the table.
    pub(super) fn built_in() -> Self {
        let mut draft = Self::blank();
        for option in options::all() {
            let (name, value) = match option.built_in {
                BuiltIn::Value(value) => ("", value),
                BuiltIn::Member(name, value) => (name, value),
                BuiltIn::Described(_) => continue,
            };
            let stored = (option.set)(
                &mut draft,
                &Entry {
                    name,
                    value,
                    origin: None,
                },
            );
            debug_assert!(
                stored.is_some(),
                "the default of {} is not allowed",
                option.key
            );
        }
        draft
    }

    /// Nothing yet: each of these is overwritten by a default of the table, or is meant to be
    /// absent.
    fn blank() -> Self {
        Self {
            listeners: Collection::empty(),
            listeners_off: false,
            tcp_listen_options: TcpListenOptions {
                backlog: 0,
                nodelay: false,
            },
            handshake_timeout: None,
            default_user: String::new(),
            default_pass: Password::new(""),
            default_vhost: String::new(),
            default_permissions: Permissions {
                configure: String::new(),
                write: String::new(),
                read: String::new(),
            },
            default_user_tags: Collection::empty(),
            loopback_users: Collection::empty(),
            loopback_users_off: false,
            load_definitions: None,
            management_load_definitions: None,
            definitions_local_path: None,
            heartbeat: 0,
            frame_max: 0,
            initial_frame_max: 0,
            channel_max: 0,
            consumer_timeout: 0,
            max_message_size: 0,
            memory: Limit::default(),
            disk: Limit::default(),
            data_dir: PathBuf::new(),
            durability: Durability::Fsync,
            queue_memory: 0,
            log_size: 0,
            log_file_size: 0,
            node_name: None,
            cluster_name: None,
            worker_threads: None,
            log_console: false,
            log_format: LogFormat::Plaintext,
            log_default_level: LogLevel::None,
            log_console_level: None,
            log_filter: None,
            log_file: None,
        }
    }

    /// Settles what depends on several keys, or on the surroundings.
    pub(super) fn finish(self, environment: &Environment, report: &mut Report) -> Config {
        if let Some(origin) = self.log_file {
            report.warn(
                origin,
                "log.file: Leveret logs to standard error only; ignored",
            );
        }
        let node_name = match self.node_name {
            Some(name) if name.contains('@') => name,
            Some(name) => format!("{name}@{}", environment.host_name),
            None => format!("rabbit@{}", environment.host_name),
        };
        Config {
            listeners: if self.listeners_off {
                Vec::new()
            } else {
                self.listeners.values()
            },
            tcp_listen_options: self.tcp_listen_options,
            handshake_timeout: self.handshake_timeout,
            default_user: self.default_user,
            default_pass: self.default_pass,
            default_vhost: self.default_vhost,
            default_permissions: self.default_permissions,
            default_user_tags: self.default_user_tags.enabled(),
            loopback_users: match self.loopback_users_off {
                true => Vec::new(),
                false => self.loopback_users.enabled(),
            },
            definitions: [
                self.load_definitions,
                self.management_load_definitions,
                self.definitions_local_path,
            ]
            .into_iter()
            .flatten()
            .collect(),
            heartbeat: self.heartbeat,
            frame_max: self.frame_max,
            initial_frame_max: self.initial_frame_max,
            channel_max: self.channel_max,
            consumer_timeout: self.consumer_timeout,
            max_message_size: self.max_message_size,
            vm_memory_high_watermark: self.memory.settle("vm_memory_high_watermark", report),
            disk_free_limit: self.disk.settle("disk_free_limit", report),
            data_dir: self.data_dir,
            durability: self.durability,
            queue_memory: self.queue_memory,
            log_size: self.log_size,
            log_file_size: self.log_file_size,
            cluster_name: self.cluster_name.unwrap_or_else(|| node_name.clone()),
            node_name,
            worker_threads: self.worker_threads.unwrap_or(environment.cores),
            log: LogConfig {
                console: self.log_console,
                level: self.log_console_level.unwrap_or(self.log_default_level),
                format: self.log_format,
                filter: self.log_filter,
            },
        }
    }
}

impl<T> Collection<T> {
    fn empty() -> Self {
        Self {
            members: Vec::new(),
            built_in: true,
        }
    }

    /// Adds a member, or gives the one of this name a new value.
    pub(super) fn set(&mut self, entry: &Entry<'_>, checked: Option<T>) -> Option<()> {
        let value = checked?;
        if self.built_in && entry.origin.is_some() {
            self.members.clear();
            self.built_in = false;
        }
        match self.members.iter_mut().find(|(name, _)| name == entry.name) {
            Some((_, place)) => *place = value,
            None => self.members.push((entry.name.to_owned(), value)),
        }
        Some(())
    }

    /// The default member, as long as the user has written none.
    pub(super) fn built_in_mut(&mut self) -> Option<&mut T> {
        let Self { members, built_in } = self;
        if *built_in {
            members.first_mut().map(|(_, value)| value)
        } else {
            None
        }
    }

    fn values(self) -> Vec<T> {
        self.members.into_iter().map(|(_, value)| value).collect()
    }
}

impl Collection<bool> {
    /// The names of the members that are `true`.
    fn enabled(self) -> Vec<String> {
        self.members
            .into_iter()
            .filter_map(|(name, enabled)| enabled.then_some(name))
            .collect()
    }
}

impl Limit {
    pub(super) fn set_absolute(&mut self, entry: &Entry<'_>, bytes: Option<u64>) -> Option<()> {
        self.absolute = Some((bytes?, entry.origin.cloned()));
        Some(())
    }

    pub(super) fn set_relative(&mut self, entry: &Entry<'_>, share: Option<f64>) -> Option<()> {
        self.relative = Some((share?, entry.origin.cloned()));
        Some(())
    }

    /// What the user wrote wins over the default, and absolute over relative, as in RabbitMQ.
    fn settle(self, key: &str, report: &mut Report) -> ResourceLimit {
        match (self.absolute, self.relative) {
            (Some((bytes, Some(_))), Some((_, Some(origin)))) => {
                report.warn(
                    origin,
                    format!("{key}.relative: ignored, {key}.absolute is set too"),
                );
                ResourceLimit::Absolute(bytes)
            }
            (Some((_, None)), Some((share, Some(_)))) => ResourceLimit::Relative(share),
            (Some((bytes, _)), _) => ResourceLimit::Absolute(bytes),
            (None, Some((share, _))) => ResourceLimit::Relative(share),
            (None, None) => ResourceLimit::Absolute(0),
        }
    }
}
