//! A `leveret` process with its own data folder and a free port.
//!
//! Stops with its owner: SIGTERM first, SIGKILL when that does not help. When the owner is a test
//! that panics, the broker's log goes to standard error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::log::Log;
use crate::{Error, Usage};

const START_LIMIT: Duration = Duration::from_secs(20);
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// How long the end of a log may take after the end of the process.
const LOG_LIMIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(2);

/// How to start a broker.
#[derive(Debug, Clone)]
pub struct Builder {
    binary: PathBuf,
    listener: String,
    config: Vec<String>,
    environment: Vec<(String, String)>,
    by_way_of: Vec<OsString>,
    data_dir: Option<PathBuf>,
}

impl Builder {
    /// Adds a line to the configuration file, such as `heartbeat = 1`.
    pub fn config(mut self, line: impl Into<String>) -> Self {
        self.config.push(line.into());
        self
    }

    /// Sets an environment variable.
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Listens on this address instead of `127.0.0.1` and a free port.
    pub fn listener(mut self, address: impl Into<String>) -> Self {
        self.listener = address.into();
        self
    }

    /// Runs it by way of another command, which becomes the broker, such as `nsenter … --`.
    pub fn by_way_of(mut self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.by_way_of = command.into_iter().map(Into::into).collect();
        self
    }

    /// Keeps its data there, in place of a folder of its own that goes with it.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    fn data_dir_in(&self, folder: &Path) -> PathBuf {
        let own = || folder.join("data");
        self.data_dir.clone().unwrap_or_else(own)
    }

    fn command(&self, config: &Path, data_dir: &Path) -> Command {
        let mut words = self.by_way_of.iter().map(OsString::as_os_str);
        let mut command = match words.next() {
            Some(first) => Command::new(first),
            None => Command::new(&self.binary),
        };
        if !self.by_way_of.is_empty() {
            command.args(words).arg(&self.binary);
        }
        let environment = self.environment.iter();
        command
            .arg("--config")
            .arg(config)
            .arg("--data-dir")
            .arg(data_dir)
            .envs(environment.map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the broker and waits until it says where it listens.
    pub fn start(self) -> Result<Broker, Error> {
        let folder = tempfile::Builder::new().prefix("leveret-test-").tempdir();
        let folder = folder.map_err(Error::Files)?;
        Running::start(&self, folder.path()).map(|running| Broker {
            running,
            builder: self,
            folder,
        })
    }
}

/// A running broker.
pub struct Broker {
    running: Running,
    builder: Builder,
    /// Holds `leveret.conf`, and `data/` unless that is elsewhere; goes with the broker.
    folder: TempDir,
}

impl Broker {
    /// Starts the program at `binary` with defaults: tests of the binary's package give
    /// `env!("CARGO_BIN_EXE_leveret")`.
    pub fn start(binary: impl AsRef<Path>) -> Result<Broker, Error> {
        Broker::builder(binary).start()
    }

    /// Prepares to start the program at `binary`.
    pub fn builder(binary: impl AsRef<Path>) -> Builder {
        Builder {
            binary: binary.as_ref().to_owned(),
            listener: "127.0.0.1:0".into(),
            config: Vec::new(),
            environment: Vec::new(),
            by_way_of: Vec::new(),
            data_dir: None,
        }
    }

    /// `amqp://127.0.0.1:PORT`: user guest, virtual host `/`.
    pub fn uri(&self) -> &str {
        &self.running.uri
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.running.child.id()
    }

    /// From exec until it had printed its address.
    pub fn start_time(&self) -> Duration {
        self.running.start_time
    }

    /// Where its messages are.
    pub fn data_dir(&self) -> PathBuf {
        self.builder.data_dir_in(self.folder.path())
    }

    /// Resident memory in bytes.
    pub fn rss(&self) -> Result<u64, Error> {
        Usage::of(self.pid()).map(|usage| usage.rss)
    }

    /// CPU time used so far, user and system.
    pub fn cpu(&self) -> Result<Duration, Error> {
        Usage::of(self.pid()).map(|usage| usage.cpu)
    }

    /// Everything it has printed.
    pub fn log(&self) -> String {
        self.running.log.text()
    }

    /// Sends SIGTERM and does not wait.
    pub fn terminate(&self) -> Result<(), Error> {
        self.running.terminate()
    }

    /// Waits until it ends by itself; returns how. Its log is complete then. A broker that outlives
    /// the limit is killed.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Error> {
        self.running.wait(limit)
    }

    /// Stops it with SIGTERM; anything but exit status 0 is an error.
    pub fn stop(mut self) -> Result<(), Error> {
        self.running.stop()
    }

    /// Stops it with SIGTERM, and starts it again on the same data and port.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.running.stop()?;
        self.start_again()
    }

    /// Kills it with SIGKILL: it gets no time for anything. Its log is complete then.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.running.kill()
    }

    /// Kills it with SIGKILL and starts it again on the same data and port.
    pub fn crash_and_restart(&mut self) -> Result<(), Error> {
        self.running.kill()?;
        self.start_again()
    }

    /// Starts it on the same data and port, once it has ended.
    pub fn start_again(&mut self) -> Result<(), Error> {
        if let Some((_, address)) = self.running.uri.split_once("://") {
            self.builder.listener = address.to_owned();
        }
        self.running = Running::start(&self.builder, self.folder.path())?;
        Ok(())
    }
}

