//! Messages that expire: `x-message-ttl`, `message-ttl`, and each message's own `expiration`.
//!
//! Where deadlines ascend with places, only the first message has to be looked at: when its time
//! comes it is the first, whatever has happened meanwhile. Those that would have to overtake others
//! are in a set as well, and leave from the middle of the queue at their time.

use std::collections::BTreeSet;

use store::{Loaded, Message, QueueSeq};

use super::State;
use super::dead_letter::Reason;
use super::lane::LaneId;
use super::lease_times::Times;
use super::leases::Lease;
use super::ready::Entry;
use super::rules::Rules;
use super::settings::Settings;
use crate::clock::Millis;

/// Deadlines that do not come in order of places.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// Includes messages that have gone since. A set: one that comes back time and again is in it once.
    overtaking: BTreeSet<(Millis, LaneId, QueueSeq)>,
    /// Some of those that wait expire in order of places.
    in_order: bool,
    /// By lane: the highest deadline among those that wait; the end of time if one waits for ever.
    highest: Vec<Millis>,
}

impl Deadlines {
    fn note(&mut self, lane: LaneId, seq: QueueSeq, deadline: Option<Millis>) {
        let index = usize::from(lane.0);
        if self.highest.len() <= index {
            // What waited before anybody asked may wait for ever.
            self.highest.resize(index + 1, Millis::MAX);
        }
        let highest = &mut self.highest[index];
        match deadline {
            None => *highest = Millis::MAX,
            Some(deadline) if deadline >= *highest => {
                *highest = deadline;
                self.in_order = true;
            }
            Some(deadline) => {
                self.overtaking.insert((deadline, lane, seq));
            }
        }
    }

    /// How many do not come in order of places.
    #[cfg(test)]
    pub fn overtaking(&self) -> usize {
        self.overtaking.len()
    }

    /// Nothing waits in that lane.
    fn start_anew(&mut self, lane: LaneId) {
        let index = usize::from(lane.0);
        if self.highest.len() <= index {
            self.highest.resize(index + 1, Millis::MAX);
        }
        self.highest[index] = 0;
    }
}

impl Rules {
    /// True if a message has come under this hold of the lock.
    pub fn is_fresh(&self, lane: LaneId, seq: QueueSeq) -> bool {
        let mut fresh = self.fresh.iter();
        fresh.any(|(of_lane, first)| *of_lane == lane && seq >= *first)
    }

    /// When a message expires.
    #[inline]
    pub fn deadline(&self, message: &Message) -> Option<Millis> {
        let times = message.times();
        let expiration = times.and_then(|times| times.expiration);
        let ttl = match (expiration, self.settings.message_ttl) {
            (Some(own), Some(all)) => own.min(all),
            (own, all) => own.or(all)?,
        };
        let arrival = times.map_or(self.since, |times| times.arrival);
        Some(arrival.saturating_add(ttl))
    }
}

impl State {
    /// Notes the deadlines of the last `count` messages of a lane.
    #[cold]
    pub(super) fn note_deadlines(&mut self, lane: LaneId, count: usize) {
        let ready = &self.lanes.get(lane).ready;
        if self.rules.is_none() {
            let mut times = ready.last(count).filter_map(|(_, message)| message.times());
            let Some(times) = times.find(|times| times.expiration.is_some()) else {
                return;
            };
            self.rules = Some(Rules::new(Settings::default(), times.arrival));
        }
        let Some(rules) = &mut self.rules else { return };
        // Those that are out may come back, and then stand before these.
        let is_all = ready.len() == count && self.leases.len() == 0;
        if is_all && rules.groups.as_ref().is_none_or(|groups| groups.len() == 0) {
            rules.deadlines.start_anew(lane);
        }
        if let Some((first, _)) = ready.last(count).next() {
            rules.fresh.push((lane, first));
        }
        for (seq, message) in ready.last(count) {
            let deadline = rules.deadline(message);
            rules.deadlines.note(lane, seq, deadline);
        }
    }

    /// Notes the deadlines of what a restart has found.
    pub(super) fn note_recovered(&mut self, now: Millis) {
        let lanes: Vec<LaneId> = self.lanes.iter().map(|(id, _)| id).collect();
        for id in lanes {
            let lane = self.lanes.get_mut(id);
            lane.look_through();
            let expiring: Vec<(QueueSeq, Message)> = lane
                .ready
                .resident_from(QueueSeq(0))
                .filter(|(_, message)| message.expires())
                .map(|(seq, message)| (seq, message.clone()))
                .collect();
            self.overtake(id, &expiring, now);
        }
    }

    /// Messages in a segment were looked at.
    pub(super) fn note_looked_at(&mut self, lane: LaneId, loaded: &Loaded) {
        let expiring: Vec<(QueueSeq, Message)> = loaded
            .messages
            .iter()
            .filter(|(_, message)| message.expires())
            .cloned()
            .collect();
        let now = self.rules.as_ref().map_or(0, |rules| rules.now);
        self.overtake(lane, &expiring, now);
        self.lanes.get_mut(lane).looked(loaded.end);
    }

