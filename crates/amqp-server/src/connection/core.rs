//! What all channels of a connection share: output, publisher, consumers, the session.

use std::sync::Arc;

use ahash::HashMap;
use amqp::method::{basic, channel, connection};
use amqp::{Method, ShortStr, Version, frame};
use broker::{
    Broker, ChannelPrefetch, ConsumerHandle, ConsumerId, LogPositions, Outbox, Publisher, Queue,
    Session,
};
use slab::Slab;
use smallvec::SmallVec;

use super::awaiting::Awaiting;
use super::output::Output;
use super::sent::Sent;
use crate::channel::{QueueIndex, ShardConsumer};
use crate::encode::DeliverPrefix;
use crate::exception::Exception;
use crate::options::Options;
use crate::properties::ClientCapabilities;

/// A consumer of this connection.
pub(crate) struct Consumer {
    pub channel: u16,
    pub tag: Box<[u8]>,
    pub prefix: DeliverPrefix,
    /// The queue's place in its channel's table.
    pub queue_index: QueueIndex,
    pub queue: Arc<Queue>,
    pub id: ConsumerId,
    pub prefetch: Arc<ChannelPrefetch>,
}

/// The part of a connection that channels work with.
pub(crate) struct Core {
    pub broker: Arc<Broker>,
    pub options: Arc<Options>,
    pub session: Session,
    pub version: Version,
    /// Largest frame, overhead included; never 0.
    pub frame_max: u32,
    /// Most channels at a time.
    pub channel_max: u16,
    pub capabilities: ClientCapabilities,
    /// What is to be written.
    pub out: Output,
    pub outbox: Arc<Outbox>,
    pub publisher: Publisher,
    pub consumers: Slab<Consumer>,
    /// Those of shards, for the broker to say whose part has changed.
    pub shard_consumers: Slab<ShardConsumer>,
    /// What is said once the log has it.
    pub awaiting: Awaiting,
    /// No-ack deliveries that are not written yet.
    pub sent: Sent,
    /// Channels with something to do at the end of the batch of frames.
    pub touched: Vec<u16>,
    /// It publishes: alarms apply to it.
    pub has_published: bool,
    /// Queues that go with the connection.
    exclusive_queues: HashMap<u64, Arc<Queue>>,
}

/// What the handshake has settled.
pub(crate) struct Negotiated {
    pub version: Version,
    pub frame_max: u32,
    pub channel_max: u16,
    pub capabilities: ClientCapabilities,
}

impl Core {
    pub fn new(
        broker: Arc<Broker>,
        options: Arc<Options>,
        session: Session,
        outbox: Arc<Outbox>,
        negotiated: Negotiated,
    ) -> Self {
        Core {
            broker,
            options,
            session,
            version: negotiated.version,
            frame_max: negotiated.frame_max,
            channel_max: negotiated.channel_max,
            capabilities: negotiated.capabilities,
            out: Output::default(),
            outbox,
            publisher: Publisher::default(),
            consumers: Slab::new(),
            shard_consumers: Slab::new(),
            awaiting: Awaiting::default(),
            sent: Sent::default(),
            touched: Vec::new(),
            has_published: false,
            exclusive_queues: HashMap::default(),
        }
    }

