//! Publishing on a channel: routing, returns, confirms, transactions.

use std::sync::Arc;

use amqp::method::basic;
use amqp::{ContentHeader, PropertySummary, ReplyCode};
use broker::{LogPositions, Publish, Rejected, Route};
use store::{Message, MessageBuilder, MessageHead, Times};

use super::Channel;
use super::content::{Announced, Arriving, Content, PUBLISH};
use super::modes::Mode;
use crate::connection::Core;
use crate::encode;
use crate::exception::Exception;

const PERSISTENT: u8 = 2;

/// `immediate` went out of RabbitMQ in release 3.0, and is refused as there.
#[inline]
pub(super) fn refuse_immediate(publish: &basic::Publish<'_>) -> Result<(), Exception> {
    if publish.immediate {
        let exception = Exception::new(ReplyCode::NotImplemented, "immediate=true");
        return Err(exception.caused_by(PUBLISH));
    }
    Ok(())
}

impl Channel {
    /// True where a publish may start.
    #[inline]
    pub fn expects_method(&self) -> bool {
        matches!(self.content, Content::None)
    }

    /// A publish whose content is all at hand: the usual case for small messages.
    #[inline]
    pub fn publish_whole(
        &mut self,
        core: &mut Core,
        publish: &basic::Publish<'_>,
        header: &ContentHeader<'_>,
        body: &[u8],
    ) -> Result<(), Exception> {
        refuse_immediate(publish)?;
        let (exchange, key) = (publish.exchange.as_bytes(), publish.routing_key.as_bytes());
        let prepared = self.prepare(core, exchange, key, header)?;
        let message = Message::new(&prepared.head(exchange, key, header), body);
        self.publish_message(core, prepared.route, publish.mandatory, message)
    }

    /// The header of a publish whose body is still to come.
    pub(super) fn begin_body(
        &mut self,
        core: &mut Core,
        announced: Announced,
        header: &ContentHeader<'_>,
    ) -> Result<(), Exception> {
        let Announced {
            exchange,
            routing_key,
            mandatory,
        } = announced;
        let prepared = self.prepare(core, &exchange, &routing_key, header)?;
        let head = prepared.head(&exchange, &routing_key, header);
        // Checked against the largest message size, so it fits.
        let message = MessageBuilder::new(&head, header.body_size as usize);
        let route = prepared.route;
        self.arrived(
            core,
            Arriving {
                route,
                mandatory,
                message,
            },
        )
    }

