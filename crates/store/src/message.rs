//! A message: one reference-counted allocation, laid out as it is stored.
//!
//! ```text
//! 0  properties length   u32, little-endian
//! 4  routing length      u16, little-endian: both short strings with their length octets
//! 6  flags               bit 0: persistent; bit 1: timed; bit 2: has BCC
//! 7  priority
//!    if timed: arrival u64, expiration u64; milliseconds, see [`Times`]
//!    exchange, routing key   short strings (length octet, bytes), as on the wire
//!    properties              flags and values, as on the wire
//!    body
//! ```
//!
//! Exchange, routing key and properties keep their wire form, so a delivery is encoded by copying.

use std::mem::MaybeUninit;
use std::sync::Arc;

const HEAD_LEN: usize = 8;
const PERSISTENT: u8 = 1;
const TIMED: u8 = 2;
const HAS_BCC: u8 = 4;
const TIMES_LEN: usize = 16;

/// Bodies up to this size are allocated in full when their header announces them. A larger one
/// grows with what arrives, so that announcing a body costs the broker no more than sending it.
const ALLOCATE_ON_ANNOUNCEMENT: usize = 4 * 1024;

/// What precedes a message's body.
#[derive(Debug, Clone, Copy)]
pub struct MessageHead<'a> {
    /// Name of the exchange that it was published to; at most 255 bytes.
    pub exchange: &'a [u8],
    /// Routing key; at most 255 bytes.
    pub routing_key: &'a [u8],
    /// Property flags and values, as on the wire.
    pub properties: &'a [u8],
    /// Delivery mode 2.
    pub persistent: bool,
    /// Priority property, 0 where absent.
    pub priority: u8,
    /// For a message that expires, or a queue that asks when its messages came.
    pub times: Option<Times>,
    /// Its headers name recipients that consumers must not see (`BCC`).
    pub has_bcc: bool,
}

/// When a message came, and for how long it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Milliseconds of the Unix epoch.
    pub arrival: u64,
    /// Milliseconds from then on, as the publisher said; `None` = for ever.
    pub expiration: Option<u64>,
}

impl Times {
    const FOR_EVER: u64 = u64::MAX;

    fn encode(self) -> [u8; TIMES_LEN] {
        let expiration = self.expiration.unwrap_or(Times::FOR_EVER);
        let mut bytes = [0; TIMES_LEN];
        bytes[..8].copy_from_slice(&self.arrival.to_le_bytes());
        bytes[8..].copy_from_slice(&expiration.to_le_bytes());
        bytes
    }
}

impl MessageHead<'_> {
    fn len(&self) -> usize {
        let times = if self.times.is_some() { TIMES_LEN } else { 0 };
        HEAD_LEN + times + 2 + self.exchange.len() + self.routing_key.len() + self.properties.len()
    }
}

/// An immutable message. Cloning bumps a counter.
#[derive(Clone)]
pub struct Message(Arc<[u8]>);

impl Message {
    /// Lays out a message whose whole body is at hand.
    #[inline]
    pub fn new(head: &MessageHead<'_>, body: &[u8]) -> Message {
        let builder = MessageBuilder::with_body(head, body, body.len(), body.len());
        builder.assume_complete()
    }

    /// From its stored form; `None` where the lengths in it make no sense.
    pub fn from_stored(stored: &[u8]) -> Option<Message> {
        let (head, rest) = stored.split_first_chunk::<HEAD_LEN>()?;
        let rest = rest.get(times_len(head[6])..)?;
        let properties = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (routing, content) =
            rest.split_at_checked(usize::from(u16::from_le_bytes([head[4], head[5]])))?;
        let exchange = usize::from(*routing.first()?);
        let key = usize::from(*routing.get(1 + exchange)?);
        let fits = routing.len() == 2 + exchange + key && properties <= content.len();
        fits.then(|| Message(stored.into()))
    }

