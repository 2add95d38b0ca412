//! Streams (`x-queue-type: stream`): a log that consumers read, each from where it wants, and that
//! nobody takes anything from. Old messages go when there are too many bytes of them, or by age.
//!
//! An offset is a place. The newest messages are in memory, all others in segments; what a consumer
//! reads from there it reads ahead, for itself. Acknowledgements are credit and nothing else.

use std::collections::VecDeque;

use ahash::HashMap;
use store::{Loaded, Message, QueueSeq, QueueStore};

use super::State;
use super::consumers::ConsumerId;
use super::delivery::Wakes;
use super::lane::{Lane, LaneId};
use super::lease_times::Times;
use super::leases::Lease;
use super::offset::{Filter, Start, StreamOptions};
use crate::clock::Millis;
use crate::outbox::{Delivery, Origin};

/// Bytes of the newest messages that stay in memory.
const WINDOW: usize = 2 * 1024 * 1024;
/// Bytes that a consumer reads ahead.
const READ_AHEAD: usize = 256 * 1024;
/// Messages that are looked at for one consumer under one hold of the lock, if its filter wants few
/// of them.
const MAX_SCAN: usize = 1_024;
/// How often it is looked for messages that are too old, in milliseconds.
const MIN_INTERVAL: Millis = 500;
const MAX_INTERVAL: Millis = 60_000;
/// Chunks, or messages in memory, that go under one hold of the lock.
const MAX_CUTS: usize = 256;
/// Messages after which it is looked whether there are too many.
const CHECK_EVERY: usize = 256;

/// A stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The newest messages, in order, without gaps.
    newest: VecDeque<(QueueSeq, Message)>,
    bytes: usize,
    /// Everything before has gone.
    first: QueueSeq,
    cursors: HashMap<ConsumerId, Cursor>,
    /// Consumers that have read everything.
    at_end: Vec<ConsumerId>,
    since_check: usize,
}

/// Where a consumer is.
#[derive(Debug)]
struct Cursor {
    next: QueueSeq,
    filter: Filter,
    /// What came before that is not wanted.
    not_before: Millis,
    /// Read from segments, and next in turn.
    ahead: VecDeque<(QueueSeq, Message)>,
    /// From where on a read is under way.
    loading: Option<QueueSeq>,
}

/// What a consumer finds where it is.
enum Next {
    Message(QueueSeq, Message),
    /// It must be read first.
    InSegment,
    /// Nothing has come yet.
    End,
}

impl Stream {
    /// What a restart has found: these, and older ones in segments.
    pub fn recovered(
        messages: Vec<(QueueSeq, Message)>,
        store: &QueueStore,
        next: QueueSeq,
    ) -> Self {
        let in_segments = store.next_live(QueueSeq(0));
        let in_log = messages.first().map(|(seq, _)| *seq);
        Stream {
            bytes: messages
                .iter()
                .map(|(_, message)| message.stored_len())
                .sum(),
            newest: messages.into(),
            first: in_segments.or(in_log).unwrap_or(next),
            ..Stream::default()
        }
    }

