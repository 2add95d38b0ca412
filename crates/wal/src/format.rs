//! Bytes of log files: the file's head, batches, records. `docs/storage-format.md` describes them.
//!
//! ```text
//! file    head block │ batch │ batch │ …               each starts at a block boundary
//! head    magic 8 │ version u16 │ zero u16 │ crc u32 │ number u64 │ salt u64 │ first LSN u64
//! batch   magic u32 │ crc u32 │ length u32 │ head crc u32 │ first LSN u64 │ durable LSN u64 │
//!         records
//! record  stream u64 │ length u32 │ payload
//! ```
//!
//! All numbers are little-endian. Checksums are CRC-32C; their own fields count as zeros. A batch's
//! cover the file's salt as well, so that neither what a recycled file held before nor a payload
//! that looks like a batch ever passes for part of it. The head has one of its own: it can be
//! trusted, and says what was durable, even where the records are torn.

use crate::lsn::{Lsn, StreamId};

/// Version of the format of log files; see `docs/storage-format.md` for when it changes.
pub const VERSION: u16 = 1;

const FILE_MAGIC: [u8; 8] = *b"LeverWAL";
const BATCH_MAGIC: [u8; 4] = *b"LvBa";

/// Bytes of a file's head that are used; it takes a block.
pub(crate) const FILE_HEAD: usize = 40;
/// Bytes before the first record of a batch.
pub(crate) const BATCH_HEAD: usize = 32;
/// Bytes before a record's payload.
pub const RECORD_HEAD: usize = 12;

/// What a file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHead {
    pub number: u64,
    pub salt: u64,
    pub first_lsn: Lsn,
}

/// Why bytes are not a file's head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadHead {
    /// Never used.
    Blank,
    /// Not as it was written.
    Damaged,
    /// Of another format.
    Version(u16),
}

impl FileHead {
    pub fn encode(&self) -> [u8; FILE_HEAD] {
        let mut bytes = [0; FILE_HEAD];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<FileHead, BadHead> {
        let mut bytes: [u8; FILE_HEAD] = *bytes.first_chunk().ok_or(BadHead::Blank)?;
        if bytes == [0; FILE_HEAD] {
            return Err(BadHead::Blank);
        }
        let crc = u32_at(&bytes, 12);
        bytes[12..16].fill(0);
        if bytes[..8] != FILE_MAGIC || crc != crc32c::crc32c(&bytes) {
            return Err(BadHead::Damaged);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(BadHead::Version(version));
        }
        Ok(FileHead {
            number: u64_at(&bytes, 16),
            salt: u64_at(&bytes, 24),
            first_lsn: Lsn(u64_at(&bytes, 32)),
        })
    }
}

/// What a batch says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchHead {
    /// Bytes of records.
    pub length: u32,
    /// Where its first record begins.
    pub first_lsn: Lsn,
    /// What was durable when it was written: whatever is missing before this has been lost.
    pub durable: Lsn,
}

impl BatchHead {
    /// Writes the head over the first bytes of a batch whose records are in place.
    pub fn seal(&self, batch: &mut [u8], salt: u64) {
        let (head, records) = batch.split_at_mut(BATCH_HEAD);
        head.fill(0);
        head[..4].copy_from_slice(&BATCH_MAGIC);
        head[8..12].copy_from_slice(&self.length.to_le_bytes());
        head[16..24].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        head[24..32].copy_from_slice(&self.durable.0.to_le_bytes());
        let crc = checksum(salt, head, &[]);
        head[12..16].copy_from_slice(&crc.to_le_bytes());
        let crc = checksum(salt, head, &records[..self.length as usize]);
        head[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// The head, if there is one that belongs to this file; says nothing about its records.
    pub fn peek(bytes: &[u8], salt: u64) -> Option<BatchHead> {
        let head: &[u8; BATCH_HEAD] = bytes.first_chunk()?;
        let mut plain = *head;
        plain[4..8].fill(0);
        plain[12..16].fill(0);
        (head[..4] == BATCH_MAGIC && u32_at(head, 12) == checksum(salt, &plain, &[])).then(|| {
            BatchHead {
                length: u32_at(head, 8),
                first_lsn: Lsn(u64_at(head, 16)),
                durable: Lsn(u64_at(head, 24)),
            }
        })
    }

    /// Where a batch of whatever file says that it begins. Nothing vouches for it.
    pub fn claimed_first_lsn(bytes: &[u8]) -> Option<Lsn> {
        let head: &[u8; BATCH_HEAD] = bytes.first_chunk()?;
        (head[..4] == BATCH_MAGIC).then(|| Lsn(u64_at(head, 16)))
    }

    /// True if the batch, of which all bytes are there, is as it was written.
    pub fn verify(&self, batch: &[u8], salt: u64) -> bool {
        let Some((head, records)) = batch.split_first_chunk::<BATCH_HEAD>() else {
            return false;
        };
        let Some(records) = records.get(..self.length as usize) else {
            return false;
        };
        let mut plain = *head;
        plain[4..8].fill(0);
        u32_at(head, 4) == checksum(salt, &plain, records)
    }

    /// Bytes that it takes in its file.
    pub fn size(&self) -> u64 {
        (BATCH_HEAD as u64 + u64::from(self.length)).next_multiple_of(crate::disk::BLOCK as u64)
    }
}

fn checksum(salt: u64, head: &[u8], records: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&salt.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(crc, head), records)
}

/// One record and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Whose it is.
    pub stream: StreamId,
    /// Its position.
    pub lsn: Lsn,
    /// What was appended.
    pub payload: &'a [u8],
}

