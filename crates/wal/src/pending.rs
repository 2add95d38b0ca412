//! Records that wait to be written: one half of the double buffer.
//!
//! Appending copies a record behind the others under a short lock. The log's thread swaps the
//! whole buffer for an empty one, so while it writes and syncs, the next batch forms itself.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::aligned::AlignedBuffer;
use crate::durability::Urgency;
use crate::format::{BATCH_HEAD, RECORD_HEAD, record_head};
use crate::lsn::{Lsn, StreamId};

/// How long a record that nobody waits for may stay in memory.
const LAZY: Duration = Duration::from_millis(20);
/// A buffer that is larger than this is given back when little of it was used.
const KEPT: usize = 1024 * 1024;

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

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    /// The log's thread waits for something that is more urgent than this.
    sleeping: Option<Option<Urgency>>,
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
        let batch = &mut state.batch;
        if batch.is_empty() {
            batch.bytes.resize(BATCH_HEAD);
        }
        let start = batch.bytes.len();
        batch.bytes.extend(&[0; RECORD_HEAD]);
        write(&mut Payload(&mut batch.bytes));
        let whole = batch.bytes.len() - start;
        let head = record_head(stream, (whole - RECORD_HEAD) as u32);
        batch.bytes.as_mut_slice()[start..start + RECORD_HEAD].copy_from_slice(&head);
        batch.end.0 += whole as u64;
        batch.urgency = batch.urgency.max(Some(urgency));
        let (end, wanted) = (batch.end, batch.urgency);
        if state.sleeping.is_some_and(|content| wanted > content) {
            state.sleeping = None;
            self.filled.notify_one();
        }
        end
    }

    /// Where the last record ends.
    pub fn end(&self) -> Lsn {
        self.state.lock().batch.end
    }

    /// Waits until something is to be written, and swaps it for `spare`. False at the end: the
    /// log was closed, and everything has been taken out.
    pub fn take(&self, spare: &mut Batch) -> bool {
        let mut state = self.state.lock();
        // Lazy records have been waiting since then.
        let mut since: Option<Instant> = None;
        loop {
            match state.batch.urgency {
                Some(Urgency::Prompt(_)) => break,
                Some(Urgency::Lazy) if state.closed => break,
                Some(Urgency::Lazy) => {
                    let deadline = *since.get_or_insert_with(Instant::now) + LAZY;
                    state.sleeping = Some(Some(Urgency::Lazy));
                    if self.filled.wait_until(&mut state, deadline).timed_out() {
                        break;
                    }
                }
                None if state.closed => return false,
                None => {
                    state.sleeping = Some(None);
                    self.filled.wait(&mut state);
                }
            }
        }
        state.sleeping = None;
        Self::swap(&mut state, spare);
        true
    }

    /// As [`Pending::take`], without waiting; false if there is nothing.
    pub fn take_now(&self, spare: &mut Batch) -> bool {
        let mut state = self.state.lock();
        if state.batch.is_empty() {
            return false;
        }
        Self::swap(&mut state, spare);
        true
    }

    fn swap(state: &mut State, spare: &mut Batch) {
        spare.begin(state.batch.end);
        std::mem::swap(&mut state.batch, spare);
    }

    /// Takes no more records; what is there is still written.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
    }
}
