//! Messages that must wait for a time before they may go on: those of an `x-delayed-message`
//! exchange, whose queue this is a part of.
//!
//! ```text
//! far: time and place, 16 bytes each │ near: due within some seconds, bodies in memory │ due
//! ```
//!
//! All bodies are in the log or in segments as those of any queue. In memory are the young ones and
//! those that are near; a body that is not is read before its time comes. Counting them is O(1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use amqp::{Properties, Value};
use store::{Loaded, Message, QueueSeq};

use crate::clock::Millis;

/// How long before their time bodies are brought into memory.
const HORIZON: Millis = 5_000;
/// Messages that are near at a time, at most.
const MAX_NEAR: usize = 64 * 1024;
/// The header that says how long a message is to wait, in milliseconds.
pub(crate) const X_DELAY: &str = "x-delay";

/// How long a message is to wait, if it says so.
pub(crate) fn delay(properties: Properties<'_>) -> Option<Millis> {
    let delay = match properties.headers()?.get(X_DELAY)? {
        Value::LongStr(text) => std::str::from_utf8(text).ok()?.trim().parse().ok()?,
        Value::F64(number) => number as i64,
        Value::F32(number) => number as i64,
        number => number.as_i64()?,
    };
    Millis::try_from(delay).ok().filter(|delay| *delay > 0)
}

/// When a message may go on. One that does not say when it came has waited long enough.
fn due(message: &Message) -> Millis {
    let Some(times) = message.times() else {
        return 0;
    };
    let delay = delay(Properties::from_wire(message.properties()));
    times.arrival.saturating_add(delay.unwrap_or(0))
}

/// Messages that wait for their time.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    far: BinaryHeap<Reverse<(Millis, QueueSeq)>>,
    near: BTreeSet<(Millis, QueueSeq)>,
    /// Near, and not in memory.
    missing: BTreeSet<QueueSeq>,
    resident: BTreeMap<QueueSeq, (Millis, Message)>,
    bytes: usize,
    /// What a restart has found in segments is looked through from here on,
    unseen_from: Option<QueueSeq>,
    /// up to here.
    unseen_to: QueueSeq,
    /// How many those may be.
    unseen: usize,
    /// A read is under way.
    pub loading: bool,
}