/// One run of the program.
struct Running {
    child: Child,
    ended: Option<ExitStatus>,
    log: Log,
    uri: String,
    start_time: Duration,
}

impl Running {
    fn start(builder: &Builder, folder: &Path) -> Result<Running, Error> {
        let config = folder.join("leveret.conf");
        let lines = format!(
            "listeners.tcp.1 = {}\n{}\n",
            builder.listener,
            builder.config.join("\n")
        );
        fs::write(&config, lines).map_err(Error::Files)?;
        let mut command = builder.command(&config, &builder.data_dir_in(folder));
        let started = Instant::now();
        let mut child = command.spawn().map_err(|source| Error::Spawn {
            binary: builder.binary.clone(),
            source,
        })?;
        let log = Log::default();
        child
            .stdout
            .take()
            .into_iter()
            .for_each(|stream| log.collect(stream));
        child
            .stderr
            .take()
            .into_iter()
            .for_each(|stream| log.collect(stream));
        let uri = String::new();
        let mut running = Running {
            child,
            ended: None,
            log,
            uri,
            start_time: Duration::ZERO,
        };
        running.uri = running.wait_for_uri(started)?;
        running.start_time = started.elapsed();
        Ok(running)
    }

    fn wait_for_uri(&mut self, started: Instant) -> Result<String, Error> {
        while started.elapsed() < START_LIMIT {
            if let Some(uri) = self.log.wait_for_uri(Duration::from_millis(100)) {
                return Ok(uri);
            }
            if let Some(status) = self.poll_end()? {
                return Err(Error::EndedEarly {
                    status,
                    log: self.log.text(),
                });
            }
        }
        Err(Error::StartTimeout {
            limit: START_LIMIT,
            log: self.log.text(),
        })
    }

    fn poll_end(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .map_err(|source| self.failed(source))?;
        }
        Ok(self.ended)
    }

    /// SIGTERM, then SIGKILL after the limit.
    fn stop(&mut self) -> Result<(), Error> {
        if self.poll_end()?.is_none() {
            self.terminate()?;
        }
        match self.wait(STOP_LIMIT)? {
            status if status.success() => Ok(()),
            status => Err(Error::Failed {
                status,
                log: self.log.text(),
            }),
        }
    }

    fn terminate(&self) -> Result<(), Error> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|source| self.failed(source.into()))
    }

    fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Error> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if let Some(status) = self.poll_end()? {
                self.log.wait_for_end(LOG_LIMIT);
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        self.kill()?;
        Err(Error::StopTimeout {
            limit,
            log: self.log.text(),
        })
    }

    fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().map_err(|source| self.failed(source))?;
        self.ended = Some(self.child.wait().map_err(|source| self.failed(source))?);
        self.log.wait_for_end(LOG_LIMIT);
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Process {
            pid: self.child.id(),
            source,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- log of broker {} ({}) ---", self.child.id(), self.uri);
            eprintln!("{}--- end of log ---", self.log.text());
        }
        if self.ended.is_none()
            && let Err(error) = self.stop()
        {
            eprintln!("{error}");
        }
    }
}
