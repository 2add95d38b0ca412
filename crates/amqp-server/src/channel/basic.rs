//! Consuming on a channel: qos, consume, cancel, get, and deliveries on their way out.

use amqp::method::basic;
use amqp::{ReplyCode, ShortStr};
use broker::admin::ConsumerInfo;
use broker::{ConsumerHandle, ConsumerOptions, Delivery, REPLY_TO};

use super::shards::{Consuming, Wanted};
use super::unacked::Out;
use super::{Channel, name};
use crate::connection::{Consumer, Core, Output};
use crate::encode::{self, DeliverPrefix};
use crate::exception::Exception;

impl Channel {
    pub(super) fn qos(&mut self, core: &mut Core, qos: basic::Qos) -> Result<(), Exception> {
        if qos.prefetch_size != 0 {
            let text = format!("prefetch_size!=0 ({})", qos.prefetch_size);
            return Err(Exception::new(ReplyCode::NotImplemented, text));
        }
        if !qos.global {
            self.consumer_prefetch = qos.prefetch_count;
        } else if self.prefetch.set_limit(qos.prefetch_count) {
            self.resume_consumers(core);
        }
        core.send(self.number, basic::QosOk {});
        Ok(())
    }

    pub(super) fn consume(
        &mut self,
        core: &mut Core,
        consume: basic::Consume<'_>,
    ) -> Result<(), Exception> {
        let queue_name = self.queue_name(consume.queue)?;
        let generated;
        let tag = match consume.consumer_tag.as_bytes() {
            b"" => {
                generated = broker::generated_name("amq.ctag-");
                ShortStr::truncated(&generated)
            }
            _ => consume.consumer_tag,
        };
        if self.consumers.contains_key(tag.as_bytes()) {
            let text = format!("attempt to reuse consumer tag '{}'", tag.lossy());
            return Err(Exception::new(ReplyCode::NotAllowed, text));
        }
        let wanted = Wanted {
            tag: tag.as_bytes().into(),
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            prefetch: self.consumer_prefetch,
            arguments: consume.arguments.to_owned()?,
        };
        let started = match self.consume_shards(core, &queue_name, &wanted)? {
            Some(started) => started,
            None => Consuming::One(self.start_consumer(core, &queue_name, &wanted)?),
        };
        let handles = started.handles();
        self.consumers.insert(wanted.tag, started);
        core.reply(
            self.number,
            consume.no_wait,
            basic::ConsumeOk { consumer_tag: tag },
        );
        core.resume(handles.into_iter());
        Ok(())
    }

    /// Starts to consume one queue. Nothing comes before [`Core::resume`] but what is published
    /// meanwhile.
    pub(super) fn start_consumer(
        &mut self,
        core: &mut Core,
        queue_name: &str,
        wanted: &Wanted,
    ) -> Result<ConsumerHandle, Exception> {
        let handle = ConsumerHandle(core.consumers.vacant_key() as u32);
        let options = ConsumerOptions {
            no_ack: wanted.no_ack,
            exclusive: wanted.exclusive,
            prefetch: wanted.prefetch,
            channel: self.prefetch.clone(),
            outbox: core.outbox.clone(),
            handle,
            priority: 0,
            timeout: None,
            stream: None,
        };
        let (queue, id) = if queue_name == REPLY_TO {
            self.consume_replies(core, options)?
        } else {
            core.session
                .consume(queue_name, options, &wanted.arguments)?
        };
        core.session
            .describe_consumer(&queue, id, |connection| ConsumerInfo {
                queue: queue.name.clone(),
                connection,
                channel: self.number,
                tag: String::from_utf8_lossy(&wanted.tag).into_owned(),
                ack_required: !wanted.no_ack,
                exclusive: wanted.exclusive,
                prefetch: wanted.prefetch,
                arguments: wanted.arguments.clone(),
            });
        let tag = ShortStr::new(&wanted.tag).unwrap_or_default();
        core.consumers.insert(Consumer {
            channel: self.number,
            tag: wanted.tag.clone(),
            prefix: DeliverPrefix::new(self.number, tag),
            queue_index: self.queues.enter(&queue),
            queue,
            id,
            prefetch: self.prefetch.clone(),
        });
        Ok(handle)
    }

