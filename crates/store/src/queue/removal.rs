//! Messages that are gone for good: acknowledged, discarded, taken without acknowledgement,
//! purged; and the end of the queue.

use wal::Urgency;

use super::{QueueStore, Record};
use crate::message::Message;
use crate::op;
use crate::seq::{QueueSeq, SeqRun, in_runs};

impl QueueStore {
    /// A message is gone. [`QueueStore::log_gone`] follows, under the same lock.
    #[inline(always)]
    pub fn remove(&mut self, seq: QueueSeq, message: Option<&Message>) {
        self.returns.forget(seq);
        if seq < self.flushed {
            self.gone.push(seq);
            return;
        }
        if let Some(flushing) = &mut self.flushing {
            flushing.note_gone(seq);
        }
        if self.logged && message.is_none_or(Message::is_persistent) {
            self.gone.push(seq);
        }
    }

    /// Notes and logs what is gone. Nobody waits for it, unless it is part of a transaction.
    #[inline]
    pub fn log_gone(&mut self, record: &mut Record<'_>) {
        if self.gone.is_empty() {
            return;
        }
        let mut gone = std::mem::take(&mut self.gone);
        let mut runs = std::mem::take(&mut self.runs);
        in_runs(&mut gone, |run| runs.push(run));
        for run in &runs {
            self.forget_run(*run);
        }
        self.log_runs(&runs, record);
        gone.clear();
        runs.clear();
        self.gone = gone;
        self.runs = runs;
    }

    /// A run of messages, all of which are in segments or counted.
    fn forget_run(&mut self, run: SeqRun) {
        if run.first < self.flushed {
            self.remove_from_index(run);
        }
        if run.end() > self.flushed {
            let first = run.first.max(self.flushed);
            let count = run.end().0 - first.0;
            self.marks
                .remove(&self.shared.liveness, SeqRun { first, count });
        }
    }

    pub(super) fn remove_from_index(&mut self, run: SeqRun) {
        let dead = self.index.remove(run);
        self.shared.garbage.add(dead);
    }

    fn log_runs(&mut self, runs: &[SeqRun], record: &mut Record<'_>) {
        if !self.logged || runs.is_empty() {
            return;
        }
        match record {
            Record::Own => {
                let wal = &self.shared.wal;
                wal.append(self.stream, Urgency::Lazy, |payload| {
                    op::acknowledge(payload, runs);
                });
            }
            Record::Shared(record) => record.add(self, |sink| op::acknowledge(sink, runs)),
        }
    }

    /// Everything before `next` is gone, but for those that are out on leases: their places in
    /// order, and whether they are persistent.
    pub fn purge(&mut self, next: QueueSeq, kept: &[(QueueSeq, bool)]) {
        let mut runs = Vec::new();
        let mut from = QueueSeq(0);
        for seq in kept.iter().map(|(seq, _)| *seq).chain([next]) {
            if seq > from {
                let count = seq.0 - from.0;
                runs.push(SeqRun { first: from, count });
            }
            from = seq.next();
        }
        for run in &runs {
            self.remove_from_index(*run);
            self.returns.forget_run(*run);
        }
        if let Some(flushing) = &mut self.flushing {
            flushing.gone.extend(&runs);
        }
        let flushed = self.flushed;
        let left = kept
            .iter()
            .filter(|(seq, persistent)| *persistent && *seq >= flushed)
            .map(|(seq, _)| *seq);
        self.marks.recount(&self.shared.liveness, left);
        self.log_runs(&runs, &mut Record::Own);
    }

    /// The queue is gone: its messages need nothing any more. Its files go once that is durable.
    pub fn close(&mut self) {
        self.marks.clear(&self.shared.liveness);
        self.count_resident(0);
        let has_files = self.next_segment > 1 || self.flushing.is_some();
        self.flushing = None;
        self.logged = false;
        let index = std::mem::take(&mut self.index);
        self.shared.forget(self.stream, has_files.then_some(&index));
    }
}
