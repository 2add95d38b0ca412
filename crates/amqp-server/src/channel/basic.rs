//! Consuming on a channel: qos, consume, cancel, get, and deliveries on their way out.

use amqp::method::basic;
use amqp::{ReplyCode, ShortStr};
use broker::events::ConsumerEvent;
use broker::{ConsumerHandle, ConsumerOptions, Delivery, Origin, REPLY_TO};

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
        let handle = ConsumerHandle(core.consumers.vacant_key() as u32);
        let options = ConsumerOptions {
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            prefetch: self.consumer_prefetch,
            channel: self.prefetch.clone(),
            outbox: core.outbox.clone(),
            handle,
            priority: 0,
            timeout: None,
        };
        let arguments = consume.arguments.to_owned()?;
        let (queue, id) = if queue_name == REPLY_TO {
            self.consume_replies(core, options)?
        } else {
            core.session.consume(&queue_name, options, &arguments)?
        };
        core.consumers.insert(Consumer {
            channel: self.number,
            tag: tag.as_bytes().into(),
            prefix: DeliverPrefix::new(self.number, tag),
            queue_index: self.queues.enter(&queue),
            queue: queue.clone(),
            id,
            prefetch: self.prefetch.clone(),
        });
        self.consumers.insert(tag.as_bytes().into(), handle);
        let consumer = ConsumerEvent {
            tag: &tag.lossy(),
            ack_required: !consume.no_ack,
            exclusive: consume.exclusive,
            prefetch: self.consumer_prefetch,
            arguments: &arguments,
        };
        let events = &core.broker.events;
        events.consumer_created(&core.session, self.number, &queue, &consumer);
        core.reply(
            self.number,
            consume.no_wait,
            basic::ConsumeOk { consumer_tag: tag },
        );
        queue.resume(id);
        Ok(())
    }

    pub(super) fn cancel(
        &mut self,
        core: &mut Core,
        cancel: basic::Cancel<'_>,
    ) -> Result<(), Exception> {
        let tag = cancel.consumer_tag;
        if let Some(handle) = self.consumers.remove(tag.as_bytes()) {
            let consumer = core.consumers.get(handle.0 as usize);
            let index = consumer.map(|consumer| {
                self.forget_replies(&consumer.queue.name);
                consumer.queue_index
            });
            // What was on its way goes back to the queue: no delivery follows cancel-ok.
            let room = core.drop_consumer(handle);
            if room {
                self.resume_consumers(core);
            }
            if let Some(index) = index {
                self.queues.release(index, 1);
            }
        }
        core.reply(
            self.number,
            cancel.no_wait,
            basic::CancelOk { consumer_tag: tag },
        );
        Ok(())
    }

    /// The consumer's queue has gone.
    pub fn consumer_cancelled(&mut self, core: &mut Core, consumer: &Consumer) {
        self.consumers.remove(&consumer.tag);
        self.forget_replies(&consumer.queue.name);
        self.queues.release(consumer.queue_index, 1);
        core.announce_end_of(consumer);
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
        let message = encode::for_consumer(&got.message, got.deliveries);
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
        if let Origin::Leased(lease) = delivery.origin {
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
        let message = encode::for_consumer(message, delivery.deliveries);
        encode::deliver(out, prefix, tag, redelivered, &message, frame_max);
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
