//! What is promised of the disk, by kind.

mod contract;
mod data;
mod faults;
mod names;
mod room;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::{AlignedBuffer, BLOCK, Disk, DiskFile, Open};

use super::{FaultyDisk, Survival};

const PAGE: u64 = BLOCK as u64;

/// Enough restarts for whatever has a fair chance to happen.
const TRIES: usize = 200;

/// Blocks full of one byte.
fn filled(blocks: usize, byte: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(blocks * BLOCK);
    buffer.as_mut_slice().fill(byte);
    buffer
}

fn write(file: &dyn DiskFile, byte: u8, blocks: usize, block: u64) {
    let buffer = filled(blocks, byte);
    file.write(buffer.as_slice(), block * PAGE).unwrap();
}

/// A new file whose name is durable.
fn create(disk: &FaultyDisk, path: &str) -> Arc<dyn DiskFile> {
    let path = Path::new(path);
    let file = disk.open(path, Open::Create).unwrap();
    disk.sync_dir(path.parent().unwrap()).unwrap();
    file
}

/// A durable file that holds one byte all over a block, to be known by it.
fn marked(disk: &FaultyDisk, path: &str, mark: u8) -> Arc<dyn DiskFile> {
    let file = create(disk, path);
    write(&*file, mark, 1, 0);
    file.sync().unwrap();
    file
}

fn contents(file: &dyn DiskFile) -> Vec<u8> {
    let len = file.len().unwrap() as usize;
    let mut buffer = AlignedBuffer::zeroed(len);
    file.read(buffer.as_mut_slice(), 0).unwrap();
    buffer.as_slice().to_vec()
}

/// What a name leads to, if anything.
fn found(disk: &FaultyDisk, path: &str) -> Option<Vec<u8>> {
    let file = disk.open(Path::new(path), Open::Read).ok()?;
    Some(contents(&*file))
}

/// The mark of the file that a name leads to; 0 if it is empty.
fn mark(disk: &FaultyDisk, path: &str) -> Option<u8> {
    found(disk, path).map(|bytes| bytes.first().copied().unwrap_or(0))
}

fn list(disk: &FaultyDisk, dir: &str) -> Vec<PathBuf> {
    disk.list(Path::new(dir)).unwrap()
}

/// The first byte of each sector.
fn sectors(bytes: &[u8]) -> Vec<u8> {
    for sector in bytes.chunks(512) {
        assert!(sector.iter().all(|byte| *byte == sector[0]), "torn sector");
    }
    bytes.chunks(512).map(|sector| sector[0]).collect()
}

/// All that is found in many random restarts.
fn outcomes<T: Ord>(disk: &FaultyDisk, look: impl Fn(&FaultyDisk) -> T) -> BTreeSet<T> {
    (0..TRIES)
        .map(|_| look(&disk.restart(Survival::Random)))
        .collect()
}
