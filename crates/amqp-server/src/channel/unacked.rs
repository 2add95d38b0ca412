//! What a channel has out: delivery tags and the leases behind them.
//!
//! Tags are consecutive, so a ring indexed by `tag − base` finds each in O(1); settled ones leave
//! a gap that is trimmed at the front. A tag that stays out for long would keep the ring from
//! shrinking: then it moves to a small ordered map, and the ring goes on without it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use broker::{LeaseId, Queue};

/// A delivery that is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Out {
    pub queue: QueueIndex,
    pub lease: LeaseId,
    /// Counts against the channel's prefetch: it went to a consumer.
    pub counted: bool,
}

/// Deliveries by tag.
#[derive(Debug, Default)]
pub(super) struct Unacked {
    /// Tag of the ring's first place.
    base: u64,
    ring: VecDeque<Option<Out>>,
    /// How many places of the ring are taken.
    taken: usize,
    /// Old ones, all with tags below `base`.
    stragglers: BTreeMap<u64, Out>,
}

/// A ring that has this many places, most of them gaps, gives up its stragglers.
const SPARSE_RING: usize = 4_096;

impl Unacked {
    pub fn len(&self) -> usize {
        self.taken + self.stragglers.len()
    }

    /// Adds a delivery; tags come in ascending order.
    #[inline]
    pub fn push(&mut self, tag: u64, out: Out) {
        // Deliveries without acknowledgement use up tags too, so there may be a gap.
        let gap = tag - (self.base + self.ring.len() as u64).min(tag);
        if gap > SPARSE_RING as u64 {
            self.move_stragglers();
        }
        if self.ring.is_empty() {
            self.base = tag;
        }
        while self.base + (self.ring.len() as u64) < tag {
            self.ring.push_back(None);
        }
        self.ring.push_back(Some(out));
        self.taken += 1;
        if self.ring.len() >= SPARSE_RING && self.taken < self.ring.len() / 8 {
            self.move_stragglers();
        }
    }

    fn move_stragglers(&mut self) {
        for (index, place) in self.ring.drain(..).enumerate() {
            if let Some(out) = place {
                self.stragglers.insert(self.base + index as u64, out);
            }
        }
        self.taken = 0;
    }

    /// Removes one delivery.
    #[inline]
    pub fn remove(&mut self, tag: u64) -> Option<Out> {
        let Some(index) = tag.checked_sub(self.base).filter(|_| !self.ring.is_empty()) else {
            return self.stragglers.remove(&tag);
        };
        let found = self.ring.get_mut(usize::try_from(index).ok()?)?.take();
        let Some(out) = found else {
            return self.stragglers.remove(&tag);
        };
        self.taken -= 1;
        self.trim();
        Some(out)
    }

    /// True if that delivery is out.
    pub fn contains(&self, tag: u64) -> bool {
        let in_ring = || {
            let index = usize::try_from(tag.checked_sub(self.base)?).ok()?;
            self.ring.get(index)?.as_ref()
        };
        in_ring().is_some() || self.stragglers.contains_key(&tag)
    }

    /// Removes all deliveries up to and including `tag`, oldest first.
    pub fn remove_up_to(&mut self, tag: u64, mut removed: impl FnMut(u64, Out)) {
        while let Some(entry) = self
            .stragglers
            .first_entry()
            .filter(|entry| *entry.key() <= tag)
        {
            let (tag, out) = entry.remove_entry();
            removed(tag, out);
        }
        while !self.ring.is_empty() && self.base <= tag {
            if let Some(Some(out)) = self.ring.pop_front() {
                self.taken -= 1;
                removed(self.base, out);
            }
            self.base += 1;
        }
        self.trim();
    }

    /// Removes everything, oldest first.
    pub fn remove_all(&mut self, removed: impl FnMut(u64, Out)) {
        self.remove_up_to(u64::MAX, removed);
    }

    /// Puts back what a rolled-back transaction had removed.
    pub fn restore(&mut self, tag: u64, out: Out) {
        let index = tag
            .checked_sub(self.base)
            .and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.ring.get_mut(index)) {
            Some(place) => {
                *place = Some(out);
                self.taken += 1;
            }
            None => {
                self.stragglers.insert(tag, out);
            }
        }
    }

    fn trim(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.base += 1;
        }
        if self.ring.is_empty() && self.ring.capacity() > SPARSE_RING {
            self.ring = VecDeque::new();
        }
    }
}

/// A queue's place in the channel's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueIndex(u32);

