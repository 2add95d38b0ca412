//! Encoding messages for clients: deliver, get-ok and return with their content.
//!
//! A message keeps its wire form, so this copies slices. What is the same for all deliveries of a
//! consumer is encoded once, when it starts to consume.

use std::borrow::Cow;

use amqp::frame::{self, END, Header, Kind, OVERHEAD};
use amqp::{ContentHeader, Properties, ReplyCode, ShortStr, Writer};
use broker::Annotation;
use store::Message;

use crate::connection::{Output, SHARED_BODY};

const CLASS_BASIC: u16 = ContentHeader::CLASS;
const DELIVER: u16 = 60;
const RETURN: u16 = 50;
const GET_OK: u16 = 71;
/// Class, weight and body size of a content header.
const CONTENT_HEADER_LEN: usize = 12;

/// The start of every delivery to one consumer: method frame up to and including consumer tag.
#[derive(Debug)]
pub(crate) struct DeliverPrefix(Box<[u8]>);

impl DeliverPrefix {
    pub fn new(channel: u16, consumer_tag: ShortStr<'_>) -> Self {
        let mut prefix = Header::encode(Kind::Method, channel, 0).to_vec();
        let mut writer = Writer::new(&mut prefix);
        writer.u16(CLASS_BASIC);
        writer.u16(DELIVER);
        writer.short_str(consumer_tag);
        DeliverPrefix(prefix.into())
    }
}

/// Appends basic.deliver and the message.
#[inline(always)]
pub(crate) fn deliver(
    output: &mut Output,
    prefix: &DeliverPrefix,
    delivery_tag: u64,
    redelivered: bool,
    message: &Message,
    frame_max: u32,
) {
    let prefix = &*prefix.0;
    let routing = message.routing();
    let size = (prefix.len() - frame::HEADER_LEN + 9 + routing.len()) as u32;
    let out = output.encoded();
    let start = out.len();
    out.extend_from_slice(prefix);
    out[start + 3..start + 7].copy_from_slice(&size.to_be_bytes());
    let mut fixed = [0; 9];
    fixed[..8].copy_from_slice(&delivery_tag.to_be_bytes());
    fixed[8] = redelivered.into();
    out.extend_from_slice(&fixed);
    out.extend_from_slice(routing);
    out.push(END);
    content(output, [prefix[1], prefix[2]], message, frame_max);
}

/// The same for a message of which the consumer is to see something else than was published.
#[cold]
pub(crate) fn deliver_rewritten(
    output: &mut Output,
    prefix: &DeliverPrefix,
    (delivery_tag, redelivered): (u64, bool),
    message: &Message,
    annotation: Annotation,
    frame_max: u32,
) {
    let message = for_consumer(message, annotation);
    deliver(
        output,
        prefix,
        delivery_tag,
        redelivered,
        &message,
        frame_max,
    );
}

/// A message as its consumer sees it: without those recipients that only the broker is to know, and
/// with what its queue adds.
#[inline]
pub(crate) fn for_consumer(message: &Message, annotation: Annotation) -> Cow<'_, Message> {
    match annotation == Annotation::None && !message.has_bcc() {
        true => Cow::Borrowed(message),
        false => rewritten(message, annotation),
    }
}

#[cold]
fn rewritten(message: &Message, annotation: Annotation) -> Cow<'_, Message> {
    let properties = Properties::from_wire(message.properties());
    let headers = properties.headers().unwrap_or_default().to_owned();
    let headers = headers.map(|mut headers| {
        headers.remove("BCC");
        match annotation {
            Annotation::None => {}
            Annotation::Returned(count) => headers.insert("x-delivery-count", i64::from(count)),
            Annotation::Offset(offset) => headers.insert("x-stream-offset", offset as i64),
        }
        headers
    });
    match headers.and_then(|headers| properties.with_headers(&headers)) {
        Ok(properties) => Cow::Owned(message.with_properties(&properties)),
        // They were checked when it was published.
        Err(_) => Cow::Borrowed(message),
    }
}

/// Appends basic.get-ok and the message.
pub(crate) fn get_ok(
    output: &mut Output,
    channel: u16,
    delivery_tag: u64,
    redelivered: bool,
    remaining: u32,
    message: &Message,
    frame_max: u32,
) {
    let routing = message.routing();
    let size = 4 + 9 + routing.len() + 4;
    let out = output.encoded();
    out.extend_from_slice(&Header::encode(Kind::Method, channel, size as u32));
    let mut writer = Writer::new(out);
    writer.u16(CLASS_BASIC);
    writer.u16(GET_OK);
    writer.u64(delivery_tag);
    writer.u8(redelivered.into());
    writer.bytes(routing);
    writer.u32(remaining);
    out.push(END);
    content(output, channel.to_be_bytes(), message, frame_max);
}

