//! What time means for leases: those that do not last for ever, and those on messages that expire.
//! Apart from the leases themselves, so that a queue in which time does not matter has none of it.

use std::collections::BTreeSet;

use super::leases::LeaseId;
use super::ready::MAX_IDLE_CAPACITY;
use crate::clock::Millis;

/// The times of one lease.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Times {
    /// When the message has been out for too long; 0 = never.
    pub deadline: Millis,
    /// When a message that lies in a segment expires; 0 = never, or not known. So one that comes back
    /// too late need not be read to know that.
    pub expires: Millis,
}

#[derive(Debug, Default)]
pub(super) struct LeaseTimes {
    /// By lease; what is missing at the end has none.
    by_lease: Vec<Times>,
    /// Leases by deadline.
    deadlines: BTreeSet<(Millis, u32)>,
}

impl Times {
    fn are_some(self) -> bool {
        self.deadline > 0 || self.expires > 0
    }
}

impl LeaseTimes {
    /// A lease was granted.
    #[inline]
    pub fn add(&mut self, lease: LeaseId, times: Times) {
        if times.are_some() {
            self.add_some(lease, times);
        }
    }

    fn add_some(&mut self, lease: LeaseId, times: Times) {
        let at = lease.0 as usize;
        if self.by_lease.len() <= at {
            self.by_lease.resize(at + 1, Times::default());
        }
        self.by_lease[at] = times;
        if times.deadline > 0 {
            self.deadlines.insert((times.deadline, lease.0));
        }
    }

    /// A lease has ended; its times.
    #[inline]
    pub fn remove(&mut self, lease: LeaseId) -> Times {
        match self.by_lease.get_mut(lease.0 as usize) {
            Some(times) if times.are_some() => {
                let times = std::mem::take(times);
                self.forget(lease, times);
                times
            }
            _ => Times::default(),
        }
    }

    fn forget(&mut self, lease: LeaseId, times: Times) {
        if times.deadline > 0 {
            self.deadlines.remove(&(times.deadline, lease.0));
        }
    }

    /// No lease is left.
    #[inline]
    pub fn give_back(&mut self) {
        if !self.by_lease.is_empty() {
            self.by_lease.clear();
            self.by_lease.shrink_to(MAX_IDLE_CAPACITY);
        }
    }

    /// When the next one has been out for too long.
    pub fn next(&self) -> Option<Millis> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// One that has been out for too long; it is told once.
    pub fn take_due(&mut self, now: Millis) -> Option<LeaseId> {
        let (deadline, lease) = *self.deadlines.first()?;
        (deadline <= now).then(|| {
            self.deadlines.pop_first();
            LeaseId(lease)
        })
    }

    /// The times of messages count otherwise than they did.
    pub fn forget_expiries(&mut self) {
        self.by_lease.iter_mut().for_each(|times| times.expires = 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Grant { deadline: Millis, expires: Millis },
        End(usize),
        TakeDue(Millis),
        ForgetExpiries,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..4u64, 0..3u64).prop_map(|(deadline, expires)| Step::Grant { deadline, expires }),
            4 => (0..8usize).prop_map(Step::End),
            1 => (0..5u64).prop_map(Step::TakeDue),
            1 => Just(Step::ForgetExpiries),
        ];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        /// Against a map of leases; ids are used again as a slab does.
        #[test]
        fn times_are_those_that_were_given(steps in steps()) {
            let mut times = LeaseTimes::default();
            let mut model: BTreeMap<u32, (Times, bool)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Grant { deadline, expires } => {
                        let id = (0..).find(|id| !model.contains_key(id)).expect("a free one");
                        let given = Times { deadline, expires };
                        times.add(LeaseId(id), given);
                        model.insert(id, (given, deadline > 0));
                    }
                    Step::End(nth) => {
                        if let Some(id) = model.keys().nth(nth).copied() {
                            let (expected, _) = model.remove(&id).expect("it is there");
                            let found = times.remove(LeaseId(id));
                            prop_assert_eq!(found.expires, expected.expires);
                            prop_assert_eq!(found.deadline, expected.deadline);
                        }
                    }
                    Step::TakeDue(now) => {
                        let due = model.iter().filter(|(_, (times, waits))| *waits && times.deadline <= now);
                        let expected = due.map(|(id, (times, _))| (times.deadline, *id)).min();
                        prop_assert_eq!(times.take_due(now).map(|id| id.0), expected.map(|(_, id)| id));
                        if let Some((_, id)) = expected {
                            model.get_mut(&id).expect("it is there").1 = false;
                        }
                    }
                    Step::ForgetExpiries => {
                        times.forget_expiries();
                        model.values_mut().for_each(|(times, _)| times.expires = 0);
                    }
                }
                let waiting = model.values().filter(|(_, waits)| *waits);
                prop_assert_eq!(times.next(), waiting.map(|(times, _)| times.deadline).min());
            }
        }
    }
}
