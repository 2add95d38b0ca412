//! Identities of messages that a queue has had lately, so that it knows them when they come again:
//! over restarts too, and after the messages themselves have gone.

use std::collections::VecDeque;

use ahash::{HashSet, HashSetExt as _};
use wal::Urgency;

use super::QueueStore;
use crate::op;

/// What a message is recognized by.
pub type Identity = [u8; 16];

/// Identities, oldest first, each with the time until which it is to be known; what that time is
/// counted in is the caller's to know.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: VecDeque<(Identity, u64)>,
    unlogged: Vec<(Identity, u64)>,
}

impl Memory {
    /// Each identity counts once, with the time that was said first.
    pub fn recovered(mut known: VecDeque<(Identity, u64)>) -> Self {
        let mut seen = HashSet::new();
        known.retain(|(identity, _)| seen.insert(*identity));
        Memory {
            known,
            unlogged: Vec::new(),
        }
    }

    pub fn snapshot(&self) -> Vec<(Identity, u64)> {
        self.known.iter().copied().collect()
    }
}

impl QueueStore {
    /// A message with that identity has come. [`QueueStore::log_remembered`] follows, under the same
    /// lock, and after the message itself: whoever was told of nothing may send it again.
    pub fn remember(&mut self, identity: Identity, until: u64) {
        self.memory.known.push_back((identity, until));
        if self.logged {
            self.memory.unlogged.push((identity, until));
        }
    }

    /// Forgets the oldest identity, and returns it.
    pub fn forget_oldest(&mut self) -> Option<(Identity, u64)> {
        self.memory.known.pop_front()
    }

    /// A message with that identity has not come after all.
    pub fn forget(&mut self, forgotten: Identity) {
        self.memory
            .known
            .retain(|(identity, _)| *identity != forgotten);
        let unlogged = &mut self.memory.unlogged;
        unlogged.retain(|(identity, _)| *identity != forgotten);
    }

    /// All that is known, oldest first.
    pub fn remembered(&self) -> impl ExactSizeIterator<Item = &(Identity, u64)> {
        self.memory.known.iter()
    }

    /// Logs what has come.
    #[inline]
    pub fn log_remembered(&mut self) {
        if self.memory.unlogged.is_empty() {
            return;
        }
        let unlogged = std::mem::take(&mut self.memory.unlogged);
        let wal = &self.shared.wal;
        wal.append(self.stream, Urgency::Lazy, |payload| {
            op::remembered(payload, &unlogged);
        });
    }
}
