//! Which messages of a channel are confirmed. Brokers may confirm singly and out of order.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub struct Confirms {
    /// All up to this delivery tag are.
    up_to: u64,
    /// Those beyond that are.
    ahead: BTreeSet<u64>,
}

impl Confirms {
    pub fn note(&mut self, delivery_tag: u64, multiple: bool) {
        if multiple {
            self.up_to = self.up_to.max(delivery_tag);
            self.ahead = self.ahead.split_off(&(self.up_to + 1));
        } else if delivery_tag == self.up_to + 1 {
            self.up_to = delivery_tag;
        } else {
            self.ahead.insert(delivery_tag);
        }
        while !self.ahead.is_empty() && self.ahead.remove(&(self.up_to + 1)) {
            self.up_to += 1;
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.up_to + self.ahead.len() as u64
    }

    /// All up to this delivery tag.
    pub fn up_to(&self) -> u64 {
        self.up_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_out_of_order_are_counted_once() {
        let mut confirms = Confirms::default();
        let mut after = |tag, multiple| {
            confirms.note(tag, multiple);
            (confirms.count(), confirms.up_to())
        };
        assert_eq!(after(3, false), (1, 0));
        assert_eq!(after(6, false), (2, 0));
        assert_eq!(after(2, true), (4, 3));
        assert_eq!(after(5, true), (6, 6));
        assert_eq!(after(7, false), (7, 7));
    }
}
