//! Lanes: a queue's messages by priority, each priority with its own order and its own stream in
//! the store. A queue without `x-max-priority` has one.

use std::sync::Arc;

use store::{Lsn, Message, QueueSeq, QueueStore, Record, RecoveredQueue};

use super::MAX_WINDOW;
use super::delay::Delayed;
use super::ready::{Appended, Entry, Found, Ready};
use super::stream::Stream;

/// Which of a queue's lanes: the priority, where that is not beyond the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct LaneId(pub u8);

/// Messages of one priority, and what is kept of them.
#[derive(Debug)]
pub(super) struct Lane {
    pub ready: Ready,
    pub store: QueueStore,
    /// Segments that have to be looked through.
    unseen: Option<Unseen>,
}

/// Messages in segments of which it is not known when they expire.
#[derive(Debug)]
struct Unseen {
    from: QueueSeq,
    to: QueueSeq,
    /// A read is under way.
    loading: bool,
}

impl Lane {
    /// With what a restart has found.
    pub fn new(recovered: RecoveredQueue) -> Lane {
        let store = recovered.store;
        let delivered = store.delivered();
        let messages = recovered.messages.into_iter();
        let messages = messages.map(|(seq, message)| Entry::new(message, seq, seq < delivered));
        let first = QueueSeq(0);
        let paged = (store.count_from(first), store.bytes_from(first));
        let window = (store.budget() / 8).min(MAX_WINDOW);
        Lane {
            ready: Ready::recovered(paged, first, messages, recovered.next_seq, window),
            unseen: None,
            store,
        }
    }

    /// What lies in segments is to be looked through for messages that expire.
    pub fn look_through(&mut self) {
        self.unseen = Some(Unseen {
            from: QueueSeq(0),
            to: self.store.flushed(),
            loading: false,
        });
    }

    /// Has the next part read that has to be looked through.
    #[inline]
    fn look_on(&mut self) {
        let Some(unseen) = &mut self.unseen else {
            return;
        };
        if unseen.loading {
            return;
        }
        match self.store.plan_look(unseen.from, unseen.to) {
            Some(load) => {
                unseen.loading = true;
                self.store.request_load(load);
            }
            None => self.unseen = None,
        }
    }

    /// That part was read.
    pub fn looked(&mut self, end: QueueSeq) {
        if let Some(unseen) = &mut self.unseen {
            unseen.loading = false;
            unseen.from = unseen.from.max(end);
        }
    }

    /// Takes out what a restart has found, where it is to wait for its time.
    pub fn take_delayed(recovered: &mut [RecoveredQueue]) -> Delayed {
        let Some(found) = recovered.first_mut() else {
            return Delayed::default();
        };
        let messages = std::mem::take(&mut found.messages);
        let store = &found.store;
        Delayed::recovered(messages, store.count_from(QueueSeq(0)), store.flushed())
    }

    /// Takes out what a restart has found, where it is a stream.
    pub fn take_stream(recovered: &mut [RecoveredQueue]) -> Stream {
        let Some(found) = recovered.first_mut() else {
            return Stream::default();
        };
        let messages = std::mem::take(&mut found.messages);
        Stream::recovered(messages, &found.store, found.next_seq)
    }

    /// It is the lane of a queue where messages wait for their time, and not for consumers.
    pub fn holds_nothing_ready(&mut self) {
        self.ready = Ready::recovered(
            (0, 0),
            QueueSeq(0),
            std::iter::empty(),
            self.ready.next_seq(),
            0,
        );
    }

    /// Adds messages; returns where in the log they are, if they are in a record of their own, and
    /// what they were.
    #[inline]
    pub fn append(
        &mut self,
        messages: impl Iterator<Item = Message>,
        record: &mut Record<'_>,
    ) -> (Option<Lsn>, Appended) {
        let appended = self.ready.append(messages);
        let new = self.ready.last(appended.count);
        (self.store.append(new, record), appended)
    }

    /// Adds messages that do not wait for consumers here: they are the caller's, in their order.
    pub fn append_elsewhere(
        &mut self,
        messages: impl Iterator<Item = Message>,
        record: &mut Record<'_>,
    ) -> (Option<Lsn>, Vec<(QueueSeq, Message)>) {
        let new: Vec<(QueueSeq, Message)> = messages
            .map(|message| (self.ready.take_place(), message))
            .collect();
        let places = new.iter().map(|(seq, message)| (*seq, message));
        (self.store.append(places, record), new)
    }

    /// Takes the first message, whether it is in memory or not; `elsewhere` are those in segments
    /// that do not wait.
    pub fn pop_any(&mut self, elsewhere: impl Fn(QueueSeq) -> bool) -> Option<Entry> {
        let store = &self.store;
        self.ready.pop_any(|mut from| {
            loop {
                let seq = store.next_live(from)?;
                if !elsewhere(seq) {
                    return Some(seq);
                }
                from = seq.next();
            }
        })
    }

