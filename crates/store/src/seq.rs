//! Places in a queue.

/// A message's place in its queue. Never reused; order in the queue is the order of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QueueSeq(pub u64);

impl QueueSeq {
    /// The one behind it.
    #[inline]
    pub fn next(self) -> QueueSeq {
        QueueSeq(self.0 + 1)
    }
}

/// Consecutive places: `count` from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeqRun {
    /// The first place.
    pub first: QueueSeq,
    /// How many; not 0.
    pub count: u64,
}

impl SeqRun {
    /// The place behind its last.
    #[inline]
    pub fn end(self) -> QueueSeq {
        QueueSeq(self.first.0.saturating_add(self.count))
    }
}

/// Sorts places and joins neighbours to runs.
pub fn in_runs(seqs: &mut [QueueSeq], mut each: impl FnMut(SeqRun)) {
    if !seqs.is_sorted() {
        seqs.sort_unstable();
    }
    for run in seqs.chunk_by(|a, b| a.next() == *b) {
        each(SeqRun {
            first: run[0],
            count: run.len() as u64,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_runs() {
        let mut seqs = [5, 1, 2, 9, 3, 6].map(QueueSeq);
        let mut runs = Vec::new();
        in_runs(&mut seqs, |run| runs.push((run.first.0, run.count)));
        assert_eq!(runs, [(1, 3), (5, 2), (9, 1)]);
    }
}
