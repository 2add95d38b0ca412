//! What a record of the log says: operations on queues and on definitions.
//!
//! ```text
//! append      1 │ first place u64 │ count u32 │ count × (gap varint │ length u32 │ message)
//! acknowledge 2 │ count u32 │ count × (first place u64 │ count u64)
//! delivered   3 │ place u64: everything before it has been out for delivery
//! define      4 │ length u32 │ key │ length u32 │ value
//! undefine    5 │ length u32 │ key
//! forget      6 │ stream u64: the queue is gone
//! returned    7 │ count u32 │ count × (place u64 │ deliveries u32): came back from consumers so often
//! remembered  8 │ count u32 │ count × (identity 16 octets │ until u64): has come, and is known till then
//! within     16 │ stream u64 │ length u32 │ operations on that queue
//! ```
//!
//! A record of a queue's stream holds operations on that queue. A record of stream 0 holds
//! definitions, or a transaction (`within`), and happens as a whole. A gap is the number of places
//! between a message and the one before it that hold nothing persistent.

use wal::StreamId;

use crate::bytes::{Cursor, Malformed, varint};
use crate::queue::Identity;
use crate::seq::{QueueSeq, SeqRun};

/// The stream of definitions and transactions.
pub(crate) const NODE: StreamId = StreamId(0);

const APPEND: u8 = 1;
const ACKNOWLEDGE: u8 = 2;
const DELIVERED: u8 = 3;
const DEFINE: u8 = 4;
const UNDEFINE: u8 = 5;
const FORGET: u8 = 6;
const RETURNED: u8 = 7;
const REMEMBERED: u8 = 8;
const WITHIN: u8 = 16;

/// Where operations are written to: a record that is being appended, or memory.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for wal::Payload<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend(bytes);
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Writes an append of `count` messages in order of their places.
#[inline]
pub(crate) fn append<'m>(
    sink: &mut impl Sink,
    first: QueueSeq,
    count: u32,
    messages: impl Iterator<Item = (QueueSeq, &'m [u8])>,
) {
    sink.put(&[APPEND]);
    sink.put(&first.0.to_le_bytes());
    sink.put(&count.to_le_bytes());
    let mut expected = first;
    for (seq, stored) in messages {
        put_message(sink, seq.0 - expected.0, stored);
        expected = seq.next();
    }
}

/// A message behind its gap and length: the form in records and in segments.
#[inline]
pub(crate) fn put_message(sink: &mut impl Sink, gap: u64, stored: &[u8]) {
    let length = (stored.len() as u32).to_le_bytes();
    if gap == 0 {
        let [a, b, c, d] = length;
        sink.put(&[0, a, b, c, d]);
    } else {
        varint(gap, |part| sink.put(part));
        sink.put(&length);
    }
    sink.put(stored);
}

pub(crate) fn acknowledge(sink: &mut impl Sink, runs: &[SeqRun]) {
    sink.put(&[ACKNOWLEDGE]);
    sink.put(&(runs.len() as u32).to_le_bytes());
    for run in runs {
        sink.put(&run.first.0.to_le_bytes());
        sink.put(&run.count.to_le_bytes());
    }
}

#[inline]
pub(crate) fn delivered(sink: &mut impl Sink, up_to: QueueSeq) {
    let mut bytes = [DELIVERED; 9];
    bytes[1..].copy_from_slice(&up_to.0.to_le_bytes());
    sink.put(&bytes);
}

pub(crate) fn returned(sink: &mut impl Sink, counts: &[(QueueSeq, u32)]) {
    sink.put(&[RETURNED]);
    sink.put(&(counts.len() as u32).to_le_bytes());
    for (seq, count) in counts {
        sink.put(&seq.0.to_le_bytes());
        sink.put(&count.to_le_bytes());
    }
}

pub(crate) fn remembered(sink: &mut impl Sink, identities: &[(Identity, u64)]) {
    sink.put(&[REMEMBERED]);
    sink.put(&(identities.len() as u32).to_le_bytes());
    for (identity, until) in identities {
        sink.put(identity);
        sink.put(&until.to_le_bytes());
    }
}

pub(crate) fn define(sink: &mut impl Sink, key: &[u8], value: &[u8]) {
    sink.put(&[DEFINE]);
    put_slice(sink, key);
    put_slice(sink, value);
}

