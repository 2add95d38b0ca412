//! The manifest: everything that the log says up to a position, so that the log before it is not
//! needed any more.
//!
//! ```text
//! file   magic 8 │ version u16 │ zero u16 │ crc u32 │ number u64 │ length u64 │ body
//! body   start LSN u64 │ next stream u64
//!        count u32 │ count × (length u32 │ key │ length u32 │ value)         definitions
//!        count u32 │ count × queue
//! queue  stream u64 │ flushed u64 │ delivered u64 │ next place u64 │ next segment u64
//!        count u32 │ count × (place u64 │ deliveries u32)      came back so often; since version 2
//!        count u32 │ count × (identity 16 octets │ until u64)  has come lately; since version 2
//!        count u32 │ count × chunk
//! chunk  segment varint │ block varint │ blocks varint │ first place varint │ span varint
//!        │ live varint │ flags u8 │ if bit 0 is set: ⌈span/64⌉ × u64
//!        │ if bit 2 is set: newest varint
//!        flags: bit 0: a map of what is gone; bit 1: holds messages that expire by themselves;
//!        bit 2: it is known when the newest of them came
//! ```
//!
//! There are two files, written in turn and in place: whatever happens to one that is being
//! written, the other is whole, and a full disk cannot stop what makes room on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::{AlignedBuffer, BLOCK, Disk, Lsn, Open, StreamId};

use crate::bytes::{Cursor, Malformed, varint};
use crate::definitions::DefinitionMap;
use crate::error::Error;
use crate::op::put_slice;
use crate::queue::Identity;
use crate::segment::{Chunk, Place};
use crate::seq::QueueSeq;

const MAGIC: [u8; 8] = *b"LeverMAN";
/// Version of the format of manifests, and of the data directory as a whole.
pub(crate) const VERSION: u16 = 2;
/// The oldest that is still read.
const OLDEST: u16 = 1;
/// Flags of a chunk.
const MAP: u8 = 1;
const EXPIRING: u8 = 2;
const DATED: u8 = 4;
const HEAD: usize = 32;
const NAMES: [&str; 2] = ["manifest-0", "manifest-1"];
/// Room that each file has from the start.
const RESERVE: u64 = 256 * 1024;

/// What a manifest says.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// The log is needed from here on.
    pub start: Lsn,
    /// No stream of this number or above exists.
    pub next_stream: u64,
    pub definitions: DefinitionMap,
    pub queues: Vec<QueueSnapshot>,
}

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueSnapshot {
    pub stream: StreamId,
    /// Every message before it lies in a chunk, or is gone.
    pub flushed: QueueSeq,
    /// Every message before it has been out for delivery.
    pub delivered: QueueSeq,
    pub next_seq: QueueSeq,
    pub next_segment: u64,
    /// How often messages have come back from consumers, where that is counted.
    pub returns: Vec<(QueueSeq, u32)>,
    /// What has come lately, oldest first.
    pub remembered: Vec<(Identity, u64)>,
    pub chunks: Vec<Chunk>,
}

impl Manifest {
    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(self.start.0.to_le_bytes());
        body.extend(self.next_stream.to_le_bytes());
        body.extend((self.definitions.len() as u32).to_le_bytes());
        for (key, value) in &self.definitions {
            put_slice(&mut body, key);
            put_slice(&mut body, value);
        }
        body.extend((self.queues.len() as u32).to_le_bytes());
        for queue in &self.queues {
            queue.encode(&mut body);
        }
        body
    }

    fn decode(body: &[u8], version: u16) -> Result<Manifest, Malformed> {
        let mut cursor = Cursor(body);
        let start = Lsn(cursor.u64()?);
        let next_stream = cursor.u64()?;
        let mut definitions = DefinitionMap::new();
        for _ in 0..cursor.u32()? {
            let (key, value) = (cursor.slice()?, cursor.slice()?);
            definitions.insert(key.into(), value.into());
        }
        let mut queues = Vec::new();
        for _ in 0..cursor.u32()? {
            queues.push(QueueSnapshot::decode(&mut cursor, version)?);
        }
        cursor.is_empty().then_some(()).ok_or(Malformed)?;
        Ok(Manifest {
            start,
            next_stream,
            definitions,
            queues,
        })
    }
}

