//! What can go wrong, in words for whoever reads them at a terminal.

use std::io;
use std::path::{Path, PathBuf};

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A connection could not be opened, or ended.
    #[error("{0}")]
    Client(#[from] client::Error),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds something else than results.
    #[error("{} holds no result of leveret perf: {reason}", path.display())]
    NotAResult {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system did not do something that it normally does.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The load could not go on.
    #[error("{0}")]
    Load(String),
}

impl Error {
    /// An error with a file.
    pub fn file(path: &Path, source: io::Error) -> Error {
        Error::File {
            path: path.to_owned(),
            source,
        }
    }
}
