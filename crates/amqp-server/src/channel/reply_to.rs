//! Direct reply-to: `amq.rabbitmq.reply-to` as the queue that replies come to, with no queue
//! declared (RabbitMQ extension).
//!
//! Behind the name stands a transient queue of one consumer whose generated name cannot be
//! guessed. Requests go out with that name in `reply-to`; replies to it are ordinary publishes.

use amqp::{Properties, Property, PropertySummary, ShortStr};
use broker::{ConsumerOptions, Error, REPLY_TO};

use super::Channel;
use crate::connection::Core;
use crate::exception::Exception;

impl Channel {
    /// Starts the channel's one consumer of replies.
    pub(super) fn consume_replies(
        &mut self,
        core: &Core,
        options: ConsumerOptions,
    ) -> Result<(std::sync::Arc<broker::Queue>, broker::ConsumerId), Exception> {
        if self.reply_to.is_some() {
            return Err(Error::precondition("reply consumer already set").into());
        }
        if !options.no_ack {
            return Err(Error::precondition("reply consumer cannot acknowledge").into());
        }
        let (queue, id) = core.session.consume_replies(options)?;
        self.reply_to = Some(queue.name.clone());
        Ok((queue, id))
    }

    /// The consumer of a queue has gone.
    pub(super) fn forget_replies(&mut self, queue: &str) {
        if self.reply_to.as_deref() == Some(queue) {
            self.reply_to = None;
        }
    }

    /// A request's properties with the real address of its replies, if it asks for that.
    #[inline]
    pub(super) fn address_replies(
        &self,
        properties: Properties<'_>,
        summary: &PropertySummary<'_>,
    ) -> Result<Option<Vec<u8>>, Exception> {
        match summary.reply_to {
            None => Ok(None),
            Some(name) => self.address_replies_to(name, properties),
        }
    }

    fn address_replies_to(
        &self,
        name: ShortStr<'_>,
        properties: Properties<'_>,
    ) -> Result<Option<Vec<u8>>, Exception> {
        if name.as_bytes() != REPLY_TO.as_bytes() {
            return Ok(None);
        }
        let Some(address) = &self.reply_to else {
            return Err(Error::precondition("fast reply consumer does not exist").into());
        };
        Ok(Some(properties.with_text(
            Property::ReplyTo,
            ShortStr::truncated(address),
        )?))
    }
}