    /// How many messages it holds, if the next one comes to that place.
    pub fn len(&self, next: QueueSeq) -> usize {
        next.0.saturating_sub(self.first.0) as usize
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next message.
    pub fn add(&mut self, seq: QueueSeq, message: Message) {
        self.bytes += message.stored_len();
        self.newest.push_back((seq, message));
        self.since_check += 1;
    }

    /// Consumers that have something to read again.
    pub fn take_waiting(&mut self) -> Vec<ConsumerId> {
        std::mem::take(&mut self.at_end)
    }

    /// The places of newest messages, from one on.
    pub fn resident_from(&self, from: QueueSeq) -> impl Iterator<Item = (QueueSeq, &Message)> {
        let at = self.newest.partition_point(|(seq, _)| *seq < from);
        let rest = self.newest.range(at..);
        rest.map(|(seq, message)| (*seq, message))
    }

    /// Forgets what lies in segments and is not among the newest.
    pub fn evict(&mut self, flushed: QueueSeq) -> Vec<Message> {
        let mut dropped = Vec::new();
        while self.bytes > WINDOW
            && let Some((_, message)) = self.newest.pop_front_if(|(seq, _)| *seq < flushed)
        {
            self.bytes -= message.stored_len();
            dropped.push(message);
        }
        dropped
    }

    /// A consumer begins to read.
    pub fn start(
        &mut self,
        consumer: ConsumerId,
        options: &StreamOptions,
        store: &QueueStore,
        next: QueueSeq,
    ) {
        let mut not_before = 0;
        let start = match options.start {
            Start::First => self.first,
            Start::Last => QueueSeq(next.0.saturating_sub(1)),
            Start::Next => next,
            Start::Offset(offset) => QueueSeq(offset),
            Start::Time(time) => {
                not_before = time;
                store
                    .chunk_at_time(time)
                    .unwrap_or_else(|| self.newest.front().map_or(next, |(seq, _)| *seq))
            }
        };
        let cursor = Cursor {
            next: start.max(self.first),
            filter: options.filter.clone(),
            not_before,
            ahead: VecDeque::new(),
            loading: None,
        };
        self.cursors.insert(consumer, cursor);
    }

    /// A consumer has ended.
    pub fn stop(&mut self, consumer: ConsumerId) {
        self.cursors.remove(&consumer);
        self.at_end.retain(|other| *other != consumer);
    }

    /// What was read for consumers; returns those that have something to read again.
    pub fn loaded(&mut self, loaded: &Loaded) -> Vec<ConsumerId> {
        let waiting = self
            .cursors
            .iter_mut()
            .filter(|(_, cursor)| cursor.loading == Some(loaded.from));
        waiting
            .map(|(id, cursor)| {
                cursor.loading = None;
                let wanted = loaded
                    .messages
                    .iter()
                    .filter(|(seq, _)| *seq >= cursor.next);
                cursor.ahead = wanted.cloned().collect();
                if cursor.ahead.is_empty() && loaded.end > cursor.next {
                    // It could not be read, or has gone meanwhile.
                    cursor.next = loaded.end;
                }
                *id
            })
            .collect()
    }

    /// What a consumer reads next.
    fn look(&mut self, consumer: ConsumerId) -> Next {
        let Some(cursor) = self.cursors.get_mut(&consumer) else {
            return Next::End;
        };
        cursor.next = cursor.next.max(self.first);
        while cursor
            .ahead
            .pop_front_if(|(seq, _)| *seq < cursor.next)
            .is_some()
        {}
        if let Some((seq, message)) = cursor.ahead.front() {
            return Next::Message(*seq, message.clone());
        }
        let Some((oldest, _)) = self.newest.front() else {
            return Next::InSegment;
        };
        if cursor.next < *oldest {
            return Next::InSegment;
        }
        let at = (cursor.next.0 - oldest.0) as usize;
        match self.newest.get(at) {
            Some((seq, message)) => Next::Message(*seq, message.clone()),
            None => Next::End,
        }
    }

    /// Drops everything before a place; returns the messages that were in memory.
    fn cut(&mut self, first: QueueSeq) -> Vec<(QueueSeq, Message)> {
        self.first = self.first.max(first);
        let mut dropped = Vec::new();
        while let Some(oldest) = self.newest.pop_front_if(|(seq, _)| *seq < first) {
            self.bytes -= oldest.1.stored_len();
            dropped.push(oldest);
        }
        dropped
    }
}

impl State {
    /// A consumer begins to read the stream.
    pub(super) fn start_reading(&mut self, id: ConsumerId, options: &StreamOptions) {
        let State { lanes, rules, .. } = self;
        let Lane { ready, store, .. } = lanes.lowest();
        if let Some(stream) = rules.as_mut().and_then(|rules| rules.stream.as_mut()) {
            stream.start(id, options, store, ready.next_seq());
        }
    }

    #[inline]
    pub(super) fn stream(&mut self) -> Option<&mut Stream> {
        self.rules.as_mut()?.stream.as_mut()
    }

    /// Gives consumers what they have credit for; true if it stopped for having held the lock long
    /// enough.
    pub(super) fn dispatch_stream(&mut self, wakes: &mut Wakes) -> bool {
        let mut budget = super::MAX_PER_HOLD;
        while let Some((id, _)) = self.consumers.front() {
            if budget == 0 {
                return true;
            }
            let (moved, more) = self.feed(id, budget, wakes);
            if more {
                self.consumers.rotate();
            } else {
                self.consumers.deactivate_front();
            }
            budget = budget.saturating_sub(moved.max(1));
        }
        false
    }

