//! Messages that wait for a consumer, in order of sequence numbers.
//!
//! ```text
//! front: in memory │ paged: on disk only │ back: in memory
//! ```
//!
//! A queue that is short has all of them in front. When it keeps too much in memory, what lies in
//! segments already and is far from its turn is forgotten here: only counted, and read again when
//! its turn comes. New messages then go to the back. Places in front are below those that are
//! paged, and these are below those in the back.
//!
//! A message that leaves from the middle, because it has expired, leaves an empty place behind:
//! so it costs a search and no move. The first place in front is never empty.

use std::collections::VecDeque;

use store::{Loaded, Message, QueueSeq};

/// One waiting message.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// `None`: it lies in a segment, and must be read first.
    pub message: Option<Message>,
    pub seq: QueueSeq,
    /// Bytes of its body.
    pub body_len: u32,
    /// It was out for delivery before.
    pub redelivered: bool,
    /// Nothing is here any more.
    gone: bool,
}

/// What was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Appended {
    pub count: usize,
    /// Some of them say when they came.
    pub timed: bool,
}

/// A waiting message that was looked for by its place.
#[derive(Debug)]
pub(super) enum Found {
    /// Taken out.
    Taken(Entry),
    /// If it waits, it does so in a segment: [`Ready::take_paged`] if the store knows it.
    Paged,
    /// It does not wait.
    No,
}

impl Entry {
    #[inline]
    pub fn new(message: Message, seq: QueueSeq, redelivered: bool) -> Self {
        Entry {
            body_len: message.body_len() as u32,
            message: Some(message),
            seq,
            redelivered,
            gone: false,
        }
    }

    /// One that came back from a consumer. Without its message it lies in a segment, with a body of
    /// that length.
    pub fn returned(message: Option<Message>, seq: QueueSeq, body_len: u32) -> Self {
        let in_memory = message.as_ref().map(|message| message.body_len() as u32);
        Entry {
            message,
            seq,
            body_len: in_memory.unwrap_or(body_len),
            redelivered: true,
            gone: false,
        }
    }

    /// One that waits in a segment.
    pub fn unread(seq: QueueSeq, body_len: u32) -> Self {
        Entry {
            message: None,
            seq,
            body_len,
            redelivered: false,
            gone: false,
        }
    }

    fn bytes(&self) -> usize {
        self.message.as_ref().map_or(0, cost)
    }
}

/// Memory that a waiting message takes.
#[inline]
fn cost(message: &Message) -> usize {
    message.stored_len() + std::mem::size_of::<Entry>() + 16
}

/// An empty queue keeps room for this many messages; a backlog's worth is given back.
pub(super) const MAX_IDLE_CAPACITY: usize = 16_384;
/// Empty places that are left where they are, whatever their share.
const MAX_GAPS: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Bytes of messages next in turn that stay in memory.
    window: usize,
    front: VecDeque<Entry>,
    front_bytes: usize,
    /// How many are on disk only, between front and back.
    paged: usize,
    /// Those are at this place or behind it.
    paged_from: QueueSeq,
    back: VecDeque<Entry>,
    back_bytes: usize,
    /// Empty places in front and back.
    gaps: usize,
    /// Bytes of all bodies; of those that a restart has found in segments, an estimate.
    body_bytes: u64,
    next_seq: QueueSeq,
    /// Every place that was ever taken is below this: what is paged never is.
    taken: QueueSeq,
    /// A read from the segments is under way.
    pub loading: bool,
}

impl Ready {
    /// What a restart has found: so many in segments, from a place on, with so many bytes of
    /// bodies; then these.
    pub fn recovered(
        (paged, body_bytes): (usize, u64),
        paged_from: QueueSeq,
        messages: impl Iterator<Item = Entry>,
        next_seq: QueueSeq,
        window: usize,
    ) -> Ready {
        let mut ready = Ready {
            window,
            paged,
            paged_from,
            next_seq,
            body_bytes,
            ..Ready::default()
        };
        messages.for_each(|entry| ready.push_back(entry));
        ready
    }

    pub fn len(&self) -> usize {
        self.front.len() + self.paged + self.back.len() - self.gaps
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes in memory.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.front_bytes + self.back_bytes
    }

    /// Bytes of all bodies.
    #[inline]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The place that the next message gets.
    #[inline]
    pub fn next_seq(&self) -> QueueSeq {
        self.next_seq
    }

    /// Gives the next place to a message that does not wait here.
    pub fn take_place(&mut self) -> QueueSeq {
        let seq = self.next_seq;
        self.next_seq = seq.next();
        seq
    }

