//! From memory to segments and back: what is written, what is read, what a manifest holds.

use std::collections::BTreeMap;

use wal::StreamId;

use super::QueueStore;
use crate::load::Load;
use crate::manifest::QueueSnapshot;
use crate::message::Message;
use crate::segment::Chunk;
use crate::seq::{QueueSeq, SeqRun};

/// Messages that are to be written to a segment, in order.
#[derive(Debug)]
pub struct Flush {
    /// Every live message from the last flush up to here is among them.
    pub up_to: QueueSeq,
    /// The messages.
    pub messages: Vec<(QueueSeq, Message)>,
}

/// Messages that were written to a segment.
#[derive(Debug)]
pub struct Written {
    pub(crate) flush: Flush,
    pub(crate) chunks: Vec<Chunk>,
}

impl Written {
    /// Every live message before it lies in a segment.
    pub fn up_to(&self) -> QueueSeq {
        self.flush.up_to
    }
}

/// A flush that is being written.
#[derive(Debug)]
pub(super) struct Flushing {
    pub up_to: QueueSeq,
    /// Gone since.
    pub gone: Vec<SeqRun>,
}

impl Flushing {
    /// A message is gone.
    #[cold]
    pub fn note_gone(&mut self, seq: QueueSeq) {
        if seq < self.up_to {
            let run = SeqRun {
                first: seq,
                count: 1,
            };
            self.gone.push(run);
        }
    }
}

impl QueueStore {
    /// Notes that messages before `up_to` are being written; [`QueueStore::complete_flush`] or
    /// [`QueueStore::abort_flush`] follows.
    pub fn begin_flush(&mut self, up_to: QueueSeq) {
        let gone = Vec::new();
        self.flushing = Some(Flushing { up_to, gone });
    }

    /// They could not be written: all is as it was.
    pub fn abort_flush(&mut self) {
        self.flushing = None;
    }

    /// They lie in segments now. False if the queue was closed meanwhile.
    pub fn complete_flush(&mut self, written: &mut Written) -> bool {
        let Some(flushing) = self.flushing.take() else {
            return false;
        };
        for chunk in written.chunks.drain(..) {
            self.next_segment = self.next_segment.max(chunk.place.segment + 1);
            self.index.push(chunk);
        }
        for run in flushing.gone {
            self.remove_from_index(run);
        }
        let (index, messages) = (&self.index, &written.flush.messages);
        // What went meanwhile was taken out of the counts when it went.
        let moved = |from| {
            let start = messages.partition_point(|(seq, _)| *seq < from);
            let counted = messages[start..]
                .iter()
                .filter(|(_, message)| message.is_persistent());
            counted.filter(|(seq, _)| index.is_live(*seq)).count() as u64
        };
        self.marks
            .flushed(&self.shared.liveness, flushing.up_to, moved);
        self.flushed = flushing.up_to;
        true
    }

    /// What to read next: chunks with live messages from `from` on, at most `max_bytes` of them,
    /// but at least one; `None` if there is nothing.
    pub fn plan_load(&self, from: QueueSeq, max_bytes: usize) -> Option<Load> {
        let mut bytes = 0;
        let chunks: Vec<Chunk> = self
            .index
            .from(from)
            .take_while(|chunk| {
                let fits = bytes == 0 || bytes + chunk.place.size as usize <= max_bytes;
                bytes += chunk.place.size as usize;
                fits
            })
            .cloned()
            .collect();
        let end = chunks.last()?.end();
        Some(Load {
            stream: self.stream,
            from,
            end,
            look: false,
            chunks,
        })
    }

    /// What to read to see which messages expire by themselves: the next chunk before `to` that
    /// holds any; `None` if there is none.
    pub fn plan_look(&self, from: QueueSeq, to: QueueSeq) -> Option<Load> {
        let mut chunks = self.index.from(from).take_while(|chunk| chunk.first < to);
        let chunk = chunks.find(|chunk| chunk.expiring)?.clone();
        Some(Load {
            stream: self.stream,
            from: from.max(chunk.first),
            end: chunk.end(),
            look: true,
            chunks: vec![chunk],
        })
    }

    /// True if a live message lies in a segment at that place.
    pub fn is_live(&self, seq: QueueSeq) -> bool {
        self.index.is_live(seq)
    }

    /// True if the message at that place, which is not gone, need not be kept in memory: it lies
    /// in a segment. What a queue that ends with the process took out for good, and then put back,
    /// lies nowhere.
    #[inline]
    pub fn is_flushed(&self, seq: QueueSeq) -> bool {
        seq < self.flushed && (self.logged || self.index.is_live(seq))
    }

    /// Live messages in segments from a place on.
    pub fn count_from(&self, from: QueueSeq) -> usize {
        let chunks = self.index.from(from);
        chunks
            .map(|chunk| {
                if chunk.first >= from {
                    return chunk.live as usize;
                }
                let places = from.0..chunk.end().0;
                places.filter(|seq| chunk.is_live(QueueSeq(*seq))).count()
            })
            .sum()
    }

