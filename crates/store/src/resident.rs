//! What the store asks of a queue. The queue holds its [`QueueStore`] under its own lock.

use wal::StreamId;

use crate::liveness::Epoch;
use crate::load::Loaded;
use crate::queue::{Flush, QueueStore, Written};
use crate::seq::QueueSeq;

/// Messages of one flush, at most: so many are gathered under one hold of the queue's lock.
pub const MAX_FLUSH_MESSAGES: usize = 4_096;
/// Bytes after which a flush takes no further message.
pub const MAX_FLUSH_BYTES: usize = 4 * 1024 * 1024;

/// Why messages are to be written to segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushGoal {
    /// The queue keeps more than that many bytes in memory.
    Resident(usize),
    /// The log is not to be needed up to and including that epoch.
    Log(Epoch),
}

/// A queue, as the store's threads see it. Each call locks it for a short time.
pub trait Resident: Send + Sync {
    /// The next messages to write, oldest first, or `None` if the goal is reached.
    fn begin_flush(&self, goal: FlushGoal) -> Option<Flush>;

    /// They could not be written.
    fn abort_flush(&self);

    /// They lie in segments now: those that are far from their turn need no memory any more.
    fn complete_flush(&self, written: Written);

    /// What [`QueueStore::plan_load`] asked for.
    fn complete_load(&self, loaded: Loaded);

    /// Bytes of messages that it keeps in memory.
    fn resident_bytes(&self) -> usize;

    /// Gives out its store and the place of the next message, under its lock.
    fn with_store(&self, act: &mut dyn FnMut(&mut QueueStore, QueueSeq));
}

/// A queue that has something to do for the store's threads.
pub(crate) type Requests = std::sync::mpsc::Sender<Request>;

/// Work for the thread that writes segments.
#[derive(Debug)]
pub(crate) enum Request {
    /// That queue keeps too much in memory.
    Flush(StreamId),
    /// Recovery is over: only these queues' files are needed.
    Sweep(ahash::HashSet<StreamId>),
    Stop,
}