    // Always, as what it returns is large.
    #[inline(always)]
    fn prepare<'h>(
        &mut self,
        core: &mut Core,
        exchange: &[u8],
        routing_key: &[u8],
        header: &ContentHeader<'h>,
    ) -> Result<Prepared<'h>, Exception> {
        let properties = header
            .properties
            .summarize()
            .map_err(|_| Exception::malformed(header.properties.as_wire()).caused_by(PUBLISH))?;
        core.has_published = true;
        let publish = Publish {
            exchange,
            routing_key,
            properties: &properties,
            all_properties: header.properties,
        };
        let outcome = core
            .publisher
            .route(&core.session, &publish)
            .map_err(at_publish)?;
        if header.body_size > core.options.max_message_size {
            return Err(at_publish(broker::Error::precondition(format!(
                "message size {} is larger than configured max size {}",
                header.body_size, core.options.max_message_size
            ))));
        }
        let addressed = self
            .address_replies(header.properties, &properties)
            .map_err(|exception| exception.or_caused_by(PUBLISH))?;
        let times = match outcome.expiration {
            None if !outcome.route.timed => None,
            expiration => Some(Times {
                arrival: core.broker.timer.clock.now(),
                expiration,
            }),
        };
        Ok(Prepared {
            route: outcome.route,
            properties,
            addressed,
            times,
            has_bcc: outcome.has_bcc,
        })
    }

    /// A complete message: into the transaction, to its queues, or back to the publisher.
    #[inline(always)]
    pub(super) fn publish_message(
        &mut self,
        core: &mut Core,
        route: Arc<Route>,
        mandatory: bool,
        message: Message,
    ) -> Result<(), Exception> {
        if route.traced {
            core.session.trace_publish(self.number, &route, &message);
        }
        if let Mode::Transaction(transaction) = &mut self.mode {
            return transaction
                .publish(route, message, mandatory)
                .map_err(at_publish);
        }
        self.count_published(core, &route, &message);
        if route.special {
            self.hand_over_specially(core, route, mandatory, message);
        } else {
            self.hand_over(core, route, mandatory, message);
        }
        Ok(())
    }

    /// A message that more is to be done for than to put it in its queues.
    #[cold]
    fn hand_over_specially(
        &mut self,
        core: &mut Core,
        route: Arc<Route>,
        mandatory: bool,
        message: Message,
    ) {
        let vhost = &core.session.vhost;
        core.publisher.remember(vhost, &route, &message);
        if !route.may_reject && !route.deduplicates() {
            self.hand_over(core, route, mandatory, message);
        } else if let Err(Rejected) = core.publisher.offer(&route, &message) {
            self.nack_last(core);
        }
    }

    #[inline]
    fn count_published(&mut self, core: &mut Core, route: &Route, message: &Message) {
        if let Mode::Confirm(confirms) = &mut self.mode {
            confirms.published += 1;
            confirms.logged |= route.logged && message.is_persistent();
            self.touch(core);
        }
    }

    #[inline(always)]
    fn hand_over(&self, core: &mut Core, route: Arc<Route>, mandatory: bool, message: Message) {
        if !route.queues.is_empty() {
            core.publisher.push(route, message);
        } else if mandatory {
            encode::no_route(&mut core.out, self.number, &message, core.frame_max);
        }
    }

    /// Tells the publisher at once that the message it has just published was refused.
    fn nack_last(&mut self, core: &mut Core) {
        if let Mode::Confirm(confirms) = &mut self.mode {
            let delivery_tag = confirms.published;
            confirms.refused.push_back(delivery_tag);
            core.send(
                self.number,
                basic::Nack {
                    delivery_tag,
                    multiple: false,
                    requeue: false,
                },
            );
        }
    }

    /// Confirms everything that was published and has reached its queues; at once where nothing
    /// of it must survive, else when the log has it.
    #[inline]
    pub(super) fn flush_confirms(&mut self, core: &mut Core) {
        if let Mode::Confirm(confirms) = &mut self.mode
            && confirms.published > confirms.passed_on
        {
            confirms.passed_on = confirms.published;
            let logged = std::mem::take(&mut confirms.logged);
            let positions = if logged {
                core.publisher.logged()
            } else {
                LogPositions::default()
            };
            if confirms.waiting == 0 && positions.reached(&core.broker.store) {
                let up_to = confirms.published;
                self.confirm(core, up_to);
            } else {
                // In order: also what has nothing to wait for itself.
                confirms.waiting += 1;
                let up_to = confirms.published;
                core.awaiting.push_confirm(self.number, positions, up_to);
            }
        }
    }

    /// The log has everything that was published up to there: `entries` waited for that.
    pub fn confirm_up_to(&mut self, core: &mut Core, up_to: u64, entries: u32) {
        if let Mode::Confirm(confirms) = &mut self.mode {
            confirms.waiting -= entries;
        }
        self.confirm(core, up_to);
    }

    fn confirm(&mut self, core: &mut Core, up_to: u64) {
        let Mode::Confirm(confirms) = &mut self.mode else {
            return;
        };
        // What was refused has been said already, and no confirm of several may reach over it:
        // there are clients who would take it for confirmed.
        while let Some(refused) = confirms.refused.pop_front_if(|refused| *refused <= up_to) {
            confirms.confirm(refused - 1, |ack| core.send(self.number, ack));
            confirms.confirmed = refused;
        }
        confirms.confirm(up_to, |ack| core.send(self.number, ack));
    }
}

struct Prepared<'h> {
    route: Arc<Route>,
    properties: PropertySummary<'h>,
    /// The properties with the address of replies.
    addressed: Option<Vec<u8>>,
    times: Option<Times>,
    has_bcc: bool,
}

impl Prepared<'_> {
    #[inline]
    fn head<'a>(
        &'a self,
        exchange: &'a [u8],
        routing_key: &'a [u8],
        header: &'a ContentHeader<'_>,
    ) -> MessageHead<'a> {
        MessageHead {
            exchange,
            routing_key,
            properties: self
                .addressed
                .as_deref()
                .unwrap_or(header.properties.as_wire()),
            persistent: self.properties.delivery_mode == PERSISTENT || self.route.keeps_all,
            priority: self.properties.priority,
            times: self.times,
            has_bcc: self.has_bcc,
        }
    }
}

fn at_publish(error: broker::Error) -> Exception {
    Exception::from(error).caused_by(PUBLISH)
}