    pub(super) fn cancel(
        &mut self,
        core: &mut Core,
        cancel: basic::Cancel<'_>,
    ) -> Result<(), Exception> {
        let tag = cancel.consumer_tag;
        if let Some(consuming) = self.consumers.remove(tag.as_bytes()) {
            for handle in consuming.handles() {
                self.end_consumer(core, handle);
            }
            consuming.end(core);
        }
        core.reply(
            self.number,
            cancel.no_wait,
            basic::CancelOk { consumer_tag: tag },
        );
        Ok(())
    }

    /// Stops consuming one queue. What was on its way goes back to the queue: no delivery follows.
    pub(super) fn end_consumer(&mut self, core: &mut Core, handle: ConsumerHandle) {
        let consumer = core.consumers.get(handle.0 as usize);
        let index = consumer.map(|consumer| {
            self.forget_replies(&consumer.queue.name);
            consumer.queue_index
        });
        if core.drop_consumer(handle) {
            self.resume_consumers(core);
        }
        if let Some(index) = index {
            self.queues.release(index, 1);
        }
    }

    /// The consumer's queue has gone.
    pub fn consumer_cancelled(
        &mut self,
        core: &mut Core,
        handle: ConsumerHandle,
        consumer: &Consumer,
    ) {
        self.forget_replies(&consumer.queue.name);
        self.queues.release(consumer.queue_index, 1);
        core.session.forget_consumer(&consumer.queue, consumer.id);
        // One that has other shards goes on with them.
        if let Some(Consuming::Shards(shards)) = self.consumers.get_mut(&consumer.tag) {
            shards.forget(handle);
            return;
        }
        self.consumers.remove(&consumer.tag);
        core.notify_cancelled(self.number, &consumer.tag);
    }

    pub(super) fn get(&mut self, core: &mut Core, get: basic::Get<'_>) -> Result<(), Exception> {
        let queue_name = self.queue_name(get.queue)?;
        let (queue, got) = core.session.get(&queue_name, get.no_ack)?;
        let Some(got) = got else {
            core.send(self.number, basic::GetEmpty::default());
            return Ok(());
        };
        let tag = self.next_delivery_tag();
        if let Some(lease) = got.lease {
            let index = self.queues.enter(&queue);
            self.unacked.push(
                tag,
                Out {
                    queue: index,
                    lease,
                    counted: false,
                },
            );
        }
        if core.session.vhost.is_traced() {
            let session = &core.session;
            session.trace_delivery(self.number, &queue, got.redelivered, &got.message);
        }
        let remaining = u32::try_from(got.remaining).unwrap_or(u32::MAX);
        let message = encode::for_consumer(&got.message, got.annotation);
        encode::get_ok(
            &mut core.out,
            self.number,
            tag,
            got.redelivered,
            remaining,
            &message,
            core.frame_max,
        );
        Ok(())
    }

    /// Encodes a delivery and keeps its lease.
    #[inline]
    pub fn deliver(
        &mut self,
        out: &mut Output,
        frame_max: u32,
        consumer: &Consumer,
        delivery: &Delivery,
    ) {
        let tag = self.next_delivery_tag();
        if let Some(lease) = delivery.origin.to_settle() {
            self.queues.retain(consumer.queue_index);
            let out = Out {
                queue: consumer.queue_index,
                lease,
                counted: true,
            };
            self.unacked.push(tag, out);
        }
        let (redelivered, message) = (delivery.redelivered, &delivery.message);
        let prefix = &consumer.prefix;
        if delivery.is_plain() && !message.has_bcc() {
            encode::deliver(out, prefix, tag, redelivered, message, frame_max);
        } else {
            let annotation = delivery.annotation();
            encode::deliver_rewritten(
                out,
                prefix,
                (tag, redelivered),
                message,
                annotation,
                frame_max,
            );
        }
    }

    /// What a queue argument stands for; empty is the queue declared last on this channel.
    pub(super) fn queue_name(&self, queue: ShortStr<'_>) -> Result<String, Exception> {
        if !queue.is_empty() {
            return name("queue", queue).map(str::to_owned);
        }
        match &self.last_queue {
            Some(name) => Ok(name.to_string()),
            None => Err(Exception::new(
                ReplyCode::NotFound,
                "no previously declared queue",
            )),
        }
    }
}
