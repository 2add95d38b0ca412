//! What a channel promises its publisher: nothing, confirms, or transactions.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::Method;
use amqp::method::{basic, confirm, tx};
use broker::{LogPositions, Outcome, Queue, Route, Transaction};
use store::Message;

use super::Channel;
use super::unacked::Out;
use crate::connection::Core;
use crate::encode;
use crate::exception::Exception;

/// A channel's mode; it changes once at most.
pub(super) enum Mode {
    Plain,
    Confirm(Confirms),
    Transaction(Box<ChannelTransaction>),
}

/// Sequence numbers of publishes on a channel in confirm mode.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    /// The last message that was published.
    pub published: u64,
    /// The last that the log is waited for, or that was confirmed.
    pub passed_on: u64,
    /// The last that the publisher was told of.
    pub confirmed: u64,
    /// Something since `passed_on` must survive a restart.
    pub logged: bool,
    /// Entries in [`Core::awaiting`].
    pub waiting: u32,
    /// Behind `confirmed`: what no queue took, and the publisher was told so.
    pub refused: VecDeque<u64>,
}

impl Confirms {
    /// Confirms everything up to there that is not confirmed yet.
    #[inline]
    pub fn confirm(&mut self, up_to: u64, send: impl FnOnce(basic::Ack)) {
        let count = up_to.saturating_sub(self.confirmed);
        if count > 0 {
            self.confirmed = up_to;
            send(basic::Ack {
                delivery_tag: up_to,
                multiple: count > 1,
            });
        }
    }
}

/// A transaction and what must be undone or told at its end.
#[derive(Debug, Default)]
pub(super) struct ChannelTransaction {
    work: Transaction,
    /// Acknowledged in it, with their tags.
    settled: Vec<(u64, Out)>,
    /// Mandatory messages that no queue takes; returned at commit.
    unroutable: Vec<Message>,
}

impl ChannelTransaction {
    pub fn publish(
        &mut self,
        route: Arc<Route>,
        message: Message,
        mandatory: bool,
    ) -> Result<(), broker::Error> {
        let unroutable = route.queues.is_empty();
        if unroutable && mandatory {
            self.unroutable.push(message.clone());
        }
        if !unroutable || route.is_remembered() {
            self.work.publish(route, message)?;
        }
        Ok(())
    }

    pub fn settle(
        &mut self,
        tag: u64,
        out: Out,
        queue: Arc<Queue>,
        outcome: Outcome,
    ) -> Result<(), broker::Error> {
        let lease = out.lease;
        // Whatever comes of it: at the channel's end it is out as before.
        self.settled.push((tag, out));
        self.work.settle(queue, lease, outcome)
    }
}

impl Mode {
    /// The channel closes: drops what is not committed; returns the deliveries that were settled
    /// in it, which are out as before.
    pub fn abandon(&mut self) -> Vec<(u64, Out)> {
        match self {
            Mode::Transaction(transaction) => std::mem::take(&mut **transaction).settled,
            Mode::Plain | Mode::Confirm(_) => Vec::new(),
        }
    }
}

impl Channel {
    pub(super) fn confirm_select(
        &mut self,
        core: &mut Core,
        select: confirm::Select,
    ) -> Result<(), Exception> {
        match self.mode {
            Mode::Transaction(_) => return Err(cannot_switch("tx", "confirm")),
            Mode::Plain => self.mode = Mode::Confirm(Confirms::default()),
            Mode::Confirm(_) => {}
        }
        core.reply(self.number, select.no_wait, confirm::SelectOk {});
        Ok(())
    }

    pub(super) fn tx_select(&mut self, core: &mut Core) -> Result<(), Exception> {
        match self.mode {
            Mode::Confirm(_) => return Err(cannot_switch("confirm", "tx")),
            Mode::Plain => self.mode = Mode::Transaction(Box::default()),
            Mode::Transaction(_) => {}
        }
        core.send(self.number, tx::SelectOk {});
        Ok(())
    }

    pub(super) fn tx_commit(&mut self, core: &mut Core) -> Result<(), Exception> {
        let transaction = self.transaction()?;
        let mut positions = LogPositions::default();
        let logged = transaction.work.commit(&core.broker.store)?;
        logged.into_iter().for_each(|at| positions.add(at));
        let passed = transaction.work.take_passed();
        for (route, message) in &passed {
            let vhost = &core.session.vhost;
            core.publisher.remember(vhost, route, message);
        }
        if !passed.is_empty() {
            positions.extend(core.publisher.logged());
        }
        let unroutable = std::mem::take(&mut transaction.unroutable);
        let settled = std::mem::take(&mut transaction.settled);
        self.release_settled(&settled, core);
        for message in unroutable {
            encode::no_route(&mut core.out, self.number, &message, core.frame_max);
        }
        core.reply_when(positions, self.number, tx::CommitOk {});
        Ok(())
    }

    pub(super) fn tx_rollback(&mut self, core: &mut Core) -> Result<(), Exception> {
        let transaction = self.transaction()?;
        let settled = std::mem::take(&mut **transaction).settled;
        for (tag, out) in settled {
            self.unacked.restore(tag, out);
        }
        core.send(self.number, Method::TxRollbackOk(tx::RollbackOk {}));
        Ok(())
    }

    fn transaction(&mut self) -> Result<&mut Box<ChannelTransaction>, Exception> {
        match &mut self.mode {
            Mode::Transaction(transaction) => Ok(transaction),
            _ => Err(broker::Error::precondition("channel is not transactional").into()),
        }
    }
}

fn cannot_switch(from: &str, to: &str) -> Exception {
    broker::Error::precondition(format!("cannot switch from {from} to {to} mode")).into()
}
