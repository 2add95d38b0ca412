//! A disk of limited size.

use std::io;

use super::*;

fn is_full(result: io::Result<()>) -> bool {
    result.is_err_and(|error| error.kind() == io::ErrorKind::StorageFull)
}

#[test]
fn files_together_have_no_more_room_than_the_disk() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(10 * PAGE);
    let (a, b) = (create(&disk, "/a"), create(&disk, "/b"));
    a.allocate(6 * PAGE).unwrap();
    assert!(is_full(b.allocate(5 * PAGE)));
    assert_eq!(b.len().unwrap(), 0);
    write(&*b, 1, 4, 0);
    assert!(is_full(b.write(filled(1, 1).as_slice(), 4 * PAGE)));
    assert_eq!(b.len().unwrap(), 4 * PAGE);
}

#[test]
fn allocated_room_can_always_be_written() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    file.allocate(4 * PAGE).unwrap();
    file.sync().unwrap();
    write(&*file, 1, 1, 9);
    disk.set_capacity(0);
    write(&*file, 2, 4, 0);
    write(&*file, 2, 1, 9);
    assert!(is_full(file.write(filled(1, 1).as_slice(), 4 * PAGE)));
    let again = disk.restart(Survival::Nothing);
    again.set_capacity(0);
    let file = again.open(Path::new("/a"), Open::Write).unwrap();
    write(&*file, 3, 4, 0);
}

/// The length that is found, and whether two blocks can be written although the disk is full.
fn can_write(again: &FaultyDisk) -> (u64, bool) {
    again.set_capacity(0);
    let file = again.open(Path::new("/a"), Open::Write).unwrap();
    let written = file.write(filled(2, 1).as_slice(), 0);
    (file.len().unwrap(), written.is_ok())
}

#[test]
fn allocated_room_survives_with_the_length() {
    let disk = FaultyDisk::new(1);
    let file = create(&disk, "/a");
    let either = BTreeSet::from([(0, false), (2 * PAGE, true)]);
    file.allocate(2 * PAGE).unwrap();
    assert_eq!(outcomes(&disk, can_write), either);
    file.sync().unwrap();
    file.set_len(0).unwrap();
    assert_eq!(
        can_write(&disk.restart(Survival::Nothing)),
        (2 * PAGE, true)
    );
    assert_eq!(outcomes(&disk, can_write), either);
}

#[test]
fn a_failed_sync_keeps_allocated_room_with_the_length() {
    let attempt = |seed| {
        let disk = FaultyDisk::new(seed);
        let file = create(&disk, "/a");
        file.allocate(2 * PAGE).unwrap();
        disk.fail_at(disk.operations() + 1, io::ErrorKind::Other);
        file.sync().unwrap_err();
        can_write(&disk.restart(Survival::Nothing))
    };
    let found: BTreeSet<_> = (0..20).map(attempt).collect();
    assert_eq!(found, [(0, false), (2 * PAGE, true)].into());
}

#[test]
fn lengths_without_data_take_no_room() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(PAGE);
    let file = create(&disk, "/a");
    file.set_len(64 << 20).unwrap();
    write(&*file, 1, 1, 100);
    assert!(is_full(file.write(filled(1, 1).as_slice(), 0)));
}

#[test]
fn removed_replaced_and_shortened_files_give_their_room_back() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(4 * PAGE);
    create(&disk, "/a").allocate(4 * PAGE).unwrap();
    let b = create(&disk, "/b");
    assert!(is_full(b.allocate(PAGE)));
    disk.remove(Path::new("/a")).unwrap();
    b.allocate(4 * PAGE).unwrap();
    b.set_len(PAGE).unwrap();

    let c = create(&disk, "/c");
    c.allocate(3 * PAGE).unwrap();
    assert!(is_full(c.allocate(4 * PAGE)));
    drop(b);
    disk.rename(Path::new("/c"), Path::new("/b")).unwrap();
    c.allocate(4 * PAGE).unwrap();
}

#[test]
fn a_removed_file_keeps_its_room_while_it_is_open() {
    let disk = FaultyDisk::new(1);
    disk.set_capacity(4 * PAGE);
    let (a, b) = (create(&disk, "/a"), create(&disk, "/b"));
    a.allocate(4 * PAGE).unwrap();
    disk.remove(Path::new("/a")).unwrap();
    assert!(is_full(b.allocate(PAGE)));
    drop(a);
    b.allocate(PAGE).unwrap();
}