impl QueueSnapshot {
    fn encode(&self, body: &mut Vec<u8>) {
        for number in [
            self.stream.0,
            self.flushed.0,
            self.delivered.0,
            self.next_seq.0,
            self.next_segment,
        ] {
            body.extend(number.to_le_bytes());
        }
        body.extend((self.returns.len() as u32).to_le_bytes());
        for (seq, count) in &self.returns {
            body.extend(seq.0.to_le_bytes());
            body.extend(count.to_le_bytes());
        }
        body.extend((self.remembered.len() as u32).to_le_bytes());
        for (identity, until) in &self.remembered {
            body.extend(identity);
            body.extend(until.to_le_bytes());
        }
        body.extend((self.chunks.len() as u32).to_le_bytes());
        for chunk in &self.chunks {
            for number in [
                chunk.place.segment,
                chunk.place.offset / BLOCK as u64,
                u64::from(chunk.place.size) / BLOCK as u64,
                chunk.first.0,
                u64::from(chunk.span),
                u64::from(chunk.live),
            ] {
                varint(number, |part| body.extend(part));
            }
            let map = if chunk.gone.is_some() { MAP } else { 0 };
            let expiring = if chunk.expiring { EXPIRING } else { 0 };
            let dated = if chunk.newest > 0 { DATED } else { 0 };
            body.push(map | expiring | dated);
            for word in chunk.gone.iter().flatten() {
                body.extend(word.to_le_bytes());
            }
            if dated != 0 {
                varint(chunk.newest, |part| body.extend(part));
            }
        }
    }

    fn decode(cursor: &mut Cursor<'_>, version: u16) -> Result<QueueSnapshot, Malformed> {
        let mut snapshot = QueueSnapshot {
            stream: StreamId(cursor.u64()?),
            flushed: QueueSeq(cursor.u64()?),
            delivered: QueueSeq(cursor.u64()?),
            next_seq: QueueSeq(cursor.u64()?),
            next_segment: cursor.u64()?,
            returns: Vec::new(),
            remembered: Vec::new(),
            chunks: Vec::new(),
        };
        let returns = if version > 1 { cursor.u32()? } else { 0 };
        for _ in 0..returns {
            let (seq, count) = (QueueSeq(cursor.u64()?), cursor.u32()?);
            snapshot.returns.push((seq, count));
        }
        let remembered = if version > 1 { cursor.u32()? } else { 0 };
        for _ in 0..remembered {
            let (identity, until) = (cursor.array()?, cursor.u64()?);
            snapshot.remembered.push((identity, until));
        }
        for _ in 0..cursor.u32()? {
            snapshot.chunks.push(decode_chunk(cursor)?);
        }
        Ok(snapshot)
    }
}

fn decode_chunk(cursor: &mut Cursor<'_>) -> Result<Chunk, Malformed> {
    let in_bytes = |blocks: u64| blocks.checked_mul(BLOCK as u64).ok_or(Malformed);
    let place = Place {
        segment: cursor.varint()?,
        offset: in_bytes(cursor.varint()?)?,
        size: u32::try_from(in_bytes(cursor.varint()?)?).map_err(|_| Malformed)?,
    };
    let first = QueueSeq(cursor.varint()?);
    let span = u32::try_from(cursor.varint()?).map_err(|_| Malformed)?;
    let live = u32::try_from(cursor.varint()?).map_err(|_| Malformed)?;
    first.0.checked_add(u64::from(span)).ok_or(Malformed)?;
    let flags = cursor.u8()?;
    let gone = match flags & MAP {
        0 => None,
        _ => {
            let words = cursor.bytes((span as usize).div_ceil(64) * 8)?;
            let words = words.chunks_exact(8);
            Some(
                words
                    .map(|word| Cursor(word).u64())
                    .collect::<Result<_, _>>()?,
            )
        }
    };
    Ok(Chunk {
        place,
        first,
        span,
        live,
        gone,
        transient: None,
        expiring: flags & EXPIRING != 0,
        newest: match flags & DATED {
            0 => 0,
            _ => cursor.varint()?,
        },
    })
}

/// The two files of a data directory.
#[derive(Debug)]
pub(crate) struct ManifestFiles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Number of the last one that was written.
    number: u64,
    /// Version of the one that was read.
    version: u16,
    reserved: [u64; 2],
    /// The name is durable.
    named: [bool; 2],
    /// Bytes of the last one.
    pub size: u64,
}

