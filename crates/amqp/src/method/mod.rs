//! Methods: one file per class, each a list of its methods' arguments in wire order.
//!
//! Arguments borrow from the buffer. An argument marked `since V0_9` is absent on 0-8.

#[macro_use]
mod define;

pub mod access;
pub mod basic;
pub mod channel;
pub mod confirm;
pub mod connection;
pub mod exchange;
pub mod queue;
pub mod tx;

pub use define::MethodId;

use crate::{DecodeError, Reader, Version, Writer};

methods! {
    'a;
    connection {
        ConnectionStart = Start<'a>,
        ConnectionStartOk = StartOk<'a>,
        ConnectionSecure = Secure<'a>,
        ConnectionSecureOk = SecureOk<'a>,
        ConnectionTune = Tune,
        ConnectionTuneOk = TuneOk,
        ConnectionOpen = Open<'a>,
        ConnectionOpenOk = OpenOk<'a>,
        ConnectionClose = Close<'a>,
        ConnectionCloseOk = CloseOk,
        ConnectionBlocked = Blocked<'a>,
        ConnectionUnblocked = Unblocked,
        ConnectionUpdateSecret = UpdateSecret<'a>,
        ConnectionUpdateSecretOk = UpdateSecretOk,
    }
    channel {
        ChannelOpen = Open<'a>,
        ChannelOpenOk = OpenOk<'a>,
        ChannelFlow = Flow,
        ChannelFlowOk = FlowOk,
        ChannelClose = Close<'a>,
        ChannelCloseOk = CloseOk,
    }
    access {
        AccessRequest = Request<'a>,
        AccessRequestOk = RequestOk,
    }
    exchange {
        ExchangeDeclare = Declare<'a>,
        ExchangeDeclareOk = DeclareOk,
        ExchangeDelete = Delete<'a>,
        ExchangeDeleteOk = DeleteOk,
        ExchangeBind = Bind<'a>,
        ExchangeBindOk = BindOk,
        ExchangeUnbind = Unbind<'a>,
        ExchangeUnbindOk = UnbindOk,
    }
    queue {
        QueueDeclare = Declare<'a>,
        QueueDeclareOk = DeclareOk<'a>,
        QueueBind = Bind<'a>,
        QueueBindOk = BindOk,
        QueueUnbind = Unbind<'a>,
        QueueUnbindOk = UnbindOk,
        QueuePurge = Purge<'a>,
        QueuePurgeOk = PurgeOk,
        QueueDelete = Delete<'a>,
        QueueDeleteOk = DeleteOk,
    }
    basic {
        BasicQos = Qos,
        BasicQosOk = QosOk,
        BasicConsume = Consume<'a>,
        BasicConsumeOk = ConsumeOk<'a>,
        BasicCancel = Cancel<'a>,
        BasicCancelOk = CancelOk<'a>,
        BasicPublish = Publish<'a>,
        BasicReturn = Return<'a>,
        BasicDeliver = Deliver<'a>,
        BasicGet = Get<'a>,
        BasicGetOk = GetOk<'a>,
        BasicGetEmpty = GetEmpty<'a>,
        BasicAck = Ack,
        BasicReject = Reject,
        BasicRecoverAsync = RecoverAsync,
        BasicRecover = Recover,
        BasicRecoverOk = RecoverOk,
        BasicNack = Nack,
    }
    confirm {
        ConfirmSelect = Select,
        ConfirmSelectOk = SelectOk,
    }
    tx {
        TxSelect = Select,
        TxSelectOk = SelectOk,
        TxCommit = Commit,
        TxCommitOk = CommitOk,
        TxRollback = Rollback,
        TxRollbackOk = RollbackOk,
    }
}

#[cfg(test)]
mod tests;
