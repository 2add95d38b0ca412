//! The index of a queue's segments: where its messages lie, and which of them are gone.
//!
//! One descriptor of some fifty bytes for each chunk, and a map of gone places only where some
//! are gone and others are not: far below one byte a message.

use std::collections::{BTreeMap, VecDeque};

use super::chunk::Closed;
use crate::message::Message;
use crate::seq::{QueueSeq, SeqRun};

/// Where a chunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub segment: u64,
    pub offset: u64,
    pub size: u32,
}

/// A chunk's descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub place: Place,
    pub first: QueueSeq,
    /// Places from the first message to the last.
    pub span: u32,
    /// Messages that are not gone.
    pub live: u32,
    /// A bit for each place in the span: nothing is there any more, or ever was. `None` where
    /// every place holds a live message.
    pub gone: Option<Box<[u64]>>,
    /// A bit for each place that ends with the process. `None` where there are none.
    pub transient: Option<Box<[u64]>>,
    /// Some of its messages expire by themselves.
    pub expiring: bool,
    /// When the last of its messages came, in milliseconds of the Unix epoch; 0 = not known.
    pub newest: u64,
}

/// What is to be remembered of messages that were written, besides their places.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traits {
    pub expiring: bool,
    pub newest: u64,
}

impl Traits {
    pub fn of(messages: &[(QueueSeq, Message)]) -> Traits {
        let mut traits = Traits::default();
        for (_, message) in messages {
            if let Some(times) = message.times() {
                traits.expiring |= times.expiration.is_some();
                traits.newest = traits.newest.max(times.arrival);
            }
        }
        traits
    }
}

fn bit(place: u64) -> (usize, u64) {
    ((place / 64) as usize, 1 << (place % 64))
}

fn words(span: u32) -> usize {
    (span as usize).div_ceil(64)
}

impl Chunk {
    /// A chunk that was just written, `places` being those of its messages.
    pub fn new(
        closed: &Closed,
        segment: u64,
        offset: u64,
        places: impl Iterator<Item = (QueueSeq, bool)>,
        traits: Traits,
    ) -> Chunk {
        let span = (closed.end.0 - closed.first.0) as u32;
        let mut gone =
            (closed.count < span).then(|| vec![u64::MAX; words(span)].into_boxed_slice());
        let mut transient: Option<Box<[u64]>> = None;
        for (seq, persistent) in places {
            let (word, mask) = bit(seq.0 - closed.first.0);
            if let Some(gone) = &mut gone {
                gone[word] &= !mask;
            }
            if !persistent {
                transient.get_or_insert_with(|| vec![0; words(span)].into())[word] |= mask;
            }
        }
        Chunk {
            place: Place {
                segment,
                offset,
                size: closed.size as u32,
            },
            first: closed.first,
            span,
            live: closed.count,
            gone,
            transient,
            expiring: traits.expiring,
            newest: traits.newest,
        }
    }

    /// The place behind its last.
    pub fn end(&self) -> QueueSeq {
        QueueSeq(self.first.0 + u64::from(self.span))
    }

    /// True if a live message is at that place.
    pub fn is_live(&self, seq: QueueSeq) -> bool {
        if self.live == 0 || seq < self.first || seq >= self.end() {
            return false;
        }
        let (word, mask) = bit(seq.0 - self.first.0);
        self.gone.as_ref().is_none_or(|gone| gone[word] & mask == 0)
    }

    /// Marks a place as gone; false if it was already.
    pub fn remove(&mut self, seq: QueueSeq) -> bool {
        if !self.is_live(seq) {
            return false;
        }
        let words = words(self.span);
        let gone = self.gone.get_or_insert_with(|| vec![0; words].into());
        let (word, mask) = bit(seq.0 - self.first.0);
        gone[word] |= mask;
        self.live -= 1;
        if self.live == 0 {
            self.gone = None;
        }
        true
    }

    /// As it will be after a restart: without transient messages.
    pub fn without_transient(&self) -> Chunk {
        let mut chunk = self.clone();
        if let Some(transient) = chunk.transient.take() {
            for place in 0..u64::from(chunk.span) {
                let (word, mask) = bit(place);
                if transient[word] & mask != 0 {
                    chunk.remove(QueueSeq(chunk.first.0 + place));
                }
            }
        }
        chunk
    }
}

/// How much of a segment is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentUse {
    /// Bytes of its chunks.
    pub bytes: u64,
    /// Messages that were written to it.
    pub messages: u64,
    /// Those that are not gone.
    pub live: u64,
}

/// A queue's chunks in order of their places.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: VecDeque<Chunk>,
    segments: BTreeMap<u64, SegmentUse>,
    /// Segments that nothing needs once a manifest without them is durable.
    doomed: Vec<u64>,
}

impl Index {
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    pub fn segments(&self) -> impl Iterator<Item = (u64, SegmentUse)> {
        self.segments.iter().map(|(number, used)| (*number, *used))
    }

