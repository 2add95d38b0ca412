//! Damage is told from what a crash may leave: it is an error, nothing is guessed, and nothing is
//! changed.

mod support;

use std::path::Path;

use testkit::{FaultyDisk, Survival};
use wal::{Disk, Error, FileReport, Lsn, Open};

use support::*;

/// A closed log of several files with one record to a batch, its files and its records.
fn closed_log(disk: &FaultyDisk) -> (Vec<FileReport>, Vec<Kept>) {
    let wal = new_log(disk);
    let all = (0..11)
        .map(|tag| append_alone(&wal, FSYNC, tag, 18_000))
        .collect();
    drop(wal);
    let (scan, _) = read(disk, 0).expect("a sound log");
    assert_eq!(scan.files.len(), 4);
    (scan.files, all)
}

#[test]
fn other_version_is_an_error() {
    let disk = FaultyDisk::new(1);
    let (files, _) = closed_log(&disk);
    let path = &files[1].path;
    patch(&disk, path, 0, 40, |head| {
        head[8..10].copy_from_slice(&7_u16.to_le_bytes());
        head[12..16].fill(0);
        let crc = crc32c::crc32c(head);
        head[12..16].copy_from_slice(&crc.to_le_bytes());
    });
    match read(&disk, 0) {
        Err(Error::Version { path: at, version }) => assert_eq!((&at, version), (path, 7)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_file_is_an_error() {
    let disk = FaultyDisk::new(1);
    let (files, all) = closed_log(&disk);
    for missing in 0..files.len() {
        let disk = disk.restart(Survival::Everything);
        disk.remove(&files[missing].path).unwrap();
        match read(&disk, 0) {
            Err(Error::Missing { start, .. }) => assert_eq!((missing, start), (0, Lsn(0))),
            Err(Error::Damaged { path, end, .. }) => {
                assert_eq!(path, files[missing - 1].path);
                assert_eq!(end, files[missing].first_lsn);
            }
            // Nothing says that there was more.
            Ok((_, found)) => {
                let whole = all
                    .iter()
                    .filter(|one| one.lsn <= files[missing].first_lsn.0);
                assert_eq!(missing, files.len() - 1);
                assert_same(&found, &whole.cloned().collect::<Vec<_>>());
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn log_that_ends_before_the_start_is_an_error() {
    let disk = FaultyDisk::new(1);
    let (files, all) = closed_log(&disk);
    let start = all[9].lsn;
    assert!(files[3].first_lsn.0 < start && start < all[10].lsn);
    disk.remove(&files[3].path).unwrap();
    assert!(matches!(read(&disk, start), Err(Error::Missing { .. })));
    for file in &files {
        disk.remove(&file.path).unwrap();
    }
    assert!(matches!(read(&disk, start), Err(Error::Missing { .. })));
}

#[test]
fn damage_before_the_last_file_is_an_error() {
    let disk = FaultyDisk::new(1);
    let (files, _) = closed_log(&disk);
    for file in &files[..3] {
        for at in (0..file.used).step_by(509).filter(|at| is_covered(*at)) {
            let disk = disk.restart(Survival::Everything);
            flip(&disk, &file.path, at);
            let found = read(&disk, 0);
            let known = matches!(found, Err(Error::Damaged { .. } | Error::Missing { .. }));
            assert!(known, "byte {at}: {found:?}");
        }
    }
}

/// Bytes of a file of `closed_log` that mean something: not those that fill up blocks.
fn is_covered(at: u64) -> bool {
    let batch = (BATCH_HEAD + 12 + 18_000).next_multiple_of(4_096);
    match at.checked_sub(4_096) {
        None => at < 40,
        Some(at) => at % batch < BATCH_HEAD + 12 + 18_000,
    }
}

/// A file is not taken for an unused one because of one bit: it would be written over.
#[test]
fn damaged_head_of_the_last_file_is_an_error() {
    let disk = FaultyDisk::new(1);
    let (files, _) = closed_log(&disk);
    for at in 0..40 {
        let disk = disk.restart(Survival::Everything);
        flip(&disk, &files[3].path, at);
        match read(&disk, 0) {
            Err(Error::Damaged { path, offset, end }) => {
                assert_eq!((path, offset), (files[3].path.clone(), 0));
                assert_eq!(end, files[3].first_lsn);
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

/// Whatever it held, nobody needs it.
#[test]
fn damaged_head_of_a_released_file_is_no_matter() {
    let disk = FaultyDisk::new(1);
    let (files, all) = closed_log(&disk);
    flip(&disk, &files[0].path, 20);
    let (wal, found) = reopen(&disk, all[8].lsn).unwrap();
    assert_same(&found, &all[9..]);
    append_alone(&wal, FSYNC, 11, 100);
}

#[test]
fn nothing_is_changed_by_reading() {
    let disk = FaultyDisk::new(1);
    let (files, _) = closed_log(&disk);
    flip(&disk, &files[1].path, 10_000);
    let before = disk.operations();
    assert!(read(&disk, 0).is_err());
    assert_eq!(disk.operations(), before);
}

#[test]
fn files_of_others_are_left_alone() {
    let disk = FaultyDisk::new(1);
    let (_, all) = closed_log(&disk);
    let names = [
        "+5.wal",
        "7.wal",
        "0000007.wal",
        "18446744073709551615.wal",
        "000002.wal.bak",
        "notes",
    ];
    for name in names {
        let path = Path::new(DIR).join(name);
        let file = disk.open(&path, Open::Create).unwrap();
        file.set_len(FILE).unwrap();
    }
    let (wal, found) = reopen(&disk, 0).unwrap();
    assert_same(&found, &all);
    append_alone(&wal, FSYNC, 11, 18_000);
    drop(wal);
    let left = files(&disk);
    let others = names.map(|name| Path::new(DIR).join(name));
    assert!(
        others[..5].iter().all(|path| left.contains(path)),
        "{left:?}"
    );
}

#[test]
fn no_bytes_make_reading_panic() {
    let disk = FaultyDisk::new(1);
    let (files, _) = closed_log(&disk);
    let mut random = Random(9);
    for _ in 0..2_000 {
        let disk = disk.restart(Survival::Everything);
        let path = &files[random.below(4) as usize].path;
        let block = random.pick(&[0, 4_096, 4_096 + 20_480]);
        let from = block + random.below(48);
        let to = from + random.below(9);
        patch(&disk, path, from, to, |bytes| {
            let byte = random.pick(&[0, 0xff, 0x80, 1]);
            bytes.fill(byte);
        });
        let length = random.pick(&[0, 1, 4_095, 4_096, 9_000, FILE, FILE]);
        let file = disk.open(path, Open::Write).unwrap();
        file.set_len(length).unwrap();
        let _ = read(&disk, random.below(200_000));
    }
}
