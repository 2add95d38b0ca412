//! A channel: its mode, its consumers, what it has out, and the content that is arriving.
//!
//! Owned by its connection's task; needs no lock. Methods of each class are in their own file.

mod basic;
mod content;
mod exchange;
mod modes;
mod publish;
mod queue;
mod reply_to;
mod settle;
mod shards;
mod unacked;

use std::sync::Arc;

use ahash::HashMap;
use amqp::{Method, ReplyCode};
use broker::{ChannelPrefetch, ConsumerHandle, ConsumerId, LeaseId, Queue};

use crate::connection::Core;
use crate::exception::Exception;
use content::Content;
pub(crate) use content::PUBLISH;
use modes::Mode;
use settle::PendingSettlement;
use shards::Consuming;
pub(crate) use shards::ShardConsumer;
pub(crate) use unacked::QueueIndex;
use unacked::{QueueTable, Unacked};

/// An open channel.
pub(crate) struct Channel {
    pub number: u16,
    /// An exception was sent: everything is dropped until close-ok.
    pub closing: bool,
    /// It is in [`Core::touched`].
    touched: bool,
    content: Content,
    mode: Mode,
    next_delivery_tag: u64,
    unacked: Unacked,
    queues: QueueTable,
    pending: PendingSettlement,
    consumers: HashMap<Box<[u8]>, Consuming>,
    /// For consumers to come (basic.qos without `global`).
    consumer_prefetch: u16,
    /// For all consumers together (basic.qos with `global`).
    prefetch: Arc<ChannelPrefetch>,
    /// What an empty queue name stands for.
    last_queue: Option<Arc<str>>,
    /// The queue behind `amq.rabbitmq.reply-to`, while it is consumed.
    reply_to: Option<Arc<str>>,
}

impl Channel {
    pub fn new(number: u16) -> Box<Channel> {
        Box::new(Channel {
            number,
            closing: false,
            touched: false,
            content: Content::None,
            mode: Mode::Plain,
            next_delivery_tag: 1,
            unacked: Unacked::default(),
            queues: QueueTable::default(),
            pending: PendingSettlement::default(),
            consumers: HashMap::default(),
            consumer_prefetch: 0,
            prefetch: Arc::default(),
            last_queue: None,
            reply_to: None,
        })
    }

    /// Acts on a method that is complete without content.
    pub fn method(&mut self, core: &mut Core, method: Method<'_>) -> Result<(), Exception> {
        self.assert_no_content_due()?;
        // Settlements wait to be handed over in one go; only more of them may overtake.
        match method {
            Method::BasicAck(ack) => return self.ack(core, ack),
            Method::BasicReject(reject) => return self.reject(core, reject),
            Method::BasicNack(nack) => return self.nack(core, nack),
            _ => self.flush(core),
        }
        match method {
            Method::ExchangeDeclare(declare) => self.exchange_declare(core, declare),
            Method::ExchangeDelete(delete) => self.exchange_delete(core, delete),
            Method::ExchangeBind(bind) => self.exchange_bind(core, bind),
            Method::ExchangeUnbind(unbind) => self.exchange_unbind(core, unbind),
            Method::QueueDeclare(declare) => self.queue_declare(core, declare),
            Method::QueueBind(bind) => self.queue_bind(core, bind),
            Method::QueueUnbind(unbind) => self.queue_unbind(core, unbind),
            Method::QueuePurge(purge) => self.queue_purge(core, purge),
            Method::QueueDelete(delete) => self.queue_delete(core, delete),
            Method::BasicQos(qos) => self.qos(core, qos),
            Method::BasicConsume(consume) => self.consume(core, consume),
            Method::BasicCancel(cancel) => self.cancel(core, cancel),
            Method::BasicGet(get) => self.get(core, get),
            Method::BasicRecover(recover) => self.recover(core, recover.requeue, true),
            Method::BasicRecoverAsync(recover) => self.recover(core, recover.requeue, false),
            Method::ConfirmSelect(select) => self.confirm_select(core, select),
            Method::TxSelect(_) => self.tx_select(core),
            Method::TxCommit(_) => self.tx_commit(core),
            Method::TxRollback(_) => self.tx_rollback(core),
            Method::AccessRequest(_) => {
                let ticket = amqp::method::access::RequestOk { ticket: 1 };
                core.send(self.number, ticket);
                Ok(())
            }
            Method::ChannelFlow(flow) if flow.active => {
                core.send(self.number, amqp::method::channel::FlowOk { active: true });
                Ok(())
            }
            Method::ChannelFlow(_) => {
                Err(Exception::new(ReplyCode::NotImplemented, "active=false"))
            }
            Method::ChannelOpen(_) => Err(crate::connection::second_open()),
            _ => Err(Exception::new(
                ReplyCode::CommandInvalid,
                "unimplemented method",
            )),
        }
    }