pub(crate) fn undefine(sink: &mut impl Sink, key: &[u8]) {
    sink.put(&[UNDEFINE]);
    put_slice(sink, key);
}

pub(crate) fn forget(sink: &mut impl Sink, stream: StreamId) {
    sink.put(&[FORGET]);
    sink.put(&stream.0.to_le_bytes());
}

/// Writes operations on one queue that are part of a larger record.
pub(crate) fn within(bytes: &mut Vec<u8>, stream: StreamId, write: impl FnOnce(&mut Vec<u8>)) {
    bytes.put(&[WITHIN]);
    bytes.put(&stream.0.to_le_bytes());
    let length_at = bytes.len();
    bytes.put(&[0; 4]);
    write(bytes);
    let length = (bytes.len() - length_at - 4) as u32;
    bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
}

pub(crate) fn put_slice(sink: &mut impl Sink, bytes: &[u8]) {
    sink.put(&(bytes.len() as u32).to_le_bytes());
    sink.put(bytes);
}

/// An operation as it is read back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op<'a> {
    Append(Messages<'a>),
    Acknowledge(SeqRun),
    Delivered(QueueSeq),
    Define(&'a [u8], &'a [u8]),
    Undefine(&'a [u8]),
    Forget(StreamId),
    Returned(QueueSeq, u32),
    Remembered(Identity, u64),
}

/// Reads the operations of a record; gives each to `act` with the stream that it concerns.
pub(crate) fn read<'a>(
    stream: StreamId,
    payload: &'a [u8],
    act: &mut impl FnMut(StreamId, Op<'a>),
) -> Result<(), Malformed> {
    let mut cursor = Cursor(payload);
    while !cursor.is_empty() {
        match cursor.u8()? {
            APPEND => {
                let first = QueueSeq(cursor.u64()?);
                let count = cursor.u32()?;
                let messages = Messages::new(first, count, cursor);
                cursor = messages.skip_all()?;
                act(stream, Op::Append(messages));
            }
            ACKNOWLEDGE => {
                for _ in 0..cursor.u32()? {
                    let (first, count) = (QueueSeq(cursor.u64()?), cursor.u64()?);
                    act(stream, Op::Acknowledge(SeqRun { first, count }));
                }
            }
            DELIVERED => act(stream, Op::Delivered(QueueSeq(cursor.u64()?))),
            DEFINE => {
                let (key, value) = (cursor.slice()?, cursor.slice()?);
                act(stream, Op::Define(key, value));
            }
            UNDEFINE => act(stream, Op::Undefine(cursor.slice()?)),
            RETURNED => {
                for _ in 0..cursor.u32()? {
                    let (seq, count) = (QueueSeq(cursor.u64()?), cursor.u32()?);
                    act(stream, Op::Returned(seq, count));
                }
            }
            REMEMBERED => {
                for _ in 0..cursor.u32()? {
                    let (identity, until) = (cursor.array()?, cursor.u64()?);
                    act(stream, Op::Remembered(identity, until));
                }
            }
            FORGET => act(stream, Op::Forget(StreamId(cursor.u64()?))),
            // Only once: what is within another stream concerns that one.
            WITHIN if stream == NODE => {
                let inner = StreamId(cursor.u64()?);
                if inner == NODE {
                    return Err(Malformed);
                }
                read(inner, cursor.slice()?, act)?;
            }
            _ => return Err(Malformed),
        }
    }
    Ok(())
}

/// Messages with their places, as records and segments hold them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Messages<'a> {
    next: QueueSeq,
    left: u32,
    cursor: Cursor<'a>,
}

impl<'a> Messages<'a> {
    pub fn new(first: QueueSeq, count: u32, cursor: Cursor<'a>) -> Self {
        Messages {
            next: first,
            left: count,
            cursor,
        }
    }

    fn skip_all(mut self) -> Result<Cursor<'a>, Malformed> {
        while self.left > 0 {
            self.take_one()?;
        }
        Ok(self.cursor)
    }

    fn take_one(&mut self) -> Result<(QueueSeq, &'a [u8]), Malformed> {
        self.left -= 1;
        let gap = self.cursor.varint()?;
        let seq = QueueSeq(self.next.0.checked_add(gap).ok_or(Malformed)?);
        self.next = QueueSeq(seq.0.checked_add(1).ok_or(Malformed)?);
        Ok((seq, self.cursor.slice()?))
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<(QueueSeq, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.left > 0).then(|| self.take_one())
    }
}
