//! The operating system's files, as far as the log relies on more than reading and writing.

use std::path::Path;

use tempfile::TempDir;
use wal::{AlignedBuffer, BLOCK, Disk, Open, RealDisk};

#[test]
fn directories_are_made_with_those_above_them() {
    let dir = TempDir::new().unwrap();
    let deep = dir.path().join("a/b/c");
    RealDisk.create_dir(&deep).unwrap();
    RealDisk.create_dir(&deep).unwrap();
    RealDisk.create_dir(Path::new(".")).unwrap();
    assert!(deep.is_dir());
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(RealDisk.create_dir(&dir.path().join("file/a")).is_err());
}

#[test]
fn reserved_room_reads_as_zeros_and_keeps_what_was_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    let file = RealDisk.open(&path, Open::Create).unwrap();
    let mut block = AlignedBuffer::zeroed(BLOCK);
    block.as_mut_slice().fill(7);
    file.write(block.as_slice(), 0).unwrap();
    file.allocate(4 * BLOCK as u64).unwrap();
    file.allocate(BLOCK as u64).unwrap();
    assert_eq!(file.len().unwrap(), 4 * BLOCK as u64);
    let mut found = AlignedBuffer::zeroed(2 * BLOCK);
    file.read(found.as_mut_slice(), 0).unwrap();
    assert_eq!(found.as_slice()[..BLOCK], [7; BLOCK]);
    assert_eq!(found.as_slice()[BLOCK..], [0; BLOCK]);
    let beyond = file.read(found.as_mut_slice(), 3 * BLOCK as u64);
    assert_eq!(
        beyond.unwrap_err().kind(),
        std::io::ErrorKind::UnexpectedEof
    );
}