    fn push_back(&mut self, entry: Entry) {
        let bytes = entry.bytes();
        self.body_bytes += u64::from(entry.body_len);
        if self.paged == 0 && self.back.is_empty() {
            self.front_bytes += bytes;
            self.front.push_back(entry);
        } else {
            self.back_bytes += bytes;
            self.back.push_back(entry);
        }
    }

    /// Adds new messages.
    #[inline]
    pub fn append(&mut self, messages: impl Iterator<Item = Message>) -> Appended {
        let first = self.next_seq;
        let mut timed = false;
        for message in messages {
            let seq = self.next_seq;
            self.next_seq = seq.next();
            timed |= message.is_timed();
            self.push_back(Entry::new(message, seq, false));
        }
        Appended {
            count: (self.next_seq.0 - first.0) as usize,
            timed,
        }
    }

    /// The last `count` that were appended.
    #[inline]
    pub fn last(&self, count: usize) -> impl Iterator<Item = (QueueSeq, &Message)> + Clone {
        let entries = if self.back.is_empty() {
            &self.front
        } else {
            &self.back
        };
        let entries = entries.range(entries.len() - count..);
        entries.filter_map(|entry| Some((entry.seq, entry.message.as_ref()?)))
    }

    /// Messages in front, in order, up to the first that has to be read.
    #[inline]
    pub fn at_hand(&mut self) -> impl Iterator<Item = &Message> {
        self.places_at_hand().map(|(_, message)| message)
    }

    /// The same, with their places.
    #[inline]
    pub fn places_at_hand(&mut self) -> impl Iterator<Item = (QueueSeq, &Message)> {
        self.turn_over();
        let waiting = self.front.iter().filter(|entry| !entry.gone);
        waiting.map_while(|entry| Some((entry.seq, entry.message.as_ref()?)))
    }

    /// The next one, if something is known of it in memory.
    #[inline]
    pub fn first(&mut self) -> Option<&Entry> {
        self.turn_over();
        self.front.front()
    }

    /// What is in the back comes to the front, if that is its turn.
    #[inline]
    fn turn_over(&mut self) {
        if self.front.is_empty() && self.paged == 0 && !self.back.is_empty() {
            std::mem::swap(&mut self.front, &mut self.back);
            std::mem::swap(&mut self.front_bytes, &mut self.back_bytes);
            self.trim();
        }
    }

    /// True if the next message is in memory.
    #[inline]
    pub fn has_next(&mut self) -> bool {
        self.first().is_some_and(|entry| entry.message.is_some())
    }

    /// Takes the next message, if it is in memory.
    #[inline]
    pub fn pop(&mut self) -> Option<(Message, QueueSeq, bool)> {
        self.turn_over();
        self.front.front()?.message.as_ref()?;
        let entry = self.front.pop_front()?;
        self.popped(&entry);
        Some((entry.message?, entry.seq, entry.redelivered))
    }

    /// Takes the next message, whether it is in memory or not. `next_live` says where the first one
    /// lies in a segment from a place on.
    pub fn pop_any(
        &mut self,
        next_live: impl FnOnce(QueueSeq) -> Option<QueueSeq>,
    ) -> Option<Entry> {
        if let Some(entry) = self.pop_resident() {
            return Some(entry);
        }
        if self.paged == 0 {
            return None;
        }
        let Some(seq) = next_live(self.paged_from) else {
            self.none_to_load(self.paged_from);
            return self.pop_resident();
        };
        self.paged_from = seq.next();
        self.taken = self.taken.max(self.paged_from);
        let body_len = self.take_paged();
        Some(Entry::unread(seq, body_len))
    }

    /// Takes the first one, if something is known of it in memory.
    #[inline]
    fn pop_resident(&mut self) -> Option<Entry> {
        self.turn_over();
        let entry = self.front.pop_front()?;
        self.popped(&entry);
        Some(entry)
    }

    /// That was the first one in front.
    #[inline]
    fn popped(&mut self, entry: &Entry) {
        self.front_bytes -= entry.bytes();
        self.body_bytes = self.body_bytes.saturating_sub(entry.body_len.into());
        self.taken = self.taken.max(entry.seq.next());
        if self.gaps > 0 || self.front.is_empty() {
            self.trim();
        }
    }

    /// Takes back the message that was appended last.
    pub fn pop_last(&mut self) -> Option<Entry> {
        let (entries, bytes) = match self.back.is_empty() {
            true => (&mut self.front, &mut self.front_bytes),
            false => (&mut self.back, &mut self.back_bytes),
        };
        let entry = entries.pop_back_if(|entry| !entry.gone)?;
        *bytes -= entry.bytes();
        self.body_bytes = self.body_bytes.saturating_sub(entry.body_len.into());
        Some(entry)
    }

