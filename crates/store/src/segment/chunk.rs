//! Chunks: messages written, checked and read together.

use wal::AlignedBuffer;

use crate::bytes::{Cursor, Malformed};
use crate::op::{Messages, Sink, put_message};
use crate::seq::QueueSeq;

const MAGIC: [u8; 4] = *b"LvCh";
/// Bytes before a chunk's first message.
pub(crate) const CHUNK_HEAD: usize = 32;
/// A chunk is closed when it holds this many bytes: what is read ahead at a time.
pub(crate) const CHUNK_SIZE: usize = 256 * 1024;
/// Places that a chunk spans at most, so that a map of them stays small.
pub(crate) const MAX_SPAN: u64 = 64 * 1024;

/// A chunk of a segment cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not there: something else stands at its place.
    #[error("no chunk stands where one was written")]
    Missing,
    /// Its checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Its checksum is right, and its contents make no sense.
    #[error("the contents make no sense")]
    Malformed,
}

impl From<Malformed> for Unreadable {
    fn from(Malformed: Malformed) -> Self {
        Unreadable::Malformed
    }
}

struct Buffer<'a>(&'a mut AlignedBuffer);

impl Sink for Buffer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}

/// What a chunk says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub length: u32,
    pub count: u32,
    pub segment: u64,
    pub first: QueueSeq,
}

impl ChunkHead {
    fn seal(&self, chunk: &mut [u8]) {
        chunk[..4].copy_from_slice(&MAGIC);
        chunk[4..8].fill(0);
        chunk[8..12].copy_from_slice(&self.length.to_le_bytes());
        chunk[12..16].copy_from_slice(&self.count.to_le_bytes());
        chunk[16..24].copy_from_slice(&self.segment.to_le_bytes());
        chunk[24..32].copy_from_slice(&self.first.0.to_le_bytes());
        let crc = crc32c::crc32c(chunk);
        chunk[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// The head, if there is one; says nothing about the messages.
    pub fn peek(bytes: &[u8]) -> Option<ChunkHead> {
        let mut cursor = Cursor(bytes);
        if cursor.bytes(4).ok()? != MAGIC {
            return None;
        }
        let _crc = cursor.u32().ok()?;
        Some(ChunkHead {
            length: cursor.u32().ok()?,
            count: cursor.u32().ok()?,
            segment: cursor.u64().ok()?,
            first: QueueSeq(cursor.u64().ok()?),
        })
    }
}

/// The messages of a chunk that was verified.
pub(crate) struct Contents<'a>(pub Messages<'a>);

impl<'a> Contents<'a> {
    /// Checks the chunk of segment `segment` that `bytes` begins with.
    pub fn verify(bytes: &'a [u8], segment: u64) -> Result<(ChunkHead, Self), Unreadable> {
        let head = ChunkHead::peek(bytes).ok_or(Unreadable::Missing)?;
        if head.segment != segment {
            return Err(Unreadable::Missing);
        }
        let whole = bytes.get(..CHUNK_HEAD + head.length as usize);
        let whole = whole.ok_or(Unreadable::Checksum)?;
        let crc = crc32c::crc32c(&whole[..4]);
        let crc = crc32c::crc32c_append(crc, &[0; 4]);
        let crc = crc32c::crc32c_append(crc, &whole[8..]);
        if whole[4..8] != crc.to_le_bytes() {
            return Err(Unreadable::Checksum);
        }
        let messages = Messages::new(head.first, head.count, Cursor(&whole[CHUNK_HEAD..]));
        Ok((head, Contents(messages)))
    }
}

/// Gathers messages into chunks, one behind the other in a buffer.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    pub buffer: AlignedBuffer,
    open: Option<OpenChunk>,
}

#[derive(Debug)]
struct OpenChunk {
    start: usize,
    first: QueueSeq,
    next: QueueSeq,
    count: u32,
}

/// A chunk that was closed: where it stands in the buffer, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed {
    pub start: usize,
    pub size: usize,
    pub first: QueueSeq,
    /// The place behind its last.
    pub end: QueueSeq,
    pub count: u32,
}

impl ChunkWriter {
    /// Writes over what is in the buffer.
    pub fn new(mut buffer: AlignedBuffer) -> Self {
        buffer.clear();
        ChunkWriter { buffer, open: None }
    }

    /// True if the open chunk takes no message of that place and length.
    pub fn must_close(&self, seq: QueueSeq, length: usize) -> bool {
        self.open.as_ref().is_some_and(|open| {
            self.buffer.len() - open.start + length > CHUNK_SIZE || seq.0 - open.first.0 >= MAX_SPAN
        })
    }

    /// Adds a message behind the others.
    pub fn push(&mut self, seq: QueueSeq, stored: &[u8]) {
        let buffer = &mut self.buffer;
        let open = self.open.get_or_insert_with(|| {
            let start = buffer.len();
            buffer.extend(&[0; CHUNK_HEAD]);
            OpenChunk {
                start,
                first: seq,
                next: seq,
                count: 0,
            }
        });
        put_message(&mut Buffer(buffer), seq.0 - open.next.0, stored);
        open.next = seq.next();
        open.count += 1;
    }

    /// Closes the open chunk, if there is one.
    pub fn close(&mut self, segment: u64) -> Option<Closed> {
        let open = self.open.take()?;
        let head = ChunkHead {
            length: (self.buffer.len() - open.start - CHUNK_HEAD) as u32,
            count: open.count,
            segment,
            first: open.first,
        };
        head.seal(&mut self.buffer.as_mut_slice()[open.start..]);
        self.buffer.pad();
        Some(Closed {
            start: open.start,
            size: self.buffer.len() - open.start,
            first: open.first,
            end: open.next,
            count: open.count,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunk_comes_out_as_it_went_in(
            messages in prop::collection::vec(
                (0_u64..5, prop::collection::vec(any::<u8>(), 0..200)), 1..40),
            flip in any::<prop::sample::Index>(),
        ) {
            let mut writer = ChunkWriter::new(AlignedBuffer::default());
            let mut place = 10;
            let messages: Vec<_> = messages
                .into_iter()
                .map(|(gap, bytes)| { place += gap + 1; (QueueSeq(place), bytes) })
                .collect();
            for (seq, bytes) in &messages {
                prop_assert!(!writer.must_close(*seq, bytes.len()));
                writer.push(*seq, bytes);
            }
            let closed = writer.close(7).expect("it holds messages");
            prop_assert_eq!(closed.size % wal::BLOCK, 0);
            let mut bytes = writer.buffer.as_slice().to_vec();
            let (head, contents) = Contents::verify(&bytes, 7).expect("as written");
            let read: Result<Vec<_>, _> = contents.0.collect();
            let read: Vec<_> = read.expect("whole")
                .into_iter()
                .map(|(seq, bytes)| (seq, bytes.to_vec()))
                .collect();
            prop_assert_eq!(read, messages);
            prop_assert!(Contents::verify(&bytes, 8).is_err());
            let at = flip.index((CHUNK_HEAD + head.length as usize) * 8);
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert!(Contents::verify(&bytes, 7).is_err());
        }
    }
}
