//! From frames to events.
//!
//! Two steps, so that a borrowed event can be returned from a loop: [`Decoder::locate`] finds and
//! consumes the frames of the next event, [`Decoder::event`] reads them. A content that lies in one
//! piece in the buffer is never copied.

use amqp::frame::Kind;
use amqp::method::{MethodId, basic};
use amqp::{ContentHeader, Method, Reader, Version};

use crate::assembly::Assemblies;
use crate::event::{ChannelClosed, Confirm, Delivery, Event, Return};
use crate::input::{Frame, Input, Span};
use crate::{Error, event};

const CLASS_BASIC: u32 = 60 << 16;
/// basic.return
const RETURN: u32 = CLASS_BASIC | 50;
/// basic.deliver
const DELIVER: u32 = CLASS_BASIC | 60;
/// basic.get-ok
const GET_OK: u32 = CLASS_BASIC | 71;
/// Bytes of class and method id.
const IDS_LEN: usize = 4;

/// Class and method id of `M` as one number.
pub(crate) fn id_of<M: MethodId>(version: Version) -> u32 {
    u32::from(M::CLASS) << 16 | u32::from(M::id(version))
}

/// The frames of one event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Located {
    Method {
        channel: u16,
        payload: Span,
    },
    Content {
        channel: u16,
        method: Span,
        header: Span,
        body: Span,
    },
    /// In [`Assemblies::done`].
    Assembled,
}

/// What follows a method that carries content.
enum Lookahead {
    /// Its whole content, up to stream offset `next`.
    Whole { header: Span, body: Span, next: u64 },
    /// Not enough bytes to tell.
    Wait,
    /// Frames of other channels, or several body frames.
    Apart,
}

pub(crate) struct Decoder {
    pub(crate) input: Input,
    assemblies: Assemblies,
    version: Version,
    /// Stream offset up to which everything has arrived and been looked at in vain.
    exhausted: u64,
}

impl Decoder {
    pub(crate) fn new(version: Version, input: Input) -> Self {
        Decoder {
            // The handshake has taken what was before.
            exhausted: input.offset(),
            input,
            assemblies: Assemblies::default(),
            version,
        }
    }

    /// True if more has arrived since [`Decoder::locate`] last found nothing.
    pub(crate) fn may_have_event(&self) -> bool {
        self.input.end_offset() > self.exhausted
    }

    /// Drops what comes next and is no event: replies that a call has taken, and heartbeats. Without
    /// it an owner who only makes calls would look at all earlier replies again each time.
    pub(crate) fn skip_dealt_with(&mut self) -> Result<(), Error> {
        while let Some(frame) = self.input.frame_at(self.input.offset())? {
            if frame.kind != Kind::Heartbeat as u8 {
                break;
            }
            self.input.consume_to(frame.next);
        }
        Ok(())
    }

    /// Consumes the next event's frames, or returns `None` until all of them have arrived.
    #[inline]
    pub(crate) fn locate(&mut self) -> Result<Option<Located>, Error> {
        let located = self.locate_frames()?;
        if located.is_none() {
            self.exhausted = self.input.end_offset();
        }
        Ok(located)
    }

    #[inline]
    fn locate_frames(&mut self) -> Result<Option<Located>, Error> {
        loop {
            let Some(frame) = self.input.frame_at(self.input.offset())? else {
                return Ok(None);
            };
            if frame.kind != Kind::Method as u8 {
                self.input.consume_to(frame.next);
                match self.content_frame(&frame)? {
                    true => return Ok(Some(Located::Assembled)),
                    false => continue,
                }
            }
            let Frame {
                channel, payload, ..
            } = frame;
            if !matches!(self.input.method_id(payload), DELIVER | RETURN | GET_OK) {
                self.input.consume_to(frame.next);
                return Ok(Some(Located::Method { channel, payload }));
            }
            match self.look_ahead(&frame)? {
                Lookahead::Whole { header, body, next } => {
                    self.input.consume_to(next);
                    return Ok(Some(Located::Content {
                        channel,
                        method: payload,
                        header,
                        body,
                    }));
                }
                Lookahead::Wait => return Ok(None),
                Lookahead::Apart => {
                    self.assemblies.begin(channel, self.input.get(payload))?;
                    self.input.consume_to(frame.next);
                }
            }
        }
    }

    #[inline]
    fn look_ahead(&self, method: &Frame) -> Result<Lookahead, Error> {
        let Some(header) = self.input.frame_at(method.next)? else {
            return Ok(Lookahead::Wait);
        };
        if header.kind != Kind::Header as u8 || header.channel != method.channel {
            return Ok(Lookahead::Apart);
        }
        let size = ContentHeader::decode(self.input.get(header.payload))?.body_size;
        if size == 0 {
            let (header, next) = (header.payload, header.next);
            return Ok(Lookahead::Whole {
                header,
                body: Span::EMPTY,
                next,
            });
        }
        if size > self.input.payload_max() as u64 {
            return Ok(Lookahead::Apart);
        }
        let Some(body) = self.input.frame_at(header.next)? else {
            return Ok(Lookahead::Wait);
        };
        if body.kind != Kind::Body as u8
            || body.channel != method.channel
            || body.payload.len() as u64 != size
        {
            return Ok(Lookahead::Apart);
        }
        Ok(Lookahead::Whole {
            header: header.payload,
            body: body.payload,
            next: body.next,
        })
    }