    /// The first place in front is not an empty one.
    #[cold]
    fn trim(&mut self) {
        if self.gaps > 0 {
            while self.front.pop_front_if(|entry| entry.gone).is_some() {
                self.gaps -= 1;
            }
        }
        if self.front.is_empty() {
            if self.front.capacity() > MAX_IDLE_CAPACITY {
                self.front = VecDeque::new();
            }
            if self.is_empty() {
                self.body_bytes = 0;
            }
        }
    }

    /// Takes out the message at a place.
    pub fn remove(&mut self, seq: QueueSeq) -> Found {
        let in_back = self.back.front().is_some_and(|first| seq >= first.seq);
        let (entries, bytes) = match in_back {
            true => (&mut self.back, &mut self.back_bytes),
            false => (&mut self.front, &mut self.front_bytes),
        };
        let at = entries.binary_search_by_key(&seq, |entry| entry.seq);
        let Some(entry) = at.ok().and_then(|at| entries.get_mut(at)) else {
            let paged = self.paged > 0 && !in_back && seq >= self.paged_from.max(self.taken);
            return if paged { Found::Paged } else { Found::No };
        };
        if entry.gone {
            return Found::No;
        }
        let taken = entry.clone();
        *bytes -= entry.bytes();
        entry.message = None;
        entry.gone = true;
        self.gaps += 1;
        self.body_bytes = self.body_bytes.saturating_sub(taken.body_len.into());
        self.trim();
        if self.gaps > MAX_GAPS && self.gaps > (self.front.len() + self.back.len()) / 2 {
            self.front.retain(|entry| !entry.gone);
            self.back.retain(|entry| !entry.gone);
            self.gaps = 0;
        }
        Found::Taken(taken)
    }

    /// One that waits in a segment is taken out, without having been read: its size is a guess.
    pub fn take_paged(&mut self) -> u32 {
        let size = self.body_bytes / self.len().max(1) as u64;
        self.paged -= 1;
        self.body_bytes -= size;
        self.trim();
        size as u32
    }

    /// Puts messages back where they were. Costs what lies before the last of them, not the
    /// length of the queue.
    pub fn put_back(&mut self, mut returned: Vec<Entry>) {
        self.front_bytes += returned.iter().map(Entry::bytes).sum::<usize>();
        let body_bytes = returned.iter().map(|entry| u64::from(entry.body_len));
        self.body_bytes += body_bytes.sum::<u64>();
        returned.sort_unstable_by_key(|entry| entry.seq);
        let Some(last) = returned.last() else { return };
        let before_last = self.front.partition_point(|entry| entry.seq < last.seq);
        let mut overtaken: Vec<Entry> = self.front.drain(..before_last).collect();
        // Merge from the back, so that each entry is pushed to the front once.
        while let Some(entry) = returned.pop() {
            while let Some(other) = overtaken.pop_if(|other| other.seq > entry.seq) {
                self.front.push_front(other);
            }
            self.front.push_front(entry);
        }
        while let Some(entry) = overtaken.pop() {
            self.front.push_front(entry);
        }
    }

    /// From where on to read, if it is time to: little is at hand, and more is on disk.
    pub fn wants_load(&self) -> Option<QueueSeq> {
        if self.loading {
            return None;
        }
        self.next_load()
    }

    /// From where on to read, whether a read is under way or not: one too many does no harm.
    pub fn next_load(&self) -> Option<QueueSeq> {
        if let Some(first) = self.front.front()
            && first.message.is_none()
        {
            return Some(first.seq);
        }
        (self.paged > 0 && self.front_bytes <= self.window / 2).then_some(self.paged_from)
    }

    /// Takes in what was read. `is_live` says what is still waiting in segments.
    pub fn loaded(
        &mut self,
        loaded: Loaded,
        delivered: QueueSeq,
        mut is_live: impl FnMut(QueueSeq) -> bool,
    ) {
        let Loaded {
            from,
            end,
            messages,
            ..
        } = loaded;
        for (seq, message) in messages {
            if self.paged > 0 && seq >= self.paged_from {
                if is_live(seq) {
                    self.paged -= 1;
                    self.front_bytes += cost(&message);
                    self.front
                        .push_back(Entry::new(message, seq, seq < delivered));
                }
            } else if let Ok(at) = self.front.binary_search_by_key(&seq, |entry| entry.seq)
                && let Some(entry) = self.front.get_mut(at)
                && entry.message.is_none()
                && !entry.gone
            {
                self.front_bytes += cost(&message);
                entry.message = Some(message);
            }
        }
        if self.paged > 0 && end > self.paged_from {
            self.paged_from = end;
        }
        // Whatever was to be found there has been found; what has come back to a place before that
        // meanwhile was not looked for.
        while self
            .front
            .front()
            .is_some_and(|entry| entry.message.is_none() && (from..end).contains(&entry.seq))
        {
            self.drop_first();
        }
    }