    /// About how many bytes those have: of what is gone from a chunk only the share is known.
    pub fn bytes_from(&self, from: QueueSeq) -> u64 {
        let chunks = self.index.from(from);
        chunks
            .map(|chunk| {
                let share = u64::from(chunk.live) * u64::from(chunk.place.size);
                share / u64::from(chunk.span.max(1))
            })
            .sum()
    }

    /// The place behind the first chunk in segments that something is left of, when its newest
    /// message came (0 = not known), and its size.
    pub fn first_chunk(&self) -> Option<(QueueSeq, u64, u64)> {
        let first = self.index.first()?;
        Some((first.end(), first.newest, first.place.size.into()))
    }

    /// Bytes of the chunks that something is left of.
    pub fn segment_bytes(&self) -> u64 {
        self.index.live_bytes()
    }

    /// Where the first chunk begins whose newest message came at that time or later.
    pub fn chunk_at_time(&self, time: u64) -> Option<QueueSeq> {
        let mut chunks = self.index.chunks().filter(|chunk| chunk.live > 0);
        chunks
            .find(|chunk| chunk.newest >= time)
            .map(|chunk| chunk.first)
    }

    /// The first live message in segments from a place on.
    pub fn next_live(&self, from: QueueSeq) -> Option<QueueSeq> {
        self.index.from(from).find_map(|chunk| {
            let places = chunk.first.max(from).0..chunk.end().0;
            let mut places = places.map(QueueSeq);
            places.find(|seq| chunk.is_live(*seq))
        })
    }

    /// What a manifest must hold of the queue, if it survives the process. Segments that nothing
    /// needs are given over for removal ([`QueueStore::take_doomed`]) once that is durable.
    pub(crate) fn snapshot(&mut self, next_seq: QueueSeq, active: Option<u64>) -> QueueSnapshot {
        self.index.tidy(active);
        let chunks = self.index.chunks().map(Chunk::without_transient);
        QueueSnapshot {
            stream: self.stream,
            flushed: self.flushed,
            delivered: self.delivered,
            next_seq,
            next_segment: self.next_segment,
            returns: self.returns.snapshot(),
            remembered: self.memory.snapshot(),
            chunks: chunks.filter(|chunk| chunk.live > 0).collect(),
        }
    }

    /// Segments of which less than a quarter is needed, though all of it had its turn.
    pub(crate) fn sparse_segments(&self, active: Option<u64>) -> Vec<u64> {
        let mut ends: BTreeMap<u64, QueueSeq> = BTreeMap::new();
        for chunk in self.index.chunks() {
            let end = ends.entry(chunk.place.segment).or_default();
            *end = chunk.end().max(*end);
        }
        let segments = self.index.segments().filter(|(number, used)| {
            let had_its_turn = ends.get(number).is_some_and(|end| *end <= self.delivered);
            let is_sparse = used.live > 0 && used.live < used.messages / 4;
            is_sparse && had_its_turn && Some(*number) != active
        });
        segments.map(|(number, _)| number).collect()
    }

    /// All of a segment that is needed, and the places that no chunk may reach over when it is
    /// written anew: chunks of other segments lie there.
    pub(crate) fn plan_segment(&self, segment: u64) -> Option<(Load, Vec<QueueSeq>)> {
        let (mut chunks, mut ends) = (Vec::<Chunk>::new(), Vec::new());
        for chunk in self.index.chunks() {
            if chunk.place.segment != segment {
                let end = chunks.last().map(Chunk::end);
                ends.extend(end.filter(|end| ends.last() != Some(end)));
            } else if chunk.live > 0 {
                chunks.push(chunk.clone());
            }
        }
        let load = Load {
            stream: self.stream,
            from: QueueSeq(0),
            end: chunks.last()?.end(),
            look: false,
            chunks,
        };
        Some((load, ends))
    }

    /// What was needed of a segment lies in these chunks now.
    pub(crate) fn replace_segment(&mut self, segment: u64, chunks: Vec<Chunk>) {
        let mut kept = Vec::new();
        for mut chunk in chunks {
            self.next_segment = self.next_segment.max(chunk.place.segment + 1);
            for place in chunk.first.0..chunk.end().0 {
                // Some may have gone since they were read.
                if !self.index.is_live(QueueSeq(place)) {
                    chunk.remove(QueueSeq(place));
                }
            }
            kept.push(chunk);
        }
        self.index.take_segment(segment);
        kept.into_iter().for_each(|chunk| self.index.push(chunk));
    }

    pub(crate) fn has_segment(&self, number: u64) -> bool {
        self.index.has_segment(number)
    }

    /// Number of the next segment.
    pub(crate) fn next_segment(&self) -> u64 {
        self.next_segment
    }

    /// That segment could not be removed yet.
    pub(crate) fn doom_again(&mut self, segment: u64) {
        self.index.doom(segment);
    }

    pub(crate) fn take_doomed(&mut self) -> Vec<(StreamId, u64)> {
        let doomed = self.index.take_doomed().into_iter();
        doomed.map(|segment| (self.stream, segment)).collect()
    }

    /// Messages in segments that are not gone.
    pub(crate) fn live_in_segments(&self) -> u64 {
        self.index.live()
    }
}