    /// Takes out the message at a place, if it waits.
    pub fn remove(&mut self, seq: QueueSeq, elsewhere: impl Fn(QueueSeq) -> bool) -> Option<Entry> {
        match self.ready.remove(seq) {
            Found::Taken(entry) => Some(entry),
            Found::Paged if self.store.is_live(seq) && !elsewhere(seq) => {
                let body_len = self.ready.take_paged();
                Some(Entry::unread(seq, body_len))
            }
            Found::Paged | Found::No => None,
        }
    }

    /// Before the lock is released: what is gone is logged, and memory is looked at.
    #[inline]
    pub fn settle_down(&mut self) {
        self.store.log_gone(&mut Record::Own);
        self.store.log_delivered();
        self.store.log_returned();
        self.store.log_remembered();
        self.store.note_resident(self.ready.bytes());
        self.look_on();
    }
}

/// All lanes of a queue.
#[derive(Debug)]
pub(super) struct Lanes {
    lowest: Lane,
    /// Of priorities 1, 2, …
    higher: Vec<Lane>,
}

impl Lanes {
    /// At least one lane, the lowest first; `None` without any.
    pub fn new(lanes: impl IntoIterator<Item = Lane>) -> Option<Lanes> {
        let mut lanes = lanes.into_iter();
        Some(Lanes {
            lowest: lanes.next()?,
            higher: lanes.collect(),
        })
    }

    /// True if all messages are in one order.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.higher.is_empty()
    }

    /// Where a message of that priority belongs.
    #[inline]
    pub fn of_priority(&self, priority: u8) -> LaneId {
        LaneId((usize::from(priority)).min(self.higher.len()) as u8)
    }

    #[inline]
    pub fn lowest(&mut self) -> &mut Lane {
        &mut self.lowest
    }

    /// That lane; an id is only ever made by this queue.
    #[inline]
    pub fn get(&self, id: LaneId) -> &Lane {
        match id.0.checked_sub(1) {
            None => &self.lowest,
            Some(above) => self.higher.get(usize::from(above)).unwrap_or(&self.lowest),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, id: LaneId) -> &mut Lane {
        match id.0.checked_sub(1) {
            None => &mut self.lowest,
            Some(above) => match self.higher.get_mut(usize::from(above)) {
                Some(lane) => lane,
                None => &mut self.lowest,
            },
        }
    }

    /// The lane whose turn it is: the highest where something waits, or the lowest.
    #[inline]
    pub fn first(&self) -> LaneId {
        let above = self.higher.iter().rposition(|lane| !lane.ready.is_empty());
        LaneId(above.map_or(0, |above| above as u8 + 1))
    }

    /// How many there are.
    pub fn count(&self) -> u8 {
        // `x-max-priority` is 255 at most, and with that there are 256 lanes: the highest is read
        // ahead when its turn comes.
        (self.higher.len() + 1).min(usize::from(u8::MAX)) as u8
    }

    pub fn iter(&self) -> impl Iterator<Item = (LaneId, &Lane)> {
        let all = std::iter::once(&self.lowest).chain(&self.higher);
        all.enumerate().map(|(id, lane)| (LaneId(id as u8), lane))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (LaneId, &mut Lane)> {
        let all = std::iter::once(&mut self.lowest).chain(&mut self.higher);
        all.enumerate().map(|(id, lane)| (LaneId(id as u8), lane))
    }

    /// How many messages wait.
    #[inline]
    pub fn len(&self) -> usize {
        let above: usize = self.higher.iter().map(|lane| lane.ready.len()).sum();
        self.lowest.ready.len() + above
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the bodies that wait.
    pub fn body_bytes(&self) -> u64 {
        self.iter().map(|(_, lane)| lane.ready.body_bytes()).sum()
    }

    /// Distributes messages to lanes, each lane's in their order.
    pub fn sort(&self, messages: impl Iterator<Item = Message>) -> Vec<(LaneId, Vec<Message>)> {
        let mut sorted: Vec<(LaneId, Vec<Message>)> = Vec::new();
        for message in messages {
            let id = self.of_priority(message.priority());
            match sorted.iter_mut().find(|(other, _)| *other == id) {
                Some((_, of_lane)) => of_lane.push(message),
                None => sorted.push((id, vec![message])),
            }
        }
        sorted
    }
}

/// What the store's threads see of a lane.
#[derive(Debug)]
pub(super) struct LaneResident {
    pub queue: std::sync::Weak<super::Queue>,
    pub lane: LaneId,
}

impl LaneResident {
    /// One for each lane.
    pub fn all(queue: &std::sync::Weak<super::Queue>, lanes: &Lanes) -> Vec<Arc<LaneResident>> {
        let residents = lanes.iter().map(|(lane, _)| {
            let queue = queue.clone();
            Arc::new(LaneResident { queue, lane })
        });
        residents.collect()
    }

    /// The queue, which owns this and so is there but at its very end.
    pub fn queue(&self) -> Option<Arc<super::Queue>> {
        self.queue.upgrade()
    }
}