    /// The first one cannot be found anywhere.
    fn drop_first(&mut self) {
        if let Some(entry) = self.front.pop_front() {
            self.body_bytes = self.body_bytes.saturating_sub(entry.body_len.into());
            self.trim();
        }
    }

    /// Counts anew what is left in the segments, from where that begins.
    pub fn recount_paged(&mut self, count_from: impl FnOnce(QueueSeq) -> usize) {
        if self.paged > 0 {
            self.paged = count_from(self.paged_from);
        }
    }

    /// Nothing is left in the segments from there on: what was counted was lost.
    pub fn none_to_load(&mut self, from: QueueSeq) {
        if self.paged > 0 && from >= self.paged_from {
            tracing::error!(messages = self.paged, "messages are missing in segments");
            self.paged = 0;
        }
        if self
            .front
            .front()
            .is_some_and(|entry| entry.message.is_none())
        {
            tracing::error!(place = from.0, "a message is missing in its segment");
            self.drop_first();
        }
    }

    /// Messages from a place on that are in memory, in order.
    pub fn resident_from(&self, from: QueueSeq) -> impl Iterator<Item = (QueueSeq, &Message)> {
        let in_order = |entries: &'_ VecDeque<Entry>| entries.partition_point(|e| e.seq < from);
        let front = self.front.range(in_order(&self.front)..);
        let back = self.back.range(in_order(&self.back)..);
        front
            .chain(back)
            .filter_map(|entry| Some((entry.seq, entry.message.as_ref()?)))
    }

    /// Forgets messages that lie in segments (`flushed`) and are not among the next. Those that
    /// were never taken are only counted from now on; of others `is_flushed` says whether they do.
    /// Returns what is to be dropped where no lock is held.
    pub fn evict(
        &mut self,
        flushed: QueueSeq,
        is_flushed: impl Fn(QueueSeq) -> bool,
    ) -> Vec<Message> {
        let mut dropped = Vec::new();
        if self.paged == 0 && self.back.is_empty() {
            self.split();
        }
        self.forget_bodies(is_flushed, &mut dropped);
        let count = self.back.partition_point(|entry| entry.seq < flushed);
        if count == 0 {
            return dropped;
        }
        if self.paged == 0
            && let Some(first) = self.back.front()
        {
            self.paged_from = first.seq;
        }
        for entry in self.back.drain(..count) {
            if entry.gone {
                self.gaps -= 1;
                continue;
            }
            self.paged += 1;
            self.back_bytes -= entry.bytes();
            dropped.extend(entry.message);
        }
        dropped
    }

    /// Where the window ends, the back begins; what came back from consumers stays in front.
    fn split(&mut self) {
        let returned = self.front.partition_point(|entry| entry.seq < self.taken);
        let at = self.window_end().max(returned);
        if at < self.front.len() {
            let bytes: usize = self.front.range(..at).map(Entry::bytes).sum();
            self.back = self.front.split_off(at);
            self.back_bytes = self.front_bytes - bytes;
            self.front_bytes = bytes;
        }
    }

    /// How many entries in front are next in turn.
    fn window_end(&self) -> usize {
        let mut bytes = 0;
        let within = self.front.iter().take_while(|entry| {
            bytes += entry.bytes();
            bytes <= self.window
        });
        within.count()
    }

    /// Those in front that came back from consumers keep their places, but not their bodies.
    fn forget_bodies(&mut self, is_flushed: impl Fn(QueueSeq) -> bool, dropped: &mut Vec<Message>) {
        if self.front_bytes <= 2 * self.window {
            return;
        }
        let at = self.window_end();
        let taken = self.taken;
        for entry in self.front.range_mut(at..) {
            if entry.seq < taken
                && is_flushed(entry.seq)
                && let Some(message) = entry.message.take()
            {
                self.front_bytes -= cost(&message);
                dropped.push(message);
            }
        }
    }

    /// Drops everything. What is returned is to be dropped where no lock is held.
    pub fn clear(&mut self) -> Ready {
        let empty = Ready {
            window: self.window,
            next_seq: self.next_seq,
            taken: self.taken,
            loading: self.loading,
            ..Ready::default()
        };
        std::mem::replace(self, empty)
    }
}
