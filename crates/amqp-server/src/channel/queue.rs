//! Methods of class queue.

use amqp::ShortStr;
use amqp::method::queue;
use broker::{QueueOptions, REPLY_TO};

use super::{Channel, declared_name};
use crate::connection::Core;
use crate::exception::Exception;

impl Channel {
    pub(super) fn queue_declare(
        &mut self,
        core: &mut Core,
        declare: queue::Declare<'_>,
    ) -> Result<(), Exception> {
        let queue = declared_name("queue", declare.queue)?;
        if queue == REPLY_TO {
            let queue = ShortStr::truncated(REPLY_TO);
            let ok = queue::DeclareOk {
                queue,
                message_count: 0,
                consumer_count: 1,
            };
            core.reply(self.number, declare.no_wait, ok);
            return Ok(());
        }
        let declared = if declare.passive {
            core.session.check_queue(&queue)?
        } else {
            let options = QueueOptions {
                durable: declare.durable,
                auto_delete: declare.auto_delete,
                exclusive: declare.exclusive.then_some(core.session.connection),
                arguments: declare.arguments.to_owned()?,
            };
            let declared = core.session.declare_queue(&queue, options)?;
            if declare.exclusive {
                core.own_exclusively(&declared.queue);
            }
            declared
        };
        self.last_queue = Some(declared.queue.name.clone());
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let ok = queue::DeclareOk {
            queue: ShortStr::truncated(&declared.queue.name),
            message_count: count(declared.messages),
            consumer_count: count(declared.consumers),
        };
        core.reply_defined(self.number, declare.no_wait, ok);
        Ok(())
    }

    pub(super) fn queue_bind(
        &mut self,
        core: &mut Core,
        bind: queue::Bind<'_>,
    ) -> Result<(), Exception> {
        let queue = self.queue_name(bind.queue)?;
        let exchange = declared_name("exchange", bind.exchange)?;
        let key = self.routing_key(bind.queue, bind.routing_key);
        let arguments = bind.arguments.to_owned()?;
        core.session
            .bind_queue(&queue, &exchange, &key, arguments)?;
        core.reply_defined(self.number, bind.no_wait, queue::BindOk {});
        Ok(())
    }

    pub(super) fn queue_unbind(
        &mut self,
        core: &mut Core,
        unbind: queue::Unbind<'_>,
    ) -> Result<(), Exception> {
        let queue = self.queue_name(unbind.queue)?;
        let exchange = declared_name("exchange", unbind.exchange)?;
        let key = self.routing_key(unbind.queue, unbind.routing_key);
        let arguments = unbind.arguments.to_owned()?;
        core.session
            .unbind_queue(&queue, &exchange, &key, arguments)?;
        core.reply_defined(self.number, false, queue::UnbindOk {});
        Ok(())
    }

    pub(super) fn queue_purge(
        &mut self,
        core: &mut Core,
        purge: queue::Purge<'_>,
    ) -> Result<(), Exception> {
        let queue = self.queue_name(purge.queue)?;
        let purged = core.session.purge_queue(&queue)?;
        let message_count = u32::try_from(purged).unwrap_or(u32::MAX);
        core.reply(self.number, purge.no_wait, queue::PurgeOk { message_count });
        Ok(())
    }

    pub(super) fn queue_delete(
        &mut self,
        core: &mut Core,
        delete: queue::Delete<'_>,
    ) -> Result<(), Exception> {
        let queue = self.queue_name(delete.queue)?;
        let dropped = core
            .session
            .delete_queue(&queue, delete.if_unused, delete.if_empty)?;
        let message_count = u32::try_from(dropped).unwrap_or(u32::MAX);
        core.reply_defined(
            self.number,
            delete.no_wait,
            queue::DeleteOk { message_count },
        );
        Ok(())
    }

    /// With both names empty, the queue declared last is bound by its own name (0-9-1,
    /// queue.bind).
    fn routing_key(&self, queue: ShortStr<'_>, key: ShortStr<'_>) -> Box<[u8]> {
        match &self.last_queue {
            Some(name) if queue.is_empty() && key.is_empty() => name.as_bytes().into(),
            _ => key.as_bytes().into(),
        }
    }
}
