//! What all queues of a node and the store's threads share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::task::Waker;

use parking_lot::Mutex;
use wal::{AlignedBuffer, Disk, StreamId, Wal};

use crate::data_dir::Layout;
use crate::definitions::Definitions;
use crate::error::Error;
use crate::liveness::Liveness;
use crate::load::{Load, Loaded};
use crate::resident::{Request, Requests, Resident};
use crate::segment::Index;
use crate::store::Budget;

pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub layout: Layout,
    pub wal: Wal,
    pub budget: Budget,
    pub liveness: Liveness,
    pub garbage: Garbage,
    pub definitions: Mutex<Definitions>,
    /// In order, so that one course of events has one course of writes.
    pub residents: Mutex<BTreeMap<StreamId, Registered>>,
    pub next_stream: AtomicU64,
    /// Bytes of messages that all queues keep in memory. A message in many queues counts in each.
    pub resident: AtomicUsize,
    /// Bytes that the process uses, as far as that is known; 0 = not at all.
    pub used: AtomicU64,
    pub pressure: Pressure,
    pub requests: Requests,
    pub loads: mpsc::Sender<Option<Load>>,
    /// Queues that are gone, and whose files go once that is durable.
    pub forgotten: Mutex<Vec<StreamId>>,
    pub done: Done,
    /// The disk had no room when something was to be written.
    pub full: AtomicBool,
    /// The disk has little room left.
    pub low: AtomicBool,
    pub failure: OnceLock<Error>,
}

/// A queue that the store has been told of, until it is forgotten.
pub(crate) struct Registered {
    pub queue: Weak<dyn Resident>,
    /// No manifest may be without it.
    pub logged: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// A queue is gone; `index` if it may have files.
    pub fn forget(&self, stream: StreamId, index: Option<&Index>) {
        self.residents.lock().remove(&stream);
        self.pressure.relieve(stream);
        let Some(index) = index else { return };
        self.garbage.add(index.bytes());
        self.forgotten.lock().push(stream);
    }

    pub fn resident(&self, stream: StreamId) -> Option<Arc<dyn Resident>> {
        self.residents.lock().get(&stream)?.queue.upgrade()
    }

    pub fn all_residents(&self) -> Vec<(StreamId, Arc<dyn Resident>)> {
        let residents = self.residents.lock();
        let all = residents.iter();
        all.filter_map(|(stream, registered)| Some((*stream, registered.queue.upgrade()?)))
            .collect()
    }

    /// All that a manifest has to know of; `None` if one of those went from memory without having
    /// been deleted: the process is about to end.
    pub fn residents_for_manifest(&self) -> Option<Vec<(StreamId, Arc<dyn Resident>)>> {
        let mut all = Vec::new();
        for (stream, registered) in self.residents.lock().iter() {
            match registered.queue.upgrade() {
                Some(queue) => all.push((*stream, queue)),
                None if registered.logged => return None,
                None => {}
            }
        }
        Some(all)
    }

    /// Reads chunks. Their segments may have gone since that was planned: then nothing is read, and
    /// whoever still wants something has to plan anew.
    pub fn read(&self, load: &Load, buffer: &mut AlignedBuffer) -> Result<Loaded, Error> {
        match load.read(&*self.disk, &self.layout.queues, buffer) {
            Err(_) if !self.has_segments_of(load) => Ok(load.nothing()),
            read => read,
        }
    }

    fn has_segments_of(&self, load: &Load) -> bool {
        let mut all = false;
        if let Some(queue) = self.resident(load.stream) {
            queue.with_store(&mut |store, _| {
                all = load.segments().all(|number| store.has_segment(number));
            });
        }
        all
    }

    /// True if nothing more is kept.
    pub fn has_failed(&self) -> bool {
        self.failure.get().is_some() || self.wal.failure().is_some()
    }

    /// Nothing more can be kept.
    pub fn fail(&self, error: Error) {
        tracing::error!(%error, "what is kept can no longer be written");
        let _ = self.failure.set(error);
    }

    pub fn request(&self, request: Request) {
        // The thread is gone at the end of the process only.
        let _ = self.requests.send(request);
    }
}

/// What the thread that writes segments and manifests has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub flushes: AtomicU64,
    pub checkpoints: AtomicU64,
    pub compactions: AtomicU64,
}

impl Done {
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes on the disk that nothing needs once a new manifest is durable.
#[derive(Debug, Default)]
pub(crate) struct Garbage(AtomicU64);

impl Garbage {
    pub fn add(&self, bytes: u64) {
        if bytes > 0 {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Queues that grow faster than they can be written to segments: while there are any, publishers
/// wait.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    pressed: AtomicBool,
    state: Mutex<PressureState>,
}

#[derive(Debug, Default)]
struct PressureState {
    queues: ahash::HashSet<StreamId>,
    waiting: Vec<Waker>,
}

impl Pressure {
    /// That queue keeps far more than it may.
    pub fn press(&self, stream: StreamId) {
        let mut state = self.state.lock();
        state.queues.insert(stream);
        self.pressed.store(true, Ordering::Release);
    }

    /// It no longer does.
    pub fn relieve(&self, stream: StreamId) {
        if !self.pressed.load(Ordering::Acquire) {
            return;
        }
        let waiting = {
            let mut state = self.state.lock();
            state.queues.remove(&stream);
            if !state.queues.is_empty() {
                return;
            }
            self.pressed.store(false, Ordering::Release);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// There is room for the log again: whoever waited looks once more.
    pub fn look_again(&self) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// True if there is none; otherwise the waker is called when there may be none any more.
    /// `full`: the log has no room, which is pressure as well.
    #[inline]
    pub fn wait(&self, waker: &Waker, full: bool) -> bool {
        if !full && !self.pressed.load(Ordering::Acquire) {
            return true;
        }
        let mut state = self.state.lock();
        if !full && state.queues.is_empty() {
            return true;
        }
        if !state.waiting.iter().any(|other| other.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        false
    }
}
