//! Writing batches: where they go, when the file rolls over, when it is synced.
//!
//! Owned by the log's thread; no lock.

use std::path::PathBuf;
use std::sync::Arc;

use crate::aligned::AlignedBuffer;
use crate::disk::{BLOCK, DiskFile};
use crate::durability::{Durability, Urgency};
use crate::error::Error;
use crate::files::{Files, Prepared};
use crate::format::{BATCH_HEAD, BatchHead, FileHead};
use crate::lsn::Lsn;
use crate::pending::Batch;
use crate::progress::Progress;

/// Size of the first file of a process, if others are not smaller: they are made ready while it is
/// written to.
const STARTER: u64 = 4 * 1024 * 1024;

/// On a full disk a smaller one will do.
const LEAST_STARTER: u64 = 128 * 1024;

#[derive(Debug)]
pub(crate) struct Writer {
    files: Arc<Files>,
    progress: Arc<Progress>,
    current: Current,
    /// Something was written since the last sync.
    unsynced: bool,
    /// Nobody prepares files: do it here.
    alone: bool,
}

#[derive(Debug)]
struct Current {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    salt: u64,
    /// Where the next batch goes.
    position: u64,
    size: u64,
}

/// Why nothing more can be written.
pub(crate) enum Stop {
    Failed(Error),
    /// The disk is full, and nobody waits for room: the batch can be written later.
    Full,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

impl Writer {
    /// Begins a file of its own: what a cut-off tail left behind is never written over, so it
    /// cannot be taken for what comes now.
    pub fn open(
        files: Arc<Files>,
        progress: Arc<Progress>,
        at: Lsn,
        alone: bool,
    ) -> Result<Writer, Error> {
        let prepared = prepare_starter(&files)?;
        let current = begin(&files, prepared, at)?;
        Ok(Writer {
            files,
            progress,
            current,
            unsynced: true,
            alone,
        })
    }

    /// Writes a batch, syncs it if it asks for that, and tells whoever waits.
    pub fn write(&mut self, batch: &mut Batch) -> Result<(), Stop> {
        let length = batch.length();
        batch.bytes.resize(BATCH_HEAD + length);
        batch.bytes.pad();
        let size = batch.bytes.len() as u64;
        if self.current.position + size > self.current.size {
            self.roll(size, batch.first_lsn)?;
        }
        let head = BatchHead {
            length: length as u32,
            first_lsn: batch.first_lsn,
            durable: self.progress.reached(Durability::Fsync),
        };
        head.seal(batch.bytes.as_mut_slice(), self.current.salt);
        let current = &mut self.current;
        current
            .file
            .write(batch.bytes.as_slice(), current.position)
            .map_err(Error::disk("write to", &current.path))?;
        current.position += size;
        self.unsynced = true;
        self.files.grown(batch.end);
        if batch.urgency == Some(Urgency::Prompt(Durability::Fsync)) {
            self.sync()?;
            self.progress.durable(batch.end);
        } else {
            self.progress.written(batch.end);
        }
        self.files.want_next();
        Ok(())
    }

    /// Syncs what was written.
    pub fn sync(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.unsynced) {
            let current = &self.current;
            current
                .file
                .sync()
                .map_err(Error::disk("sync", &current.path))?;
        }
        Ok(())
    }

    /// Syncs what was written: that was all.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.sync()?;
        self.progress.durable(self.progress.reached(Durability::Os));
        Ok(())
    }

    /// Goes on in the next file. The one before is synced first, whatever was asked for: only the
    /// last file of a log may have a tail that was not.
    #[cold]
    fn roll(&mut self, size: u64, at: Lsn) -> Result<(), Stop> {
        self.sync()?;
        self.progress.durable(at);
        let needed = size + BLOCK as u64;
        let next = if self.alone {
            self.files.prepare_wanted()?;
            self.files.take_next()
        } else {
            self.files.wait_for_next()
        };
        let next = match next {
            Some(next) if next.size >= needed => next,
            // A batch larger than a whole file gets one of its own.
            next => {
                next.into_iter().for_each(|next| self.files.discard(next));
                let next = self.files.prepare_waiting(needed, !self.alone)?;
                next.ok_or(Stop::Full)?
            }
        };
        self.current = begin(&self.files, next, at)?;
        Ok(())
    }
}

/// A full disk must not keep a process from starting that is to make room on it.
fn prepare_starter(files: &Files) -> Result<Prepared, Error> {
    let mut size = STARTER.min(files.size);
    loop {
        match files.prepare(size) {
            Err(error) if error.is_full() && size > LEAST_STARTER => {
                size = (size / 4).next_multiple_of(BLOCK as u64);
            }
            prepared => return prepared,
        }
    }
}

/// Writes a file's head; it becomes durable with its first batch.
fn begin(files: &Files, prepared: Prepared, at: Lsn) -> Result<Current, Error> {
    let mut salt = [0; 8];
    getrandom::fill(&mut salt).expect("the system has randomness");
    let salt = u64::from_le_bytes(salt);
    let head = FileHead {
        number: files.begin(&prepared, at),
        salt,
        first_lsn: at,
    };
    let mut block = AlignedBuffer::default();
    block.extend(&head.encode());
    block.pad();
    let Prepared {
        path, size, file, ..
    } = prepared;
    file.write(block.as_slice(), 0)
        .map_err(Error::disk("write to", &path))?;
    Ok(Current {
        file,
        path,
        salt,
        position: BLOCK as u64,
        size,
    })
}