    /// True if a chunk of that segment is known, or was.
    pub fn has_segment(&self, number: u64) -> bool {
        self.segments.contains_key(&number)
    }

    /// Messages that are not gone.
    pub fn live(&self) -> u64 {
        self.segments.values().map(|used| used.live).sum()
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.segments.values().map(|used| used.bytes).sum()
    }

    /// Adds a chunk; its places are behind those of all others, unless it comes from compaction.
    /// No place lies in two chunks, nor between the first and the last of another.
    pub fn push(&mut self, chunk: Chunk) {
        let used = self.segments.entry(chunk.place.segment).or_default();
        used.bytes += u64::from(chunk.place.size);
        used.messages += u64::from(chunk.live);
        used.live += u64::from(chunk.live);
        let at = self
            .chunks
            .partition_point(|other| other.first < chunk.first);
        debug_assert!(at == 0 || self.chunks[at - 1].end() <= chunk.first);
        debug_assert!(
            self.chunks
                .get(at)
                .is_none_or(|next| chunk.end() <= next.first)
        );
        if at == self.chunks.len() {
            self.chunks.push_back(chunk);
        } else {
            self.chunks.insert(at, chunk);
        }
    }

    /// The first chunk with something live in it.
    pub fn first(&self) -> Option<&Chunk> {
        self.chunks.iter().find(|chunk| chunk.live > 0)
    }

    /// Bytes of chunks with something live in them.
    pub fn live_bytes(&self) -> u64 {
        let live = self.chunks.iter().filter(|chunk| chunk.live > 0);
        live.map(|chunk| u64::from(chunk.place.size)).sum()
    }

    /// The first chunk with a live place at or behind `seq`, and its position.
    pub fn find(&self, seq: QueueSeq) -> Option<&Chunk> {
        let from = self.chunks.partition_point(|chunk| chunk.end() <= seq);
        self.chunks.range(from..).find(|chunk| chunk.live > 0)
    }

    /// Chunks with live places at or behind `seq`.
    pub fn from(&self, seq: QueueSeq) -> impl Iterator<Item = &Chunk> {
        let from = self.chunks.partition_point(|chunk| chunk.end() <= seq);
        self.chunks.range(from..).filter(|chunk| chunk.live > 0)
    }

    /// True if a live message lies at that place.
    pub fn is_live(&self, seq: QueueSeq) -> bool {
        self.find(seq).is_some_and(|chunk| chunk.is_live(seq))
    }

    /// Marks places as gone. Returns the bytes of segments that nothing needs any more for that
    /// reason.
    pub fn remove(&mut self, run: SeqRun) -> u64 {
        let mut dead = 0;
        let mut at = self
            .chunks
            .partition_point(|chunk| chunk.end() <= run.first);
        while let Some(chunk) = self.chunks.get_mut(at) {
            if chunk.first >= run.end() {
                break;
            }
            let before = chunk.live;
            if run.first <= chunk.first && run.end() >= chunk.end() {
                chunk.live = 0;
                chunk.gone = None;
            } else {
                let from = run.first.max(chunk.first).0;
                let to = run.end().min(chunk.end()).0;
                for seq in from..to {
                    chunk.remove(QueueSeq(seq));
                }
            }
            let removed = u64::from(before - chunk.live);
            let segment = chunk.place.segment;
            dead += self.less(segment, removed);
            at += 1;
        }
        while self.chunks.front().is_some_and(|chunk| chunk.live == 0) {
            self.chunks.pop_front();
        }
        dead
    }

    fn less(&mut self, segment: u64, removed: u64) -> u64 {
        match self.segments.get_mut(&segment) {
            Some(used) if removed > 0 => {
                used.live -= removed;
                if used.live == 0 { used.bytes } else { 0 }
            }
            _ => 0,
        }
    }

    /// Drops what nothing needs: dead chunks, and segments without live messages, but for the one
    /// that is written to.
    pub fn tidy(&mut self, active: Option<u64>) {
        self.chunks.retain(|chunk| chunk.live > 0);
        let doomed = &mut self.doomed;
        self.segments.retain(|number, used| {
            let keep = used.live > 0 || Some(*number) == active;
            if !keep {
                doomed.push(*number);
            }
            keep
        });
    }

    /// Segments that may be removed once what [`Index::chunks`] says is in a durable manifest.
    pub fn take_doomed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.doomed)
    }

    /// That segment could not be removed yet.
    pub fn doom(&mut self, segment: u64) {
        self.doomed.push(segment);
    }

    /// Takes out the chunks of a segment, whose live messages are written elsewhere.
    pub fn take_segment(&mut self, number: u64) -> Vec<Chunk> {
        let (taken, kept): (Vec<Chunk>, _) = std::mem::take(&mut self.chunks)
            .into_iter()
            .partition(|chunk| chunk.place.segment == number);
        self.chunks = kept.into();
        if let Some(used) = self.segments.get_mut(&number) {
            used.live = 0;
        }
        taken
    }
}