/// Appends basic.return for an unroutable message.
pub(crate) fn no_route(output: &mut Output, channel: u16, message: &Message, frame_max: u32) {
    let message = &*for_consumer(message, Annotation::None);
    let code = ReplyCode::NoRoute;
    let text = ShortStr::truncated(code.name());
    let routing = message.routing();
    let size = 4 + 2 + 1 + text.len() + routing.len();
    let out = output.encoded();
    out.extend_from_slice(&Header::encode(Kind::Method, channel, size as u32));
    let mut writer = Writer::new(out);
    writer.u16(CLASS_BASIC);
    writer.u16(RETURN);
    writer.u16(code.code());
    writer.short_str(text);
    writer.bytes(routing);
    out.push(END);
    content(output, channel.to_be_bytes(), message, frame_max);
}

#[inline]
fn content(output: &mut Output, channel: [u8; 2], message: &Message, frame_max: u32) {
    let (content, properties_len) = message.content();
    let (properties, body) = content.split_at(properties_len);
    let size = ((CONTENT_HEADER_LEN + properties_len) as u32).to_be_bytes();
    let [c0, c1] = channel;
    let mut head = [0; frame::HEADER_LEN + CONTENT_HEADER_LEN];
    head[..9].copy_from_slice(&[
        Kind::Header as u8,
        c0,
        c1,
        size[0],
        size[1],
        size[2],
        size[3],
        0,
        CLASS_BASIC as u8,
    ]);
    head[11..].copy_from_slice(&(body.len() as u64).to_be_bytes());
    let out = output.encoded();
    out.extend_from_slice(&head);
    out.extend_from_slice(properties);
    out.push(END);
    let channel = u16::from_be_bytes(channel);
    if body.len() < SHARED_BODY {
        frame::write_body(out, channel, body, frame_max);
    } else {
        shared_body(output, channel, message, body.len(), frame_max);
    }
}

/// A large body: only its frames' headers and ends are encoded.
fn shared_body(output: &mut Output, channel: u16, message: &Message, len: usize, frame_max: u32) {
    let chunk = frame_max as usize - OVERHEAD;
    for start in (0..len).step_by(chunk) {
        let end = (start + chunk).min(len);
        let header = Header::encode(Kind::Body, channel, (end - start) as u32);
        output.encoded().extend_from_slice(&header);
        output.share(message, start, end);
        output.encoded().push(END);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use amqp::method::basic;
    use amqp::{Method, Version};
    use store::MessageHead;

    use super::*;

    fn message(body: &[u8]) -> Message {
        let head = MessageHead {
            exchange: b"ex",
            routing_key: b"key",
            properties: &[0x10, 0, 2],
            persistent: true,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        Message::new(&head, body)
    }

    fn expected(method: Method<'_>, body: &[u8], frame_max: u32) -> Vec<u8> {
        let mut out = Vec::new();
        frame::write_method(&mut out, 5, Version::V0_9_1, &method);
        let properties = Properties::from_wire(&[0x10, 0, 2]);
        let header = ContentHeader::basic(body.len() as u64, properties);
        frame::write_header(&mut out, 5, &header);
        frame::write_body(&mut out, 5, body, frame_max);
        out
    }

    fn written(mut out: Output) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(out.poll_write(Pin::new(&mut bytes), &mut cx).is_ready());
        bytes
    }

    fn text(text: &str) -> ShortStr<'_> {
        ShortStr::truncated(text)
    }

    #[test]
    fn deliver_is_what_the_codec_writes() {
        for body in [&b""[..], b"body", &[7; 5_000], &[8; 100_000]] {
            let method = basic::Deliver {
                consumer_tag: text("tag"),
                delivery_tag: 77,
                redelivered: true,
                exchange: text("ex"),
                routing_key: text("key"),
            };
            let mut out = Output::default();
            let prefix = DeliverPrefix::new(5, text("tag"));
            deliver(&mut out, &prefix, 77, true, &message(body), 4_096);
            assert_eq!(written(out), expected(method.into(), body, 4_096));
        }
    }

    #[test]
    fn get_ok_is_what_the_codec_writes() {
        let method = basic::GetOk {
            delivery_tag: 9,
            redelivered: false,
            exchange: text("ex"),
            routing_key: text("key"),
            message_count: 12,
        };
        let mut out = Output::default();
        get_ok(&mut out, 5, 9, false, 12, &message(b"body"), 4_096);
        assert_eq!(written(out), expected(method.into(), b"body", 4_096));
    }

    #[test]
    fn return_is_what_the_codec_writes() {
        let method = basic::Return {
            reply_code: 312,
            reply_text: text("NO_ROUTE"),
            exchange: text("ex"),
            routing_key: text("key"),
        };
        let mut out = Output::default();
        no_route(&mut out, 5, &message(b"body"), 4_096);
        assert_eq!(written(out), expected(method.into(), b"body", 4_096));
    }
}