impl QueueIndex {
    /// For sorting by queue.
    pub fn order(self) -> u32 {
        self.0
    }
}

/// The queues that a channel consumes or has deliveries of, so that each delivery names its queue
/// in four bytes and costs no reference count that other threads share.
#[derive(Debug, Default)]
pub(super) struct QueueTable {
    queues: slab::Slab<(Arc<Queue>, usize)>,
}

impl QueueTable {
    /// The queue's place; counts one use.
    pub fn enter(&mut self, queue: &Arc<Queue>) -> QueueIndex {
        let found = self
            .queues
            .iter_mut()
            .find(|(_, (known, _))| Arc::ptr_eq(known, queue));
        match found {
            Some((index, (_, uses))) => {
                *uses += 1;
                QueueIndex(index as u32)
            }
            None => QueueIndex(self.queues.insert((queue.clone(), 1)) as u32),
        }
    }

    /// Counts one more use of a place that is in use.
    #[inline]
    pub fn retain(&mut self, index: QueueIndex) {
        self.queues[index.0 as usize].1 += 1;
    }

    /// Ends some uses; the place is free after the last.
    #[inline]
    pub fn release(&mut self, index: QueueIndex, uses: usize) {
        let entry = &mut self.queues[index.0 as usize].1;
        *entry -= uses;
        if *entry == 0 {
            self.queues.remove(index.0 as usize);
        }
    }

    #[inline]
    pub fn get(&self, index: QueueIndex) -> &Arc<Queue> {
        &self.queues[index.0 as usize].0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn out(lease: u32) -> Out {
        Out {
            queue: QueueIndex(0),
            lease: LeaseId(lease),
            counted: true,
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Skip,
        Remove(u64),
        RemoveUpTo(u64),
        Spread,
        RestoreLast,
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_map(steps in prop::collection::vec(
            prop_oneof![
                6 => Just(Step::Push),
                1 => Just(Step::Skip),
                4 => (0u64..60).prop_map(Step::Remove),
                1 => (0u64..60).prop_map(Step::RemoveUpTo),
                1 => Just(Step::Spread),
                1 => Just(Step::RestoreLast),
            ],
            0..120,
        )) {
            let mut unacked = Unacked::default();
            let mut model = BTreeMap::new();
            let mut next = 1;
            let mut last_removed = None;
            for step in steps {
                match step {
                    Step::Push => {
                        unacked.push(next, out(next as u32));
                        model.insert(next, out(next as u32));
                        next += 1;
                    }
                    Step::Skip => next += 1,
                    Step::Remove(tag) => {
                        prop_assert_eq!(unacked.contains(tag), model.contains_key(&tag));
                        let removed = model.remove(&tag);
                        prop_assert_eq!(unacked.remove(tag), removed);
                        last_removed = removed.map(|out| (tag, out)).or(last_removed);
                    }
                    Step::RemoveUpTo(tag) => {
                        let rest = model.split_off(&(tag + 1));
                        let expected: Vec<_> = std::mem::replace(&mut model, rest).into_iter().collect();
                        let mut removed = Vec::new();
                        unacked.remove_up_to(tag, |tag, out| removed.push((tag, out)));
                        prop_assert_eq!(removed, expected);
                        last_removed = None;
                    }
                    Step::Spread => unacked.move_stragglers(),
                    Step::RestoreLast => if let Some((tag, out)) = last_removed.take() {
                        unacked.restore(tag, out);
                        model.insert(tag, out);
                    }
                }
                prop_assert_eq!(unacked.len(), model.len());
            }
            let mut rest = Vec::new();
            unacked.remove_all(|tag, out| rest.push((tag, out)));
            prop_assert_eq!(rest, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_wide_gap_costs_nothing() {
        let mut unacked = Unacked::default();
        unacked.push(1, out(1));
        unacked.push(u64::MAX - 1, out(2));
        assert_eq!(unacked.ring.len(), 1);
        assert_eq!(unacked.remove(u64::MAX - 1), Some(out(2)));
        assert_eq!(unacked.remove(1), Some(out(1)));
    }

    #[test]
    fn one_old_delivery_does_not_keep_the_ring() {
        let mut unacked = Unacked::default();
        unacked.push(1, out(1));
        for tag in 2..1_000_000 {
            unacked.push(tag, out(2));
            assert!(unacked.remove(tag).is_some());
        }
        assert!(unacked.ring.capacity() <= 4 * SPARSE_RING);
        assert_eq!(unacked.remove(1), Some(out(1)));
    }
}
