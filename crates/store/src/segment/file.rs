//! Segment files: names, heads, and writing a queue's messages to them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::{AlignedBuffer, BLOCK, Disk, DiskFile, Open, StreamId};

use super::chunk::{ChunkWriter, Closed};
use super::index::{Chunk, Traits};
use crate::bytes::Cursor;
use crate::error::Error;
use crate::message::Message;
use crate::seq::QueueSeq;

/// A segment is closed when it has this many bytes, as a rule.
pub(crate) const SEGMENT_SIZE: u64 = 32 * 1024 * 1024;
/// Room is reserved in steps of this, once a segment is larger than that.
const RESERVE: u64 = 4 * 1024 * 1024;
const MAGIC: [u8; 8] = *b"LeverSEG";
/// Version of the format of segments.
const VERSION: u16 = 1;
const HEAD: usize = 32;

/// The directory of a queue's segments.
pub(crate) fn queue_dir(queues: &Path, stream: StreamId) -> PathBuf {
    queues.join(format!("{:016x}", stream.0))
}

/// The stream that a queue's directory is named after.
pub(crate) fn stream_of(name: &Path) -> Option<StreamId> {
    let digits = name.to_str().filter(|name| name.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().map(StreamId)
}

/// A segment's file.
pub(crate) fn path(queues: &Path, stream: StreamId, number: u64) -> PathBuf {
    queue_dir(queues, stream).join(format!("{number:010}.segment"))
}

/// The number in a segment's name.
pub(crate) fn segment_number(name: &Path) -> Option<u64> {
    name.to_str()?.strip_suffix(".segment")?.parse().ok()
}

/// What a segment says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub stream: StreamId,
    pub number: u64,
}

impl SegmentHead {
    fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stream.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` where there is no whole head of this version.
    pub fn decode(bytes: &[u8]) -> Option<SegmentHead> {
        let mut bytes: [u8; HEAD] = *bytes.first_chunk()?;
        let crc = [bytes[12], bytes[13], bytes[14], bytes[15]];
        bytes[12..16].fill(0);
        let right = bytes[..8] == MAGIC
            && bytes[8..10] == VERSION.to_le_bytes()
            && crc == crc32c::crc32c(&bytes).to_le_bytes();
        let mut cursor = Cursor(&bytes[16..]);
        let (stream, number) = (StreamId(cursor.u64().ok()?), cursor.u64().ok()?);
        right.then_some(SegmentHead { stream, number })
    }
}

/// Writes one queue's messages to its segments.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    stream: StreamId,
    current: Option<Segment>,
    /// Number of the next segment.
    next: u64,
    /// Bytes after which a segment is closed.
    size: u64,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    path: PathBuf,
    /// `None` while other queues' files are open in its place.
    file: Option<Arc<dyn DiskFile>>,
    position: u64,
    reserved: u64,
}

impl SegmentWriter {
    /// Begins with segment `next`.
    pub fn new(stream: StreamId, next: u64, size: u64) -> Self {
        SegmentWriter {
            stream,
            current: None,
            next,
            size,
        }
    }

    /// The segment that is written to.
    pub fn active(&self) -> Option<u64> {
        self.current.as_ref().map(|segment| segment.number)
    }

    /// Keeps no file open until the next write.
    pub fn close_file(&mut self) {
        if let Some(segment) = &mut self.current {
            segment.file = None;
        }
    }

    /// Writes messages, in order of their places, and syncs them. Returns their chunks, of which
    /// none reaches over one of the places `ends`, which are in order.
    pub fn write(
        &mut self,
        disk: &dyn Disk,
        queues: &Path,
        buffer: &mut AlignedBuffer,
        messages: &[(QueueSeq, Message)],
        ends: &[QueueSeq],
    ) -> Result<Vec<Chunk>, Error> {
        let result = self.write_chunks(disk, queues, buffer, messages, ends);
        if result.is_err()
            // What became of it is not known: never to be continued.
            && let Some(segment) = self.current.take()
            && segment.position == BLOCK as u64
        {
            // Nothing was ever written to it: its room must not be missing elsewhere, least of all
            // after each try on a full disk.
            let _ = disk.remove(&segment.path);
        }
        result
    }

    fn write_chunks(
        &mut self,
        disk: &dyn Disk,
        queues: &Path,
        buffer: &mut AlignedBuffer,
        messages: &[(QueueSeq, Message)],
        ends: &[QueueSeq],
    ) -> Result<Vec<Chunk>, Error> {
        if self
            .current
            .as_ref()
            .is_some_and(|file| file.position >= self.size)
        {
            self.current = None;
        }
        let segment = match &mut self.current {
            Some(segment) => segment,
            none => none.insert(begin(disk, queues, self.stream, self.next)?),
        };
        self.next = segment.number + 1;
        let mut writer = ChunkWriter::new(std::mem::take(buffer));
        let closed = in_chunks(&mut writer, segment.number, messages, ends);
        *buffer = writer.buffer;
        segment.append(disk, buffer)?;
        let start = segment.position - buffer.len() as u64;
        let mut rest = messages;
        Ok(closed
            .iter()
            .map(|closed| {
                let (places, others) = rest.split_at(closed.count as usize);
                rest = others;
                let traits = Traits::of(places);
                let places = places
                    .iter()
                    .map(|(seq, message)| (*seq, message.is_persistent()));
                let offset = start + closed.start as u64;
                Chunk::new(closed, segment.number, offset, places, traits)
            })
            .collect())
    }
}

fn in_chunks(
    writer: &mut ChunkWriter,
    segment: u64,
    messages: &[(QueueSeq, Message)],
    mut ends: &[QueueSeq],
) -> Vec<Closed> {
    let mut closed = Vec::new();
    for (seq, message) in messages {
        let passed = ends.partition_point(|end| end <= seq);
        ends = &ends[passed..];
        if passed > 0 || writer.must_close(*seq, message.stored().len()) {
            closed.extend(writer.close(segment));
        }
        writer.push(*seq, message.stored());
    }
    closed.extend(writer.close(segment));
    closed
}

impl Segment {
    fn append(&mut self, disk: &dyn Disk, bytes: &AlignedBuffer) -> Result<(), Error> {
        let end = self.position + bytes.len() as u64;
        let result = (|| -> io::Result<()> {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(disk.open(&self.path, Open::Write)?),
            };
            if end > self.reserved && end > RESERVE / 4 {
                self.reserved = end.next_multiple_of(RESERVE);
                file.allocate(self.reserved)?;
            }
            file.write(bytes.as_slice(), self.position)?;
            file.sync()
        })();
        result.map_err(Error::disk("write to", &self.path))?;
        self.position = end;
        Ok(())
    }
}

fn begin(disk: &dyn Disk, queues: &Path, stream: StreamId, number: u64) -> Result<Segment, Error> {
    let dir = queue_dir(queues, stream);
    let path = path(queues, stream, number);
    let mut block = AlignedBuffer::default();
    block.extend(&SegmentHead { stream, number }.encode());
    block.pad();
    let result = (|| {
        disk.create_dir(&dir)?;
        let file = disk.open(&path, Open::Create)?;
        file.write(block.as_slice(), 0)?;
        disk.sync_dir(&dir)?;
        disk.sync_dir(queues)?;
        Ok(file)
    })();
    let file = result.map_err(|error| {
        let _ = disk.remove(&path);
        Error::disk("make", &path)(error)
    })?;
    Ok(Segment {
        number,
        path,
        file: Some(file),
        position: BLOCK as u64,
        reserved: 0,
    })
}