    /// These may have to leave before others in front of them.
    fn overtake(&mut self, lane: LaneId, messages: &[(QueueSeq, Message)], now: Millis) {
        if messages.is_empty() {
            return;
        }
        let rules = self
            .rules
            .get_or_insert_with(|| Rules::new(Settings::default(), now));
        for (seq, message) in messages {
            if let Some(deadline) = rules.deadline(message) {
                let overtaking = &mut rules.deadlines.overtaking;
                overtaking.insert((deadline, lane, *seq));
            }
        }
    }

    /// Messages have come back to a lane: those that have to overtake others do.
    pub(super) fn note_returned(&mut self, lane: LaneId, returned: &[Entry]) {
        let Some(rules) = &mut self.rules else { return };
        for entry in returned {
            if let Some(message) = &entry.message
                && let Some(times) = message.times()
                && times.expiration.is_some()
                && let Some(deadline) = rules.deadline(message)
            {
                let overtaking = &mut rules.deadlines.overtaking;
                overtaking.insert((deadline, lane, entry.seq));
            }
        }
    }

    /// True if the time of a message that comes back from a lease is known to be over. If it is still
    /// to come, that is noted: the message may have to overtake others then.
    pub(super) fn has_come_back_too_late(&mut self, lease: &Lease, times: Times) -> bool {
        let Some(rules) = self.rules.as_mut().filter(|_| times.expires > 0) else {
            return false;
        };
        let is_late = times.expires <= rules.now;
        if !is_late {
            let overtaking = &mut rules.deadlines.overtaking;
            overtaking.insert((times.expires, lease.lane, lease.seq));
        }
        is_late
    }

    /// True if the first message of a lane has expired before this moment, or in it.
    fn first_has_expired(&mut self, lane: LaneId, inclusive: bool) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        let Some(first) = self.lanes.get_mut(lane).ready.first() else {
            return false;
        };
        let deadline = first.message.as_ref().and_then(|of| rules.deadline(of));
        deadline.is_some_and(|deadline| match inclusive {
            true => deadline <= rules.now,
            false => deadline < rules.now && !rules.is_fresh(lane, first.seq),
        })
    }

    /// The lane whose turn it is to be handed out: none goes whose time was over before now. What
    /// has just come goes to whoever takes it at once, though it may have no time to wait.
    #[inline]
    pub(super) fn skip_expired(&mut self) -> LaneId {
        loop {
            let lane = self.lanes.first();
            if !self.first_has_expired(lane, false) {
                return lane;
            }
            self.expire_first(lane);
        }
    }

    fn expire_first(&mut self, lane: LaneId) {
        if let Some(entry) = self.pop_any(lane) {
            self.discard(lane, entry, Reason::Expired);
        }
    }

    /// Removes messages whose time has come, at most so many; true if there are more.
    pub(super) fn expire(&mut self, most: usize) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        if rules.dying.is_full() {
            return false;
        }
        let now = rules.now;
        let lanes: Vec<LaneId> = self.lanes.iter().map(|(id, _)| id).collect();
        let mut removed = 0;
        for lane in lanes {
            while self.first_has_expired(lane, true) {
                if removed == most {
                    return true;
                }
                self.expire_first(lane);
                removed += 1;
            }
        }
        while let Some(rules) = &mut self.rules
            && let Some((deadline, lane, seq)) = rules.deadlines.overtaking.first().copied()
            && deadline <= now
        {
            if removed == most {
                return true;
            }
            rules.deadlines.overtaking.pop_first();
            let dying = &rules.dying;
            let is_dying = |seq| dying.holds(lane, seq);
            let of_lane = self.lanes.get_mut(lane);
            if let Some(entry) = of_lane.remove(seq, is_dying) {
                self.discard(lane, entry, Reason::Expired);
                removed += 1;
            }
        }
        false
    }

    /// When the next message expires, as far as that is known; where the first one lies in a
    /// segment, it is read, and then it is.
    pub(super) fn next_expiry(&mut self) -> Option<Millis> {
        let rules = self.rules.as_ref()?;
        if rules.dying.is_full() {
            return None;
        }
        let first_of_all = rules.deadlines.overtaking.first().map(|next| next.0);
        let first_in_order = self.lanes.iter_mut().filter_map(|(_, lane)| {
            let message = lane.ready.first()?.message.as_ref()?;
            rules.deadline(message)
        });
        first_of_all.into_iter().chain(first_in_order).min()
    }

    /// True if the first message must be known even while nobody consumes.
    pub(super) fn watches_first(&self) -> bool {
        let rules = self.rules.as_ref();
        rules.is_some_and(|rules| rules.settings.message_ttl.is_some() || rules.deadlines.in_order)
    }
}
