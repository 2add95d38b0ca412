//! The thread that moves messages from memory to segments, and keeps the log short.
//!
//! It owns all segment writers and the manifest, so nothing here needs a lock of its own. Queues
//! ask when they keep too much in memory; now and then it looks by itself whether the log or the
//! files have grown beyond what they should be.

mod checkpoint;
mod compaction;
mod sweep;
mod workers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ahash::{HashMap, HashSet};
use wal::{AlignedBuffer, Lsn, StreamId};

use crate::error::Error;
use crate::liveness::Epoch;
use crate::manifest::ManifestFiles;
use crate::message::Message;
use crate::queue::Written;
use crate::resident::{FlushGoal, Request, Resident};
use crate::segment::{Chunk, SegmentWriter};
use crate::seq::QueueSeq;
use crate::shared::{Done, Shared};

pub(crate) use workers::Workers;

/// Flushes of one queue before other things are looked at.
const ROUNDS: usize = 8;
/// Segments that are open for writing, at most: there may be more queues than a process may have
/// files.
const MAX_OPEN: usize = 64;
/// How often it looks by itself.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Pager {
    shared: Arc<Shared>,
    writers: HashMap<StreamId, SegmentWriter>,
    /// Queues whose segments are open, the one that was written to last at the end.
    open: VecDeque<StreamId>,
    buffer: AlignedBuffer,
    manifests: ManifestFiles,
    /// The log is needed from here on, as the last manifest says.
    start: Lsn,
    /// The queues whose files are needed, until what recovery left over is gone.
    unswept: Option<HashSet<StreamId>>,
    /// It is: files may be written.
    swept: bool,
    /// Queues that have asked and wait: for that, or for room on the disk.
    waiting: Vec<StreamId>,
}

impl Pager {
    pub fn new(shared: Arc<Shared>, manifests: ManifestFiles, start: Lsn) -> Self {
        Pager {
            shared,
            writers: HashMap::default(),
            open: VecDeque::new(),
            buffer: AlignedBuffer::default(),
            manifests,
            start,
            unswept: None,
            swept: false,
            waiting: Vec::new(),
        }
    }

    /// Does what was asked for.
    fn handle(&mut self, request: Request) {
        if self.shared.has_failed() {
            return;
        }
        match request {
            Request::Sweep(claimed) => self.unswept = Some(claimed),
            Request::Flush(stream) if self.swept && self.waiting.is_empty() => {
                let result = self.relieve(stream);
                self.note(result);
            }
            Request::Flush(stream) => self.waiting.push(stream),
            Request::Stop => {}
        }
    }

    /// Looks whether something has to be done.
    fn look(&mut self) {
        if self.shared.has_failed() {
            return;
        }
        if let Some(claimed) = self.unswept.take() {
            let result = self.sweep(&claimed);
            if result.is_err() {
                // The log may have had no room.
                self.unswept = Some(claimed);
            }
            self.note(result);
        }
        if self.swept {
            let result = self.maintain();
            self.note(result);
        }
    }

    /// A queue keeps too much in memory.
    fn relieve(&mut self, stream: StreamId) -> Result<(), Error> {
        let Some(queue) = self.shared.resident(stream) else {
            return Ok(());
        };
        let goal = FlushGoal::Resident(self.shared.budget.queue / 2);
        for _ in 0..ROUNDS {
            match self.flush_once(stream, &*queue, goal) {
                Ok(true) => {}
                Ok(false) => {
                    self.shared.pressure.relieve(stream);
                    return Ok(());
                }
                Err(error) => {
                    self.waiting.push(stream);
                    return Err(error);
                }
            }
        }
        // It grows as fast as it is written: other things have to be looked at in between.
        self.waiting.push(stream);
        Ok(())
    }

    /// Writes messages to segments until the goal is reached.
    fn flush(
        &mut self,
        stream: StreamId,
        queue: &dyn Resident,
        goal: FlushGoal,
    ) -> Result<(), Error> {
        while self.flush_once(stream, queue, goal)? {}
        Ok(())
    }

    /// Writes some messages to segments; false if the goal was reached.
    fn flush_once(
        &mut self,
        stream: StreamId,
        queue: &dyn Resident,
        goal: FlushGoal,
    ) -> Result<bool, Error> {
        let Some(flush) = queue.begin_flush(goal) else {
            return Ok(false);
        };
        match self.write(stream, queue, &flush.messages, &[]) {
            Ok(chunks) => {
                Done::count(&self.shared.done.flushes);
                queue.complete_flush(Written { flush, chunks });
                Ok(true)
            }
            Err(error) => {
                queue.abort_flush();
                Err(error)
            }
        }
    }