    /// Moves messages to one consumer; returns how many, and whether it can take more now.
    fn feed(&mut self, id: ConsumerId, most: usize, wakes: &mut Wakes) -> (usize, bool) {
        let Some(consumer) = self.consumers.get_mut(id) else {
            return (0, false);
        };
        let credit = consumer.credit();
        let batch = self.gather(id, credit.min(most));
        let at_hand = batch.len();
        let (moved, full) = self.send(id, batch, wakes);
        let Some(stream) = self.stream() else {
            return (moved, false);
        };
        if full || credit == moved {
            return (moved, false);
        }
        match stream.look(id) {
            Next::Message(..) => (moved, true),
            Next::End => {
                stream.at_end.push(id);
                (moved, false)
            }
            Next::InSegment if at_hand == moved => {
                let more = self.read_for(id);
                (moved, more)
            }
            Next::InSegment => (moved, true),
        }
    }

    /// The next messages that a consumer wants, as far as they are in memory; it has passed them.
    fn gather(&mut self, id: ConsumerId, most: usize) -> Vec<(QueueSeq, Message)> {
        let mut batch = Vec::new();
        let Some(stream) = self.stream() else {
            return batch;
        };
        for _ in 0..MAX_SCAN {
            if batch.len() == most {
                break;
            }
            let Next::Message(seq, message) = stream.look(id) else {
                break;
            };
            let Some(cursor) = stream.cursors.get_mut(&id) else {
                break;
            };
            cursor.next = seq.next();
            if cursor.wants(&message) {
                batch.push((seq, message));
            }
        }
        batch
    }

    /// Hands messages over; returns how many, and whether there was no room for the others.
    fn send(
        &mut self,
        id: ConsumerId,
        batch: Vec<(QueueSeq, Message)>,
        wakes: &mut Wakes,
    ) -> (usize, bool) {
        if batch.is_empty() {
            return (0, false);
        }
        let State {
            leases,
            consumers,
            rules,
            ..
        } = self;
        let (Some(consumer), Some(rules)) = (consumers.get_mut(id), rules) else {
            return (0, true);
        };
        let handle = consumer.options.handle;
        let times = Times {
            deadline: rules.lease_deadline(consumer.options.timeout),
            expires: 0,
        };
        let mut outbox = consumer.options.outbox.lock();
        let room = outbox.room_for(batch.iter().map(|(_, message)| message.stored_len()));
        if room < batch.len() {
            outbox.stall(handle);
        }
        let granted = consumer.options.channel.acquire(room);
        let mut batch = VecDeque::from(batch);
        for (seq, message) in batch.drain(..granted) {
            let lease = leases.grant(Lease {
                message: None,
                seq,
                lane: LaneId::default(),
                body_len: 0,
                consumer: Some(id),
            });
            rules.leases.add(lease, times);
            outbox.push(Delivery {
                message,
                origin: Origin::Read {
                    lease,
                    offset: seq.0,
                },
                consumer: handle,
                redelivered: false,
                returns: 0,
            });
        }
        consumer.outstanding += granted as u32;
        wakes.add(outbox.release());
        let full = !batch.is_empty();
        // What found no room is the next in turn.
        let cursors = rules.stream.as_mut().map(|stream| &mut stream.cursors);
        if let Some((first, _)) = batch.front()
            && let Some(cursor) = cursors.and_then(|cursors| cursors.get_mut(&id))
        {
            cursor.next = *first;
            while let Some(left) = batch.pop_back() {
                cursor.ahead.push_front(left);
            }
        }
        (granted, full)
    }

    /// Has the next messages of a consumer read; true if that is not needed.
    fn read_for(&mut self, id: ConsumerId) -> bool {
        let next_place = self.lanes.lowest().ready.next_seq();
        let Some(stream) = self.rules.as_mut().and_then(|rules| rules.stream.as_mut()) else {
            return false;
        };
        let store = &self.lanes.lowest().store;
        let oldest = stream.newest.front().map_or(next_place, |(seq, _)| *seq);
        let Some(cursor) = stream.cursors.get_mut(&id) else {
            return false;
        };
        if cursor.loading.is_some() {
            return false;
        }
        if cursor.next >= oldest {
            stream.at_end.push(id);
            return false;
        }
        match store.plan_load(cursor.next, READ_AHEAD) {
            Some(load) => {
                cursor.loading = Some(cursor.next);
                store.request_load(load);
                false
            }
            None => {
                // Nothing is left there.
                cursor.next = oldest;
                true
            }
        }
    }

