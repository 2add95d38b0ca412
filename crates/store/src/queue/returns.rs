//! How often messages have come back from consumers, where the queue counts that: a limit on
//! deliveries must hold over restarts.

use std::collections::BTreeMap;

use wal::Urgency;

use super::QueueStore;
use crate::op;
use crate::seq::{QueueSeq, SeqRun};

/// Messages that came back at least once and are not gone.
#[derive(Debug, Default)]
pub(super) struct Returns {
    counts: BTreeMap<QueueSeq, u32>,
    /// Changed since the last [`QueueStore::log_returned`].
    unlogged: Vec<(QueueSeq, u32)>,
}

impl Returns {
    pub fn recovered(counts: BTreeMap<QueueSeq, u32>) -> Self {
        Returns {
            counts,
            unlogged: Vec::new(),
        }
    }

    #[inline]
    pub fn forget(&mut self, seq: QueueSeq) {
        if !self.counts.is_empty() {
            self.forget_one(seq);
        }
    }

    #[cold]
    fn forget_one(&mut self, seq: QueueSeq) {
        self.counts.remove(&seq);
    }

    pub fn forget_run(&mut self, run: SeqRun) {
        forget_run(&mut self.counts, run);
    }

    pub fn snapshot(&self) -> Vec<(QueueSeq, u32)> {
        self.counts
            .iter()
            .map(|(seq, count)| (*seq, *count))
            .collect()
    }
}

/// Messages of that run are gone.
pub(crate) fn forget_run(counts: &mut BTreeMap<QueueSeq, u32>, run: SeqRun) {
    while let Some((seq, _)) = counts.range(run.first..run.end()).next() {
        let seq = *seq;
        counts.remove(&seq);
    }
}

impl QueueStore {
    /// How often the message at that place has come back.
    #[inline]
    pub fn returns(&self, seq: QueueSeq) -> u32 {
        match self.returns.counts.is_empty() {
            true => 0,
            false => self.returns.counts.get(&seq).copied().unwrap_or(0),
        }
    }

    /// The message at that place has come back once more. [`QueueStore::log_returned`] follows,
    /// under the same lock.
    pub fn note_returned(&mut self, seq: QueueSeq) {
        let count = self.returns.counts.entry(seq).or_default();
        *count = count.saturating_add(1);
        if self.logged {
            self.returns.unlogged.push((seq, *count));
        }
    }

    /// Logs what has come back. Nobody waits for it.
    #[inline]
    pub fn log_returned(&mut self) {
        if self.returns.unlogged.is_empty() {
            return;
        }
        let unlogged = std::mem::take(&mut self.returns.unlogged);
        let wal = &self.shared.wal;
        wal.append(self.stream, Urgency::Lazy, |payload| {
            op::returned(payload, &unlogged);
        });
    }
}