    fn head(&self) -> MessageHead<'_> {
        MessageHead {
            exchange: self.exchange(),
            routing_key: self.routing_key(),
            properties: self.properties(),
            persistent: self.is_persistent(),
            priority: self.priority(),
            times: self.times(),
            has_bcc: self.has_bcc(),
        }
    }

    /// A copy with other properties.
    pub fn with_properties(&self, properties: &[u8]) -> Message {
        let head = MessageHead {
            properties,
            ..self.head()
        };
        Message::new(&head, self.body())
    }

    /// The message, persistent.
    pub fn made_persistent(self) -> Message {
        if self.is_persistent() {
            return self;
        }
        let head = MessageHead {
            persistent: true,
            ..self.head()
        };
        Message::new(&head, self.body())
    }

    /// A copy that is persistent, and came at that time if it does not say when.
    pub fn made_lasting(&self, arrival: u64) -> Message {
        let expiration = None;
        let times = self.times().unwrap_or(Times {
            arrival,
            expiration,
        });
        let head = MessageHead {
            persistent: true,
            times: Some(times),
            ..self.head()
        };
        Message::new(&head, self.body())
    }

    /// A copy with other times.
    pub fn with_times(&self, times: Option<Times>) -> Message {
        let head = MessageHead {
            times,
            ..self.head()
        };
        Message::new(&head, self.body())
    }

    /// Its stored form.
    #[inline]
    pub fn stored(&self) -> &[u8] {
        &self.0
    }

    /// Both short strings with their length octets, as basic.deliver ends with.
    #[inline]
    pub fn routing(&self) -> &[u8] {
        let start = self.routing_start();
        &self.0[start..start + self.routing_len()]
    }

    /// Exchange name.
    #[inline]
    pub fn exchange(&self) -> &[u8] {
        let routing = self.routing();
        &routing[1..1 + usize::from(routing[0])]
    }

    /// Routing key.
    #[inline]
    pub fn routing_key(&self) -> &[u8] {
        let routing = self.routing();
        &routing[2 + usize::from(routing[0])..]
    }

    /// Property flags and values.
    #[inline]
    pub fn properties(&self) -> &[u8] {
        let start = self.content_start();
        &self.0[start..start + self.properties_len()]
    }

    /// The body.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.0[self.content_start() + self.properties_len()..]
    }

    /// Properties and body in one slice, and the length of the first.
    #[inline]
    pub fn content(&self) -> (&[u8], usize) {
        (&self.0[self.content_start()..], self.properties_len())
    }

    /// True for delivery mode 2.
    #[inline]
    pub fn is_persistent(&self) -> bool {
        self.0[6] & PERSISTENT != 0
    }

    /// When it came, if that was noted.
    #[inline]
    pub fn times(&self) -> Option<Times> {
        if !self.is_timed() {
            return None;
        }
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.0[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let expiration = number(HEAD_LEN + 8);
        Some(Times {
            arrival: number(HEAD_LEN),
            expiration: (expiration != Times::FOR_EVER).then_some(expiration),
        })
    }

    /// True if it says when it came.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.0[6] & TIMED != 0
    }

    /// True if its headers name recipients that consumers must not see.
    #[inline]
    pub fn has_bcc(&self) -> bool {
        self.0[6] & HAS_BCC != 0
    }

    /// True if its publisher said for how long it is wanted.
    #[inline]
    pub fn expires(&self) -> bool {
        self.times().is_some_and(|times| times.expiration.is_some())
    }

    /// Bytes of the body.
    #[inline]
    pub fn body_len(&self) -> usize {
        self.0.len() - self.content_start() - self.properties_len()
    }

    /// Priority property, 0 where absent.
    #[inline]
    pub fn priority(&self) -> u8 {
        self.0[7]
    }

    /// Bytes of the stored form.
    #[inline]
    pub fn stored_len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn routing_start(&self) -> usize {
        HEAD_LEN + times_len(self.0[6])
    }

    #[inline]
    fn content_start(&self) -> usize {
        self.routing_start() + self.routing_len()
    }

    #[inline]
    fn properties_len(&self) -> usize {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]]) as usize
    }

    #[inline]
    fn routing_len(&self) -> usize {
        usize::from(u16::from_le_bytes([self.0[4], self.0[5]]))
    }
}

/// Without a branch: this is asked for every message.
#[inline]
fn times_len(flags: u8) -> usize {
    usize::from(flags & TIMED) * (TIMES_LEN / TIMED as usize)
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("exchange", &String::from_utf8_lossy(self.exchange()))
            .field("routing_key", &String::from_utf8_lossy(self.routing_key()))
            .field("body_len", &self.body().len())
            .finish()
    }
}

/// A message whose body is still arriving.
#[derive(Debug)]
pub struct MessageBuilder {
    buffer: Arc<[MaybeUninit<u8>]>,
    /// Bytes of `buffer` that are written; all before this index are initialised.
    filled: usize,
    /// Length that the message will have.
    target: usize,
}

impl MessageBuilder {
    /// Starts a message whose header announced `body_size` bytes of body.
    pub fn new(head: &MessageHead<'_>, body_size: usize) -> MessageBuilder {
        let allocate = body_size.min(ALLOCATE_ON_ANNOUNCEMENT);
        Self::with_body(head, &[], body_size, allocate)
    }

    /// Writes everything at once: each look at a reference count costs as much as a small copy.
    #[inline]
    fn with_body(head: &MessageHead<'_>, body: &[u8], body_size: usize, allocate: usize) -> Self {
        debug_assert!(head.exchange.len() < 256 && head.routing_key.len() < 256);
        let head_len = head.len();
        let mut builder = MessageBuilder {
            buffer: Arc::new_uninit_slice(head_len + allocate),
            filled: 0,
            target: head_len + body_size,
        };
        let [p0, p1, p2, p3] = (head.properties.len() as u32).to_le_bytes();
        let routing_len = 2 + head.exchange.len() + head.routing_key.len();
        let [r0, r1] = (routing_len as u16).to_le_bytes();
        let persistent = if head.persistent { PERSISTENT } else { 0 };
        let timed = if head.times.is_some() { TIMED } else { 0 };
        let bcc = if head.has_bcc { HAS_BCC } else { 0 };
        let flags = persistent | timed | bcc;
        let fixed = [p0, p1, p2, p3, r0, r1, flags, head.priority];
        let (exchange, key, properties) = (head.exchange, head.routing_key, head.properties);
        let exchange_len = exchange.len() as u8;
        let key_len = &[key.len() as u8];
        match head.times {
            // The usual case: one part of fixed length in front.
            None => {
                let mut start = [exchange_len; HEAD_LEN + 1];
                start[..HEAD_LEN].copy_from_slice(&fixed);
                builder.write(&[&start, exchange, key_len, key, properties, body]);
            }
            Some(times) => {
                let mut start = [exchange_len; HEAD_LEN + TIMES_LEN + 1];
                start[..HEAD_LEN].copy_from_slice(&fixed);
                start[HEAD_LEN..HEAD_LEN + TIMES_LEN].copy_from_slice(&times.encode());
                builder.write(&[&start, exchange, key_len, key, properties, body]);
            }
        }
        builder
    }