    /// Writes a queue's messages to its segments.
    fn write(
        &mut self,
        stream: StreamId,
        queue: &dyn Resident,
        messages: &[(QueueSeq, Message)],
        ends: &[QueueSeq],
    ) -> Result<Vec<Chunk>, Error> {
        self.open.retain(|other| *other != stream);
        self.open.push_back(stream);
        if self.open.len() > MAX_OPEN
            && let Some(longest_ago) = self.open.pop_front()
            && let Some(writer) = self.writers.get_mut(&longest_ago)
        {
            writer.close_file();
        }
        let writer = self.writers.entry(stream).or_insert_with(|| {
            let mut next = 1;
            queue.with_store(&mut |store, _| next = store.next_segment());
            SegmentWriter::new(stream, next, self.shared.budget.segment)
        });
        let (disk, queues) = (&*self.shared.disk, &self.shared.layout.queues);
        let written = writer.write(disk, queues, &mut self.buffer, messages, ends);
        if self.buffer.capacity() > 4 * crate::resident::MAX_FLUSH_BYTES {
            // After an unusually large message.
            self.buffer = AlignedBuffer::default();
        }
        written
    }

    /// Looks what has grown too much.
    fn maintain(&mut self) -> Result<(), Error> {
        let moved = self
            .relieve_waiting()
            .and_then(|()| self.bound_memory())
            .and_then(|()| self.bound_log());
        if moved.as_ref().is_err_and(|error| !error.is_full()) {
            return moved;
        }
        // Even where that had no room: this is what makes some.
        let full = self.shared.wal.disk_full()
            || self.shared.low.load(Ordering::Acquire)
            || moved.as_ref().is_err_and(Error::is_full);
        if self.checkpoint_is_due(full) {
            if !full {
                self.compact()?;
            }
            self.checkpoint()?;
        }
        if !self.shared.wal.disk_full() {
            self.shared.pressure.look_again();
        }
        moved
    }

    fn relieve_waiting(&mut self) -> Result<(), Error> {
        let mut waiting = std::mem::take(&mut self.waiting).into_iter();
        while let Some(stream) = waiting.next() {
            if let Err(error) = self.relieve(stream) {
                self.waiting.extend(waiting);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Takes memory from the queues that have most of it, while all together have too much.
    fn bound_memory(&mut self) -> Result<(), Error> {
        let budget = self.shared.budget.node;
        let used = self.shared.used.load(Ordering::Relaxed);
        let enough = used != 0 && used <= budget as u64;
        if enough || self.shared.resident.load(Ordering::Relaxed) <= budget {
            return Ok(());
        }
        let mut queues: Vec<_> = self
            .shared
            .all_residents()
            .into_iter()
            .map(|(stream, queue)| (queue.resident_bytes(), stream, queue))
            .collect();
        queues.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
        for (bytes, stream, queue) in queues {
            if self.shared.resident.load(Ordering::Relaxed) <= budget - budget / 8 {
                break;
            }
            self.flush(stream, &*queue, FlushGoal::Resident(bytes / 4))?;
        }
        Ok(())
    }

    /// Makes everything that was appended to the log durable.
    fn sync_log(&self) -> Result<(), Error> {
        Ok(self.shared.wal.sync()?)
    }

    /// Moves what only the oldest files of a too large log hold to segments.
    fn bound_log(&mut self) -> Result<(), Error> {
        let files = self.shared.wal.files();
        let mut excess: u64 = files.iter().map(|(_, size)| size).sum();
        let budget = self.shared.budget.log + self.shared.budget.log_file;
        if excess <= budget {
            return Ok(());
        }
        // Somewhat more than is too much, so that this is not needed for each file.
        excess = excess - budget + budget / 8;
        let mut until = self.start;
        for (end, size) in &files[..files.len() - 1] {
            until = *end;
            excess = excess.saturating_sub(*size);
            if excess == 0 {
                break;
            }
        }
        let liveness = &self.shared.liveness;
        let until = liveness.epoch(until);
        if liveness.oldest(liveness.epoch(self.start), Epoch(until.0 + 1)) > until {
            return Ok(());
        }
        for (stream, queue) in self.shared.all_residents() {
            self.flush(stream, &*queue, FlushGoal::Log(until))?;
        }
        Ok(())
    }

    /// A full disk is asked again, any other failure is the end.
    fn note(&mut self, result: Result<(), Error>) {
        let full = match result {
            Ok(()) => false,
            Err(error) if error.is_full() => {
                if !self.shared.full.load(Ordering::Relaxed) {
                    tracing::warn!(%error, "disk full: messages stay in memory");
                }
                true
            }
            Err(error) => {
                self.shared.fail(error);
                return;
            }
        };
        self.shared.full.store(full, Ordering::Release);
    }
}
