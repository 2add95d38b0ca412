//! The store of a node: opening, the calls that queues and the broker make, closing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::task::Waker;

use parking_lot::Mutex;
use wal::{Disk, Durability, Lsn, StreamId, Urgency, Wal};

use crate::data_dir::Layout;
use crate::definitions::{DefinitionChange, DefinitionMap, Definitions};
use crate::error::Error;
use crate::liveness::{EPOCH, Liveness};
use crate::load::Load;
use crate::manifest::ManifestFiles;
use crate::op;
use crate::pager::{Pager, Workers};
use crate::queue::{QueueStore, TransactionRecord};
use crate::recovery::{Recovered, Recovering};
use crate::resident::{Request, Resident};
use crate::segment::SEGMENT_SIZE;
use crate::shared::{Done, Garbage, Pressure, Registered, Shared};

/// Unwritten bytes of log above which publishers wait.
const MAX_UNWRITTEN: u64 = 64 * 1024 * 1024;

/// How much may be kept where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of messages that a queue keeps in memory. At four times as much publishers wait.
    pub queue: usize,
    /// Bytes of messages that all queues together keep in memory.
    pub node: usize,
    /// Bytes of log that are kept; then what is still needed moves to segments.
    pub log: u64,
    /// Bytes of a file of the log.
    pub log_file: u64,
    /// Bytes of log that are told apart when it is asked which part of it is needed.
    pub epoch: u64,
    /// Bytes after which a segment is closed.
    pub segment: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            queue: 48 * 1024 * 1024,
            node: 1024 * 1024 * 1024,
            log: 1024 * 1024 * 1024,
            log_file: 64 * 1024 * 1024,
            epoch: EPOCH,
            segment: SEGMENT_SIZE,
        }
    }
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// How often messages of a queue were written to a segment.
    pub flushes: u64,
    /// How often a manifest was written, so that log and files could go.
    pub checkpoints: u64,
    /// How many segments were written anew without what is gone.
    pub compactions: u64,
}

/// A node's store.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    workers: Workers,
}