    /// True if the frame completed a message.
    fn content_frame(&mut self, frame: &Frame) -> Result<bool, Error> {
        let payload = self.input.get(frame.payload);
        match Kind::from_octet(frame.kind) {
            Some(Kind::Heartbeat) => Ok(false),
            Some(Kind::Header) => self.assemblies.add(frame.channel, |a| a.header(payload)),
            Some(Kind::Body) => self.assemblies.add(frame.channel, |a| a.body(payload)),
            _ => Err(Error::Protocol(format!(
                "frame of unknown type {}",
                frame.kind
            ))),
        }
    }

    /// Forgets what a closed channel had begun.
    pub(crate) fn abandon(&mut self, channel: u16) {
        self.assemblies.abandon(channel);
    }

    /// Reads a located event.
    #[inline]
    pub(crate) fn event(&self, located: Located) -> Result<Event<'_>, Error> {
        match located {
            Located::Content {
                channel,
                method,
                header,
                body,
            } => content_event(
                self.version,
                channel,
                self.input.get(method),
                self.input.get(header),
                self.input.get(body),
            ),
            Located::Method { channel, payload } => {
                let method = Method::decode(self.version, self.input.get(payload))?;
                Ok(method_event(channel, method))
            }
            Located::Assembled => {
                let done = self.assemblies.done();
                content_event(
                    self.version,
                    done.channel,
                    &done.method,
                    &done.header,
                    &done.body,
                )
            }
        }
    }
}

/// Reads a method with content: deliver, get-ok or return.
#[inline]
pub(crate) fn content_event<'a>(
    version: Version,
    channel: u16,
    method: &'a [u8],
    header: &'a [u8],
    body: &'a [u8],
) -> Result<Event<'a>, Error> {
    let properties = ContentHeader::decode(header)?.properties;
    let mut reader = Reader::new(method);
    let id = reader.u32()?;
    debug_assert!(method.len() >= IDS_LEN);
    if id == DELIVER {
        let basic::Deliver {
            consumer_tag,
            delivery_tag,
            redelivered,
            exchange,
            routing_key,
        } = basic::Deliver::read(version, &mut reader)?;
        reader.finish()?;
        return Ok(Event::Delivery(Delivery {
            channel,
            delivery_tag,
            redelivered,
            consumer_tag,
            exchange,
            routing_key,
            properties,
            body,
        }));
    }
    if id == GET_OK {
        let get_ok = basic::GetOk::read(version, &mut reader)?;
        reader.finish()?;
        return Ok(Event::GetOk(event::get_ok(
            channel, get_ok, properties, body,
        )));
    }
    let returned = basic::Return::read(version, &mut reader)?;
    reader.finish()?;
    Ok(Event::Return(Return {
        channel,
        code: returned.reply_code,
        text: returned.reply_text,
        exchange: returned.exchange,
        routing_key: returned.routing_key,
        properties,
        body,
    }))
}

/// The event that a method without content is.
fn method_event(channel: u16, method: Method<'_>) -> Event<'_> {
    let confirm = |delivery_tag, multiple, acked| {
        Event::Confirm(Confirm {
            channel,
            delivery_tag,
            multiple,
            acked,
        })
    };
    match method {
        Method::BasicAck(ack) => confirm(ack.delivery_tag, ack.multiple, true),
        Method::BasicNack(nack) => confirm(nack.delivery_tag, nack.multiple, false),
        Method::BasicGetEmpty(_) => Event::GetEmpty { channel },
        Method::BasicCancel(cancel) => Event::Cancel {
            channel,
            consumer_tag: cancel.consumer_tag,
        },
        Method::ConnectionBlocked(blocked) => Event::Blocked {
            reason: blocked.reason,
        },
        Method::ConnectionUnblocked(_) => Event::Unblocked,
        Method::ChannelClose(close) => Event::ChannelClosed(ChannelClosed {
            channel,
            code: close.reply_code,
            text: close.reply_text,
            class: close.class_id,
            method: close.method_id,
        }),
        method => Event::Reply { channel, method },
    }
}

#[cfg(test)]
mod tests {
    use amqp::frame;
    use amqp::method::queue;

    use super::*;

    fn stream() -> Vec<u8> {
        let mut out = Vec::new();
        for (channel, body) in [(1, &b"hello"[..]), (2, &[]), (300, &[7; 5000])] {
            let deliver = basic::Deliver {
                delivery_tag: 1,
                ..Default::default()
            };
            frame::write_method(&mut out, channel, Version::V0_9_1, &deliver.into());
            let header = ContentHeader::basic(body.len() as u64, Default::default());
            frame::write_header(&mut out, channel, &header);
            frame::write_body(&mut out, channel, body, 4096);
            let declared = queue::DeclareOk {
                message_count: 3,
                ..Default::default()
            };
            frame::write_method(&mut out, channel, Version::V0_9_1, &declared.into());
        }
        out
    }

    /// Decodes as far as it goes; returns the number of events.
    fn decode(bytes: &[u8]) -> Result<usize, Error> {
        let mut decoder = Decoder::new(Version::V0_9_1, Input::new(4096, 0));
        let room = decoder.input.room().expect("an empty buffer");
        room[..bytes.len()].copy_from_slice(bytes);
        decoder.input.advance(bytes.len());
        let mut events = 0;
        while let Some(located) = decoder.locate()? {
            decoder.event(located)?;
            events += 1;
        }
        Ok(events)
    }

    #[test]
    fn every_event_of_a_stream_is_found() {
        assert_eq!(decode(&stream()).expect("well-formed"), 6);
    }

    #[test]
    fn damaged_streams_never_panic() {
        let whole = stream();
        let mut random = 88_172_645_463_325_252_u64;
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..3 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = (random >> 8) as usize % bytes.len();
                bytes[at] = random as u8;
            }
            // Whether it is an error depends on the damage.
            let _ = decode(&bytes);
        }
    }
}