impl ManifestFiles {
    /// Reads the newer of the two that is whole; an empty one if there is neither. `is_new` says
    /// whether the directory holds nothing else either.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        is_new: bool,
    ) -> Result<(ManifestFiles, Manifest), Error> {
        let mut best: Option<(u64, Manifest, u64)> = None;
        let mut version = VERSION;
        for name in NAMES {
            let path = dir.join(name);
            let read = read(&*disk, &path).map_err(Error::disk("read", &path))?;
            let Some(file) = read else { continue };
            if !(OLDEST..=VERSION).contains(&file.version) {
                return Err(Error::Version {
                    path,
                    version: file.version,
                    supported: VERSION,
                });
            }
            if best
                .as_ref()
                .is_none_or(|(number, ..)| file.number > *number)
                && let Ok(manifest) = Manifest::decode(&file.body, file.version)
            {
                best = Some((file.number, manifest, file.body.len() as u64));
                version = file.version;
            }
        }
        if best.is_none() && !is_new {
            let dir = dir.to_owned();
            return Err(Error::NoManifest { dir });
        }
        let (number, manifest, size) = best.unwrap_or_else(|| {
            let first = Manifest {
                next_stream: 1,
                ..Manifest::default()
            };
            (0, first, 0)
        });
        let files = ManifestFiles {
            disk,
            dir: dir.to_owned(),
            number,
            version,
            reserved: [0; 2],
            named: [false; 2],
            size,
        };
        Ok((files, manifest))
    }

    /// Makes the one that was read durable, if there is one: the process that wrote it may have
    /// been killed before it came to that, and the other one is about to be written over. It is
    /// written once more, since after a failed sync another one does not make up for it.
    pub fn settle(&self) -> Result<(), Error> {
        if self.number == 0 {
            return Ok(());
        }
        let path = self.dir.join(NAMES[(self.number % 2) as usize]);
        let settle = || {
            let file = self.disk.open(&path, Open::Write)?;
            let length = (HEAD as u64 + self.size).next_multiple_of(BLOCK as u64);
            let mut bytes = AlignedBuffer::zeroed(length as usize);
            file.read(bytes.as_mut_slice(), 0)?;
            file.write(bytes.as_slice(), 0)?;
            file.sync()?;
            self.disk.sync_dir(&self.dir)
        };
        settle().map_err(Error::disk("write to", &path))
    }

    /// True if an older release wrote the one that was read, and it has not been replaced.
    pub fn is_of_older_version(&self) -> bool {
        self.version < VERSION
    }

    /// Replaces the older one.
    pub fn write(&mut self, manifest: &Manifest) -> Result<(), Error> {
        let number = self.number + 1;
        let body = manifest.encode();
        let mut buffer = AlignedBuffer::zeroed(HEAD);
        buffer.extend(&body);
        let head = buffer.as_mut_slice();
        head[..8].copy_from_slice(&MAGIC);
        head[8..10].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&number.to_le_bytes());
        head[24..32].copy_from_slice(&(body.len() as u64).to_le_bytes());
        let crc = crc32c::crc32c(head);
        head[12..16].copy_from_slice(&crc.to_le_bytes());
        buffer.pad();
        let slot = (number % 2) as usize;
        let path = self.dir.join(NAMES[slot]);
        self.write_slot(slot, &path, &buffer)
            .map_err(Error::disk("write", &path))?;
        self.number = number;
        self.version = VERSION;
        self.size = buffer.len() as u64;
        Ok(())
    }

    fn write_slot(
        &mut self,
        slot: usize,
        path: &Path,
        buffer: &AlignedBuffer,
    ) -> std::io::Result<()> {
        let needed = (buffer.len() as u64).next_multiple_of(RESERVE);
        let file = match self.disk.open(path, Open::Write) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.disk.open(path, Open::Create)?
            }
            file => file?,
        };
        if self.reserved[slot] < needed {
            file.allocate(needed)?;
            self.reserved[slot] = needed;
        }
        file.write(buffer.as_slice(), 0)?;
        file.sync()?;
        // Once for each process: the one that made the file may not have come to that.
        if !self.named[slot] {
            self.disk.sync_dir(&self.dir)?;
            self.named[slot] = true;
        }
        Ok(())
    }
}

struct Slot {
    version: u16,
    number: u64,
    body: Vec<u8>,
}

/// `None` if it is not there, or not whole.
fn read(disk: &dyn Disk, path: &Path) -> std::io::Result<Option<Slot>> {
    let file = match disk.open(path, Open::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let size = file.len()?;
    let mut bytes = AlignedBuffer::zeroed(BLOCK);
    if size < BLOCK as u64 {
        return Ok(None);
    }
    file.read(bytes.as_mut_slice(), 0)?;
    let mut cursor = Cursor(&bytes.as_slice()[24..]);
    let length = cursor.u64().unwrap_or(u64::MAX);
    let whole = length
        .checked_add(HEAD as u64)
        .filter(|whole| *whole <= size);
    let Some(whole) = whole.filter(|_| bytes.as_slice()[..8] == MAGIC) else {
        return Ok(None);
    };
    let whole = whole as usize;
    bytes.resize(
        whole
            .next_multiple_of(BLOCK)
            .min(size as usize / BLOCK * BLOCK),
    );
    if bytes.len() < whole {
        return Ok(None);
    }
    file.read(bytes.as_mut_slice(), 0)?;
    let bytes = &mut bytes.as_mut_slice()[..whole];
    let crc = [bytes[12], bytes[13], bytes[14], bytes[15]];
    bytes[12..16].fill(0);
    if crc32c::crc32c(bytes).to_le_bytes() != crc {
        return Ok(None);
    }
    let mut cursor = Cursor(&bytes[16..]);
    Ok(Some(Slot {
        version: u16::from_le_bytes([bytes[8], bytes[9]]),
        number: cursor.u64().unwrap_or(0),
        body: bytes[HEAD..].to_vec(),
    }))
}
