//! The write buffer: requests are encoded straight into it and leave with the next flush.
//!
//! Appending never blocks, never fails for want of room and, once the buffer has its working size,
//! never allocates.

use amqp::frame::{self, END, Kind};
use amqp::method::basic;
use amqp::{Method, Properties, Version};

use crate::Error;

/// A buffer above this size is given back once it has been written.
const KEEP: usize = 1 << 20;
/// Bytes of a basic.publish frame besides the two names.
const PUBLISH_FIXED: usize = frame::OVERHEAD + 4 + 2 + 1 + 1 + 1;
/// Bytes of a content header frame besides the properties.
const HEADER_FIXED: usize = frame::OVERHEAD + 12;

/// Bits of basic.publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublishFlags {
    /// Return the message if it reaches no queue.
    pub mandatory: bool,
    /// Return the message if no consumer can take it at once. RabbitMQ answers 540.
    pub immediate: bool,
}

impl PublishFlags {
    /// Neither bit.
    pub const NONE: PublishFlags = PublishFlags {
        mandatory: false,
        immediate: false,
    };
    /// Return the message if it reaches no queue.
    pub const MANDATORY: PublishFlags = PublishFlags {
        mandatory: true,
        immediate: false,
    };
}

/// What waits to be written to a connection. Its methods are those of
/// [`Connection`](crate::Connection) that send and do not wait.
pub struct Output {
    bytes: Vec<u8>,
    written: usize,
    version: Version,
    frame_max: u32,
}

impl Output {
    pub(crate) fn new(version: Version, frame_max: u32) -> Self {
        Output {
            bytes: Vec::new(),
            written: 0,
            version,
            frame_max,
        }
    }

