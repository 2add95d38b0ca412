//! A process takes over what another one left behind when it was killed: what it reads is what
//! stays, even if the machine fails later, and what nobody needs goes.

mod support;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use testkit::{FaultyDisk, Survival};
use wal::{Disk, Lsn, Open, Wal};

use support::*;

/// Operations that `run` takes.
fn operations(disk: &FaultyDisk, run: impl FnOnce(&FaultyDisk)) -> u64 {
    let disk = disk.restart(Survival::Everything);
    run(&disk);
    disk.operations()
}

#[test]
fn tail_that_was_never_synced_is_durable_once_the_log_is_open() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let mut expected = vec![append_alone(&wal, FSYNC, 1, 100)];
    expected.push(append_alone(&wal, OS, 2, 100));
    kill(&disk, wal);
    let disk = disk.restart(Survival::Everything);
    let (wal, found) = reopen(&disk, 0).unwrap();
    assert_same(&found, &expected);
    expected.push(append_alone(&wal, FSYNC, 3, 100));
    kill(&disk, wal);
    let disk = disk.restart(Survival::Nothing);
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &expected);
}

#[test]
fn position_that_is_called_durable_after_opening_is_durable() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    append_alone(&wal, OS, 1, 100);
    kill(&disk, wal);
    let disk = disk.restart(Survival::Everything);
    let (wal, found) = reopen(&disk, 0).unwrap();
    assert_eq!(durable(&wal), found[0].lsn);
    kill(&disk, wal);
    let disk = disk.restart(Survival::Nothing);
    let (_, after) = read(&disk, 0).unwrap();
    assert_same(&after, &found);
}

/// The page cache then shows what the disk does not have, and a later sync does not write it.
#[test]
fn tail_whose_sync_failed_is_durable_once_the_log_is_open() {
    for seed in 0..40 {
        let disk = FaultyDisk::new(seed);
        let wal = new_log(&disk);
        let first = append_alone(&wal, FSYNC, 1, 100);
        // Makes the next file ready, so that the next operations are a write and a sync.
        wal.run_once().unwrap();
        append(&wal, FSYNC, 2, 10_000);
        disk.fail_at(disk.operations() + 2, ErrorKind::Other);
        assert!(wal.run_once().is_err());
        assert_eq!(durable(&wal), first.lsn);
        drop(wal);
        let disk = disk.restart(Survival::Everything);
        let (wal, mut expected) = reopen(&disk, 0).unwrap();
        assert_eq!(expected.len(), 2);
        expected.push(append_alone(&wal, FSYNC, 3, 100));
        kill(&disk, wal);
        let disk = disk.restart(Survival::Nothing);
        let (_, found) = read(&disk, 0).unwrap();
        assert_same(&found, &expected);
    }
}

/// Killed between any two operations while it made its first files ready.
#[test]
fn file_that_was_not_made_ready_whole_is_not_trusted() {
    let start = |disk: &FaultyDisk| {
        let (scan, _) = read(disk, 0).unwrap();
        let wal = Wal::open(Arc::new(disk.clone()), options(FILE), scan);
        wal.and_then(|wal| {
            append(&wal, FSYNC, 1, 100);
            let _ = wal.run_once();
            append(&wal, FSYNC, 2, 100);
            let _ = wal.run_once();
            wal.failure().map_or(Ok(()), |_| {
                Err(wal::Error::Missing {
                    dir: DIR.into(),
                    start: Lsn(0),
                })
            })
        })
    };
    let empty = FaultyDisk::new(1);
    let count = operations(&empty, |disk| start(disk).unwrap());
    for operation in 1..=count {
        let disk = empty.restart(Survival::Everything);
        disk.crash_at(operation);
        assert!(start(&disk).is_err());
        // The process was killed, then it is the machine.
        let disk = disk.restart(Survival::Everything);
        let (wal, mut expected) = reopen(&disk, 0).unwrap();
        for tag in 10..20 {
            expected.push(append_alone(&wal, FSYNC, tag, 20_000));
        }
        kill(&disk, wal);
        let disk = disk.restart(Survival::Nothing);
        let (_, found) = read(&disk, 0).unwrap();
        assert_same(&found, &expected);
    }
}

