//! The room that a file takes on its disk: which of its pages were allocated or written, though
//! they may hold zeros.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of pages, end by start. They neither overlap nor touch.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(BTreeMap<u64, u64>);

impl Room {
    /// Pages in all.
    pub(super) fn pages(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// How many pages of a range it does not have.
    pub(super) fn missing(&self, wanted: &Range<u64>) -> u64 {
        let before = self.0.range(..wanted.end);
        let overlaps = before.rev().map(|(start, end)| {
            let (start, end) = (*start.max(&wanted.start), *end.min(&wanted.end));
            end.saturating_sub(start)
        });
        let had: u64 = overlaps.take_while(|pages| *pages > 0).sum();
        wanted.end.saturating_sub(wanted.start) - had
    }

    /// Takes a range.
    pub(super) fn take(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.0.range(..=range.end).next_back()
            && end >= range.start
        {
            self.0.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.0.insert(range.start, range.end);
    }

    /// Takes all that another has.
    pub(super) fn take_all(&mut self, other: &Room) {
        for (&start, &end) in &other.0 {
            self.take(start..end);
        }
    }

    /// Gives the pages from `end` on back.
    pub(super) fn cut(&mut self, end: u64) {
        drop(self.0.split_off(&end));
        if let Some(mut last) = self.0.last_entry() {
            let cut = end.min(*last.get());
            last.insert(cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::Random;

    #[test]
    fn ranges_are_counted_as_a_set_of_pages_would() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut room, mut model) = (Room::default(), BTreeSet::new());
            for _ in 0..30 {
                let start = random.below(40) as u64;
                let range = start..start + random.below(10) as u64;
                let missing = range.clone().filter(|page| !model.contains(page)).count();
                assert_eq!(room.missing(&range), missing as u64);
                if random.below(8) == 0 {
                    room.cut(start);
                    model.retain(|page| *page < start);
                } else {
                    model.extend(range.clone());
                    room.take(range);
                }
                assert_eq!(room.pages(), model.len() as u64);
            }
        }
    }
}