    /// Ends the channel: consumers go, what is out goes back to its queues.
    pub fn close(&mut self, core: &mut Core) {
        self.flush(core);
        core.awaiting.forget(self.number);
        self.content = Content::None;
        for (tag, out) in self.mode.abandon() {
            self.unacked.restore(tag, out);
        }
        self.leave_queues(core);
        if !self.closing {
            let events = &core.broker.events;
            events.channel_closed(&core.session, self.number);
        }
    }

    /// Ends all consumers and returns what is out, one queue after the other: whoever takes over
    /// from a consumer finds the queue as if it had never been there.
    fn leave_queues(&mut self, core: &mut Core) {
        let mut leaving: HashMap<u64, Leaving> = HashMap::default();
        let consuming: Vec<Consuming> = std::mem::take(&mut self.consumers).into_values().collect();
        for handle in consuming.iter().flat_map(Consuming::handles) {
            if let Some(consumer) = core.consumers.try_remove(handle.0 as usize) {
                let of_queue = leaving.entry(consumer.queue.id);
                let leaving = of_queue.or_insert_with(|| Leaving::new(&consumer.queue));
                leaving.consumers.push((consumer.id, handle));
            }
        }
        let queues = &self.queues;
        self.unacked.remove_all(|_, out| {
            let queue = queues.get(out.queue);
            let of_queue = leaving.entry(queue.id);
            let leaving = of_queue.or_insert_with(|| Leaving::new(queue));
            leaving.unacked.push(out.lease);
        });
        for leaving in leaving.into_values() {
            let Leaving {
                queue,
                consumers,
                unacked,
            } = leaving;
            let outbox = &core.outbox;
            core.session
                .end_consumers(&queue, &consumers, outbox, &unacked);
        }
        self.queues = QueueTable::default();
        consuming
            .into_iter()
            .for_each(|consuming| consuming.end(core));
    }

    /// Notes that something waits for the end of the batch of frames.
    #[inline]
    fn touch(&mut self, core: &mut Core) {
        if !self.touched {
            self.touched = true;
            core.touched.push(self.number);
        }
    }

    /// Does what was put off: publishes to their queues, settlements, confirms.
    pub fn flush(&mut self, core: &mut Core) {
        core.publisher.flush();
        self.flush_settlements(core);
        self.flush_confirms(core);
    }

    /// [`Channel::flush`] at the end of a batch of frames.
    pub fn flush_touched(&mut self, core: &mut Core) {
        self.touched = false;
        self.flush_settlements(core);
        self.flush_confirms(core);
    }

    fn next_delivery_tag(&mut self) -> u64 {
        let tag = self.next_delivery_tag;
        self.next_delivery_tag += 1;
        tag
    }
}

/// What a channel that ends has of a queue.
struct Leaving {
    queue: Arc<Queue>,
    consumers: Vec<(ConsumerId, ConsumerHandle)>,
    unacked: Vec<LeaseId>,
}

impl Leaving {
    fn new(queue: &Arc<Queue>) -> Self {
        Leaving {
            queue: queue.clone(),
            consumers: Vec::new(),
            unacked: Vec::new(),
        }
    }
}

/// A text argument.
fn name<'a>(argument: &'static str, value: amqp::ShortStr<'a>) -> Result<&'a str, Exception> {
    Ok(value.utf8(argument)?)
}

/// The name of a queue or exchange. Line ends are dropped, as RabbitMQ does: they come from names
/// that were read from files.
fn declared_name(argument: &'static str, value: amqp::ShortStr<'_>) -> Result<String, Exception> {
    Ok(name(argument, value)?.replace(['\r', '\n'], ""))
}
