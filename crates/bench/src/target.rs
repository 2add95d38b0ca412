//! The broker under measurement: one of our own, started for a case, or one that runs already.

use std::env;
use std::path::PathBuf;

use client::{Connection, Options};
use testkit::{Broker, Usage};

use crate::args::Args;
use crate::case::StartFigures;
use crate::error::Error;
use crate::measure::run_local;

/// Files that the broker may need beside its connections.
const SPARE_FILES: u64 = 1000;

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

    /// Stops a broker of our own; it must end in order.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.own.map_or(Ok(()), Broker::stop)?)
    }
}

fn binary() -> Result<PathBuf, Error> {
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
