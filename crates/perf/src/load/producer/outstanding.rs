//! Messages that await their confirm, with the time from which their latency counts. Brokers confirm
//! singly, several at once, and out of order.

use std::collections::VecDeque;

/// Stands for a message that is confirmed while an earlier one is not.
const DONE: i64 = i64::MIN;

/// By delivery tag, from `base` on.
#[derive(Debug, Default)]
pub struct Outstanding {
    /// Delivery tag of the first entry, less one.
    base: u64,
    times: VecDeque<i64>,
    /// Entries that are not `DONE`.
    count: u64,
}

impl Outstanding {
    /// Adds the next message.
    #[inline]
    pub fn push(&mut self, time: i64) {
        self.times.push_back(time);
        self.count += 1;
    }

    /// How many messages await their confirm.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All messages up to this number, from 1, are confirmed.
    pub fn settled_up_to(&self) -> u64 {
        self.base
    }

    /// Takes what a confirm is about, and shows each message's number, from 0, and time; returns how
    /// many.
    #[inline]
    pub fn settle(&mut self, tag: u64, multiple: bool, mut each: impl FnMut(u64, i64)) -> u64 {
        let before = self.count;
        if multiple {
            // Tag 0 stands for all.
            let up_to = if tag == 0 { u64::MAX } else { tag };
            while self.base < up_to {
                let Some(time) = self.times.pop_front() else {
                    break;
                };
                self.base += 1;
                if time != DONE {
                    self.count -= 1;
                    each(self.base - 1, time);
                }
            }
        } else {
            let index = tag.wrapping_sub(self.base).wrapping_sub(1) as usize;
            if let Some(time) = self.times.get_mut(index).filter(|time| **time != DONE) {
                each(tag - 1, std::mem::replace(time, DONE));
                self.count -= 1;
            }
        }
        while self.times.front() == Some(&DONE) {
            self.times.pop_front();
            self.base += 1;
        }
        before - self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_confirmed_once() {
        let mut outstanding = Outstanding::default();
        (1..=7).for_each(|time| outstanding.push(time));
        let mut seen = Vec::new();
        for (tag, multiple) in [(3, false), (3, false), (6, false), (2, true), (5, true)] {
            outstanding.settle(tag, multiple, |number, time| seen.push((number, time)));
        }
        assert_eq!(seen, [(2, 3), (5, 6), (0, 1), (1, 2), (3, 4), (4, 5)]);
        assert_eq!(outstanding.settled_up_to(), 6);
        assert_eq!(outstanding.count(), 1);
        // Never sent.
        assert_eq!(outstanding.settle(9, false, |_, _| ()), 0);
        assert_eq!(outstanding.settle(0, true, |_, _| ()), 1);
        assert_eq!(outstanding.settle(u64::MAX, false, |_, _| ()), 0);
        assert_eq!(outstanding.count(), 0);
    }
}
