//! basic.consume, and the ends of consumers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use amqp::FieldTable;

use super::{REPLY_TO, Session, generated_name, not_for_streams};
use crate::access::Operation;
use crate::consumers::ConsumerInfo;
use crate::error::{Error, Resource};
use crate::name::ConnectionId;
use crate::outbox::{ConsumerHandle, Outbox};
use crate::queue::{
    ConsumerId, ConsumerOptions, LeaseId, Queue, QueueKind, QueueOptions, StreamOptions,
    consumer_priority, consumer_timeout, refuse_arguments_of_others,
};

impl Session {
    /// basic.consume. The consumer may get messages at once, from whoever publishes; what is
    /// ready now it gets with the first [`Queue::resume`].
    pub fn consume(
        &self,
        name: &str,
        mut options: ConsumerOptions,
        arguments: &FieldTable,
    ) -> Result<(Arc<Queue>, ConsumerId), Error> {
        let resource = self.queue_resource(name);
        self.permit(Operation::Read, resource)?;
        let queue = self.queue(name)?;
        refuse_arguments_of_others(arguments, queue.kind, resource)?;
        options.priority = consumer_priority(arguments, resource)?;
        options.timeout = consumer_timeout(arguments, resource)?;
        if queue.kind == QueueKind::Stream {
            check_reader(&options, resource)?;
            let reads = StreamOptions::from_arguments(arguments, queue.now(), resource)?;
            options.stream = Some(reads);
        }
        let id = queue.add_consumer(options)?;
        if queue.auto_delete && queue.logged && !queue.consumed.swap(true, Ordering::Relaxed) {
            self.change(|topology| topology.note_consumed(&queue));
        }
        Ok((queue, id))
    }

    /// basic.consume on [`REPLY_TO`]: makes the transient queue that replies come to.
    pub fn consume_replies(
        &self,
        options: ConsumerOptions,
    ) -> Result<(Arc<Queue>, ConsumerId), Error> {
        let name: Arc<str> = generated_name(&format!("{REPLY_TO}.")).into();
        let owned = QueueOptions {
            auto_delete: true,
            exclusive: Some(self.connection),
            ..QueueOptions::default()
        };
        let queue = self.vhost.make_queue(name, owned);
        let id = queue.add_consumer(options)?;
        self.change(|topology| topology.insert_queue(queue.clone()));
        Ok((queue, id))
    }

    /// Says more about a consumer that has just come, for those who list consumers; until it is
    /// cancelled.
    pub fn describe_consumer(
        &self,
        queue: &Queue,
        id: ConsumerId,
        describe: impl FnOnce(ConnectionId) -> ConsumerInfo,
    ) {
        let info = describe(self.connection);
        self.vhost.events.consumer_created(self, queue, &info);
        self.vhost.consumers.add(queue, id, info);
    }

    /// The same consumer has ended with its queue.
    pub fn forget_consumer(&self, queue: &Queue, id: ConsumerId) {
        if let Some(info) = self.vhost.consumers.remove(queue, id) {
            self.vhost.events.consumer_deleted(self, queue, &info);
        }
    }

    /// Ends consumers of one queue and outbox, and the auto-delete queue that they were the last of.
    /// What was on its way to them, and these leases, return to their places. Returns how many
    /// messages on their way were to be acknowledged.
    pub fn end_consumers(
        &self,
        queue: &Arc<Queue>,
        consumers: &[(ConsumerId, ConsumerHandle)],
        outbox: &Outbox,
        unacked: &[LeaseId],
    ) -> u32 {
        for (id, _) in consumers {
            self.forget_consumer(queue, *id);
        }
        let removed = queue.remove_consumers(consumers, outbox, unacked);
        if removed.last && queue.auto_delete {
            self.vhost.delete_queue(queue);
        }
        removed.unsent
    }
}

/// A consumer of a stream gets as much as it acknowledges, and no more.
fn check_reader(options: &ConsumerOptions, resource: Resource<'_>) -> Result<(), Error> {
    if options.no_ack {
        return Err(not_for_streams("automatic acknowledgement", resource));
    }
    if options.prefetch == 0 {
        return Err(Error::precondition(format!(
            "consumer prefetch count is not set for '{resource}'"
        )));
    }
    Ok(())
}