    /// Sends a method.
    pub fn send<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        frame::write_method(self.out.encoded(), channel, self.version, &method.into());
    }

    /// Sends a reply unless the client asked for none.
    pub fn reply<'m>(&mut self, channel: u16, no_wait: bool, method: impl Into<Method<'m>>) {
        if !no_wait {
            self.send(channel, method);
        }
    }

    /// Sends a reply once the log has reached these positions. Until then nothing more is done on
    /// the channel.
    pub fn reply_when<'m>(
        &mut self,
        positions: LogPositions,
        channel: u16,
        method: impl Into<Method<'m>>,
    ) {
        if positions.reached(&self.broker.store) {
            return self.send(channel, method);
        }
        let mut reply = Vec::new();
        frame::write_method(&mut reply, channel, self.version, &method.into());
        self.awaiting.push_reply(channel, positions, reply);
    }

    /// Sends the reply to a change of definitions, once the log has them; unless the client asked
    /// for none.
    pub fn reply_defined<'m>(
        &mut self,
        channel: u16,
        no_wait: bool,
        method: impl Into<Method<'m>>,
    ) {
        if !no_wait {
            let logged = self.session.vhost.definitions_logged();
            self.reply_when(LogPositions::definitions(logged), channel, method);
        }
    }

    pub fn send_close(&mut self, exception: &Exception) {
        self.send(0, exception.connection_close(&exception.reply_text()));
    }

    pub fn send_channel_close(&mut self, channel: u16, exception: &Exception) {
        let text = exception.reply_text();
        let close = channel::Close {
            reply_code: exception.code.code(),
            reply_text: ShortStr::truncated(&text),
            class_id: exception.cause.0,
            method_id: exception.cause.1,
        };
        self.send(channel, close);
    }

    /// connection.blocked with its reason, or connection.unblocked, to clients that know them.
    pub fn tell_blocked(&mut self, reason: Option<&'static str>) {
        if !self.capabilities.connection_blocked {
            return;
        }
        match reason {
            Some(reason) => {
                let reason = ShortStr::truncated(reason);
                self.send(0, connection::Blocked { reason });
            }
            None => self.send(0, connection::Unblocked {}),
        }
    }

    /// Consumers may have room again: those of one queue take turns.
    pub fn resume(&self, handles: impl Iterator<Item = ConsumerHandle>) {
        let mut waiting: Vec<(&Arc<Queue>, ConsumerId)> = handles
            .filter_map(|handle| self.consumers.get(handle.0 as usize))
            .map(|consumer| (&consumer.queue, consumer.id))
            .collect();
        // Stable: within a queue, whoever stalled first goes first.
        waiting.sort_by_key(|(queue, _)| queue.id);
        for run in waiting.chunk_by(|(a, _), (b, _)| a.id == b.id) {
            let ids: SmallVec<[ConsumerId; 4]> = run.iter().map(|(_, id)| *id).collect();
            run[0].0.resume_all(&ids);
        }
    }

    /// Ends a consumer. What was on its way to it goes back to its queue. True if other consumers
    /// of its channel have room for that reason.
    pub fn drop_consumer(&mut self, handle: ConsumerHandle) -> bool {
        let Some(consumer) = self.consumers.try_remove(handle.0 as usize) else {
            return false;
        };
        let ending = [(consumer.id, handle)];
        let (session, outbox) = (&self.session, &self.outbox);
        let unsent = session.end_consumers(&consumer.queue, &ending, outbox, &[]);
        unsent > 0 && consumer.prefetch.release(unsent)
    }

    pub fn own_exclusively(&mut self, queue: &Arc<Queue>) {
        // Those that were deleted meanwhile are dropped now and then: each time the map is full.
        if self.exclusive_queues.len() == self.exclusive_queues.capacity() {
            self.exclusive_queues.retain(|_, owned| !owned.is_deleted());
        }
        self.exclusive_queues.insert(queue.id, queue.clone());
    }

    /// Sends basic.cancel to a client that understands it.
    pub fn notify_cancelled(&mut self, channel: u16, tag: &[u8]) {
        if self.capabilities.consumer_cancel_notify
            && let Some(consumer_tag) = ShortStr::new(tag)
        {
            self.send(
                channel,
                basic::Cancel {
                    consumer_tag,
                    no_wait: true,
                },
            );
        }
    }

    /// The connection has ended: what belonged to it goes.
    pub fn clean_up(&mut self) {
        for queue in std::mem::take(&mut self.exclusive_queues).into_values() {
            if !queue.is_deleted() {
                self.session.vhost.delete_queue(&queue);
            }
        }
    }
}
