//! What the store knows of one queue; the queue keeps it under its own lock.
//!
//! Every live message that must survive is in the log, in a segment, or in both for a moment.
//! `flushed` is the border: what lies before it and is not gone is in a chunk of the index; what
//! lies behind it is in the log only, and counted, by the part of the log that holds it.

mod flush;
mod marks;
mod memory;
mod removal;
mod returns;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wal::{Durability, Lsn, StreamId, Urgency};

pub use flush::{Flush, Written};
pub use memory::Identity;
pub(crate) use returns::forget_run;

use crate::liveness::Epoch;
use crate::load::Load;
use crate::message::Message;
use crate::op;
use crate::recovery::{QueueParts, RecoveredQueue};
use crate::resident::Request;
use crate::segment::Index;
use crate::seq::{QueueSeq, SeqRun};
use crate::shared::Shared;
use flush::Flushing;
use marks::Marks;
use memory::Memory;
use returns::Returns;

/// The node's counter of bytes in memory is told of changes of this size.
const COUNTING_STEP: usize = 256 * 1024;

/// A queue's part of the store.
#[derive(Debug)]
pub struct QueueStore {
    shared: Arc<Shared>,
    stream: StreamId,
    /// Its persistent messages survive a restart.
    logged: bool,
    durability: Durability,
    marks: Marks,
    index: Index,
    flushed: QueueSeq,
    flushing: Option<Flushing>,
    delivered: QueueSeq,
    delivered_logged: QueueSeq,
    next_segment: u64,
    /// Bytes in memory that the node's counter knows of.
    counted: usize,
    /// The store was asked to move messages to segments, and has not answered.
    flush_requested: bool,
    /// Places that have become empty since the last [`QueueStore::log_gone`].
    gone: Vec<QueueSeq>,
    runs: Vec<SeqRun>,
    returns: Returns,
    memory: Memory,
}

/// Operations of several queues that become one record.
#[derive(Debug, Default)]
pub struct TransactionRecord {
    pub(crate) bytes: Vec<u8>,
    pub(crate) durability: Option<Durability>,
}

impl TransactionRecord {
    fn add(&mut self, queue: &QueueStore, write: impl FnOnce(&mut Vec<u8>)) {
        op::within(&mut self.bytes, queue.stream, write);
        self.durability = self.durability.max(Some(queue.durability));
    }
}

/// Where operations go.
#[derive(Debug)]
pub enum Record<'a> {
    /// To the log at once, each in a record of its own.
    Own,
    /// Into one with others; [`QueueStore::transaction_logged`] follows under the same lock.
    Shared(&'a mut TransactionRecord),
}

impl QueueStore {
    pub(crate) fn new(
        shared: Arc<Shared>,
        stream: StreamId,
        logged: bool,
        durability: Durability,
    ) -> Self {
        QueueStore {
            shared,
            stream,
            logged,
            durability,
            marks: Marks::default(),
            index: Index::default(),
            flushed: QueueSeq(0),
            flushing: None,
            delivered: QueueSeq(0),
            delivered_logged: QueueSeq(0),
            next_segment: 1,
            counted: 0,
            flush_requested: false,
            gone: Vec::new(),
            runs: Vec::new(),
            returns: Returns::default(),
            memory: Memory::default(),
        }
    }

    /// A queue that was found in the data directory.
    pub(crate) fn recovered(
        shared: Arc<Shared>,
        stream: StreamId,
        durability: Durability,
        parts: QueueParts,
    ) -> RecoveredQueue {
        let mut store = QueueStore::new(shared, stream, true, durability);
        let next_seq = parts.next_seq.max(parts.delivered).max(parts.flushed);
        store.index = parts.index;
        store.flushed = parts.flushed;
        store.delivered = parts.delivered;
        store.delivered_logged = parts.delivered;
        store.next_segment = parts.next_segment.max(1);
        store.returns = Returns::recovered(parts.returns);
        store.memory = Memory::recovered(parts.remembered);
        let live = parts.messages.into_iter();
        let messages: Vec<(QueueSeq, Message)> = live
            .filter_map(|(seq, message)| Some((seq, message?)))
            .collect();
        let mut rest = messages.as_slice();
        for (at, (first, epoch)) in parts.epochs.iter().enumerate() {
            let next = parts.epochs.get(at + 1).map_or(next_seq, |(next, _)| *next);
            let (here, others) = rest.split_at(rest.partition_point(|(seq, _)| *seq < next));
            let count = here.len() as u64;
            store
                .marks
                .add(&store.shared.liveness, *epoch, *first, count);
            rest = others;
        }
        RecoveredQueue {
            store,
            messages,
            next_seq,
        }
    }

