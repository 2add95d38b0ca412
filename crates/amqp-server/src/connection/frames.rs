//! From bytes to frames: checks sizes, types and ends, and gives each frame to its channel.

use amqp::frame::{END, HEADER_LEN, Header, Kind, OVERHEAD};
use amqp::method::basic;
use amqp::{ContentHeader, Method, Reader, ReplyCode};

use super::{Connection, MAX_UNWRITTEN, Phase};
use crate::channel::{Channel, PUBLISH};
use crate::exception::{Exception, octets};

/// A body frame that arrives in parts, so that it never has to be held as a whole.
pub(super) struct PartialBody {
    channel: u16,
    /// Bytes of payload that are still to come.
    missing: usize,
}

/// Class and method id of basic.publish at the start of a payload.
const PUBLISH_START: [u8; 4] = [0, 60, 0, 40];

/// A frame whose bytes are all there.
struct Frame<'a> {
    kind: Kind,
    channel: u16,
    payload: &'a [u8],
}

impl Connection {
    /// Acts on all complete frames; returns how many bytes they took.
    pub(super) fn frames(&mut self, bytes: &[u8]) -> Result<usize, Exception> {
        let mut at = self.continue_body(bytes)?;
        while let Some(header) = Header::decode(&bytes[at..]) {
            let size = self.check_header(&header)?;
            let Some(whole) = bytes.get(at..at + size + OVERHEAD) else {
                at += self.begin_body(&header, &bytes[at..])?;
                break;
            };
            let frame = self.check_end(&header, whole)?;
            if self.is_held(frame.channel) {
                if !self.hold(frame.channel, whole) {
                    self.held_for = Some(frame.channel);
                    self.held_back = true;
                    break;
                }
                at += whole.len();
                continue;
            }
            at += whole.len();
            if frame.payload.starts_with(&PUBLISH_START) && frame.kind == Kind::Method {
                at += self.publish_frame(&frame, &bytes[at..])?;
            } else {
                self.frame(&frame)?;
            }
            if matches!(self.phase, Phase::Finishing(_)) {
                return Ok(bytes.len());
            }
            // A small basic.get may be answered by a large message: there must be room.
            if self.unwritten() > MAX_UNWRITTEN {
                self.held_back = at < bytes.len();
                break;
            }
        }
        Ok(at)
    }

    fn check_header(&self, header: &Header) -> Result<usize, Exception> {
        let size = header.size as usize;
        // RabbitMQ tolerates clients that do not count the overhead.
        if size > self.core.frame_max as usize {
            let max = self.core.frame_max as usize - OVERHEAD;
            let problem = format!("{{frame_too_large,{size},{max}}}");
            return Err(frame_error(header, &[], &problem));
        }
        Ok(size)
    }