    pub(crate) fn set_frame_max(&mut self, frame_max: u32) {
        self.frame_max = frame_max;
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The negotiated frame size in bytes, overhead included.
    pub fn frame_max(&self) -> u32 {
        self.frame_max
    }

    /// Bytes that wait to be written.
    #[inline]
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Counts bytes as written.
    pub(crate) fn advance(&mut self, len: usize) {
        self.written += len;
        if self.written == self.bytes.len() {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.written = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEEP {
            self.bytes.shrink_to(KEEP);
        }
    }

    /// Appends bytes as they are: for tests of a broker's manners.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a method frame, whatever the method: those without a reply, or whose reply is taken
    /// as an [`Event::Reply`](crate::Event::Reply).
    pub fn send<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        frame::write_method(&mut self.bytes, channel, self.version, &method.into());
    }

    /// Appends a whole message. The names may be any bytes, up to 255 each.
    #[inline]
    pub fn publish(
        &mut self,
        channel: u16,
        exchange: impl AsRef<[u8]>,
        routing_key: impl AsRef<[u8]>,
        flags: PublishFlags,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Error> {
        let (exchange, routing_key) = (exchange.as_ref(), routing_key.as_ref());
        let properties = properties.as_wire();
        let exchange_len = name_len("exchange", exchange)?;
        let key_len = name_len("routing key", routing_key)?;
        let method_len = PUBLISH_FIXED + exchange.len() + routing_key.len();
        let header_len = HEADER_FIXED + properties.len();
        if header_len > self.frame_max as usize {
            return Err(Error::HeadersTooLarge {
                len: properties.len(),
                frame_max: self.frame_max,
            });
        }
        let bits = u8::from(flags.mandatory) | u8::from(flags.immediate) << 1;
        let frame_header =
            |kind, len: usize| frame::Header::encode(kind, channel, (len - frame::OVERHEAD) as u32);
        let out = &mut self.bytes;
        out.reserve(method_len + header_len + frame::OVERHEAD + body.len());
        out.extend_from_slice(&frame_header(Kind::Method, method_len));
        out.extend_from_slice(&[0, 60, 0, 40, 0, 0, exchange_len]);
        out.extend_from_slice(exchange);
        out.push(key_len);
        out.extend_from_slice(routing_key);
        out.extend_from_slice(&[bits, END]);
        out.extend_from_slice(&frame_header(Kind::Header, header_len));
        out.extend_from_slice(&[0, 60, 0, 0]);
        out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        out.extend_from_slice(properties);
        out.push(END);
        frame::write_body(out, channel, body, self.frame_max);
        Ok(())
    }

    /// Acknowledges a delivery, or with `multiple` all up to it (tag 0: all).
    #[inline]
    pub fn ack(&mut self, channel: u16, delivery_tag: u64, multiple: bool) {
        self.send(
            channel,
            basic::Ack {
                delivery_tag,
                multiple,
            },
        );
    }

    /// Rejects a delivery, or with `multiple` all up to it. Not on 0-8.
    pub fn nack(&mut self, channel: u16, delivery_tag: u64, multiple: bool, requeue: bool) {
        self.send(
            channel,
            basic::Nack {
                delivery_tag,
                multiple,
                requeue,
            },
        );
    }

    /// Rejects one delivery.
    pub fn reject(&mut self, channel: u16, delivery_tag: u64, requeue: bool) {
        self.send(
            channel,
            basic::Reject {
                delivery_tag,
                requeue,
            },
        );
    }

    pub(crate) fn heartbeat(&mut self) {
        self.bytes.extend_from_slice(&frame::HEARTBEAT);
    }
}

/// The length octet of a short string.
#[inline]
fn name_len(what: &'static str, name: &[u8]) -> Result<u8, Error> {
    u8::try_from(name.len()).map_err(|_| Error::NameTooLong {
        what,
        len: name.len(),
    })
}

#[cfg(test)]
mod tests {
    use amqp::{ContentHeader, ShortStr};

    use super::*;

    /// The same message by way of the codec's general encoder.
    fn reference(
        channel: u16,
        publish: basic::Publish<'_>,
        properties: &[u8],
        body: &[u8],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let properties = Properties::from_wire(properties);
        frame::write_method(&mut out, channel, Version::V0_9_1, &publish.into());
        let header = ContentHeader::basic(body.len() as u64, properties);
        frame::write_header(&mut out, channel, &header);
        frame::write_body(&mut out, channel, body, 4096);
        out
    }

    #[test]
    fn publish_equals_the_general_encoder() {
        let name = |text| ShortStr::try_from(text).expect("a short name");
        for (mandatory, immediate, body) in [
            (false, false, &b""[..]),
            (true, false, b"hello"),
            (true, true, &[7; 10_000]),
        ] {
            let properties: &[u8] = &[0x10, 0, 2];
            let mut output = Output::new(Version::V0_9_1, 4096);
            let flags = PublishFlags {
                mandatory,
                immediate,
            };
            output
                .publish(
                    300,
                    "orders",
                    "key",
                    flags,
                    Properties::from_wire(properties),
                    body,
                )
                .expect("short names");
            let publish = basic::Publish {
                ticket: 0,
                exchange: name("orders"),
                routing_key: name("key"),
                mandatory,
                immediate,
            };
            assert_eq!(
                output.unwritten(),
                reference(300, publish, properties, body)
            );
        }
    }

    #[test]
    fn too_long_names_and_headers_leave_the_buffer_alone() {
        let mut output = Output::new(Version::V0_9_1, 4096);
        let (flags, none) = (PublishFlags::NONE, Properties::default());
        let long = output.publish(1, "", [b'k'; 256], flags, none, b"");
        assert!(matches!(
            long,
            Err(Error::NameTooLong {
                what: "routing key",
                len: 256
            })
        ));
        let wide = [0; 4090];
        let wide = output.publish(1, "", "", flags, Properties::from_wire(&wide), b"");
        assert!(matches!(wide, Err(Error::HeadersTooLarge { .. })));
        assert_eq!(output.pending(), 0);
    }

    #[test]
    fn steady_publishing_keeps_its_buffer() {
        let mut output = Output::new(Version::V0_9_1, 131_072);
        let round = |output: &mut Output| {
            for _ in 0..500 {
                let none = Properties::default();
                output
                    .publish(1, "", "q", PublishFlags::NONE, none, &[0; 16])
                    .expect("short");
            }
            output.advance(output.pending());
            (output.bytes.as_ptr(), output.bytes.capacity())
        };
        let first = round(&mut output);
        assert_eq!(round(&mut output), first);
    }
}
