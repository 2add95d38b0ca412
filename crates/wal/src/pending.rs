//! Records that wait to be written: one half of the double buffer.
//!
//! Appending copies a record behind the others under a short lock. The log's thread swaps the
//! whole buffer for an empty one, so while it writes and syncs, the next batch forms itself. It is
//! woken by whoever begins to wait, not by each record: who appends many writes them in one go.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::aligned::AlignedBuffer;
use crate::durability::Urgency;
use crate::format::{BATCH_HEAD, RECORD_HEAD, record_head};
use crate::lsn::{Lsn, StreamId};

/// How often the log's thread looks for records that nobody waits for. They stay in memory for
/// twice as long at most.
const LAZY: Duration = Duration::from_millis(20);
/// How often it finds nothing before it waits to be woken.
const MAX_QUIET: u32 = 50;
/// A buffer that is larger than this is given back when little of it was used.
const KEPT: usize = 1024 * 1024;
/// A batch that has as many bytes takes no more records: its length has 32 bits, and while a buffer
/// grows, which copies it, everybody waits.
const FULL: usize = 16 * 1024 * 1024;

/// Bytes of the largest payload. Whoever appends makes sure that it has no more.
pub const MAX_PAYLOAD: usize = 1024 * 1024 * 1024;

const _: () = assert!(FULL + RECORD_HEAD + MAX_PAYLOAD < u32::MAX as usize);

/// A record's payload while it is appended.
pub struct Payload<'a>(&'a mut AlignedBuffer);

impl Payload<'_> {
    /// Adds bytes.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}

/// Records in order, with room for the head of their batch.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub bytes: AlignedBuffer,
    pub first_lsn: Lsn,
    /// Where the last record ends.
    pub end: Lsn,
    pub urgency: Option<Urgency>,
}

impl Batch {
    /// Bytes of records.
    pub fn length(&self) -> usize {
        (self.end.0 - self.first_lsn.0) as usize
    }

    #[inline]
    fn append(&mut self, stream: StreamId, urgency: Urgency, write: impl FnOnce(&mut Payload<'_>)) {
        // Not where the bytes end: a `write` that panicked has left some.
        let start = BATCH_HEAD + self.length();
        self.bytes.resize(start);
        self.bytes.extend(&[0; RECORD_HEAD]);
        write(&mut Payload(&mut self.bytes));
        let whole = self.bytes.len() - start;
        assert!(whole <= RECORD_HEAD + MAX_PAYLOAD, "a payload is too large");
        let head = record_head(stream, (whole - RECORD_HEAD) as u32);
        self.bytes.as_mut_slice()[start..start + RECORD_HEAD].copy_from_slice(&head);
        self.end.0 += whole as u64;
        self.urgency = self.urgency.max(Some(urgency));
    }

    fn begin(&mut self, at: Lsn) {
        let capacity = self.bytes.capacity();
        if capacity > KEPT && self.bytes.len() < capacity / 4 {
            self.bytes = AlignedBuffer::default();
        }
        self.bytes.clear();
        self.first_lsn = at;
        self.end = at;
        self.urgency = None;
    }

    fn is_empty(&self) -> bool {
        self.end == self.first_lsn
    }
}

/// What the log's thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// Any record.
    Idle,
    /// Somebody who waits for a record. It looks by itself before long.
    Dozing,
}

#[derive(Debug, Default)]
struct State {
    /// Batches that are full, oldest first.
    full: VecDeque<Batch>,
    /// The one that records are added to.
    batch: Batch,
    /// Somebody waits for what is there.
    awaited: bool,
    sleeping: Option<Sleep>,
    /// Nothing more is taken.
    closed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    filled: Condvar,
}

impl Pending {
    pub fn starting_at(lsn: Lsn) -> Self {
        let pending = Pending::default();
        pending.state.lock().batch.begin(lsn);
        pending
    }

    /// Appends a record; returns its position. After [`Pending::close`] nothing is kept, and the
    /// position is one that is never reached.
    #[inline]
    pub fn append(
        &self,
        stream: StreamId,
        urgency: Urgency,
        write: impl FnOnce(&mut Payload<'_>),
    ) -> Lsn {
        let mut state = self.state.lock();
        if state.closed {
            return Lsn(u64::MAX);
        }
        state.batch.append(stream, urgency, write);
        let end = state.batch.end;
        if state.batch.bytes.len() >= FULL {
            self.set_aside(&mut state);
        }
        if state.sleeping == Some(Sleep::Idle) {
            self.wake(&mut state);
        }
        end
    }

    #[cold]
    fn set_aside(&self, state: &mut State) {
        let mut next = Batch::default();
        next.begin(state.batch.end);
        let full = std::mem::replace(&mut state.batch, next);
        state.full.push_back(full);
        self.wake(state);
    }

    /// Has what is there written now: somebody waits for it.
    pub fn hurry(&self) {
        let mut state = self.state.lock();
        state.awaited = true;
        if state.sleeping.is_some() && !state.batch.is_empty() {
            self.wake(&mut state);
        }
    }

    fn wake(&self, state: &mut State) {
        state.sleeping = None;
        self.filled.notify_one();
    }

    /// Where the last record ends.
    pub fn end(&self) -> Lsn {
        self.state.lock().batch.end
    }

    /// Waits until something is to be written. False at the end: the log was closed, and everything
    /// has been taken out.
    pub fn wait_for_records(&self) -> bool {
        let mut state = self.state.lock();
        // How often it has looked and found nothing.
        let mut quiet = 0;
        // Records have been there since the look before.
        let mut found = false;
        loop {
            let empty = state.full.is_empty() && state.batch.is_empty();
            if !empty && (state.awaited || state.closed || found || !state.full.is_empty()) {
                state.sleeping = None;
                return true;
            }
            if empty && state.closed {
                return false;
            }
            if empty && quiet >= MAX_QUIET {
                state.sleeping = Some(Sleep::Idle);
                self.filled.wait(&mut state);
                quiet = 0;
                continue;
            }
            state.sleeping = Some(Sleep::Dozing);
            let timed_out = self.filled.wait_for(&mut state, LAZY).timed_out();
            found = timed_out && !empty;
            quiet += u32::from(timed_out && empty);
        }
    }

    /// Bytes that wait, and whether more may come.
    pub fn waiting(&self) -> (usize, bool) {
        let state = self.state.lock();
        let full: usize = state.full.iter().map(|batch| batch.bytes.len()).sum();
        (full + state.batch.bytes.len(), !state.closed)
    }

    /// Swaps what is there for `spare`; false if there is nothing.
    pub fn take_now(&self, spare: &mut Batch) -> bool {
        let mut state = self.state.lock();
        if state.full.is_empty() && state.batch.is_empty() {
            return false;
        }
        Self::swap(&mut state, spare);
        true
    }

    fn swap(state: &mut State, spare: &mut Batch) {
        state.sleeping = None;
        if let Some(full) = state.full.pop_front() {
            *spare = full;
            return;
        }
        state.awaited = false;
        spare.begin(state.batch.end);
        std::mem::swap(&mut state.batch, spare);
    }

    /// Takes no more records; what is there is still written.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
    }
}
