//! The write-ahead log that everything on a node shares.
//!
//! Whoever has something to keep appends a record: a stream's number and bytes that the log does
//! not look into. It gets the record's [`Lsn`], and may wait until the log is durable up to there.
//! One thread writes whatever has been appended as one batch, syncs it, and wakes those who wait:
//! while it does, the next batch forms itself. [`scan`] reads everything back in order.
//!
//! After a write or a sync has failed nothing is known about the disk's contents, so nothing more
//! is written, and [`Wal::failure`] says why: the process must end, and recover.

mod aligned;
pub mod disk;
mod durability;
mod error;
mod files;
mod format;
mod lsn;
mod pace;
mod pending;
mod progress;
mod recovery;
mod repair;
mod sync;
mod threads;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

pub use aligned::AlignedBuffer;
pub use disk::{BLOCK, Disk, DiskFile, Open, RealDisk};
pub use durability::{Durability, Urgency};
pub use error::Error;
pub use format::{RECORD_HEAD, Record, VERSION};
pub use lsn::{Lsn, StreamId};
pub use pending::{MAX_PAYLOAD, Payload};
pub use recovery::{FileReport, Scan, scan};
pub use repair::cut;

use files::Files;
use pending::{Batch, Pending};
use progress::Progress;
use threads::Threads;
use writer::{Stop, Writer};

/// How a log is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its directory, which is made if needed.
    pub dir: PathBuf,
    /// Bytes of a file.
    pub file_size: u64,
    /// Without threads, [`Wal::run_once`] does their work: tests decide when.
    pub threads: bool,
}

impl Options {
    /// Files of 64 MiB, and threads.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Options {
            dir: dir.into(),
            file_size: 64 * 1024 * 1024,
            threads: true,
        }
    }
}

/// Why the log was not made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSynced {
    /// It has failed, and has said why; or it was closed.
    #[error("the log has failed")]
    Failed,
    /// The disk has no room for its next file. It may be tried again.
    #[error("the disk is full: no room for the log")]
    Full,
}

/// An open log. Dropping it writes and syncs what has been appended.
#[derive(Debug)]
pub struct Wal {
    shared: Arc<Shared>,
    threads: Threads,
}

#[derive(Debug)]
struct Shared {
    pending: Pending,
    progress: Arc<Progress>,
    files: Arc<Files>,
    failure: OnceLock<Error>,
    /// It was closed, and what could be written is.
    ended: AtomicBool,
}

impl Wal {
    /// Opens the log in a directory, after [`scan`] has read it: new records follow after its end.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(disk: Arc<dyn Disk>, options: Options, scanned: Scan) -> Result<Wal, Error> {
        let Options {
            dir,
            file_size,
            threads,
        } = options;
        disk.create_dir(&dir).map_err(Error::disk("make", &dir))?;
        recovery::settle(&*disk, &scanned)?;
        let end = scanned.end;
        // Room for a file's head and a batch.
        let block = BLOCK as u64;
        let file_size = file_size.max(2 * block).next_multiple_of(block);
        let files = Arc::new(Files::new(disk, dir, file_size, scanned));
        let progress = Arc::new(Progress::starting_at(end));
        let writer = Writer::open(files.clone(), progress.clone(), end, !threads)?;
        files.remove_surplus()?;
        let shared = Arc::new(Shared {
            pending: Pending::starting_at(end),
            progress,
            files,
            failure: OnceLock::new(),
            ended: AtomicBool::new(false),
        });
        let threads = Threads::start(&shared, writer, threads);
        Ok(Wal { shared, threads })
    }

    /// Appends a record; returns its position.
    ///
    /// # Panics
    /// If the payload is larger than [`MAX_PAYLOAD`].
    #[inline]
    pub fn append(
        &self,
        stream: StreamId,
        urgency: Urgency,
        write: impl FnOnce(&mut Payload<'_>),
    ) -> Lsn {
        self.shared.pending.append(stream, urgency, write)
    }

    /// How far everything has been made as durable as that.
    #[inline]
    pub fn reached(&self, durability: Durability) -> Lsn {
        self.shared.progress.reached(durability)
    }

    /// True if that position is reached; otherwise the waker is called, once, when it is.
    pub fn wait(&self, lsn: Lsn, durability: Durability, waker: &Waker) -> bool {
        if self.shared.progress.wait(lsn, durability, waker) {
            return true;
        }
        self.shared.pending.hurry();
        false
    }

    /// Bytes of records that have not been written yet.
    pub fn unwritten(&self) -> u64 {
        let end = self.shared.pending.end();
        end.0.saturating_sub(self.reached(Durability::Os).0)
    }

    /// Where the records of each file end, and its size in bytes; oldest first. The last one is
    /// being written to.
    pub fn files(&self) -> Vec<(Lsn, u64)> {
        self.shared.files.used()
    }

    /// Records up to there are not needed any more: their files may be used again, as soon as the
    /// log is durable beyond them. Later scans must start from there.
    ///
    /// # Errors
    /// A file that is not needed cannot be removed.
    pub fn release(&self, up_to: Lsn) -> Result<(), Error> {
        let durable = self.reached(Durability::Fsync);
        self.shared.files.release(up_to, durable)
    }

    /// Gives the system back the room of files that are kept to be used again.
    ///
    /// # Errors
    /// Such a file cannot be removed.
    pub fn give_back_room(&self) -> Result<(), Error> {
        self.shared.files.keep_spare(0)
    }

    /// True while the disk has no room for the next file.
    pub fn disk_full(&self) -> bool {
        self.shared.files.full()
    }

    /// Why nothing more is written, if that is so.
    pub fn failure(&self) -> Option<&Error> {
        self.shared.failure.get()
    }

    /// Makes everything that has been appended durable, and waits for that.
    ///
    /// # Errors
    /// See [`NotSynced`].
    pub fn sync(&self) -> Result<(), NotSynced> {
        let urgency = Urgency::Prompt(Durability::Fsync);
        let lsn = self.append(StreamId(0), urgency, |_| {});
        let waker = Waker::from(Arc::new(threads::Unpark::current()));
        loop {
            let _ = self.run_once();
            let ended = self.shared.ended.load(Ordering::Acquire);
            if self.wait(lsn, Durability::Fsync, &waker) {
                return Ok(());
            }
            if self.failure().is_some() || ended {
                return Err(NotSynced::Failed);
            }
            std::thread::park_timeout(threads::PATIENCE);
            // It need not be what this waits for, but it may be for ever.
            if self.disk_full() && self.reached(Durability::Fsync) < lsn {
                return Err(NotSynced::Full);
            }
        }
    }

    /// Writes and syncs what has been appended; nothing more is taken.
    pub fn close(&self) {
        self.shared.pending.close();
        self.threads.join(&self.shared);
        self.shared.ended.store(true, Ordering::Release);
    }

    /// Does the threads' work once, on a log without: writes what was appended.
    ///
    /// # Errors
    /// As [`Wal::failure`] says from then on.
    pub fn run_once(&self) -> Result<(), &Error> {
        self.threads.run_once(&self.shared);
        self.failure().map_or(Ok(()), Err)
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Nothing more will be written.
    fn fail(&self, error: Error) {
        tracing::error!(%error, "the log has failed: nothing more is kept or confirmed");
        let _ = self.failure.set(error);
        self.pending.close();
        self.files.fail();
    }
}