    fn check_end<'a>(&self, header: &Header, whole: &'a [u8]) -> Result<Frame<'a>, Exception> {
        let payload = &whole[HEADER_LEN..whole.len() - 1];
        let end = whole[whole.len() - 1];
        if end != END {
            return Err(frame_error(
                header,
                payload,
                &format!("{{invalid_frame_end_marker,{end}}}"),
            ));
        }
        match Kind::from_octet(header.kind) {
            Some(kind) if is_long_enough(kind, payload) => Ok(Frame {
                kind,
                channel: header.channel,
                payload,
            }),
            _ => Err(frame_error(header, payload, "unknown_frame")),
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Exception> {
        if matches!(self.phase, Phase::Closing(_)) {
            return self.frame_while_closing(frame);
        }
        match (frame.kind, frame.channel) {
            (Kind::Heartbeat, 0) => Ok(()),
            (Kind::Method, 0) => {
                let method = self.decode(frame)?;
                self.connection_method(&method)
            }
            (kind @ Kind::Heartbeat, _) | (kind, 0) => Err(unexpected(kind, frame.payload)),
            (Kind::Method, number) => {
                let method = self.decode(frame)?;
                self.channel_method(number, method)
            }
            (Kind::Header, number) => {
                self.content(number, |channel, core| channel.header(core, frame.payload))
            }
            (Kind::Body, number) => {
                self.content(number, |channel, core| channel.body(core, frame.payload))
            }
        }
    }

    fn decode<'a>(&self, frame: &Frame<'a>) -> Result<Method<'a>, Exception> {
        Method::decode(self.core.version, frame.payload)
            .and_then(|method| method.check().map(|()| method))
            .map_err(|error| Exception::cannot_decode(error, frame.payload))
    }

    /// Only close-ok still matters, and a close that crossed ours.
    fn frame_while_closing(&mut self, frame: &Frame<'_>) -> Result<(), Exception> {
        if frame.kind == Kind::Method && frame.channel == 0 {
            match Method::decode(self.core.version, frame.payload) {
                Ok(Method::ConnectionCloseOk(_)) => self.finish(),
                Ok(Method::ConnectionClose(_)) => {
                    self.core.send(0, amqp::method::connection::CloseOk {});
                    self.finish();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// basic.publish: with the whole content behind it in one go, else step by step. Returns how
    /// many bytes of content were taken.
    #[inline]
    fn publish_frame(&mut self, frame: &Frame<'_>, rest: &[u8]) -> Result<usize, Exception> {
        if !matches!(self.phase, Phase::Open) {
            return Ok(0);
        }
        let number = frame.channel;
        if number == 0 {
            return Err(super::methods::unexpected_method(PUBLISH));
        }
        let mut reader = Reader::new(&frame.payload[PUBLISH_START.len()..]);
        let publish = basic::Publish::read(self.core.version, &mut reader)
            .and_then(|publish| reader.finish().map(|()| publish))
            .map_err(|error| Exception::cannot_decode(error, frame.payload))?;
        let Some(channel) = self.channels.get_mut(&number) else {
            return Err(expected_open().caused_by(PUBLISH));
        };
        if channel.closing {
            return Ok(0);
        }
        let whole = WholeContent::find(number, rest, self.core.frame_max);
        let (taken, result) = match whole {
            Some(content) if channel.expects_method() => {
                let WholeContent {
                    header,
                    body,
                    length,
                } = content;
                (
                    length,
                    channel.publish_whole(&mut self.core, &publish, &header, body),
                )
            }
            _ => (0, channel.begin_publish(&publish)),
        };
        match result {
            Ok(()) => Ok(taken),
            Err(exception) => {
                self.channel_exception(number, exception.caused_by(PUBLISH))?;
                Ok(taken)
            }
        }
    }

    fn content(
        &mut self,
        number: u16,
        act: impl FnOnce(&mut Channel, &mut super::Core) -> Result<(), Exception>,
    ) -> Result<(), Exception> {
        let Some(channel) = self.channels.get_mut(&number) else {
            return Err(expected_open());
        };
        if channel.closing {
            return Ok(());
        }
        match act(channel, &mut self.core) {
            Ok(()) => Ok(()),
            Err(exception) => self.channel_exception(number, exception),
        }
    }

    /// Takes the part of a body frame that is there.
    fn begin_body(&mut self, header: &Header, bytes: &[u8]) -> Result<usize, Exception> {
        let is_body = Kind::from_octet(header.kind) == Some(Kind::Body);
        if !is_body
            || bytes.len() == HEADER_LEN
            || header.channel == 0
            || self.is_held(header.channel)
        {
            return Ok(0);
        }
        let size = header.size as usize;
        let part = &bytes[HEADER_LEN..bytes.len().min(HEADER_LEN + size)];
        self.body = Some(PartialBody {
            channel: header.channel,
            missing: size - part.len(),
        });
        self.body_part(header.channel, part)?;
        Ok(HEADER_LEN + part.len())
    }

    /// Takes what belongs to the body frame that had begun.
    fn continue_body(&mut self, bytes: &[u8]) -> Result<usize, Exception> {
        let Some(body) = &mut self.body else {
            return Ok(0);
        };
        let channel = body.channel;
        let part = &bytes[..bytes.len().min(body.missing)];
        body.missing -= part.len();
        if body.missing > 0 {
            self.body_part(channel, part)?;
            return Ok(part.len());
        }
        let taken = part.len();
        let Some(end) = bytes.get(taken) else {
            self.body_part(channel, part)?;
            return Ok(taken);
        };
        self.body = None;
        if *end != END {
            return Err(Exception::new(
                ReplyCode::FrameError,
                format!("type 3, channel {channel}: {{invalid_frame_end_marker,{end}}}"),
            ));
        }
        self.body_part(channel, part)?;
        Ok(taken + 1)
    }

    fn body_part(&mut self, channel: u16, part: &[u8]) -> Result<(), Exception> {
        if part.is_empty() || !matches!(self.phase, Phase::Open) {
            return Ok(());
        }
        self.content(channel, |channel, core| channel.body(core, part))
    }
}

/// The header frame and the one body frame of a small message.
struct WholeContent<'a> {
    header: ContentHeader<'a>,
    body: &'a [u8],
    /// Bytes of both frames.
    length: usize,
}

impl<'a> WholeContent<'a> {
    /// `None` where they are not both there, or not as they should be: then they are taken step by
    /// step, which finds what is wrong.
    #[inline]
    fn find(channel: u16, bytes: &'a [u8], frame_max: u32) -> Option<WholeContent<'a>> {
        let (payload, length) = next(Kind::Header, channel, bytes, frame_max)?;
        let header = ContentHeader::decode(payload).ok()?;
        if header.class != ContentHeader::CLASS || header.weight != 0 {
            return None;
        }
        if header.body_size == 0 {
            return Some(WholeContent {
                header,
                body: &[],
                length,
            });
        }
        let (body, body_length) = next(Kind::Body, channel, &bytes[length..], frame_max)?;
        let whole = body.len() as u64 == header.body_size;
        whole.then_some(WholeContent {
            header,
            body,
            length: length + body_length,
        })
    }
}

#[inline]
fn next(kind: Kind, channel: u16, bytes: &[u8], frame_max: u32) -> Option<(&[u8], usize)> {
    let header = Header::decode(bytes)?;
    let length = header.size as usize + OVERHEAD;
    let whole = bytes.get(..length)?;
    let fits = header.kind == kind as u8
        && header.channel == channel
        && length <= frame_max as usize
        && whole[length - 1] == END;
    fits.then(|| (&whole[HEADER_LEN..length - 1], length))
}

pub(super) fn expected_open() -> Exception {
    Exception::new(ReplyCode::ChannelError, "expected 'channel.open'")
}

/// Method frames hold at least the ids, header frames at least the fixed fields; heartbeats hold
/// nothing.
fn is_long_enough(kind: Kind, payload: &[u8]) -> bool {
    match kind {
        Kind::Method => payload.len() >= 4,
        Kind::Header => payload.len() >= 12,
        Kind::Body => true,
        Kind::Heartbeat => payload.is_empty(),
    }
}

fn frame_error(header: &Header, payload: &[u8], problem: &str) -> Exception {
    Exception::new(
        ReplyCode::FrameError,
        format!("type {}, {}: {problem}", header.kind, octets(payload)),
    )
}

fn unexpected(kind: Kind, payload: &[u8]) -> Exception {
    Exception::new(
        ReplyCode::UnexpectedFrame,
        format!("type {}, {}", kind as u8, octets(payload)),
    )
}
