//! What `wal::Disk` asks of every disk, and what it asks of its callers.

use std::io;
use std::thread;

use super::*;

#[test]
#[should_panic(expected = "unbuffered write at offset 512, which is not a multiple of 4096")]
fn writes_start_at_a_block() {
    let file = create(&FaultyDisk::new(1), "/a");
    drop(file.write(filled(1, 1).as_slice(), 512));
}

#[test]
#[should_panic(expected = "unbuffered write of 100 bytes, which is not a multiple of 4096")]
fn writes_are_whole_blocks() {
    let file = create(&FaultyDisk::new(1), "/a");
    drop(file.write(&filled(1, 1).as_slice()[..100], 0));
}

#[test]
#[should_panic(expected = "unbuffered write with memory at 0x")]
fn writes_are_from_aligned_memory() {
    let file = create(&FaultyDisk::new(1), "/a");
    drop(file.write(&filled(2, 1).as_slice()[512..][..BLOCK], 0));
}

#[test]
#[should_panic(expected = "unbuffered read at offset 1, which is not a multiple of 4096")]
fn reads_start_at_a_block() {
    let file = create(&FaultyDisk::new(1), "/a");
    drop(file.read(filled(1, 1).as_mut_slice(), 1));
}

#[test]
#[should_panic(expected = "unbuffered read with memory at 0x")]
fn reads_are_into_aligned_memory() {
    let file = create(&FaultyDisk::new(1), "/a");
    drop(file.read(&mut filled(2, 1).as_mut_slice()[1..][..BLOCK], 0));
}

#[test]
fn reads_beyond_the_end_fail() {
    let disk = FaultyDisk::new(1);
    let file = marked(&disk, "/a", 1);
    let mut buffer = filled(1, 0);
    file.read(buffer.as_mut_slice(), 0).unwrap();
    let error = file.read(buffer.as_mut_slice(), PAGE).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    file.set_len(PAGE - 1).unwrap();
    let error = file.read(buffer.as_mut_slice(), 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_file_opened_for_reading_is_not_written() {
    let disk = FaultyDisk::new(1);
    marked(&disk, "/a", 1);
    let file = disk.open(Path::new("/a"), Open::Read).unwrap();
    let error = file.write(filled(1, 2).as_slice(), 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(file.set_len(0).is_err() && file.allocate(PAGE).is_err());
}

#[test]
fn handles_of_one_file_see_what_the_others_write() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    let other = disk.clone().open(Path::new("/a"), Open::Write).unwrap();
    let (file, other) = (&*file, &*other);
    thread::scope(|scope| {
        scope.spawn(|| write(other, 1, 1, 0));
        scope.spawn(|| write(file, 1, 1, 1));
    });
    other.sync().unwrap();
    assert_eq!(contents(file), [1; 2 * BLOCK]);
    assert_eq!(
        found(&disk.restart(Survival::Nothing), "/a"),
        Some(vec![1; 2 * BLOCK])
    );
}

#[test]
fn names_behave_as_in_a_file_system() {
    let disk = FaultyDisk::new(1);
    let (missing, dir, file) = (Path::new("/no/a"), Path::new("/d"), Path::new("/d/a"));
    disk.create_dir(dir).unwrap();
    marked(&disk, "/d/a", 1);
    let kind = |result: io::Result<()>| result.map_err(|error| error.kind());
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound};
    let open = |path, how| kind(disk.open(path, how).map(drop));
    assert_eq!(open(missing, Open::Read), Err(NotFound));
    assert_eq!(open(missing, Open::Create), Err(NotFound));
    assert_eq!(open(dir, Open::Create), Err(IsADirectory));
    assert_eq!(kind(disk.rename(missing, file)), Err(NotFound));
    assert_eq!(kind(disk.rename(file, missing)), Err(NotFound));
    assert_eq!(kind(disk.rename(file, dir)), Err(IsADirectory));
    assert_eq!(kind(disk.sync_dir(missing)), Err(NotFound));
    assert_eq!(kind(disk.sync_dir(file)), Err(NotADirectory));
    assert_eq!(kind(disk.create_dir(file)), Err(AlreadyExists));
    assert_eq!(kind(disk.remove(dir)), Err(IsADirectory));
    assert_eq!(kind(disk.remove_dir(dir)), Err(DirectoryNotEmpty));
    assert_eq!(kind(disk.remove_dir(file)), Err(NotADirectory));
    disk.remove(missing).unwrap();
    disk.remove_dir(missing).unwrap();
    assert_eq!(list(&disk, "/d"), [Path::new("a")]);
    assert_eq!(list(&disk, "/"), [Path::new("d")]);
}
