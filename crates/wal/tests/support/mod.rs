//! What the log's tests share: records that can be told apart, logs without threads on a simulated
//! disk, and ways to damage files. Each test uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::FaultyDisk;
use wal::{AlignedBuffer, BLOCK, Disk, Durability, Error, Lsn, Open, Options, Scan, StreamId};
use wal::{Urgency, Wal};

/// Where simulated disks have the log.
pub const DIR: &str = "/wal";
/// Bytes of a log file.
pub const FILE: u64 = 64 * 1024;
/// Bytes before a batch's records.
pub const BATCH_HEAD: u64 = 32;

pub const LAZY: Urgency = Urgency::Lazy;
pub const OS: Urgency = Urgency::Prompt(Durability::Os);
pub const FSYNC: Urgency = Urgency::Prompt(Durability::Fsync);

/// A record as it was appended, or as it was found.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept {
    pub stream: u64,
    pub lsn: u64,
    pub payload: Vec<u8>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Kept { stream, lsn, .. }, length) = (self, self.payload.len());
        write!(f, "stream {stream}, {length} bytes up to {lsn}")
    }
}

pub fn options(file_size: u64) -> Options {
    Options {
        file_size,
        threads: false,
        ..Options::new(DIR)
    }
}

/// All records after `start`.
pub fn read_dir(disk: &dyn Disk, dir: &Path, start: u64) -> Result<(Scan, Vec<Kept>), Error> {
    let mut found = Vec::new();
    let scan = wal::scan(disk, dir, Lsn(start), |record| {
        found.push(Kept {
            stream: record.stream.0,
            lsn: record.lsn.0,
            payload: record.payload.to_vec(),
        });
    })?;
    Ok((scan, found))
}

pub fn read(disk: &FaultyDisk, start: u64) -> Result<(Scan, Vec<Kept>), Error> {
    read_dir(disk, Path::new(DIR), start)
}

/// What a node does at its start: reads the log, then opens it.
pub fn reopen(disk: &FaultyDisk, start: u64) -> Result<(Wal, Vec<Kept>), Error> {
    let (scan, found) = read(disk, start)?;
    let wal = Wal::open(Arc::new(disk.clone()), options(FILE), scan)?;
    Ok((wal, found))
}

/// A log on an empty disk.
pub fn new_log(disk: &FaultyDisk) -> Wal {
    reopen(disk, 0).expect("an empty disk has room for a log").0
}

/// Appends a record whose stream and bytes follow from `tag`. No byte is zero.
pub fn append(wal: &Wal, urgency: Urgency, tag: u64, length: usize) -> Kept {
    let stream = tag % 5;
    let mut random = Random(tag);
    let mut payload = vec![0; length];
    for part in payload.chunks_mut(8) {
        let bytes = (random.next() | 0x0101_0101_0101_0101).to_le_bytes();
        part.copy_from_slice(&bytes[..part.len()]);
    }
    let lsn = wal.append(StreamId(stream), urgency, |to| {
        // In two parts, as callers may.
        let (head, tail) = payload.split_at(length / 3);
        to.extend(head);
        to.extend(tail);
    });
    Kept {
        stream,
        lsn: lsn.0,
        payload,
    }
}

/// Appends a record and writes it as a batch of its own.
pub fn append_alone(wal: &Wal, urgency: Urgency, tag: u64, length: usize) -> Kept {
    let kept = append(wal, urgency, tag, length);
    wal.run_once().expect("the disk is in order");
    kept
}

pub fn durable(wal: &Wal) -> u64 {
    wal.reached(Durability::Fsync).0
}

pub fn written(wal: &Wal) -> u64 {
    wal.reached(Durability::Os).0
}

/// The process ends here and now: what was appended is not written.
pub fn kill(disk: &FaultyDisk, wal: Wal) {
    disk.crash_now();
    drop(wal);
}

/// Compares, and says where they differ without printing it all.
#[track_caller]
pub fn assert_same(found: &[Kept], expected: &[Kept]) {
    for (index, (one, other)) in found.iter().zip(expected).enumerate() {
        assert!(one == other, "record {index} is {one:?}, not {other:?}");
    }
    let (more, fewer) = (found.get(expected.len()), expected.get(found.len()));
    assert!(more.is_none(), "{more:?} is there after the last record");
    assert!(fewer.is_none(), "{fewer:?} and what follows is lost");
}

/// The log's files.
pub fn files(disk: &FaultyDisk) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).expect("the directory is there");
    names.iter().map(|name| Path::new(DIR).join(name)).collect()
}

/// Changes bytes of a file.
pub fn patch(disk: &dyn Disk, path: &Path, from: u64, to: u64, change: impl FnOnce(&mut [u8])) {
    let file = disk.open(path, Open::Write).expect("the file is there");
    let block = BLOCK as u64;
    let (first, end) = (from / block * block, to.next_multiple_of(block));
    let mut buffer = AlignedBuffer::zeroed((end - first) as usize);
    file.read(buffer.as_mut_slice(), first).expect("readable");
    change(&mut buffer.as_mut_slice()[(from - first) as usize..(to - first) as usize]);
    file.write(buffer.as_slice(), first).expect("writable");
    file.sync().expect("syncable");
}

pub fn flip(disk: &dyn Disk, path: &Path, at: u64) {
    patch(disk, path, at, at + 1, |bytes| bytes[0] ^= 0x10);
}

/// SplitMix64: the same numbers for the same seed.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
