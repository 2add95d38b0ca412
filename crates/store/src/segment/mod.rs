//! Segments: the files that a queue's backlog lies in. Each holds chunks, the unit of reading.
//!
//! ```text
//! file    head block │ chunk │ chunk │ …               each starts at a block boundary
//! head    magic 8 │ version u16 │ zero u16 │ crc u32 │ stream u64 │ number u64
//! chunk   magic u32 │ crc u32 │ length u32 │ count u32 │ number u64 │ first place u64 │ messages
//! ```
//!
//! Messages stand as in the log's records: gap, length, bytes. All numbers are little-endian, the
//! checksum is CRC-32C over everything but itself. A chunk is never changed once it is written:
//! which of its messages are gone is noted in the index, and kept in the manifest.

mod chunk;
mod file;
mod index;

pub(crate) use chunk::Contents;
pub use chunk::Unreadable;
pub(crate) use file::{
    SEGMENT_SIZE, SegmentHead, SegmentWriter, path, queue_dir, segment_number, stream_of,
};
pub(crate) use index::{Chunk, Index, Place};
