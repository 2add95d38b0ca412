//! What a connection still has to write: encoded frames, and large bodies by reference.
//!
//! Small bodies are copied between their frames' headers. A large one is written from the message
//! itself, which all its consumers share: a slow consumer of a large message holds no copy of it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use store::Message;
use tokio::io::AsyncWrite;

/// Bodies from this size on are written from the message.
pub(crate) const SHARED_BODY: usize = 16 * 1024;
/// Written bytes that are kept until all is written.
const MAX_WRITTEN: usize = if cfg!(test) { 100 } else { 256 * 1024 };
/// Slices handed to the system at once.
const MAX_SLICES: usize = 64;

/// A part of a large body, to be written after the encoded bytes before `at`.
#[derive(Debug)]
struct Part {
    at: usize,
    message: Message,
    start: usize,
    end: usize,
}

impl Part {
    fn bytes(&self) -> &[u8] {
        &self.message.body()[self.start..self.end]
    }
}

/// A connection's output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    encoded: Vec<u8>,
    /// In order of `at`.
    parts: VecDeque<Part>,
    /// Bytes of `encoded` that are written.
    written: usize,
    /// Bytes of parts that are not.
    unwritten_parts: usize,
    /// Bytes that were ever written.
    total: u64,
}

impl Output {
    /// Where frames are encoded to.
    #[inline]
    pub fn encoded(&mut self) -> &mut Vec<u8> {
        &mut self.encoded
    }

    /// Appends a part of a message's body by reference.
    pub fn share(&mut self, message: &Message, start: usize, end: usize) {
        self.unwritten_parts += end - start;
        let at = self.encoded.len();
        self.parts.push_back(Part {
            at,
            message: message.clone(),
            start,
            end,
        });
    }

    /// Bytes that are not written yet.
    #[inline]
    pub fn unwritten(&self) -> usize {
        self.encoded.len() - self.written + self.unwritten_parts
    }

    /// Bytes that were ever written.
    #[inline]
    pub fn total_written(&self) -> u64 {
        self.total
    }

    /// Writes until everything is written or the socket takes no more.
    pub fn poll_write(
        &mut self,
        mut stream: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unwritten() > 0 {
            let result = if self.parts.is_empty() {
                stream
                    .as_mut()
                    .poll_write(cx, &self.encoded[self.written..])
            } else {
                let mut slices = [IoSlice::new(&[]); MAX_SLICES];
                let count = self.slices(&mut slices);
                stream.as_mut().poll_write_vectored(cx, &slices[..count])
            };
            match ready!(result)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.advance(count),
            }
            if self.written > MAX_WRITTEN {
                self.forget_written();
            }
        }
        self.encoded.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// The next bytes to write, in order; returns how many slices there are.
    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; MAX_SLICES]) -> usize {
        let mut count = 0;
        let mut push = |bytes: &'a [u8]| {
            if !bytes.is_empty() && count < MAX_SLICES {
                slices[count] = IoSlice::new(bytes);
                count += 1;
            }
        };
        let mut at = self.written;
        for part in self.parts.iter().take(MAX_SLICES / 2) {
            push(&self.encoded[at..part.at]);
            push(part.bytes());
            at = part.at;
        }
        if self.parts.len() <= MAX_SLICES / 2 {
            push(&self.encoded[at..]);
        }
        count
    }

    /// Gives up the room of what is written: a client that is always a little behind would make
    /// the buffer grow for ever.
    fn forget_written(&mut self) {
        self.encoded.drain(..self.written);
        self.parts
            .iter_mut()
            .for_each(|part| part.at -= self.written);
        self.written = 0;
    }

    fn advance(&mut self, mut count: usize) {
        self.total += count as u64;
        while count > 0 {
            let until = self
                .parts
                .front()
                .map_or(self.encoded.len(), |part| part.at);
            let encoded = count.min(until - self.written);
            self.written += encoded;
            count -= encoded;
            let Some(part) = self.parts.front_mut() else {
                return;
            };
            let shared = count.min(part.end - part.start);
            part.start += shared;
            self.unwritten_parts -= shared;
            count -= shared;
            if part.start == part.end && self.written == part.at {
                self.parts.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::MessageHead;

    use super::*;

    /// Takes a few bytes at a time, and sometimes none.
    struct Trickle {
        taken: Vec<u8>,
        sizes: VecDeque<usize>,
    }

    impl AsyncWrite for Trickle {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let this = self.get_mut();
            let size = this.sizes.pop_front().unwrap_or(usize::MAX);
            if size == 0 {
                return Poll::Pending;
            }
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            let count = all.len().min(size);
            this.taken.extend_from_slice(&all[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn message(body: &[u8]) -> Message {
        let head = MessageHead {
            exchange: b"",
            routing_key: b"",
            properties: &[0, 0],
            persistent: false,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        Message::new(&head, body)
    }

    proptest! {
        #[test]
        fn bytes_come_out_in_order(
            pieces in prop::collection::vec((any::<bool>(), 1usize..60), 0..100),
            sizes in prop::collection::vec(0usize..90, 0..100),
        ) {
            let mut output = Output::default();
            let mut expected = Vec::new();
            let body: Vec<u8> = (0..=255).collect();
            let message = message(&body);
            for (index, (shared, length)) in pieces.into_iter().enumerate() {
                let part = &body[index..index + length];
                expected.extend_from_slice(part);
                if shared {
                    output.share(&message, index, index + length);
                } else {
                    output.encoded().extend_from_slice(part);
                }
            }
            prop_assert_eq!(output.unwritten(), expected.len());
            let mut socket = Trickle { taken: Vec::new(), sizes: sizes.into() };
            let mut cx = Context::from_waker(std::task::Waker::noop());
            while output.unwritten() > 0 {
                let before = output.unwritten();
                let written = output.poll_write(Pin::new(&mut socket), &mut cx);
                prop_assert!(written.is_pending() || output.unwritten() == 0);
                prop_assert_eq!(expected.len() - socket.taken.len(), output.unwritten());
                prop_assert!(output.unwritten() <= before);
            }
            prop_assert_eq!(socket.taken, expected);
        }
    }
}
