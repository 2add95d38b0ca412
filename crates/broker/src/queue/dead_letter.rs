//! Messages that leave without having been acknowledged: they go, or to another queue
//! (`x-dead-letter-exchange`).
//!
//! Those that go elsewhere wait here, still kept by the store, until [`crate::burial`] has moved
//! them: out of this queue and into the others in one step. One thread at a time does so for a
//! queue, hence they stay in order.

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::HashSet;
use store::{Message, QueueSeq};

use super::State;
use super::lane::LaneId;
use super::ready::Entry;
use super::rules::Rules;
use super::settings::DeadLetterTo;
use crate::clock::Millis;

/// Why a message left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A consumer refused it.
    Rejected,
    /// Its time was over.
    Expired,
    /// The queue was too long.
    MaxLength,
    /// It came back too often.
    DeliveryLimit,
    /// It has waited for as long as it was told to; this is no death.
    Due,
}

/// Where messages go on to.
#[derive(Debug, Clone)]
pub(crate) enum Onward {
    DeadLetters(DeadLetterTo),
    /// Where that exchange would have sent them without a delay.
    Due(Arc<str>),
}

impl Reason {
    /// As `x-death` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Rejected => "rejected",
            Reason::Expired => "expired",
            Reason::MaxLength => "maxlen",
            Reason::DeliveryLimit => "delivery_limit",
            Reason::Due => "due",
        }
    }
}

/// A message on its way out.
#[derive(Debug, Clone)]
pub(crate) struct Dead {
    pub lane: LaneId,
    pub seq: QueueSeq,
    /// `None`: it lies in a segment.
    pub message: Option<Message>,
    pub reason: Reason,
}

/// Messages that wait at most; then none expires or is dropped until there are fewer.
const MAX_WAITING: usize = 16 * 1024;
/// Messages of one step.
const MAX_BATCH: usize = 128;
/// Bytes after which a step takes no further message.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// After a step in which nothing could go, with at-least-once.
const RETRY: Millis = 500;

/// Messages that wait to go elsewhere.
#[derive(Debug, Default)]
pub(super) struct Dying {
    waiting: VecDeque<Dead>,
    /// Their places: to the store they look as if they waited for a consumer.
    places: HashSet<(LaneId, QueueSeq)>,
    /// A thread is moving them.
    being_moved: bool,
    /// Nothing could go: tried again then.
    retry_at: Option<Millis>,
    /// How many have left so far.
    left: u64,
}

/// How far the move of what waits has come.
pub(crate) struct BurialProgress {
    /// How many have left so far.
    pub left: u64,
    /// How many wait and could go.
    pub waiting: u64,
    /// A thread is moving them.
    pub being_moved: bool,
}

impl Dying {
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_WAITING
    }

    /// True if that message waits here.
    pub fn holds(&self, lane: LaneId, seq: QueueSeq) -> bool {
        !self.places.is_empty() && self.places.contains(&(lane, seq))
    }

    /// True if somebody should move them now.
    pub fn wants_burial(&self) -> bool {
        !self.waiting.is_empty() && !self.being_moved && self.retry_at.is_none()
    }

    pub fn retry_at(&self) -> Option<Millis> {
        self.retry_at
    }

    /// The messages of a lane, for whoever needs all that the queue holds.
    pub fn of_lane(&self, lane: LaneId) -> impl Iterator<Item = &Dead> {
        self.waiting.iter().filter(move |dead| dead.lane == lane)
    }

    /// Their places in a lane, and whether a persistent message is there.
    pub fn places(&self, lane: LaneId) -> impl Iterator<Item = (QueueSeq, bool)> {
        let persistent = |dead: &Dead| dead.message.as_ref().is_none_or(Message::is_persistent);
        self.of_lane(lane)
            .map(move |dead| (dead.seq, persistent(dead)))
    }

    /// Messages of a lane, from a place on, that are kept here; in no order.
    pub fn resident_from(
        &self,
        lane: LaneId,
        from: QueueSeq,
    ) -> impl Iterator<Item = (QueueSeq, &Message)> {
        let behind = self.of_lane(lane).filter(move |dead| dead.seq >= from);
        behind.filter_map(|dead| Some((dead.seq, dead.message.as_ref()?)))
    }

    fn push(&mut self, dead: Dead) {
        self.places.insert((dead.lane, dead.seq));
        self.waiting.push_back(dead);
    }

    fn pop(&mut self) -> Option<Dead> {
        let dead = self.waiting.pop_front()?;
        self.left += 1;
        self.places.remove(&(dead.lane, dead.seq));
        Some(dead)
    }
}

impl Rules {
    fn onward(&self) -> Option<Onward> {
        match &self.delay {
            Some(delay) => Some(Onward::Due(delay.exchange.clone())),
            None => self.settings.dead_letter.clone().map(Onward::DeadLetters),
        }
    }
}

