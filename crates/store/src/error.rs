//! What can go wrong with what is kept.

use std::io;
use std::path::PathBuf;

/// A failed store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log's failure, or the disk's, whatever was to be written or read.
    #[error(transparent)]
    Log(#[from] wal::Error),
    /// The log could not be made durable.
    #[error(transparent)]
    NotSynced(#[from] wal::NotSynced),
    /// Neither of the two manifests can be read, though there is data.
    #[error(
        "{dir} holds data, but no readable manifest: restore the directory from a copy; \
         `leveret check` says what is there"
    )]
    NoManifest {
        /// The data directory.
        dir: PathBuf,
    },
    /// A file was written by another release.
    #[error(
        "{path} has format version {version}, and this release reads version {supported}: \
         use the release that wrote it"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
        /// What can be read.
        supported: u16,
    },
    /// A record with a right checksum makes no sense.
    #[error("the log's record at position {lsn} makes no sense: it was written by another program")]
    Record {
        /// Its position.
        lsn: wal::Lsn,
    },
    /// Another process uses the directory.
    #[error("{dir} is in use by {holder}: stop it, or choose another directory with --data-dir")]
    InUse {
        /// The data directory.
        dir: PathBuf,
        /// Who holds it, as far as that is known.
        holder: String,
    },
}

impl Error {
    /// For `map_err`: names what was tried on which file.
    pub(crate) fn disk(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let disk = wal::Error::disk(what, path);
        move |source| disk(source).into()
    }

    /// True if it means that the disk has no room, now.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Log(error) => error.is_full(),
            Error::NotSynced(wal::NotSynced::Full) => true,
            _ => false,
        }
    }
}