impl Delayed {
    /// What a restart has found: these, and so many in segments, before that place.
    pub fn recovered(
        messages: Vec<(QueueSeq, Message)>,
        in_segments: usize,
        flushed: QueueSeq,
    ) -> Self {
        let mut delayed = Delayed {
            unseen_from: (in_segments > 0).then_some(QueueSeq(0)),
            unseen_to: flushed,
            unseen: in_segments,
            ..Delayed::default()
        };
        for (seq, message) in messages {
            delayed.add(seq, message);
        }
        delayed
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.far.len() + self.near.len() + self.unseen
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a message, which is kept in memory for now.
    pub fn add(&mut self, seq: QueueSeq, message: Message) {
        let due = due(&message);
        self.far.push(Reverse((due, seq)));
        self.keep(seq, due, message);
    }

    fn keep(&mut self, seq: QueueSeq, due: Millis, message: Message) {
        self.bytes += message.stored_len();
        if let Some((_, before)) = self.resident.insert(seq, (due, message)) {
            self.bytes -= before.stored_len();
        }
    }

    /// One that could not go on waits once more.
    pub fn put_off(&mut self, seq: QueueSeq, message: Option<Message>, until: Millis) {
        self.far.push(Reverse((until, seq)));
        if let Some(message) = message {
            self.keep(seq, until, message);
        }
    }

    /// Moves what will be due soon to the near ones.
    pub fn approach(&mut self, now: Millis) {
        while self.near.len() < MAX_NEAR
            && let Some(Reverse((due, seq))) = self.far.peek().copied()
            && due <= now.saturating_add(HORIZON)
        {
            self.far.pop();
            self.near.insert((due, seq));
            if !self.resident.contains_key(&seq) {
                self.missing.insert(seq);
            }
        }
    }

    /// Takes the next one that is due, in order of time. One that has still to be read holds up
    /// those behind it.
    pub fn take_due(&mut self, now: Millis) -> Option<(QueueSeq, Message)> {
        let (due, seq) = *self.near.first()?;
        if due > now {
            return None;
        }
        let (_, message) = self.resident.remove(&seq)?;
        self.near.pop_first();
        self.bytes -= message.stored_len();
        Some((seq, message))
    }

    /// When to look again.
    pub fn next(&self) -> Option<Millis> {
        let due = self.near.first().map(|(due, _)| *due);
        // Somewhat before the horizon is full, so that bodies are read in good time.
        let approaching = self
            .far
            .peek()
            .map(|next| next.0.0.saturating_sub(HORIZON / 2));
        // What is missing calls when it has come.
        let due = due.filter(|_| self.missing.is_empty());
        due.into_iter().chain(approaching).min()
    }

    /// From where on to read, if something is missing.
    pub fn wants_load(&self) -> Option<QueueSeq> {
        if self.loading {
            return None;
        }
        self.missing.first().copied().or(self.unseen_from)
    }

    /// Takes in what was read. `is_live` says what has not gone.
    pub fn loaded(
        &mut self,
        loaded: Loaded,
        now: Millis,
        mut is_live: impl FnMut(QueueSeq) -> bool,
    ) {
        self.loading = false;
        let (from, end) = (loaded.from, loaded.end);
        let looking = self.unseen_from == Some(from);
        for (seq, message) in loaded.messages {
            let was_missing = self.missing.remove(&seq);
            if !is_live(seq) {
                continue;
            }
            let due = due(&message);
            if was_missing {
                self.keep(seq, due, message);
            } else if looking && seq < self.unseen_to {
                self.unseen = self.unseen.saturating_sub(1);
                self.far.push(Reverse((due, seq)));
                if due <= now.saturating_add(HORIZON) {
                    self.keep(seq, due, message);
                }
            }
        }
        if looking && end > from {
            self.unseen_from = Some(end).filter(|end| *end < self.unseen_to);
            if self.unseen_from.is_none() {
                self.unseen = 0;
            }
        }
        // What was to be found there has been found.
        let lost: Vec<QueueSeq> = match end > from {
            true => self.missing.range(from..end).copied().collect(),
            false => Vec::new(),
        };
        lost.into_iter().for_each(|seq| self.lose(seq));
    }

    /// Nothing is left in segments from there on.
    pub fn none_to_load(&mut self, from: QueueSeq) {
        if self.unseen_from == Some(from) {
            self.unseen_from = None;
            self.unseen = 0;
        }
        let lost: Vec<QueueSeq> = self.missing.range(from..).copied().collect();
        lost.into_iter().for_each(|seq| self.lose(seq));
    }

    fn lose(&mut self, seq: QueueSeq) {
        tracing::error!(place = seq.0, "a delayed message is missing in its segment");
        self.missing.remove(&seq);
        self.near.retain(|(_, other)| *other != seq);
    }

    /// Messages from a place on that are in memory, in order.
    pub fn resident_from(&self, from: QueueSeq) -> impl Iterator<Item = (QueueSeq, &Message)> {
        let behind = self.resident.range(from..);
        behind.map(|(seq, (_, message))| (*seq, message))
    }

    /// Forgets bodies that lie in segments and are not near. Returns what is to be dropped where no
    /// lock is held.
    pub fn evict(
        &mut self,
        flushed: QueueSeq,
        now: Millis,
        is_flushed: impl Fn(QueueSeq) -> bool,
    ) -> Vec<Message> {
        let near = now.saturating_add(HORIZON);
        let before = self.resident.range(..flushed);
        let far: Vec<QueueSeq> = before
            .filter(|(seq, (due, _))| *due > near && is_flushed(**seq))
            .map(|(seq, _)| *seq)
            .collect();
        let dropped: Vec<Message> = far
            .into_iter()
            .filter_map(|seq| self.resident.remove(&seq).map(|(_, message)| message))
            .collect();
        self.bytes -= dropped.iter().map(Message::stored_len).sum::<usize>();
        dropped
    }
}
