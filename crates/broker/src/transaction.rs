//! A channel's transaction: publishes and settlements that happen together or not at all.

use std::sync::Arc;

use store::Message;

use crate::queue::{LeaseId, Outcome, Queue, State, Wakes};
use crate::routing::Route;
use parking_lot::MutexGuard;

/// What has been done since tx.select or the last commit or rollback. Nothing of it is visible.
#[derive(Debug, Default)]
pub struct Transaction {
    publishes: Vec<(Arc<Route>, Message)>,
    settlements: Vec<(Arc<Queue>, LeaseId, Outcome)>,
}

impl Transaction {
    /// Adds a publish.
    pub fn publish(&mut self, route: Arc<Route>, message: Message) {
        self.publishes.push((route, message));
    }

    /// Adds the end of a lease.
    pub fn settle(&mut self, queue: Arc<Queue>, lease: LeaseId, outcome: Outcome) {
        self.settlements.push((queue, lease, outcome));
    }

    /// True if there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.publishes.is_empty() && self.settlements.is_empty()
    }

    /// Makes everything visible at once: all queues are locked, in order of id, before the first
    /// is changed.
    pub fn commit(&mut self) {
        let publishes = std::mem::take(&mut self.publishes);
        let settlements = std::mem::take(&mut self.settlements);
        let mut queues: Vec<&Arc<Queue>> = publishes
            .iter()
            .flat_map(|(route, _)| &route.queues)
            .chain(settlements.iter().map(|(queue, ..)| queue))
            .collect();
        queues.sort_unstable_by_key(|queue| queue.id);
        queues.dedup_by_key(|queue| queue.id);
        let mut locked: Vec<(u64, MutexGuard<'_, State>)> = queues
            .iter()
            .map(|queue| (queue.id, queue.lock()))
            .collect();
        for (queue, lease, outcome) in &settlements {
            if let Some(state) = state_of(&mut locked, queue) {
                state.settle(&[*lease], *outcome);
            }
        }
        for (route, message) in &publishes {
            for queue in &route.queues {
                if let Some(state) = state_of(&mut locked, queue) {
                    state.append(std::iter::once(message.clone()));
                }
            }
        }
        let mut wakes = Wakes::default();
        for (_, mut state) in locked {
            while state.dispatch(&mut wakes) {
                MutexGuard::bump(&mut state);
            }
        }
        wakes.wake();
    }
}

fn state_of<'s>(
    locked: &'s mut [(u64, MutexGuard<'_, State>)],
    queue: &Queue,
) -> Option<&'s mut State> {
    let index = locked.binary_search_by_key(&queue.id, |(id, _)| *id).ok()?;
    locked.get_mut(index).map(|(_, state)| &mut **state)
}
