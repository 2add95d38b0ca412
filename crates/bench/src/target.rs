//! The broker under measurement: one of our own, started for a case, or one that runs already.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use client::{Connection, Options};
use testkit::{Broker, Usage};

use crate::args::Args;
use crate::case::StartFigures;
use crate::error::Error;
use crate::measure::run_local;

/// Files that the broker may need beside its connections.
const SPARE_FILES: u64 = 1000;
/// How long a broker may take to end in order.
const STOP_LIMIT: Duration = Duration::from_secs(20);

pub struct Target {
    pub options: Options,
    pid: Option<u32>,
    own: Option<Broker>,
}

impl Target {
    /// Starts the broker beside this program, or takes the one that `--uri` names.
    pub fn open(args: &Args) -> Result<Target, Error> {
        let Some(uri) = &args.uri else {
            // A broker of our own inherits the limit.
            testkit::raise_open_files(args.connections as u64 + SPARE_FILES);
            let broker = Broker::start(binary()?)?;
            let options = broker.uri().parse()?;
            return Ok(Target {
                options,
                pid: Some(broker.pid()),
                own: Some(broker),
            });
        };
        let options: Options = uri.parse()?;
        Ok(Target {
            options,
            pid: args.broker_pid,
            own: None,
        })
    }

    /// Product and version, as the broker says.
    pub fn describe(&self) -> Result<String, Error> {
        run_local(async {
            let connection = Connection::connect(&self.options).await?;
            let properties = connection
                .server_properties()
                .map_err(client::Error::from)?;
            let text = |name| properties.get(name).and_then(|value| value.as_str());
            let version = text("leveret_version").or(text("version")).unwrap_or("?");
            let described = format!("{} {version}", text("product").unwrap_or("unknown broker"));
            connection.close().await?;
            Ok(described)
        })
    }

    /// What the broker's process has used, if it is known.
    pub fn usage(&self) -> Result<Option<Usage>, Error> {
        Ok(self.pid.map(Usage::of).transpose()?)
    }

    /// Bytes that the broker's process has sent to disks, if that can be known.
    pub fn written(&self) -> Option<u64> {
        self.pid.and_then(|pid| testkit::written_bytes(pid).ok())
    }

    /// True for a broker that was started for the case.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Where a broker of our own keeps its messages.
    pub fn data_dir(&self) -> Option<PathBuf> {
        self.own.as_ref().map(Broker::data_dir)
    }

    /// Fails early where a broker of our own will not have so much room for its data.
    pub fn needs_room(&self, wanted: u64) -> Result<(), Error> {
        let Some(path) = self.data_dir() else {
            return Ok(());
        };
        match rustix::fs::statvfs(&path) {
            Ok(stat) if stat.f_bavail.saturating_mul(stat.f_frsize) < wanted => {
                let free = stat.f_bavail.saturating_mul(stat.f_frsize);
                Err(Error::TooLittleRoom { path, free, wanted })
            }
            Ok(_) => Ok(()),
            Err(error) => Err(Error::File {
                path,
                source: error.into(),
            }),
        }
    }

    /// Kills a broker of our own and starts it again; returns the time from its start until a client
    /// had opened a connection.
    pub fn crash_and_restart(&mut self) -> Result<Duration, Error> {
        self.start_again_after(Broker::kill)
    }

    /// The same, but the broker ends in order.
    pub fn restart(&mut self) -> Result<Duration, Error> {
        self.start_again_after(|broker| {
            broker.terminate()?;
            broker.wait(STOP_LIMIT).map(drop)
        })
    }

    fn start_again_after(
        &mut self,
        end: impl FnOnce(&mut Broker) -> Result<(), testkit::Error>,
    ) -> Result<Duration, Error> {
        let broker = self.own_broker();
        end(broker)?;
        broker.start_again()?;
        let start_time = broker.start_time();
        self.pid = Some(broker.pid());
        let printed = Instant::now();
        let time = run_local(async {
            let connection = Connection::connect(&self.options).await?;
            let time = start_time + printed.elapsed();
            connection.close().await?;
            Ok(time)
        })?;
        Ok(time)
    }

    fn own_broker(&mut self) -> &mut Broker {
        match &mut self.own {
            Some(broker) => broker,
            None => unreachable!("only asked of a broker of our own"),
        }
    }

    /// Runs `leveret ctl` on a broker of our own.
    pub fn ctl(&self, words: &[&str]) -> Result<(), Error> {
        let Some(data_dir) = self.data_dir() else {
            unreachable!("only asked of a broker of our own");
        };
        let mut command = Command::new(binary()?);
        command.arg("ctl").arg("--data-dir").arg(data_dir);
        let done = command.args(words).output().map_err(Error::Ctl)?;
        match done.status.success() {
            true => Ok(()),
            false => {
                let text = String::from_utf8_lossy(&done.stderr).into_owned();
                Err(Error::Ctl(io::Error::other(text)))
            }
        }
    }

    /// Fails early where the broker may not open as many files as there will be connections.
    pub fn allows_connections(&self, count: usize) -> Result<(), Error> {
        let wanted = count as u64;
        match self.pid.map(testkit::open_files_limit).transpose()? {
            Some(allowed) if allowed < wanted => Err(Error::TooFewFiles { allowed, wanted }),
            _ => Ok(()),
        }
    }

    /// What starting has taken.
    pub fn start_figures(&self) -> Result<StartFigures, Error> {
        match &self.own {
            Some(broker) => Ok(StartFigures {
                time: broker.start_time(),
                rss: broker.rss()?,
            }),
            None => unreachable!("the case is left out with --uri"),
        }
    }

    /// Warnings and errors that a broker of our own has printed since its last start.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.own.as_ref().map(Broker::log).unwrap_or_default();
        log.lines()
            .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
            .map(str::to_owned)
            .collect()
    }

    /// Stops a broker of our own; it must end in order.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.own.map_or(Ok(()), Broker::stop)?)
    }
}

/// The built `leveret`.
pub fn binary() -> Result<PathBuf, Error> {
    let path = match env::var_os("LEVERET_BIN") {
        Some(path) => PathBuf::from(path),
        None => beside_this_program().join("leveret"),
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(Error::NoBinary(path)),
    }
}

/// `target/release`.
pub fn beside_this_program() -> PathBuf {
    let program = env::current_exe().unwrap_or_else(|_| PathBuf::from("target/release/bench"));
    program
        .parent()
        .map_or_else(|| PathBuf::from("."), PathBuf::from)
}
