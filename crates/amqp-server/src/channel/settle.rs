//! Acknowledging, rejecting, requeueing: from delivery tags to leases, a queue's run at a time.

use amqp::ReplyCode;
use amqp::method::basic;
use broker::{LeaseId, Outcome};

use super::Channel;
use super::modes::Mode;
use super::shards::Consuming;
use super::unacked::{Out, QueueIndex};
use crate::connection::Core;
use crate::exception::Exception;

/// Settlements of one queue that have not been handed to it yet.
#[derive(Debug, Default)]
pub(super) struct PendingSettlement {
    run: Option<(QueueIndex, Outcome)>,
    leases: Vec<LeaseId>,
    /// How many of them count against the channel's prefetch.
    counted: u32,
}

/// A run of single settlements is handed over when it has this many. What one method settles goes in
/// one, since the queue takes on only so much of what follows from each.
const MAX_RUN: usize = 128;

impl Channel {
    pub(super) fn ack(&mut self, core: &mut Core, ack: basic::Ack) -> Result<(), Exception> {
        self.settle(core, ack.delivery_tag, ack.multiple, Outcome::Acknowledge)
    }

    pub(super) fn reject(
        &mut self,
        core: &mut Core,
        reject: basic::Reject,
    ) -> Result<(), Exception> {
        self.settle(core, reject.delivery_tag, false, refused(reject.requeue))
    }

    pub(super) fn nack(&mut self, core: &mut Core, nack: basic::Nack) -> Result<(), Exception> {
        self.settle(
            core,
            nack.delivery_tag,
            nack.multiple,
            refused(nack.requeue),
        )
    }

    fn settle(
        &mut self,
        core: &mut Core,
        tag: u64,
        multiple: bool,
        outcome: Outcome,
    ) -> Result<(), Exception> {
        if !multiple {
            let out = self.unacked.remove(tag).ok_or_else(|| unknown_tag(tag))?;
            return self.settle_one(core, tag, out, outcome, MAX_RUN);
        }
        // Tag 0 stands for everything so far (0-9-1, basic.ack).
        let up_to = if tag == 0 { u64::MAX } else { tag };
        if tag != 0 && !self.unacked.contains(tag) {
            return Err(unknown_tag(tag));
        }
        let mut settled = Vec::new();
        self.unacked
            .remove_up_to(up_to, |tag, out| settled.push((tag, out)));
        // All of them, so that none is forgotten when the channel ends for one.
        let mut result = Ok(());
        for (tag, out) in settled {
            result = result.and(self.settle_one(core, tag, out, outcome, usize::MAX));
        }
        result
    }

    #[inline]
    fn settle_one(
        &mut self,
        core: &mut Core,
        tag: u64,
        out: Out,
        outcome: Outcome,
        max_run: usize,
    ) -> Result<(), Exception> {
        if let Mode::Transaction(transaction) = &mut self.mode {
            let queue = self.queues.get(out.queue).clone();
            return Ok(transaction.settle(tag, out, queue, outcome)?);
        }
        let run = Some((out.queue, outcome));
        if self.pending.run != run || self.pending.leases.len() >= max_run {
            self.flush_settlements(core);
            self.pending.run = run;
        }
        self.pending.leases.push(out.lease);
        self.pending.counted += u32::from(out.counted);
        self.touch(core);
        Ok(())
    }

    /// Hands the pending run to its queue.
    pub(super) fn flush_settlements(&mut self, core: &Core) {
        if self.pending.leases.is_empty() {
            return;
        }
        let Some((index, outcome)) = self.pending.run.take() else {
            return;
        };
        let queue = self.queues.get(index);
        let counted = std::mem::take(&mut self.pending.counted);
        // Before the queue is told, so that it can use the room at once.
        let resume = counted > 0 && self.prefetch.release(counted);
        queue.settle(&self.pending.leases, outcome);
        self.queues.release(index, self.pending.leases.len());
        self.pending.leases.clear();
        self.pending.leases.shrink_to(MAX_RUN);
        if resume {
            self.resume_consumers(core);
        }
    }

    /// A transaction has committed these.
    pub(super) fn release_settled(&mut self, settled: &[(u64, Out)], core: &Core) {
        let counted = settled.iter().filter(|(_, out)| out.counted).count() as u32;
        settled
            .iter()
            .for_each(|(_, out)| self.queues.release(out.queue, 1));
        if counted > 0 && self.prefetch.release(counted) {
            self.resume_consumers(core);
        }
    }

    /// The channel's consumers have room again.
    pub(super) fn resume_consumers(&self, core: &Core) {
        core.resume(self.consumers.values().flat_map(Consuming::handles));
    }

    /// Puts what is out, and not settled, back to its queues, in their order.
    pub(super) fn requeue_unacked(&mut self) {
        let mut all: Vec<(QueueIndex, LeaseId)> = Vec::with_capacity(self.unacked.len());
        let mut counted = 0;
        self.unacked.remove_all(|_, out| {
            counted += u32::from(out.counted);
            all.push((out.queue, out.lease));
        });
        if counted > 0 {
            self.prefetch.release(counted);
        }
        all.sort_by_key(|(index, _)| index.order());
        for run in all.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((index, _)) = run.first() else {
                continue;
            };
            let leases: Vec<LeaseId> = run.iter().map(|(_, lease)| *lease).collect();
            self.queues.get(*index).settle(&leases, Outcome::Requeue);
            self.queues.release(*index, leases.len());
        }
    }

    /// basic.recover and basic.recover-async.
    pub(super) fn recover(
        &mut self,
        core: &mut Core,
        requeue: bool,
        reply: bool,
    ) -> Result<(), Exception> {
        if !requeue {
            return Err(Exception::new(ReplyCode::NotImplemented, "requeue=false"));
        }
        // What a transaction has settled stays settled: it is the transaction's until its end.
        self.requeue_unacked();
        self.resume_consumers(core);
        if reply {
            core.send(self.number, basic::RecoverOk {});
        }
        Ok(())
    }
}

fn refused(requeue: bool) -> Outcome {
    if requeue {
        Outcome::Requeue
    } else {
        Outcome::Discard
    }
}

fn unknown_tag(tag: u64) -> Exception {
    broker::Error::precondition(format!("unknown delivery tag {tag}")).into()
}
