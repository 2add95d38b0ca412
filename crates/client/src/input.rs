//! The read buffer: bytes from the socket, and where the frames in them begin and end.
//!
//! Live bytes are `start..end`. Positions that must outlive a move of the bytes are offsets in the
//! stream; [`Span`]s are positions in the buffer and hold until the next call of [`Input::room`].
//! The buffer grows while its reader lets events wait, up to a limit, and shrinks once it is empty.

use amqp::frame::{self, END, HEADER_LEN, Kind};

use crate::Error;

/// Size at first: enough for the handshake and for an idle connection.
const INITIAL: usize = 16 << 10;
/// Size once reads fill the buffer. Larger ones measured slower: they leave the nearest cache.
const BUSY: usize = 64 << 10;
/// An empty buffer above this size is given back.
const KEEP: usize = 1 << 20;

/// A range of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) const EMPTY: Span = Span { start: 0, end: 0 };

    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A whole frame in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) channel: u16,
    pub(crate) payload: Span,
    /// Stream offset of its first byte.
    pub(crate) offset: u64,
    /// Stream offset of what follows.
    pub(crate) next: u64,
}

pub(crate) struct Input {
    /// Always initialised to its whole length.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Stream offset of `bytes[0]`.
    base: u64,
    /// The last read filled the buffer to its end.
    filled: bool,
    /// Largest payload of a frame.
    payload_max: usize,
    /// The buffer never grows beyond this.
    limit: usize,
}

impl Input {
    /// `limit` is raised to what three frames take, so that one content always fits.
    pub(crate) fn new(frame_max: u32, limit: usize) -> Self {
        let mut input = Input {
            bytes: vec![0; INITIAL],
            start: 0,
            end: 0,
            base: 0,
            filled: false,
            payload_max: 0,
            limit: limit.min(u32::MAX as usize / 2),
        };
        input.set_frame_max(frame_max);
        input
    }

    pub(crate) fn set_frame_max(&mut self, frame_max: u32) {
        self.payload_max = frame_max as usize - frame::OVERHEAD;
        self.limit = self.limit.max(3 * frame_max as usize).next_power_of_two();
    }

    pub(crate) fn payload_max(&self) -> usize {
        self.payload_max
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Stream offset of the first live byte.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Stream offset after the last live byte.
    pub(crate) fn end_offset(&self) -> u64 {
        self.base + self.end as u64
    }

    /// Drops live bytes up to a stream offset.
    #[inline]
    pub(crate) fn consume_to(&mut self, offset: u64) {
        let start = (offset - self.base) as usize;
        debug_assert!(self.start <= start && start <= self.end);
        self.start = start;
    }

    /// Live bytes.
    pub(crate) fn live(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[inline]
    pub(crate) fn get(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..span.end as usize]
    }

    /// Class and method id of a method frame as one number; 0 for a payload too short for them.
    #[inline]
    pub(crate) fn method_id(&self, payload: Span) -> u32 {
        match self.get(payload).first_chunk::<4>() {
            Some(id) => u32::from_be_bytes(*id),
            None => 0,
        }
    }

    /// The frame at a stream offset, or `None` until all of it has arrived.
    #[inline]
    pub(crate) fn frame_at(&self, offset: u64) -> Result<Option<Frame>, Error> {
        let at = (offset - self.base) as usize;
        let live = &self.bytes[at..self.end];
        let Some(header) = frame::Header::decode(live) else {
            return Ok(None);
        };
        let size = header.size as usize;
        if size > self.payload_max {
            return Err(too_large(&header, self.payload_max));
        }
        let Some(&end) = live.get(HEADER_LEN + size) else {
            return Ok(None);
        };
        if end != END {
            return Err(Error::Protocol(format!(
                "frame ends with octet 0x{end:02x}, not 0xCE"
            )));
        }
        let start = at + HEADER_LEN;
        Ok(Some(Frame {
            kind: header.kind,
            channel: header.channel,
            payload: Span {
                start: start as u32,
                end: (start + size) as u32,
            },
            offset,
            next: offset + (size + frame::OVERHEAD) as u64,
        }))
    }

    /// Turns a frame into a heartbeat, which decoding passes over: it has been dealt with ahead of
    /// the events before it. Its payload stays readable.
    pub(crate) fn mask(&mut self, frame: &Frame) {
        self.bytes[(frame.offset - self.base) as usize] = Kind::Heartbeat as u8;
    }

    /// Room for the next read, or `None` where the limit leaves none. Moves bytes.
    #[inline]
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        if self.start == self.end {
            self.rewind();
        } else {
            self.make_room();
        }
        if self.end == self.bytes.len() {
            return None;
        }
        Some(&mut self.bytes[self.end..])
    }

