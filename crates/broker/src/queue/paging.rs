//! Moving messages between memory and segments: what the store's threads ask of a queue.

use store::{
    Flush, FlushGoal, Load, Loaded, MAX_FLUSH_BYTES, MAX_FLUSH_MESSAGES, Message, QueueSeq,
    QueueStore, Resident, Written,
};

use super::State;
use super::lane::{Lane, LaneId, LaneResident};

/// Bytes that are read from segments at a time, if the queue may keep as many.
const READ_AHEAD: usize = 1024 * 1024;

impl Resident for LaneResident {
    fn begin_flush(&self, goal: FlushGoal) -> Option<Flush> {
        let queue = self.queue()?;
        let mut dropped = Vec::new();
        let mut state = queue.lock();
        let flush = state.begin_flush(self.lane, goal);
        let bytes = state.resident_bytes(self.lane);
        let store = &mut state.lanes.get_mut(self.lane).store;
        match &flush {
            Some(flush) => store.begin_flush(flush.up_to),
            None => {
                store.flush_answered();
                // What was written while it was out, and has come back since, needs no memory.
                if matches!(goal, FlushGoal::Resident(keep) if bytes > keep) {
                    dropped = state.evict(self.lane);
                }
            }
        }
        drop(state);
        drop(dropped);
        flush
    }

    fn abort_flush(&self) {
        self.with_store(&mut |store, _| store.abort_flush());
    }

    fn complete_flush(&self, mut written: Written) {
        let Some(queue) = self.queue() else { return };
        let dropped = {
            let mut state = queue.lock();
            let lane = state.lanes.get_mut(self.lane);
            if !lane.store.complete_flush(&mut written) {
                return;
            }
            let dropped = state.evict(self.lane);
            let bytes = state.resident_bytes(self.lane);
            state.lanes.get_mut(self.lane).store.note_resident(bytes);
            dropped
        };
        // Thousands of messages are freed here, where nobody waits for it.
        drop((dropped, written));
    }

    fn complete_load(&self, loaded: Loaded) {
        let Some(queue) = self.queue() else { return };
        queue.change(|state| {
            if loaded.look {
                return state.note_looked_at(self.lane, &loaded);
            }
            let State {
                lanes,
                rules,
                consumers,
                ..
            } = state;
            let Lane { ready, store, .. } = lanes.get_mut(self.lane);
            if let Some(stream) = rules.as_mut().and_then(|rules| rules.stream.as_mut()) {
                let readers = stream.loaded(&loaded);
                return readers.into_iter().for_each(|id| consumers.activate(id));
            }
            if let Some(rules) = rules
                && let Some(delay) = &mut rules.delay
            {
                let is_live = |seq| store.is_live(seq);
                return delay.messages.loaded(loaded, rules.now, is_live);
            }
            ready.loading = false;
            let delivered = store.delivered();
            let lost = loaded.lost;
            let dying = rules.as_ref().map(|rules| &rules.dying);
            let is_dying = |seq| dying.is_some_and(|dying| dying.holds(self.lane, seq));
            ready.loaded(loaded, delivered, |seq| {
                store.is_live(seq) && !is_dying(seq)
            });
            if lost > 0 {
                // Which of them had been waiting is not known.
                ready.recount_paged(|from| store.count_from(from));
            }
        });
    }

    fn resident_bytes(&self) -> usize {
        let queue = self.queue();
        queue.map_or(0, |queue| queue.lock().lanes.get(self.lane).ready.bytes())
    }

    fn with_store(&self, act: &mut dyn FnMut(&mut QueueStore, QueueSeq)) {
        if let Some(queue) = self.queue() {
            let mut state = queue.lock();
            let lane = state.lanes.get_mut(self.lane);
            let next = lane.ready.next_seq();
            act(&mut lane.store, next);
        }
    }
}

impl State {
    /// Bytes of messages of a lane that are in memory and not out with consumers.
    fn resident_bytes(&self, lane: LaneId) -> usize {
        match &self.rules {
            Some(rules) => rules.resident_bytes(),
            None => None,
        }
        .unwrap_or_else(|| self.lanes.get(lane).ready.bytes())
    }

