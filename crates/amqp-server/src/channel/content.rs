//! Content that arrives in frames: a method, a header, bodies (0-9-1 section 4.2.6).

use std::sync::Arc;

use amqp::method::basic;
use amqp::{ContentHeader, ReplyCode};
use broker::Route;
use store::MessageBuilder;

use super::Channel;
use crate::connection::Core;
use crate::exception::Exception;

/// basic.publish, as exceptions name it.
pub(crate) const PUBLISH: (u16, u16) = (60, 40);
const CLASS_BASIC: u16 = ContentHeader::CLASS;

/// How far the content of a publish has arrived.
#[derive(Default)]
pub(super) enum Content {
    /// None is due.
    #[default]
    None,
    /// The method has come.
    Method(Announced),
    /// The header has come too.
    Body(Box<Arriving>),
}

/// A publish whose header is due.
pub(super) struct Announced {
    pub exchange: Box<[u8]>,
    pub routing_key: Box<[u8]>,
    pub mandatory: bool,
}

/// A publish whose body is arriving.
pub(super) struct Arriving {
    pub route: Arc<Route>,
    pub mandatory: bool,
    pub message: MessageBuilder,
}

impl Channel {
    /// A method must not come between the frames of a content.
    pub(super) fn assert_no_content_due(&self) -> Result<(), Exception> {
        match self.content {
            Content::None => Ok(()),
            Content::Method(_) => Err(header_due()),
            Content::Body(_) => Err(body_due()),
        }
    }

    /// basic.publish, whose content is not all at hand.
    pub fn begin_publish(&mut self, publish: &basic::Publish<'_>) -> Result<(), Exception> {
        self.assert_no_content_due()?;
        super::publish::refuse_immediate(publish)?;
        self.content = Content::Method(Announced {
            exchange: publish.exchange.as_bytes().into(),
            routing_key: publish.routing_key.as_bytes().into(),
            mandatory: publish.mandatory,
        });
        Ok(())
    }

    /// A header frame.
    pub fn header(&mut self, core: &mut Core, payload: &[u8]) -> Result<(), Exception> {
        let announced = match std::mem::take(&mut self.content) {
            Content::Method(announced) => announced,
            Content::None => return Err(method_due()),
            Content::Body(_) => return Err(body_due()),
        };
        let header = ContentHeader::decode(payload)?;
        if header.weight != 0 {
            return Err(header_due());
        }
        if header.class != CLASS_BASIC {
            return Err(unexpected(format!(
                "expected content header for class {CLASS_BASIC}, got one for class {} instead",
                header.class
            ))
            .caused_by(PUBLISH));
        }
        self.begin_body(core, announced, &header)
    }

    /// A body frame, or a part of one.
    pub fn body(&mut self, core: &mut Core, part: &[u8]) -> Result<(), Exception> {
        let mut arriving = match std::mem::take(&mut self.content) {
            Content::Body(arriving) => arriving,
            Content::None => return Err(method_due()),
            Content::Method(_) => return Err(header_due()),
        };
        if part.len() > arriving.message.missing() {
            let text = "content body longer than announced";
            return Err(Exception::new(ReplyCode::FrameError, text).caused_by(PUBLISH));
        }
        arriving.message.append(part);
        self.arrived(core, *arriving)
    }

    /// Publishes a message that is complete; else waits for more of its body.
    pub(super) fn arrived(&mut self, core: &mut Core, content: Arriving) -> Result<(), Exception> {
        let Arriving {
            route,
            mandatory,
            message,
        } = content;
        match message.finish() {
            Ok(message) => self.publish_message(core, route, mandatory, message),
            Err(message) => {
                self.content = Content::Body(Box::new(Arriving {
                    route,
                    mandatory,
                    message,
                }));
                Ok(())
            }
        }
    }
}

fn unexpected(text: impl Into<String>) -> Exception {
    Exception::new(ReplyCode::UnexpectedFrame, text)
}

fn method_due() -> Exception {
    unexpected("expected method frame, got non method frame instead")
}

fn header_due() -> Exception {
    unexpected(format!(
        "expected content header for class {CLASS_BASIC}, got non content header frame instead"
    ))
    .caused_by(PUBLISH)
}

fn body_due() -> Exception {
    unexpected("expected content body, got non content body frame instead").caused_by(PUBLISH)
}