    /// Counts bytes that a read put into the room.
    #[inline]
    pub(crate) fn advance(&mut self, len: usize) {
        self.end += len;
        self.filled = self.end == self.bytes.len();
    }

    /// Starts again at the front of an empty buffer, resizing it where its size does not fit.
    #[inline]
    fn rewind(&mut self) {
        self.base += self.end as u64;
        self.start = 0;
        self.end = 0;
        let len = self.bytes.len();
        if len > KEEP || (self.filled && len < BUSY) {
            self.bytes = vec![0; BUSY.min(self.limit)];
        }
        self.filled = false;
    }

    fn make_room(&mut self) {
        let len = self.bytes.len();
        let live = self.end - self.start;
        let little = live <= len / 4;
        if little && self.filled && len < BUSY {
            self.resize(BUSY);
        } else if little && len - self.end < len / 2 {
            self.compact();
        } else if self.end == len {
            match live <= len / 2 || len >= self.limit {
                true => self.compact(),
                false => self.resize(len * 2),
            }
        }
    }

    fn compact(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.moved_to_front();
    }

    fn resize(&mut self, len: usize) {
        let mut bytes = vec![0; len.min(self.limit)];
        bytes[..self.end - self.start].copy_from_slice(self.live());
        self.bytes = bytes;
        self.moved_to_front();
    }

    fn moved_to_front(&mut self) {
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        self.filled = false;
    }
}

#[cold]
fn too_large(header: &frame::Header, payload_max: usize) -> Error {
    Error::Protocol(format!(
        "frame of type {} announces {} bytes; {payload_max} were negotiated",
        header.kind, header.size
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> Input {
        Input::new(4096, 0)
    }

    fn push(input: &mut Input, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = input.room().expect("room below the limit");
            let len = room.len().min(bytes.len());
            room[..len].copy_from_slice(&bytes[..len]);
            input.advance(len);
            bytes = &bytes[len..];
        }
    }

    fn body(channel: u16, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame::write_body(&mut out, channel, payload, 4096);
        out
    }

    #[test]
    fn frame_appears_once_its_last_byte_has_arrived() {
        let mut input = input();
        let bytes = body(7, b"hello");
        for byte in &bytes[..bytes.len() - 1] {
            push(&mut input, &[*byte]);
            assert!(input.frame_at(0).expect("no error").is_none());
        }
        push(&mut input, &[END]);
        let frame = input.frame_at(0).expect("no error").expect("a frame");
        assert_eq!(
            (frame.channel, input.get(frame.payload)),
            (7, &b"hello"[..])
        );
        assert_eq!(frame.next, bytes.len() as u64);
    }

    #[test]
    fn oversized_frame_and_wrong_end_are_refused() {
        let mut large = input();
        push(&mut large, &[3, 0, 1, 0, 1, 0, 0]);
        assert!(matches!(large.frame_at(0), Err(Error::Protocol(_))));
        let mut unended = input();
        push(&mut unended, &[3, 0, 1, 0, 0, 0, 0, 0]);
        assert!(matches!(unended.frame_at(0), Err(Error::Protocol(_))));
    }

    #[test]
    fn offsets_survive_growing_and_compacting() {
        let mut input = Input::new(4096, 1 << 20);
        let frame = body(1, &[9; 1000]);
        let mut expected = 0;
        for _ in 0..300 {
            push(&mut input, &frame);
            push(&mut input, &frame);
            let found = input
                .frame_at(expected)
                .expect("no error")
                .expect("a frame");
            assert_eq!(input.get(found.payload), [9; 1000]);
            input.consume_to(found.next);
            expected = found.next;
        }
        assert_eq!(input.live().len(), 300 * frame.len());
    }

    #[test]
    fn buffer_stops_at_its_limit() {
        let mut input = input();
        let limit = input.limit();
        while let Some(room) = input.room() {
            let len = room.len();
            input.advance(len);
        }
        assert_eq!(input.live().len(), limit);
        let end = input.end_offset();
        input.consume_to(end);
        assert!(input.room().is_some());
    }

    #[test]
    fn masked_frame_reads_as_heartbeat() {
        let mut input = input();
        push(&mut input, &body(1, b"x"));
        let frame = input.frame_at(0).expect("no error").expect("a frame");
        input.mask(&frame);
        let masked = input.frame_at(0).expect("no error").expect("a frame");
        assert_eq!(masked.kind, Kind::Heartbeat as u8);
        assert_eq!(input.get(masked.payload), b"x");
    }
}
