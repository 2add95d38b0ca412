//! Where in the log a queue's messages are that lie nowhere else: how many, by epoch.

use std::collections::VecDeque;

use crate::liveness::{Epoch, Liveness};
use crate::seq::{QueueSeq, SeqRun};

/// Messages from `first` to the next mark.
#[derive(Debug)]
struct Mark {
    /// `None` until its record is in the log.
    epoch: Option<Epoch>,
    first: QueueSeq,
    live: u64,
}

/// Marks in order. The node's counters are kept equal to the sums of all queues' marks.
#[derive(Debug, Default)]
pub(super) struct Marks(VecDeque<Mark>);

impl Marks {
    /// Messages from `first` on were logged.
    #[inline]
    pub fn add(&mut self, liveness: &Liveness, epoch: Epoch, first: QueueSeq, count: u64) {
        liveness.add(epoch, count);
        match self.0.back_mut() {
            Some(mark) if mark.epoch == Some(epoch) => mark.live += count,
            _ => self.0.push_back(Mark {
                epoch: Some(epoch),
                first,
                live: count,
            }),
        }
    }

    /// Messages from `first` on will be logged: [`Marks::logged`] follows under the same lock.
    pub fn add_unlogged(&mut self, first: QueueSeq, count: u64) {
        match self.0.back_mut() {
            Some(mark) if mark.epoch.is_none() => mark.live += count,
            _ => self.0.push_back(Mark {
                epoch: None,
                first,
                live: count,
            }),
        }
    }

    /// What was added last was logged in that epoch.
    pub fn logged(&mut self, liveness: &Liveness, epoch: Epoch) {
        if let Some(mark) = self.0.pop_back_if(|mark| mark.epoch.is_none()) {
            self.add(liveness, epoch, mark.first, mark.live);
        }
    }

    fn at(&mut self, seq: QueueSeq) -> Option<(&mut Mark, QueueSeq)> {
        let at = self.0.partition_point(|mark| mark.first <= seq);
        let end = self.0.get(at).map_or(QueueSeq(u64::MAX), |mark| mark.first);
        let mark = self.0.get_mut(at.checked_sub(1)?)?;
        Some((mark, end))
    }

    /// Takes a run of messages, all of them counted, out of the counts.
    pub fn remove(&mut self, liveness: &Liveness, mut run: SeqRun) {
        while run.count > 0 {
            let Some((mark, end)) = self.at(run.first) else {
                return;
            };
            let here = run.count.min(end.0 - run.first.0);
            let removed = here.min(mark.live);
            mark.live -= removed;
            if let Some(epoch) = mark.epoch {
                liveness.sub(epoch, removed);
            }
            run.first.0 += here;
            run.count -= here;
        }
        while self.0.len() > 1 && self.0.front().is_some_and(|mark| mark.live == 0) {
            self.0.pop_front();
        }
    }

    /// Counts anew: only these messages, in order, are left.
    pub fn recount(&mut self, liveness: &Liveness, left: impl Iterator<Item = QueueSeq>) {
        let before: Vec<u64> = self.0.iter().map(|mark| mark.live).collect();
        self.0.iter_mut().for_each(|mark| mark.live = 0);
        for seq in left {
            if let Some((mark, _)) = self.at(seq) {
                mark.live += 1;
            }
        }
        for (mark, before) in self.0.iter().zip(before) {
            if let Some(epoch) = mark.epoch {
                liveness.sub(epoch, before - mark.live);
            }
        }
    }

    /// Messages before `up_to` lie in segments now. `moved` tells how many of them, from a place
    /// on, were counted.
    pub fn flushed(
        &mut self,
        liveness: &Liveness,
        up_to: QueueSeq,
        moved: impl FnOnce(QueueSeq) -> u64,
    ) {
        while self.0.get(1).is_some_and(|next| next.first <= up_to) {
            if let Some(mark) = self.0.pop_front()
                && let Some(epoch) = mark.epoch
            {
                liveness.sub(epoch, mark.live);
            }
        }
        if let Some(mark) = self.0.front_mut()
            && mark.first < up_to
        {
            let moved = moved(mark.first).min(mark.live);
            mark.live -= moved;
            mark.first = up_to;
            if let Some(epoch) = mark.epoch {
                liveness.sub(epoch, moved);
            }
        }
    }

    /// The oldest epoch that is needed.
    pub fn oldest(&self) -> Option<Epoch> {
        self.0.iter().find(|mark| mark.live > 0)?.epoch
    }

    /// Nothing is needed any more.
    pub fn clear(&mut self, liveness: &Liveness) {
        for mark in self.0.drain(..) {
            if let Some(epoch) = mark.epoch {
                liveness.sub(epoch, mark.live);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::EPOCH;

    fn run(first: u64, count: u64) -> SeqRun {
        SeqRun {
            first: QueueSeq(first),
            count,
        }
    }

    #[test]
    fn epochs_are_needed_until_their_messages_are_gone_or_flushed() {
        let (liveness, mut marks) = (Liveness::new(EPOCH, wal::Lsn(0)), Marks::default());
        let oldest = |liveness: &Liveness| liveness.oldest(Epoch(0), Epoch(9));
        marks.add(&liveness, Epoch(1), QueueSeq(0), 10);
        marks.add(&liveness, Epoch(2), QueueSeq(10), 10);
        marks.add_unlogged(QueueSeq(20), 5);
        marks.logged(&liveness, Epoch(2));
        marks.remove(&liveness, run(5, 8));
        assert_eq!(oldest(&liveness), Epoch(1));
        marks.remove(&liveness, run(0, 5));
        assert_eq!(
            (oldest(&liveness), marks.oldest()),
            (Epoch(2), Some(Epoch(2)))
        );
        // 13 to 24 are left; all before 20 are flushed, 13 to 19 were live.
        marks.flushed(&liveness, QueueSeq(20), |from| {
            assert_eq!(from, QueueSeq(10));
            7
        });
        marks.remove(&liveness, run(20, 4));
        assert_eq!(oldest(&liveness), Epoch(2));
        marks.remove(&liveness, run(24, 1));
        assert_eq!((oldest(&liveness), marks.oldest()), (Epoch(9), None));
    }

    #[test]
    fn purge_leaves_what_is_out() {
        let (liveness, mut marks) = (Liveness::new(EPOCH, wal::Lsn(0)), Marks::default());
        marks.add(&liveness, Epoch(1), QueueSeq(0), 10);
        marks.add(&liveness, Epoch(2), QueueSeq(10), 10);
        marks.recount(&liveness, [QueueSeq(12)].into_iter());
        assert_eq!(liveness.oldest(Epoch(0), Epoch(9)), Epoch(2));
        marks.clear(&liveness);
        assert_eq!(liveness.oldest(Epoch(0), Epoch(9)), Epoch(9));
    }
}