    /// Its stream in the log; unique for ever.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Every message before it lies in a segment, or is gone.
    #[inline]
    pub fn flushed(&self) -> QueueSeq {
        self.flushed
    }

    /// Every message before it has been out for delivery.
    #[inline]
    pub fn delivered(&self) -> QueueSeq {
        self.delivered
    }

    /// What a confirm of this queue waits for.
    #[inline]
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// True if the queue's persistent messages survive a restart.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.logged
    }

    /// Logs new messages, in order; those that must survive. Returns the record's position if it
    /// has one yet.
    #[inline]
    pub fn append<'m>(
        &mut self,
        messages: impl Iterator<Item = (QueueSeq, &'m Message)> + Clone,
        record: &mut Record<'_>,
    ) -> Option<Lsn> {
        if !self.logged {
            return None;
        }
        let persistent = messages.filter(|(_, message)| message.is_persistent());
        let mut counted = persistent.clone();
        let (first, _) = counted.next()?;
        let count = 1 + counted.count() as u32;
        let stored = persistent.map(|(seq, message)| (seq, message.stored()));
        match record {
            Record::Own => {
                let urgency = Urgency::Prompt(self.durability);
                let lsn = self.shared.wal.append(self.stream, urgency, |payload| {
                    op::append(payload, first, count, stored);
                });
                let liveness = &self.shared.liveness;
                self.marks
                    .add(liveness, liveness.epoch(lsn), first, u64::from(count));
                Some(lsn)
            }
            Record::Shared(record) => {
                record.add(self, |sink| op::append(sink, first, count, stored));
                self.marks.add_unlogged(first, u64::from(count));
                None
            }
        }
    }

    /// The transaction that was added to was logged at that position.
    pub fn transaction_logged(&mut self, lsn: Lsn) {
        let liveness = &self.shared.liveness;
        self.marks.logged(liveness, liveness.epoch(lsn));
    }

    /// A message has been out for delivery.
    #[inline]
    pub fn note_delivered(&mut self, seq: QueueSeq) {
        self.delivered = self.delivered.max(seq.next());
    }

    /// Logs how far delivery has come, if that is news. Nobody waits for it.
    #[inline]
    pub fn log_delivered(&mut self) {
        if self.logged && self.delivered > self.delivered_logged {
            self.delivered_logged = self.delivered;
            let delivered = self.delivered;
            let wal = &self.shared.wal;
            wal.append(self.stream, Urgency::Lazy, |payload| {
                op::delivered(payload, delivered);
            });
        }
    }

    /// Bytes of messages that the queue may keep in memory.
    pub fn budget(&self) -> usize {
        self.shared.budget.queue
    }

    /// The queue keeps that many bytes of messages in memory. If that is too much, some of them
    /// will be moved to segments.
    #[inline]
    pub fn note_resident(&mut self, bytes: usize) {
        if bytes.abs_diff(self.counted) >= COUNTING_STEP || bytes == 0 {
            self.count_resident(bytes);
        }
        let budget = self.shared.budget.queue;
        if bytes > budget {
            if !self.flush_requested {
                self.flush_requested = true;
                self.shared.request(Request::Flush(self.stream));
            }
            if bytes / 4 > budget {
                self.shared.pressure.press(self.stream);
            }
        }
    }

    fn count_resident(&mut self, bytes: usize) {
        let resident = &self.shared.resident;
        if bytes > self.counted {
            resident.fetch_add(bytes - self.counted, Ordering::Relaxed);
        } else {
            resident.fetch_sub(self.counted - bytes, Ordering::Relaxed);
        }
        self.counted = bytes;
    }

    /// What [`QueueStore::note_resident`] asked for is done.
    pub fn flush_answered(&mut self) {
        self.flush_requested = false;
    }

    /// Has chunks read in the background: [`crate::Resident::complete_load`] follows.
    pub fn request_load(&self, load: Load) {
        let _ = self.shared.loads.send(Some(load));
    }

    /// The oldest part of the log that the queue's messages need.
    pub fn oldest_epoch(&self) -> Option<Epoch> {
        self.marks.oldest()
    }
}