    /// Drops the oldest messages, if they are too many or too old; true if there may be more of that.
    /// `bytes` is how many there are.
    fn cut_oldest(&mut self, bytes: &mut u64) -> bool {
        let Some(rules) = &mut self.rules else {
            return false;
        };
        let Some(stream) = &mut rules.stream else {
            return false;
        };
        let Lane { ready, store, .. } = self.lanes.lowest();
        let in_segments = store.first_chunk();
        let (end, newest, size) = match in_segments.filter(|(end, ..)| *end > stream.first) {
            Some(chunk) => chunk,
            None => match stream.newest.front() {
                Some((seq, message)) => {
                    let arrival = message.times().map_or(0, |times| times.arrival);
                    (seq.next(), arrival, message.stored_len() as u64)
                }
                None => return false,
            },
        };
        let max_bytes = rules.settings.max_length_bytes;
        let max_age = rules.settings.max_age;
        let too_many = max_bytes.is_some_and(|max| *bytes > max);
        let too_old = max_age.is_some_and(|age| newest.saturating_add(age) < rules.now);
        // The last message stays: what offset comes next is known by it.
        let end = end.min(QueueSeq(ready.next_seq().0.saturating_sub(1)));
        if end <= stream.first || !(too_many || too_old) {
            return false;
        }
        let first = stream.first;
        let dropped = stream.cut(end);
        for place in first.0..end.0 {
            let seq = QueueSeq(place);
            let resident = dropped.binary_search_by_key(&seq, |(seq, _)| *seq);
            let message = resident.ok().map(|at| &dropped[at].1);
            store.remove(seq, message);
        }
        *bytes = bytes.saturating_sub(size);
        true
    }

    /// Bytes that a stream takes, in segments and not yet there.
    fn stream_bytes(&mut self) -> u64 {
        let State { lanes, rules, .. } = self;
        let store = &lanes.lowest().store;
        let stream = rules.as_ref().and_then(|rules| rules.stream.as_ref());
        let unflushed = stream.map_or(0, |stream| {
            let unflushed = stream.resident_from(store.flushed());
            unflushed
                .map(|(_, message)| message.stored_len() as u64)
                .sum()
        });
        store.segment_bytes() + unflushed
    }

    /// Looks now and then whether there is too much, and drops some; true if there may be more.
    pub(super) fn keep_stream_short(&mut self) -> bool {
        let Some(rules) = &mut self.rules else {
            return false;
        };
        let Some(stream) = &rules.stream else {
            return false;
        };
        let now = rules.now;
        let is_time = rules.next_look.is_none_or(|at| at <= now);
        if !is_time && stream.since_check < CHECK_EVERY {
            return false;
        }
        let age = rules.settings.max_age.unwrap_or(MAX_INTERVAL);
        rules.next_look = Some(now + (age / 10).clamp(MIN_INTERVAL, MAX_INTERVAL));
        if rules
            .settings
            .max_length_bytes
            .or(rules.settings.max_age)
            .is_none()
        {
            return false;
        }
        let mut bytes = self.stream_bytes();
        for _ in 0..MAX_CUTS {
            if !self.cut_oldest(&mut bytes) {
                if let Some(stream) = self.stream() {
                    stream.since_check = 0;
                }
                return false;
            }
        }
        // Looked at again at once.
        if let Some(stream) = self.stream() {
            stream.since_check = CHECK_EVERY;
        }
        true
    }
}

/// A message as a stream keeps it: persistent, and with the time when it came.
pub(super) fn kept(message: Message, now: Millis) -> Message {
    match message.is_persistent() && message.is_timed() {
        true => message,
        false => message.made_lasting(now),
    }
}

impl Cursor {
    fn wants(&self, message: &Message) -> bool {
        if self.not_before > 0 {
            let arrival = message.times().map_or(0, |times| times.arrival);
            if arrival < self.not_before {
                return false;
            }
        }
        self.filter.wants(message)
    }
}
