//! What can go wrong with a log.

use std::io;
use std::path::PathBuf;

use crate::lsn::Lsn;

/// A failed log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused.
    #[error("cannot {what} {path}: {source}")]
    Disk {
        /// What was tried.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A file was written by another release.
    #[error(
        "{path} has format version {version}, and this release reads version {}: \
         use the release that wrote it",
        crate::format::VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
    },
    /// Records that were durable are missing or damaged.
    #[error(
        "{path} is damaged at byte {offset}: the log breaks off at position {end}, but goes on \
         later; nothing was changed. `leveret check` says what is lost"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damaged batch starts.
        offset: u64,
        /// The last good position.
        end: Lsn,
    },
    /// The log does not reach back to where it is needed from.
    #[error("{dir} holds no log from position {start} on: files are missing")]
    Missing {
        /// The log's directory.
        dir: PathBuf,
        /// From where it is needed.
        start: Lsn,
    },
}

impl Error {
    /// For `map_err`: names what was tried on which file.
    pub fn disk(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Disk { what, path, source }
    }

    /// True if it means that the disk has no room, now.
    pub fn is_full(&self) -> bool {
        let Error::Disk { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }
}
