//! Message groups (`x-leveret-message-groups`): of each group one message at a time is out, so that
//! a group is worked through in order however many consumers there are.
//!
//! A message whose group is busy is set aside when its turn comes, and returns to its place when the
//! group is free. Each is moved a bounded number of times, whatever the length of the queue.

use std::collections::BTreeMap;

use ahash::{HashMap, RandomState};
use amqp::Properties;
use store::{Message, QueueSeq};

use super::State;
use super::lane::LaneId;
use super::leases::LeaseId;
use super::ready::Entry;

/// The header that names a message's group. A message without it is in none.
pub(crate) const GROUP_HEADER: &str = "x-leveret-message-group";
/// Messages that are set aside at most. Behind them nothing is looked for: with so many waiting for
/// few groups there is little to find.
const MAX_SET_ASIDE: usize = 20_000;

/// A group's name, hashed: two that share a hash wait for each other, and no harm is done.
type GroupId = u64;

/// A group of which something is out, or waits for that to come back.
#[derive(Debug, Default)]
struct Group {
    out: usize,
    /// In order: of these one is the next, once nothing is out.
    waiting: BTreeMap<(LaneId, QueueSeq), Entry>,
}

/// Groups that have something out or waiting.
#[derive(Debug, Default)]
pub(super) struct Groups {
    hasher: RandomState,
    active: HashMap<GroupId, Group>,
    leases: HashMap<LeaseId, GroupId>,
    /// Messages that have returned to their places, with others of their groups waiting behind them.
    returned: HashMap<(LaneId, QueueSeq), GroupId>,
    set_aside: usize,
}

impl Groups {
    fn of(&self, message: &Message) -> Option<GroupId> {
        let headers = Properties::from_wire(message.properties()).headers()?;
        let name = headers.get(GROUP_HEADER)?.as_long_str()?;
        Some(self.hasher.hash_one(name))
    }

    /// How many wait for their groups.
    pub fn len(&self) -> usize {
        self.set_aside
    }

    /// The group of a message, if another one of it is out.
    fn busy(&self, message: &Message) -> Option<GroupId> {
        if self.active.is_empty() {
            return None;
        }
        let group = self.of(message)?;
        let is_out = self.active.get(&group).is_some_and(|group| group.out > 0);
        is_out.then_some(group)
    }

    /// A message goes out.
    pub fn lease(&mut self, lease: LeaseId, message: &Message, lane: LaneId, seq: QueueSeq) {
        if let Some(group) = self.of(message) {
            self.active.entry(group).or_default().out += 1;
            self.leases.insert(lease, group);
            self.returned.remove(&(lane, seq));
        }
    }

    fn set_aside(&mut self, group: GroupId, lane: LaneId, entry: Entry) {
        self.returned.remove(&(lane, entry.seq));
        let group = self.active.entry(group).or_default();
        group.waiting.insert((lane, entry.seq), entry);
        self.set_aside += 1;
    }

    /// A lease has ended; returns the message that may return to its place for it.
    fn release(&mut self, lease: LeaseId) -> Option<(LaneId, Entry)> {
        let id = self.leases.remove(&lease)?;
        if let Some(group) = self.active.get_mut(&id) {
            group.out = group.out.saturating_sub(1);
        }
        self.next_of(id)
    }

    /// A message that had returned to its place has left from there, and did not go out.
    pub fn left(&mut self, lane: LaneId, seq: QueueSeq) -> Option<(LaneId, Entry)> {
        let id = self.returned.remove(&(lane, seq))?;
        self.next_of(id)
    }

    fn next_of(&mut self, id: GroupId) -> Option<(LaneId, Entry)> {
        let group = self.active.get_mut(&id)?;
        if group.out > 0 {
            return None;
        }
        let Some(((lane, seq), entry)) = group.waiting.pop_first() else {
            self.active.remove(&id);
            return None;
        };
        self.set_aside -= 1;
        self.returned.insert((lane, seq), id);
        Some((lane, entry))
    }

    /// Those that wait are gone.
    pub fn purge(&mut self) {
        self.returned.clear();
        self.set_aside = 0;
        self.active.retain(|_, group| {
            group.waiting.clear();
            group.out > 0
        });
    }

    /// Messages of a lane, from a place on, that are kept here; in no order.
    pub fn resident_from(
        &self,
        lane: LaneId,
        from: QueueSeq,
    ) -> impl Iterator<Item = (QueueSeq, &Message)> {
        let waiting = self.active.values().flat_map(|group| &group.waiting);
        waiting
            .filter(move |((other, seq), _)| *other == lane && *seq >= from)
            .filter_map(|((_, seq), entry)| Some((*seq, entry.message.as_ref()?)))
    }
}

impl State {
    /// Sets aside what waits for its group; false if nothing is left that may go out.
    pub(super) fn skip_busy_groups(&mut self) -> bool {
        loop {
            let lane = self.lanes.first();
            let Some(groups) = self.rules.as_mut().and_then(|rules| rules.groups.as_mut()) else {
                return true;
            };
            let super::lane::Lane { ready, store, .. } = self.lanes.get_mut(lane);
            let Some(message) = ready.at_hand().next() else {
                return false;
            };
            let Some(group) = groups.busy(message) else {
                return true;
            };
            if groups.set_aside >= MAX_SET_ASIDE {
                return false;
            }
            let Some((message, seq, redelivered)) = ready.pop() else {
                return false;
            };
            let mut entry = Entry::new(message, seq, redelivered);
            if store.is_flushed(seq) {
                entry.message = None;
            }
            groups.set_aside(group, lane, entry);
        }
    }

    /// True if the first message of a lane must wait for its group, and nobody looks further.
    pub(super) fn is_held_up(&mut self, lane: LaneId) -> bool {
        let groups = self.rules.as_ref().and_then(|rules| rules.groups.as_ref());
        let Some(groups) = groups else { return false };
        let mut at_hand = self.lanes.get_mut(lane).ready.at_hand();
        at_hand
            .next()
            .is_some_and(|first| groups.busy(first).is_some())
    }

    /// A lease has ended: the next of its group may go.
    pub(super) fn release_group(&mut self, lease: LeaseId) {
        let groups = self.rules.as_mut().and_then(|rules| rules.groups.as_mut());
        if let Some((lane, entry)) = groups.and_then(|groups| groups.release(lease)) {
            self.put_back(vec![(lane, entry)]);
        }
    }

    /// A message has left from its place, and not to a consumer who will settle it.
    #[inline]
    pub(super) fn left_group(&mut self, lane: LaneId, seq: QueueSeq) {
        let groups = self.rules.as_mut().and_then(|rules| rules.groups.as_mut());
        if let Some((lane, entry)) = groups.and_then(|groups| groups.left(lane, seq)) {
            self.put_back(vec![(lane, entry)]);
        }
    }
}
