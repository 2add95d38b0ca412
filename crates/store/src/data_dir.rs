//! The data directory: what lies where, and the lock that keeps a second process out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

const LOCK: &str = "lock";

/// Paths in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub root: PathBuf,
    pub wal: PathBuf,
    pub queues: PathBuf,
}

impl Layout {
    pub fn of(root: &Path) -> Layout {
        Layout {
            root: root.to_owned(),
            wal: root.join("wal"),
            queues: root.join("queues"),
        }
    }
}

/// The right to use a data directory. It ends with the process, however that ends.
#[derive(Debug)]
pub struct DirectoryLock(File);

impl DirectoryLock {
    /// Makes the directory if needed, and takes it; `holder` tells others who has it.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has it.
    pub fn take(dir: &Path, holder: &str) -> Result<DirectoryLock, Error> {
        std::fs::create_dir_all(dir).map_err(Error::disk("make", dir))?;
        let path = dir.join(LOCK);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Error::disk("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Whoever has it may be about to write who it is.
                let _ = file.read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another process".to_owned(),
                    known => known.to_owned(),
                };
                let dir = dir.to_owned();
                return Err(Error::InUse { dir, holder });
            }
            Err(TryLockError::Error(error)) => return Err(Error::disk("lock", path)(error)),
        }
        let said = (|| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{holder}")
        })();
        said.map_err(Error::disk("write to", path))?;
        Ok(DirectoryLock(file))
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Nobody has it any more; closing the file gives up the lock.
        let _ = self.0.set_len(0);
    }
}