impl State {
    /// A message leaves, whatever its place was: it is gone, or waits to go elsewhere.
    pub(super) fn discard(&mut self, lane: LaneId, entry: Entry, reason: Reason) {
        let Entry { seq, message, .. } = entry;
        self.left_group(lane, seq);
        match &mut self.rules {
            Some(rules) if rules.settings.dead_letter.is_some() => rules.dying.push(Dead {
                lane,
                seq,
                message,
                reason,
            }),
            _ => self.remove_for_good(lane, seq, message.as_ref()),
        }
    }

    /// Takes the first message of a lane, whether it is in memory or not.
    pub(super) fn pop_any(&mut self, lane: LaneId) -> Option<Entry> {
        let dying = self.rules.as_ref().map(|rules| &rules.dying);
        let is_dying = |seq| dying.is_some_and(|dying| dying.holds(lane, seq));
        self.lanes.get_mut(lane).pop_any(is_dying)
    }

    fn remove_for_good(&mut self, lane: LaneId, seq: QueueSeq, message: Option<&Message>) {
        let store = &mut self.lanes.get_mut(lane).store;
        store.remove(seq, message);
    }

    /// How far the move of what waits has come.
    pub(crate) fn burial_progress(&self) -> Option<BurialProgress> {
        let dying = &self.rules.as_ref()?.dying;
        let may_go = dying.retry_at.is_none();
        Some(BurialProgress {
            left: dying.left,
            waiting: if may_go {
                dying.waiting.len() as u64
            } else {
                0
            },
            being_moved: dying.being_moved,
        })
    }

    /// Claims the right to move what waits; false if there is nothing, or somebody else does.
    pub(crate) fn begin_burial(&mut self) -> bool {
        let Some(rules) = &mut self.rules else {
            return false;
        };
        let begins = rules.dying.wants_burial();
        rules.dying.being_moved |= begins;
        begins
    }

    /// The next messages to move, and where to; they stay until [`State::bury_first`]. Without any
    /// the claim ends.
    pub(crate) fn next_dead(&mut self) -> Option<(Onward, Vec<Dead>)> {
        if self.deleted {
            return None;
        }
        let rules = self.rules.as_mut()?;
        let Some(to) = rules.onward() else {
            // It was taken away meanwhile.
            while let Some(dead) = self.rules.as_mut().and_then(|rules| rules.dying.pop()) {
                self.remove_for_good(dead.lane, dead.seq, dead.message.as_ref());
            }
            return self.end_burial();
        };
        let mut bytes = 0;
        let batch: Vec<Dead> = rules
            .dying
            .waiting
            .iter()
            .take_while(|dead| {
                let fits = bytes < MAX_BATCH_BYTES;
                bytes += dead.message.as_ref().map_or(0, Message::stored_len);
                fits
            })
            .take(MAX_BATCH)
            .cloned()
            .collect();
        if batch.is_empty() {
            return self.end_burial();
        }
        Some((to, batch))
    }

    fn end_burial<T>(&mut self) -> Option<T> {
        self.pause_burial();
        None
    }

    /// Whoever has claimed to move what waits does so no longer.
    pub(crate) fn pause_burial(&mut self) {
        if let Some(rules) = &mut self.rules {
            rules.dying.being_moved = false;
        }
    }

    /// The first of those that wait has gone elsewhere, or for good.
    pub(crate) fn bury_first(&mut self) {
        if let Some(dead) = self.rules.as_mut().and_then(|rules| rules.dying.pop()) {
            self.remove_for_good(dead.lane, dead.seq, dead.message.as_ref());
        }
    }

    /// The first of those that wait cannot go now: it is tried again later.
    pub(crate) fn put_off_burial(&mut self) {
        if let Some(rules) = &mut self.rules {
            rules.dying.being_moved = false;
            rules.dying.retry_at = Some(rules.now + RETRY);
        }
    }

    /// The first of those that wait, which is due, finds no room where it should go: it waits for a
    /// while longer, and others go before it.
    pub(crate) fn put_off_first(&mut self) {
        if let Some(rules) = &mut self.rules
            && let Some(dead) = rules.dying.pop()
            && let Some(delay) = &mut rules.delay
        {
            let until = rules.now + RETRY;
            delay.messages.put_off(dead.seq, dead.message, until);
        }
    }

    /// What is due goes on.
    pub(super) fn release_due(&mut self) {
        let Some(rules) = &mut self.rules else { return };
        let Some(delay) = &mut rules.delay else {
            return;
        };
        delay.messages.approach(rules.now);
        while !rules.dying.is_full()
            && let Some((seq, message)) = delay.messages.take_due(rules.now)
        {
            rules.dying.push(Dead {
                lane: LaneId::default(),
                seq,
                message: Some(message),
                reason: Reason::Due,
            });
        }
    }

    /// What was put off is tried again, if it is time to.
    pub(super) fn retry_burial(&mut self) {
        if let Some(rules) = &mut self.rules
            && rules.dying.retry_at.is_some_and(|at| at <= rules.now)
        {
            rules.dying.retry_at = None;
        }
    }

    /// What to read for a message that lies in a segment.
    pub(crate) fn plan_dead(&self, dead: &Dead) -> Option<store::Load> {
        self.lanes.get(dead.lane).store.plan_load(dead.seq, 1)
    }
}
