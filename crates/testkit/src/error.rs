//! Why a broker process could not be started, measured or stopped.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Each message says what happened and holds what the broker printed, where it printed something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program did not start at all.
    #[error("cannot run {binary}: {source}; build it first: cargo build -p leveret")]
    Spawn {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder or file for the broker could not be made.
    #[error("cannot prepare the broker's files: {0}")]
    Files(#[source] io::Error),
    /// It ended before it accepted connections.
    #[error("the broker ended while starting ({status}); it printed:\n{log}")]
    EndedEarly {
        /// How it ended.
        status: ExitStatus,
        /// Standard output and error.
        log: String,
    },
    /// It did not say where it listens.
    #[error("the broker did not print its amqp:// address within {limit:?}; it printed:\n{log}")]
    StartTimeout {
        /// The limit that ran out.
        limit: Duration,
        /// Standard output and error.
        log: String,
    },
    /// It did not end by itself after SIGTERM.
    #[error(
        "the broker did not stop within {limit:?} of SIGTERM and was killed; it printed:\n{log}"
    )]
    StopTimeout {
        /// The limit that ran out.
        limit: Duration,
        /// Standard output and error.
        log: String,
    },
    /// It ended with a failure.
    #[error("the broker failed ({status}); it printed:\n{log}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// Standard output and error.
        log: String,
    },
    /// A process could not be looked at or signalled.
    #[error("process {pid}: {source}")]
    Process {
        /// Its id.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
}