    /// What to read for somebody who waits for the next message.
    pub(super) fn load_next(&mut self, lane: LaneId) -> Option<Load> {
        let Lane { ready, store, .. } = self.lanes.get_mut(lane);
        loop {
            let from = ready.next_load()?;
            let bytes = READ_AHEAD.min(store.budget());
            let load = store.plan_load(from, bytes);
            if load.is_some() {
                return load;
            }
            ready.none_to_load(from);
        }
    }

    /// Has the next messages read while there are still some at hand.
    #[inline]
    pub(super) fn read_ahead(&mut self) {
        self.read_ahead_in(self.lanes.first());
    }

    /// The same for a lane whose turn it may not be.
    pub(super) fn read_ahead_in(&mut self, lane: LaneId) {
        if self.lanes.get_mut(lane).ready.wants_load().is_some()
            && let Some(load) = self.load_next(lane)
        {
            let Lane { ready, store, .. } = self.lanes.get_mut(lane);
            ready.loading = true;
            store.request_load(load);
        }
    }

    /// Forgets what lies in segments and is not among the next; for the caller to drop where no
    /// lock is held.
    fn evict(&mut self, lane: LaneId) -> Vec<Message> {
        let Lane { ready, store, .. } = self.lanes.get_mut(lane);
        if let Some(stream) = self.rules.as_mut().and_then(|rules| rules.stream.as_mut()) {
            return stream.evict(store.flushed());
        }
        if let Some(rules) = &mut self.rules
            && let Some(delay) = &mut rules.delay
        {
            let is_flushed = |seq| store.is_flushed(seq);
            return delay.messages.evict(store.flushed(), rules.now, is_flushed);
        }
        ready.evict(store.flushed(), |seq| store.is_flushed(seq))
    }

    /// The next messages that are not in segments yet, in order; those that are out on leases or
    /// wait to be dead-lettered among them. `None` if the goal is reached.
    fn begin_flush(&mut self, id: LaneId, goal: FlushGoal) -> Option<Flush> {
        let Lane { ready, store, .. } = self.lanes.get(id);
        let reached = self.deleted
            || match goal {
                FlushGoal::Resident(keep) => self.resident_bytes(id) <= keep,
                FlushGoal::Log(epoch) => store.oldest_epoch().is_none_or(|at| at > epoch),
            };
        if reached {
            return None;
        }
        let from = store.flushed();
        let mut elsewhere = self.leases.resident_from(id, from);
        if let Some(rules) = &self.rules {
            elsewhere.extend(rules.dying.resident_from(id, from));
            if let Some(groups) = &rules.groups {
                elsewhere.extend(groups.resident_from(id, from));
            }
            if let Some(stream) = &rules.stream {
                elsewhere.extend(stream.resident_from(from));
            }
            if let Some(delay) = &rules.delay {
                elsewhere.extend(delay.messages.resident_from(from));
            }
            elsewhere.sort_unstable_by_key(|(seq, _)| *seq);
        }
        let mut elsewhere = elsewhere.into_iter().peekable();
        let mut ready = ready.resident_from(from).peekable();
        let mut messages: Vec<(QueueSeq, Message)> = Vec::new();
        let mut bytes = 0;
        while messages.len() < MAX_FLUSH_MESSAGES && bytes < MAX_FLUSH_BYTES {
            let elsewhere_first = match (elsewhere.peek(), ready.peek()) {
                (Some((elsewhere, _)), Some((ready, _))) => elsewhere < ready,
                (elsewhere, _) => elsewhere.is_some(),
            };
            let next = if elsewhere_first {
                elsewhere.next()
            } else {
                ready.next()
            };
            let Some((seq, message)) = next else { break };
            bytes += message.stored_len();
            messages.push((seq, message.clone()));
        }
        let up_to = messages.last()?.0.next();
        Some(Flush { up_to, messages })
    }
}