    /// Bytes of body that are still missing.
    pub fn missing(&self) -> usize {
        self.target - self.filled
    }

    /// Appends a part of the body.
    ///
    /// # Panics
    /// If it is longer than [`MessageBuilder::missing`]; the caller answers that to the peer.
    #[inline]
    pub fn append(&mut self, part: &[u8]) {
        assert!(part.len() <= self.missing(), "body longer than announced");
        if self.buffer.len() - self.filled < part.len() {
            self.grow(part.len());
        }
        self.write(&[part]);
    }

    /// The message, once its body is complete.
    pub fn finish(self) -> Result<Message, MessageBuilder> {
        if self.missing() > 0 {
            Err(self)
        } else {
            Ok(self.assume_complete())
        }
    }

    #[inline]
    fn assume_complete(self) -> Message {
        assert!(self.filled == self.target && self.buffer.len() == self.target);
        // SAFETY: `filled` bytes are initialised, and that is the buffer's whole length.
        Message(unsafe { self.buffer.assume_init() })
    }

    #[inline]
    fn write(&mut self, parts: &[&[u8]]) {
        let buffer = Arc::get_mut(&mut self.buffer).expect("not shared before it is finished");
        let mut filled = self.filled;
        for part in parts {
            buffer[filled..filled + part.len()].write_copy_of_slice(part);
            filled += part.len();
        }
        self.filled = filled;
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let wanted = (self.buffer.len() * 2)
            .max(self.filled + needed)
            .min(self.target);
        let mut larger = Arc::new_uninit_slice(wanted);
        let fresh = Arc::get_mut(&mut larger).expect("just made");
        fresh[..self.filled].copy_from_slice(&self.buffer[..self.filled]);
        self.buffer = larger;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_come_out_as_they_went_in(
            exchange in prop::collection::vec(any::<u8>(), 0..=255),
            routing_key in prop::collection::vec(any::<u8>(), 0..=255),
            properties in prop::collection::vec(any::<u8>(), 2..600),
            body in prop::collection::vec(any::<u8>(), 0..4_000),
            persistent in any::<bool>(),
            priority in any::<u8>(),
            times in prop::option::of((any::<u64>(), prop::option::of(0..u64::MAX))),
            has_bcc in any::<bool>(),
            part in 1usize..700,
        ) {
            let times = times.map(|(arrival, expiration)| Times { arrival, expiration });
            let head = MessageHead {
                exchange: &exchange,
                routing_key: &routing_key,
                properties: &properties,
                persistent,
                priority,
                times,
                has_bcc,
            };
            let mut builder = MessageBuilder::with_body(&head, &[], body.len(), 10.min(body.len()));
            body.chunks(part).for_each(|chunk| builder.append(chunk));
            let whole = Message::new(&head, &body);
            let restored = Message::from_stored(whole.stored()).expect("as it was stored");
            for message in [whole, restored, builder.finish().expect("complete")] {
                prop_assert_eq!(message.exchange(), &exchange[..]);
                prop_assert_eq!(message.routing_key(), &routing_key[..]);
                prop_assert_eq!(message.properties(), &properties[..]);
                prop_assert_eq!(message.body(), &body[..]);
                prop_assert_eq!(message.is_persistent(), persistent);
                prop_assert_eq!(message.priority(), priority);
                prop_assert_eq!(message.times(), times);
                prop_assert_eq!(message.has_bcc(), has_bcc);
                prop_assert_eq!(message.body_len(), body.len());
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_message_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(message) = Message::from_stored(&bytes) {
                let _ = (message.exchange(), message.routing_key(), message.properties());
                let _ = (message.body(), message.content());
            }
        }
    }

    #[test]
    fn unfinished_message_comes_back() {
        let head = MessageHead {
            exchange: b"x",
            routing_key: b"k",
            properties: &[0, 0],
            persistent: false,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        let mut builder = MessageBuilder::new(&head, 3);
        builder.append(b"ab");
        let mut builder = builder.finish().expect_err("one byte is missing");
        assert_eq!(builder.missing(), 1);
        builder.append(b"c");
        assert_eq!(builder.finish().expect("complete").body(), b"abc");
    }
}
