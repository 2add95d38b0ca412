//! Several queues at once, for what must happen to all of them together: transactions, and moving
//! messages from one to another.
//!
//! They are locked in order of id before the first is changed, and what is logged of them is one
//! record.

use std::sync::Arc;

use parking_lot::MutexGuard;
use store::{Store, TransactionRecord};

use crate::queue::{After, Logged, Queue, State, Wakes};

/// Queues that are locked.
pub(crate) struct LockedQueues<'q>(Vec<(&'q Arc<Queue>, MutexGuard<'q, State>)>);

impl<'q> LockedQueues<'q> {
    /// Locks them, each once.
    pub fn lock(queues: impl Iterator<Item = &'q Arc<Queue>>) -> Self {
        let mut queues: Vec<&Arc<Queue>> = queues.collect();
        queues.sort_unstable_by_key(|queue| queue.id);
        queues.dedup_by_key(|queue| queue.id);
        let mut now = None;
        let lock = |queue: &'q Arc<Queue>| {
            let mut state = queue.lock();
            state.refresh_at(*now.get_or_insert_with(|| queue.now()));
            (queue, state)
        };
        LockedQueues(queues.into_iter().map(lock).collect())
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.0.binary_search_by_key(&id, |(queue, _)| queue.id).ok()
    }

    /// That queue, if it is among them.
    pub fn get(&self, id: u64) -> Option<&State> {
        self.position(id).map(|at| &*self.0[at].1)
    }

    /// As [`LockedQueues::get`], to change it.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut State> {
        let at = self.position(id)?;
        Some(&mut *self.0[at].1)
    }

    /// Logs what was gathered.
    pub fn commit(&mut self, store: &Store, record: &TransactionRecord) -> Option<Logged> {
        let logged = store.commit(record);
        if let Some((lsn, _)) = logged {
            for (_, state) in &mut self.0 {
                state.transaction_logged(lsn);
            }
        }
        logged
    }

    /// Hands out what consumers have credit for, and releases all of them. Returns those where
    /// messages wait to be dead-lettered.
    pub fn release(mut self) -> Vec<Arc<Queue>> {
        let mut wakes = Wakes::default();
        let mut to_bury = Vec::new();
        // From the last to the first: bumping releases a lock and takes it again, which keeps to
        // the order only while none of a higher id is held.
        while let Some((queue, mut state)) = self.0.pop() {
            let After { bury } = queue.finish(&mut state, &mut wakes);
            if bury {
                to_bury.push(queue.clone());
            }
        }
        wakes.wake();
        to_bury
    }
}