pub(crate) fn record_head(stream: StreamId, length: u32) -> [u8; RECORD_HEAD] {
    let mut head = [0; RECORD_HEAD];
    head[..8].copy_from_slice(&stream.0.to_le_bytes());
    head[8..].copy_from_slice(&length.to_le_bytes());
    head
}

/// The records of a batch that was verified. Ends early, with an error, where lengths make no
/// sense, which only a bug or a forged checksum can bring about.
pub(crate) fn records(
    mut bytes: &[u8],
    mut lsn: Lsn,
) -> impl Iterator<Item = Result<Record<'_>, Lsn>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let start = lsn;
        let parsed = bytes
            .split_first_chunk::<RECORD_HEAD>()
            .and_then(|(head, rest)| {
                let length = u32_at(head, 8) as usize;
                let (payload, rest) = rest.split_at_checked(length)?;
                Some((StreamId(u64_at(head, 0)), payload, rest))
            });
        let Some((stream, payload, rest)) = parsed else {
            bytes = &[];
            return Some(Err(start));
        };
        bytes = rest;
        lsn.0 += (RECORD_HEAD + payload.len()) as u64;
        Some(Ok(Record {
            stream,
            lsn,
            payload,
        }))
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn file_head_survives_the_round_trip_and_no_flipped_bit() {
        let head = FileHead {
            number: 7,
            salt: 0x0123_4567_89ab_cdef,
            first_lsn: Lsn(1 << 40),
        };
        let bytes = head.encode();
        assert_eq!(FileHead::decode(&bytes), Ok(head));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                FileHead::decode(&damaged),
                Err(BadHead::Damaged),
                "bit {bit}"
            );
        }
    }

    proptest! {
        #[test]
        fn batch_comes_out_as_it_went_in(
            payloads in prop::collection::vec(
                (any::<u64>(), prop::collection::vec(any::<u8>(), 0..300)), 1..20),
            salt in any::<u64>(),
            first in 0_u64..1 << 50,
            flip in any::<prop::sample::Index>(),
        ) {
            let mut batch = vec![0; BATCH_HEAD];
            for (stream, payload) in &payloads {
                batch.extend(record_head(StreamId(*stream), payload.len() as u32));
                batch.extend(payload);
            }
            let head = BatchHead {
                length: (batch.len() - BATCH_HEAD) as u32,
                first_lsn: Lsn(first),
                durable: Lsn(first / 2),
            };
            head.seal(&mut batch, salt);
            prop_assert_eq!(BatchHead::peek(&batch, salt), Some(head));
            prop_assert_eq!(BatchHead::peek(&batch, salt ^ 1), None);
            prop_assert!(head.verify(&batch, salt));
            prop_assert!(!head.verify(&batch, salt ^ 1));
            let read: Vec<_> = records(&batch[BATCH_HEAD..], head.first_lsn)
                .map(|record| record.expect("as written"))
                .map(|record| (record.stream.0, record.payload.to_vec()))
                .collect();
            prop_assert_eq!(&read, &payloads);
            let at = flip.index(batch.len() * 8);
            batch[at / 8] ^= 1 << (at % 8);
            let damaged = BatchHead::peek(&batch, salt);
            prop_assert!(!damaged.is_some_and(|head| head.verify(&batch, salt)));
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = FileHead::decode(&bytes);
            BatchHead::claimed_first_lsn(&bytes);
            if let Some(head) = BatchHead::peek(&bytes, 0) {
                head.verify(&bytes, 0);
            }
            records(&bytes, Lsn(0)).for_each(drop);
        }
    }
}
