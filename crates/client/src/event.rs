//! What a connection yields. Everything borrows from the read buffer until the next call.

use amqp::method::basic;
use amqp::{Method, Properties, ShortStr};

use crate::topology::Message;

/// Something the broker sent.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message for a consumer.
    Delivery(Delivery<'a>),
    /// The answer to [`get`](crate::Connection::send_get): a message.
    GetOk(GetOk<'a>),
    /// The answer to [`get`](crate::Connection::send_get): the queue is empty.
    GetEmpty {
        /// Where the question was asked.
        channel: u16,
    },
    /// Published messages that the broker has taken over, or has not.
    Confirm(Confirm),
    /// A mandatory message that reached no queue.
    Return(Return<'a>),
    /// The broker ended a consumer: its queue is gone.
    Cancel {
        /// The consumer's channel.
        channel: u16,
        /// The consumer.
        consumer_tag: ShortStr<'a>,
    },
    /// The broker stopped reading publishers: it is short of memory or disk.
    Blocked {
        /// Why.
        reason: ShortStr<'a>,
    },
    /// The broker reads publishers again.
    Unblocked,
    /// The broker closed a channel; the close has been answered already.
    ChannelClosed(ChannelClosed<'a>),
    /// Any other method: the reply to one that was sent without waiting.
    Reply {
        /// Its channel.
        channel: u16,
        /// The method.
        method: Method<'a>,
    },
}

/// A message for a consumer: basic.deliver and its content.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The consumer's channel.
    pub channel: u16,
    /// To acknowledge it by; counts from 1 per channel.
    pub delivery_tag: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// The consumer.
    pub consumer_tag: ShortStr<'a>,
    /// Where it was published.
    pub exchange: ShortStr<'a>,
    /// With which key.
    pub routing_key: ShortStr<'a>,
    /// Its properties.
    pub properties: Properties<'a>,
    /// Its body.
    pub body: &'a [u8],
}

/// A message that was asked for: basic.get-ok and its content.
#[derive(Debug, Clone, Copy)]
pub struct GetOk<'a> {
    /// Where it was asked for.
    pub channel: u16,
    /// To acknowledge it by.
    pub delivery_tag: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// Where it was published.
    pub exchange: ShortStr<'a>,
    /// With which key.
    pub routing_key: ShortStr<'a>,
    /// Messages left in the queue.
    pub message_count: u32,
    /// Its properties.
    pub properties: Properties<'a>,
    /// Its body.
    pub body: &'a [u8],
}

/// A message that came back: basic.return and its content.
#[derive(Debug, Clone, Copy)]
pub struct Return<'a> {
    /// Where it was published from.
    pub channel: u16,
    /// AMQP reply code: 312 NO_ROUTE, 313 NO_CONSUMERS.
    pub code: u16,
    /// AMQP reply text.
    pub text: ShortStr<'a>,
    /// Where it was published.
    pub exchange: ShortStr<'a>,
    /// With which key.
    pub routing_key: ShortStr<'a>,
    /// Its properties.
    pub properties: Properties<'a>,
    /// Its body.
    pub body: &'a [u8],
}

/// basic.ack or basic.nack from the broker, on a channel in confirm mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// The publishing channel.
    pub channel: u16,
    /// Number of the publish since confirm.select, from 1.
    pub delivery_tag: u64,
    /// All up to this one that were not confirmed yet.
    pub multiple: bool,
    /// False: the broker did not take the message.
    pub acked: bool,
}

/// channel.close from the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelClosed<'a> {
    /// The channel.
    pub channel: u16,
    /// AMQP reply code.
    pub code: u16,
    /// AMQP reply text.
    pub text: ShortStr<'a>,
    /// Class of the method at fault, or 0.
    pub class: u16,
    /// Id of the method at fault, or 0.
    pub method: u16,
}

pub(crate) fn get_ok<'a>(
    channel: u16,
    method: basic::GetOk<'a>,
    properties: Properties<'a>,
    body: &'a [u8],
) -> GetOk<'a> {
    GetOk {
        channel,
        delivery_tag: method.delivery_tag,
        redelivered: method.redelivered,
        exchange: method.exchange,
        routing_key: method.routing_key,
        message_count: method.message_count,
        properties,
        body,
    }
}

pub(crate) fn owned(message: &GetOk<'_>) -> Message {
    Message {
        delivery_tag: message.delivery_tag,
        redelivered: message.redelivered,
        exchange: message.exchange.lossy().into_owned(),
        routing_key: message.routing_key.lossy().into_owned(),
        message_count: message.message_count,
        properties: message.properties.as_wire().to_vec(),
        body: message.body.to_vec(),
    }
}
