//! Moving messages between memory and segments: what the store's threads ask of a queue.

use store::{
    Flush, FlushGoal, Load, Loaded, MAX_FLUSH_BYTES, MAX_FLUSH_MESSAGES, Message, QueueSeq,
    QueueStore, Resident, Written,
};

use super::{Queue, State};

/// Bytes that are read from segments at a time, if the queue may keep as many.
const READ_AHEAD: usize = 1024 * 1024;

impl Resident for Queue {
    fn begin_flush(&self, goal: FlushGoal) -> Option<Flush> {
        let mut dropped = Vec::new();
        let mut state = self.lock();
        let flush = state.begin_flush(goal);
        match &flush {
            Some(flush) => state.store.begin_flush(flush.up_to),
            None => {
                state.store.flush_answered();
                // What was written while it was out, and has come back since, needs no memory.
                if matches!(goal, FlushGoal::Resident(keep) if state.ready.bytes() > keep) {
                    dropped = state.evict();
                }
            }
        }
        drop(state);
        drop(dropped);
        flush
    }

    fn abort_flush(&self) {
        self.lock().store.abort_flush();
    }

    fn complete_flush(&self, mut written: Written) {
        let dropped = {
            let mut state = self.lock();
            if !state.store.complete_flush(&mut written) {
                return;
            }
            let dropped = state.evict();
            let bytes = state.ready.bytes();
            state.store.note_resident(bytes);
            dropped
        };
        // Thousands of messages are freed here, where nobody waits for it.
        drop((dropped, written));
    }

    fn complete_load(&self, loaded: Loaded) {
        self.change(|state| {
            let State { ready, store, .. } = state;
            ready.loading = false;
            let delivered = store.delivered();
            let lost = loaded.lost;
            ready.loaded(loaded, delivered, |seq| store.is_live(seq));
            if lost > 0 {
                // Which of them had been waiting is not known.
                ready.recount_paged(|from| store.count_from(from));
            }
        });
    }

    fn resident_bytes(&self) -> usize {
        self.lock().ready.bytes()
    }

    fn with_store(&self, act: &mut dyn FnMut(&mut QueueStore, QueueSeq)) {
        let mut state = self.lock();
        let next = state.ready.next_seq();
        act(&mut state.store, next);
    }
}

impl State {
    /// What to read for somebody who waits for the next message.
    pub(super) fn load_next(&mut self) -> Option<Load> {
        loop {
            let from = self.ready.next_load()?;
            let bytes = READ_AHEAD.min(self.store.budget());
            let load = self.store.plan_load(from, bytes);
            if load.is_some() {
                return load;
            }
            self.ready.none_to_load(from);
        }
    }

    /// Has the next messages read while there are still some at hand.
    #[inline]
    pub(super) fn read_ahead(&mut self) {
        if self.ready.wants_load().is_some()
            && let Some(load) = self.load_next()
        {
            self.ready.loading = true;
            self.store.request_load(load);
        }
    }

    /// Forgets what lies in segments and is not among the next; for the caller to drop where no
    /// lock is held.
    fn evict(&mut self) -> Vec<Message> {
        let State { ready, store, .. } = self;
        ready.evict(store.flushed(), |seq| store.is_flushed(seq))
    }

    /// The next messages that are not in segments yet, in order; those that are out on leases
    /// among them. `None` if the goal is reached.
    fn begin_flush(&mut self, goal: FlushGoal) -> Option<Flush> {
        let reached = self.deleted
            || match goal {
                FlushGoal::Resident(keep) => self.ready.bytes() <= keep,
                FlushGoal::Log(epoch) => self.store.oldest_epoch().is_none_or(|at| at > epoch),
            };
        if reached {
            return None;
        }
        let from = self.store.flushed();
        let mut leased = self.leases.resident_from(from).into_iter().peekable();
        let mut ready = self.ready.resident_from(from).peekable();
        let mut messages: Vec<(QueueSeq, Message)> = Vec::new();
        let mut bytes = 0;
        while messages.len() < MAX_FLUSH_MESSAGES && bytes < MAX_FLUSH_BYTES {
            let leased_first = match (leased.peek(), ready.peek()) {
                (Some((leased, _)), Some((ready, _))) => leased < ready,
                (leased, _) => leased.is_some(),
            };
            let next = if leased_first {
                leased.next()
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