impl Store {
    /// Opens the store in a directory, or makes a new one. `threads`: with its own threads;
    /// otherwise [`Store::run_once`] does their work.
    ///
    /// # Errors
    /// The disk's; what is there is damaged, or of another version.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        budget: Budget,
        threads: bool,
    ) -> Result<(Arc<Store>, Recovered), Error> {
        let layout = Layout::of(dir);
        let is_new = is_new(&*disk, &layout)?;
        for dir in [&layout.root, &layout.wal, &layout.queues] {
            disk.create_dir(dir).map_err(Error::disk("make", dir))?;
        }
        let (mut manifests, manifest) = ManifestFiles::open(disk.clone(), dir, is_new)?;
        if is_new {
            // Before there is a log, so that a log without a manifest is known to be damage.
            manifests.write(&manifest)?;
        } else {
            manifests.settle()?;
            // From now on the log may hold what a release of that version takes for damage.
            if manifests.is_of_older_version() {
                manifests.write(&manifest)?;
            }
        }
        let start = manifest.start;
        let mut recovering = Recovering::new(manifest);
        recovering.epoch = budget.epoch;
        let scan = wal::scan(&*disk, &layout.wal, start, |record| {
            recovering.replay(record)
        })?;
        let recovered = recovering.finish()?;
        let options = wal::Options {
            dir: layout.wal.clone(),
            file_size: budget.log_file,
            threads,
        };
        let end = scan.end;
        let wal = Wal::open(disk.clone(), options, scan)?;
        let (requests, requested) = mpsc::channel();
        let (loads, wanted) = mpsc::channel();
        let definitions = Definitions {
            map: recovered.definitions.clone(),
        };
        let shared = Arc::new(Shared {
            disk,
            layout,
            wal,
            budget,
            liveness: Liveness::new(budget.epoch, end),
            garbage: Garbage::default(),
            definitions: Mutex::new(definitions),
            residents: Mutex::default(),
            next_stream: AtomicU64::new(recovered.next_stream),
            resident: AtomicUsize::new(0),
            used: AtomicU64::new(0),
            pressure: Pressure::default(),
            requests,
            loads,
            forgotten: Mutex::default(),
            done: Done::default(),
            full: AtomicBool::new(false),
            low: AtomicBool::new(false),
            failure: OnceLock::new(),
        });
        let pager = Pager::new(shared.clone(), manifests, start);
        let workers = Workers::start(&shared, pager, requested, wanted, threads);
        Ok((Arc::new(Store { shared, workers }), recovered))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A new queue's part. Persistent messages of a `logged` queue survive a restart.
    pub fn new_queue(&self, logged: bool, durability: Durability) -> QueueStore {
        let stream = StreamId(self.shared.next_stream.fetch_add(1, Ordering::Relaxed));
        QueueStore::new(self.shared.clone(), stream, logged, durability)
    }

    /// Parts for a queue that keeps its messages in several streams: consecutive ones.
    pub fn new_queues(&self, count: u64, logged: bool, durability: Durability) -> Vec<QueueStore> {
        let first = self.shared.next_stream.fetch_add(count, Ordering::Relaxed);
        let streams = (first..first + count).map(StreamId);
        streams
            .map(|stream| QueueStore::new(self.shared.clone(), stream, logged, durability))
            .collect()
    }

    /// No new queue gets that stream.
    pub(crate) fn retire(&self, stream: StreamId) {
        let next_stream = &self.shared.next_stream;
        next_stream.fetch_max(stream.0 + 1, Ordering::Relaxed);
    }

    /// From now on the store may ask that queue to move messages to segments. A `logged` one is in
    /// every manifest until it is closed: where it goes from memory before, there are none any more.
    pub fn register(&self, stream: StreamId, logged: bool, queue: Weak<dyn Resident>) {
        let registered = Registered { queue, logged };
        self.shared.residents.lock().insert(stream, registered);
    }

    /// Changes definitions; the change is durable once [`Durability::Fsync`] reaches its position.
    pub fn define(&self, change: DefinitionChange) -> Option<Lsn> {
        if let Some(stream) = change.forgotten {
            self.retire(stream);
        }
        (!change.is_empty()).then(|| {
            self.shared
                .definitions
                .lock()
                .apply(&self.shared.wal, change)
        })
    }

    /// All definitions.
    pub fn definitions(&self) -> DefinitionMap {
        self.shared.definitions.lock().map.clone()
    }

    /// Logs a transaction, whose queues are all locked. `None` if nothing of it needs the log.
    pub fn commit(&self, record: &TransactionRecord) -> Option<(Lsn, Durability)> {
        let durability = record.durability?;
        let urgency = Urgency::Prompt(durability);
        let lsn = self.shared.wal.append(op::NODE, urgency, |payload| {
            payload.extend(&record.bytes);
        });
        Some((lsn, durability))
    }

    /// How far everything has been made as durable as that.
    #[inline]
    pub fn reached(&self, durability: Durability) -> Lsn {
        self.shared.wal.reached(durability)
    }

    /// True if that position is reached; otherwise the waker is called, once, when it is.
    pub fn wait(&self, lsn: Lsn, durability: Durability, waker: &Waker) -> bool {
        self.shared.wal.wait(lsn, durability, waker)
    }

    /// True if publishers may go on; otherwise the waker is called when they may. They wait while
    /// the disk cannot keep up, so that memory stays within bounds, and while there is no room for
    /// the log to go on, so that what is left is for acknowledgements. `waiting` is the caller's
    /// note of what it will be called for, at first `None`.
    #[inline]
    pub fn wait_for_room(&self, waker: &Waker, waiting: &mut Option<Lsn>) -> bool {
        let wal = &self.shared.wal;
        if wal.disk_full() {
            return self.shared.pressure.wait(waker, true);
        }
        let unwritten = wal.unwritten();
        if unwritten > MAX_UNWRITTEN {
            let written = wal.reached(Durability::Os);
            if waiting.is_some_and(|lsn| written < lsn) {
                return false;
            }
            let half = Lsn(written.0 + unwritten / 2);
            *waiting = Some(half);
            if !wal.wait(half, Durability::Os, waker) {
                return false;
            }
        }
        self.shared.pressure.wait(waker, false)
    }

    /// True while there is no room on the disk for what must be written next.
    pub fn disk_full(&self) -> bool {
        self.shared.wal.disk_full() || self.shared.full.load(Ordering::Acquire)
    }

    /// The process uses that many bytes of memory. Queues are made to give up some only while that
    /// is more than all of them may use: what they say they keep they may share.
    pub fn note_memory_use(&self, bytes: u64) {
        self.shared.used.store(bytes, Ordering::Relaxed);
    }

    /// Whether the disk has little room left. While it has, whatever takes some without need is
    /// given back.
    pub fn note_disk_low(&self, low: bool) {
        self.shared.low.store(low, Ordering::Release);
        if low && let Err(error) = self.shared.wal.give_back_room() {
            tracing::warn!(%error, "cannot give back room");
        }
    }

    /// Why nothing more is kept, if that is so: the process must end.
    pub fn failure(&self) -> Option<String> {
        let log = self.shared.wal.failure().map(ToString::to_string);
        log.or_else(|| self.shared.failure.get().map(ToString::to_string))
    }

    /// What has been done since the store was opened.
    pub fn work(&self) -> Work {
        let done = &self.shared.done;
        Work {
            flushes: done.flushes.load(Ordering::Relaxed),
            checkpoints: done.checkpoints.load(Ordering::Relaxed),
            compactions: done.compactions.load(Ordering::Relaxed),
        }
    }

    /// Reads chunks now, in the calling thread.
    pub fn load_now(&self, load: Load) -> Result<crate::Loaded, Error> {
        self.shared.read(&load, &mut wal::AlignedBuffer::default())
    }

    /// Does the threads' work once, on a store without.
    pub fn run_once(&self) {
        self.workers.run_once(&self.shared);
    }

    /// Writes and syncs everything, and ends the threads.
    pub fn close(&self) {
        self.workers.stop(&self.shared);
        self.shared.wal.close();
    }

    pub(crate) fn request(&self, request: Request) {
        self.shared.request(request);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// True if nothing was ever kept there.
fn is_new(disk: &dyn Disk, layout: &Layout) -> Result<bool, Error> {
    for dir in [&layout.wal, &layout.queues] {
        let names = disk.list(dir).map_err(Error::disk("list", dir))?;
        if !names.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
