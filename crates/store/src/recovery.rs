//! What a store holds when it is opened: the manifest, and what the log says after it.
//!
//! Replaying is idempotent: what a segment holds already is not taken from the log, and what is
//! gone stays gone, however often the log says so.

use std::collections::{BTreeMap, VecDeque};

use ahash::{HashMap, HashSet};
use wal::{Durability, Lsn, StreamId};

use crate::definitions::DefinitionMap;
use crate::error::Error;
use crate::liveness::{EPOCH, Epoch};
use crate::manifest::{Manifest, QueueSnapshot};
use crate::message::Message;
use crate::op::{self, Messages, Op};
use crate::queue::{Identity, QueueStore, forget_run};
use crate::resident::Request;
use crate::segment::{Chunk, Index};
use crate::seq::{QueueSeq, SeqRun};
use crate::store::Store;

/// A log that is being replayed.
#[derive(Debug)]
pub(crate) struct Recovering {
    definitions: DefinitionMap,
    queues: HashMap<StreamId, QueueParts>,
    next_stream: u64,
    /// Bytes of an epoch of the log.
    pub epoch: u64,
    malformed: Option<Lsn>,
}

/// A queue that is being put together.
#[derive(Debug, Default)]
pub(crate) struct QueueParts {
    pub index: Index,
    pub flushed: QueueSeq,
    pub delivered: QueueSeq,
    pub next_seq: QueueSeq,
    pub next_segment: u64,
    /// How often messages have come back.
    pub returns: BTreeMap<QueueSeq, u32>,
    /// What has come lately, oldest first; what the manifest says the log may say again.
    pub remembered: VecDeque<(Identity, u64)>,
    /// In the log only, in order; `None` = gone.
    pub messages: VecDeque<(QueueSeq, Option<Message>)>,
    /// From which place on messages belong to which part of the log.
    pub epochs: Vec<(QueueSeq, Epoch)>,
}

impl Recovering {
    pub fn new(manifest: Manifest) -> Self {
        let queues = manifest.queues.into_iter();
        Recovering {
            definitions: manifest.definitions,
            queues: queues
                .map(|queue| (queue.stream, QueueParts::from(queue)))
                .collect(),
            next_stream: manifest.next_stream,
            epoch: EPOCH,
            malformed: None,
        }
    }

    pub fn replay(&mut self, record: wal::Record<'_>) {
        if self.malformed.is_some() {
            return;
        }
        let epoch = Epoch::of(record.lsn, self.epoch);
        let read = op::read(record.stream, record.payload, &mut |stream, op| {
            self.next_stream = self.next_stream.max(stream.0 + 1);
            match op {
                Op::Append(messages) => self.queue(stream).append(messages, epoch),
                Op::Acknowledge(run) => self.queue(stream).remove(run),
                Op::Delivered(up_to) => {
                    let queue = self.queue(stream);
                    queue.delivered = queue.delivered.max(up_to);
                    queue.next_seq = queue.next_seq.max(up_to);
                }
                Op::Returned(seq, count) => {
                    self.queue(stream).returns.insert(seq, count);
                }
                Op::Remembered(identity, until) => {
                    let known = &mut self.queue(stream).remembered;
                    known.push_back((identity, until));
                }
                Op::Define(key, value) => {
                    self.definitions.insert(key.into(), value.into());
                }
                Op::Undefine(key) => {
                    self.definitions.remove(key);
                }
                Op::Forget(stream) => {
                    self.next_stream = self.next_stream.max(stream.0 + 1);
                    self.queues.remove(&stream);
                }
            }
        });
        if read.is_err() {
            self.malformed = Some(record.lsn);
        }
    }

    fn queue(&mut self, stream: StreamId) -> &mut QueueParts {
        self.queues.entry(stream).or_default()
    }

    pub fn finish(self) -> Result<Recovered, Error> {
        if let Some(lsn) = self.malformed {
            return Err(Error::Record { lsn });
        }
        Ok(Recovered {
            definitions: self.definitions,
            queues: self.queues,
            next_stream: self.next_stream,
            claimed: HashSet::default(),
        })
    }
}

impl From<QueueSnapshot> for QueueParts {
    fn from(snapshot: QueueSnapshot) -> Self {
        let mut index = Index::default();
        snapshot
            .chunks
            .into_iter()
            .for_each(|chunk: Chunk| index.push(chunk));
        QueueParts {
            index,
            flushed: snapshot.flushed,
            delivered: snapshot.delivered,
            next_seq: snapshot.next_seq,
            next_segment: snapshot.next_segment,
            returns: snapshot.returns.into_iter().collect(),
            remembered: snapshot.remembered.into(),
            ..QueueParts::default()
        }
    }
}

impl QueueParts {
    fn append(&mut self, messages: Messages<'_>, epoch: Epoch) {
        for message in messages {
            // Checked when the record was read.
            let Ok((seq, stored)) = message else { return };
            self.next_seq = self.next_seq.max(seq.next());
            if seq < self.flushed {
                continue;
            }
            if self.epochs.last().is_none_or(|(_, last)| *last != epoch) {
                self.epochs.push((seq, epoch));
            }
            self.messages.push_back((seq, Message::from_stored(stored)));
        }
    }

    fn remove(&mut self, run: SeqRun) {
        self.next_seq = self.next_seq.max(run.end());
        self.index.remove(run);
        forget_run(&mut self.returns, run);
        let from = self.messages.partition_point(|(seq, _)| *seq < run.first);
        for (seq, message) in self.messages.range_mut(from..) {
            if *seq >= run.end() {
                break;
            }
            *message = None;
        }
        while self
            .messages
            .front()
            .is_some_and(|(_, message)| message.is_none())
        {
            self.messages.pop_front();
        }
    }

    /// Messages that are only in the log, and not gone.
    pub fn live_in_log(&self) -> usize {
        let live = self.messages.iter();
        live.filter(|(_, message)| message.is_some()).count()
    }
}

/// What was found.
#[derive(Debug)]
pub struct Recovered {
    /// All definitions.
    pub definitions: DefinitionMap,
    pub(crate) queues: HashMap<StreamId, QueueParts>,
    pub(crate) next_stream: u64,
    claimed: HashSet<StreamId>,
}

/// A queue that was found.
#[derive(Debug)]
pub struct RecoveredQueue {
    /// Its part of the store.
    pub store: QueueStore,
    /// Messages that are in the log only, in order. Those in segments come before.
    pub messages: Vec<(QueueSeq, Message)>,
    /// The place of the next message.
    pub next_seq: QueueSeq,
}

impl Recovered {
    /// Takes out a queue that is defined; an empty one if nothing was ever in it.
    pub fn claim(
        &mut self,
        store: &Store,
        stream: StreamId,
        durability: Durability,
    ) -> RecoveredQueue {
        self.claimed.insert(stream);
        // Of a queue that never had a message only its definition knows the stream.
        store.retire(stream);
        let parts = self.queues.remove(&stream).unwrap_or_default();
        QueueStore::recovered(store.shared().clone(), stream, durability, parts)
    }

    /// All queues that are defined have been claimed: whatever else is there goes.
    pub fn finish(self, store: &Store) {
        store.request(Request::Sweep(self.claimed));
    }
}