/// Where room cannot be reserved, a process that was killed leaves a file with nothing in it.
#[test]
fn file_without_room_is_not_trusted() {
    let disk = FaultyDisk::new(1);
    drop(new_log(&disk));
    for path in files(&disk) {
        disk.remove(&path).unwrap();
    }
    let path = Path::new(DIR).join("000001.wal");
    let file = disk.open(&path, Open::Create).unwrap();
    file.set_len(FILE).unwrap();
    disk.set_capacity(FILE / 2);
    let error = reopen(&disk, 0).unwrap_err();
    assert!(error.is_full(), "{error}");
    disk.set_capacity(FILE * 10);
    let (wal, _) = reopen(&disk, 0).unwrap();
    append_alone(&wal, FSYNC, 1, 30_000);
}

/// The file that follows may be lost as long as nothing in it was synced.
#[test]
fn released_file_is_kept_until_the_next_one_is_durable() {
    let disk = FaultyDisk::new(1);
    let (scan, _) = read(&disk, 0).unwrap();
    // The first one is smaller than the others, so it goes instead of being used again.
    let large = options(8 << 20);
    let wal = Wal::open(Arc::new(disk.clone()), large, scan).unwrap();
    for tag in 0..5 {
        append_alone(&wal, OS, tag, 1 << 20);
    }
    let start = durable(&wal);
    assert!(start > 0 && start < written(&wal));
    wal.release(Lsn(start)).unwrap();
    kill(&disk, wal);
    let disk = disk.restart(Survival::Everything);
    disk.sync_dir(Path::new(DIR)).unwrap();
    let disk = disk.restart(Survival::Nothing);
    let (scan, found) = read(&disk, start).unwrap();
    assert_eq!((scan.end, found.len()), (Lsn(start), 0));
}

#[test]
fn files_that_nobody_needs_do_not_pile_up() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let mut end = 0;
    for tag in 0..40 {
        end = append_alone(&wal, FSYNC, tag, 30_000).lsn;
    }
    drop(wal);
    assert!(files(&disk).len() >= 40);
    let (wal, _) = reopen(&disk, end).unwrap();
    append_alone(&wal, FSYNC, 100, 100);
    wal.release(Lsn(end)).unwrap();
    let left = files(&disk);
    assert!(left.len() <= 5, "{left:?}");
}

#[test]
fn starts_that_write_nothing_take_no_room() {
    let mut disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let first = append_alone(&wal, FSYNC, 1, 100);
    drop(wal);
    for _ in 0..20 {
        let (wal, found) = reopen(&disk, 0).unwrap();
        assert_same(&found, std::slice::from_ref(&first));
        kill(&disk, wal);
        disk = disk.restart(Survival::Everything);
        drop(reopen(&disk, 0).unwrap());
    }
    let left = files(&disk);
    assert!(left.len() <= 5, "{left:?}");
}

#[test]
fn files_of_another_size_go_after_the_setting_was_changed() {
    let disk = FaultyDisk::new(1);
    let (scan, _) = read(&disk, 0).unwrap();
    let small = options(FILE / 4);
    let wal = Wal::open(Arc::new(disk.clone()), small, scan).unwrap();
    let mut end = 0;
    for tag in 0..30 {
        end = append_alone(&wal, FSYNC, tag, 9_000).lsn;
    }
    drop(wal);
    let (wal, _) = reopen(&disk, end).unwrap();
    for tag in 100..110 {
        let end = append_alone(&wal, FSYNC, tag, 30_000).lsn;
        wal.release(Lsn(end)).unwrap();
    }
    let left = files(&disk);
    assert!(left.len() <= 5, "{left:?}");
}
