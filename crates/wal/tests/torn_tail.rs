//! A log that breaks off at any byte of its last batch recovers to a whole number of batches, and
//! what was cut off never comes back.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use testkit::{FaultyDisk, Survival};
use wal::{Disk, Error, Lsn, Open, RECORD_HEAD, StreamId, Wal};

use support::*;

/// A log of three batches, as a process that was killed leaves it.
struct Log {
    disk: FaultyDisk,
    /// All records, and how many are in the first two batches.
    records: Vec<Kept>,
    whole: usize,
    path: PathBuf,
    /// Where each batch begins in the file, and where the last one's records end.
    begins: [u64; 3],
    records_end: u64,
}

/// If it is `recycled`, its last file was used before and is full of old batches.
fn killed_log(recycled: bool) -> Log {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let mut start = 0;
    if recycled {
        for tag in 1_000..1_050 {
            start = append_alone(&wal, FSYNC, tag, 7_000).lsn;
            wal.release(Lsn(start)).expect("removable");
        }
    }
    let files = wal.files().len();
    let (mut records, mut begins) = (Vec::new(), [0; 3]);
    let mut position = 4_096;
    if recycled {
        let (scan, _) = read(&disk, start).expect("a sound log");
        position = scan.files.last().map_or(0, |file| file.used);
    }
    let batches: [&[usize]; 3] = [&[100, 0, 3_000], &[2_000, 700], &[1, 0, 5_000, 900, 2_500]];
    for (batch, lengths) in batches.iter().enumerate() {
        for (tag, length) in lengths.iter().enumerate() {
            records.push(append(&wal, FSYNC, (batch * 10 + tag) as u64, *length));
        }
        wal.run_once().expect("the disk is in order");
        begins[batch] = position;
        let bytes: usize = lengths.iter().map(|length| length + RECORD_HEAD).sum();
        position = (position + BATCH_HEAD + bytes as u64).next_multiple_of(4_096);
    }
    assert_eq!(wal.files().len(), files, "all in the same file");
    kill(&disk, wal);
    let disk = disk.restart(Survival::Nothing);
    let (scan, found) = read(&disk, start).expect("a sound log");
    assert_same(&found, &records);
    let last = scan.files.last().expect("a file with the records");
    assert_eq!(last.used, position);
    patch(&disk, &last.path, position, position + 8_192, |behind| {
        let heads = behind
            .chunks(4_096)
            .filter(|block| block.starts_with(b"LvBa"));
        assert_eq!(heads.count(), usize::from(recycled));
    });
    let bytes = 5 * RECORD_HEAD as u64 + 1 + 5_000 + 900 + 2_500;
    Log {
        disk,
        records,
        whole: 5,
        path: last.path.clone(),
        begins,
        records_end: begins[2] + BATCH_HEAD + bytes,
    }
}

impl Log {
    fn start(&self) -> u64 {
        let first = &self.records[0];
        first.lsn - (first.payload.len() + RECORD_HEAD) as u64
    }

    /// Another disk with the same log.
    fn copy(&self) -> FaultyDisk {
        self.disk.restart(Survival::Everything)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    Zeros,
    Garbage,
    /// Every second sector from there on is old.
    Sectors,
    Truncated,
}

const CUTS: [Cut; 4] = [Cut::Zeros, Cut::Garbage, Cut::Sectors, Cut::Truncated];

/// Breaks a file off.
fn cut(disk: &FaultyDisk, log: &Log, from: u64, how: Cut) {
    let end = log.records_end.next_multiple_of(4_096);
    let sector_of = |index: usize| (from + index as u64) / 512;
    match how {
        Cut::Zeros => patch(disk, &log.path, from, end, |bytes| bytes.fill(0)),
        Cut::Garbage => patch(disk, &log.path, from, end, |bytes| {
            bytes.iter_mut().for_each(|byte| *byte ^= 0xa5);
        }),
        Cut::Sectors => patch(disk, &log.path, from, end, |bytes| {
            for (index, byte) in bytes.iter_mut().enumerate() {
                if sector_of(index) % 2 == sector_of(0) % 2 {
                    *byte = 0;
                }
            }
        }),
        Cut::Truncated => {
            let file = disk
                .open(&log.path, Open::Write)
                .expect("the file is there");
            file.set_len(from).expect("it can be shortened");
        }
    }
}

#[test]
fn file_cut_at_every_byte_of_its_last_batch_recovers_to_whole_batches() {
    let log = killed_log(false);
    let end = log.records_end.next_multiple_of(4_096);
    for how in CUTS {
        for from in log.begins[2]..end {
            let disk = log.copy();
            cut(&disk, &log, from, how);
            let (scan, found) = read(&disk, 0).unwrap();
            let is_whole = from >= log.records_end;
            // Files are not shortened by crashes: without its padding, a batch may be there or not.
            if how != Cut::Truncated || !is_whole {
                assert_eq!(
                    found.len() == log.records.len(),
                    is_whole,
                    "{how:?} at {from}"
                );
            }
            let kept = if found.len() > log.whole {
                log.records.len()
            } else {
                log.whole
            };
            assert_same(&found, &log.records[..kept]);
            assert_eq!(scan.end.0, found.last().unwrap().lsn);
        }
    }
}

#[test]
fn cut_log_goes_on_and_its_tail_never_comes_back() {
    for recycled in [false, true] {
        let log = killed_log(recycled);
        let end = log.records_end.next_multiple_of(4_096);
        for (round, from) in (log.begins[2]..end).step_by(61).enumerate() {
            let disk = log.copy();
            cut(&disk, &log, from, CUTS[round % CUTS.len()]);
            let (wal, mut expected) = reopen(&disk, log.start()).unwrap();
            // As long as what was cut off, so that it would fit in its place.
            for tag in 100..100 + round as u64 % 3 {
                expected.push(append_alone(&wal, FSYNC, tag, 8_401));
            }
            drop(wal);
            let (wal, found) = reopen(&disk, log.start()).unwrap();
            assert_same(&found, &expected);
            expected.push(append_alone(&wal, OS, 200, 8_401));
            drop(wal);
            let (_, found) = read(&disk, log.start()).unwrap();
            assert_same(&found, &expected);
        }
    }
}

/// After a crash the two halves of a mirror may differ, and the second reading meets the other one.
#[test]
fn batch_that_was_cut_off_stays_so_even_if_it_turns_out_whole() {
    let log = killed_log(false);
    let disk = log.copy();
    let mut original = Vec::new();
    let (from, to) = (log.begins[2] + 512, log.begins[2] + 1_024);
    patch(&disk, &log.path, from, to, |bytes| {
        original = bytes.to_vec();
        bytes.fill(0);
    });
    let (wal, mut expected) = reopen(&disk, 0).unwrap();
    assert_eq!(expected.len(), log.whole);
    expected.push(append_alone(&wal, FSYNC, 100, 500));
    drop(wal);
    patch(&disk, &log.path, from, to, |bytes| {
        bytes.copy_from_slice(&original)
    });
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &expected);
}

/// Positions that were cut off are given to other records, perhaps at the same place of a file.
#[test]
fn what_an_earlier_life_left_is_not_taken_for_what_comes_next() {
    let disk = FaultyDisk::new(1);
    drop(new_log(&disk));
    let (wal, _) = reopen(&disk, 0).unwrap();
    let mut expected = vec![append_alone(&wal, FSYNC, 1, 100)];
    drop(wal);
    let (wal, _) = reopen(&disk, 0).unwrap();
    append_alone(&wal, OS, 2, 100);
    append_alone(&wal, OS, 3, 100);
    kill(&disk, wal);
    let disk = disk.restart(Survival::Everything);
    let (scan, found) = read(&disk, 0).unwrap();
    assert_eq!(found.len(), 3);
    let path = scan.files.last().unwrap().path.clone();
    flip(&disk, &path, 4_096);
    let others = files(&disk).into_iter().filter(|other| {
        let needed = scan.files.iter().any(|file| file.path == *other);
        !needed
    });
    others.for_each(|other| disk.remove(&other).unwrap());
    let (wal, found) = reopen(&disk, 0).unwrap();
    assert_same(&found, &expected);
    // As long as the one that was lost, so that the next one fits.
    expected.push(append_alone(&wal, FSYNC, 4, 100));
    kill(&disk, wal);
    let disk = disk.restart(Survival::Nothing);
    let (scan, found) = read(&disk, 0).unwrap();
    assert_eq!(scan.files.last().unwrap().path, path);
    assert_same(&found, &expected);
}

#[test]
fn damage_before_a_batch_that_knows_better_is_an_error() {
    let log = killed_log(false);
    let bytes = 2 * RECORD_HEAD as u64 + 2_700;
    for at in log.begins[1]..log.begins[1] + BATCH_HEAD + bytes {
        let disk = log.copy();
        flip(&disk, &log.path, at);
        assert_damaged(&disk, &log, at);
    }
    for from in (log.begins[1]..log.begins[2]).step_by(512) {
        let disk = log.copy();
        patch(&disk, &log.path, from, log.begins[2], |bytes| bytes.fill(0));
        if from < log.begins[1] + BATCH_HEAD + bytes {
            assert_damaged(&disk, &log, from);
        }
    }
}

/// The batch that knows better need not be whole itself.
#[test]
fn damage_before_a_torn_batch_that_knows_better_is_an_error() {
    let log = killed_log(false);
    let disk = log.copy();
    flip(&disk, &log.path, log.begins[1] + 100);
    cut(&disk, &log, log.begins[2] + 512, Cut::Zeros);
    assert_damaged(&disk, &log, log.begins[1] + 100);
}

#[track_caller]
fn assert_damaged(disk: &FaultyDisk, log: &Log, at: u64) {
    match read(disk, 0) {
        Err(Error::Damaged { path, offset, end }) => {
            assert_eq!((&path, offset), (&log.path, log.begins[1]), "byte {at}");
            assert_eq!(end.0, log.records[2].lsn);
        }
        other => panic!("byte {at}: {other:?}"),
    }
}

/// A crash may lose what was not synced, and keep what was written after it.
#[test]
fn gap_in_what_was_never_durable_is_cut_off() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let first = append_alone(&wal, FSYNC, 1, 100);
    for tag in 2..6 {
        append_alone(&wal, OS, tag, 100);
    }
    kill(&disk, wal);
    let disk = disk.restart(Survival::Everything);
    let (scan, found) = read(&disk, 0).unwrap();
    assert_eq!(found.len(), 5);
    flip(&disk, &scan.files[0].path, 2 * 4_096 + 50);
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &[first]);
}

/// A payload that looks like the heads of batches makes reading neither wrong nor slow.
#[test]
fn payload_that_pretends_to_be_batches_is_not_believed() {
    let disk = FaultyDisk::new(1);
    let (scan, _) = read(&disk, 0).unwrap();
    let file_size = 16 << 20;
    let wal = Wal::open(Arc::new(disk.clone()), options(file_size), scan).unwrap();
    let first = append_alone(&wal, FSYNC, 1, 100);
    let mut head = [0_u8; 32];
    head[..4].copy_from_slice(b"LvBa");
    head[8..12].copy_from_slice(&(1_u32 << 23).to_le_bytes());
    head[16..24].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    head[24..32].copy_from_slice(&(1_u64 << 41).to_le_bytes());
    // So that copies are where blocks begin.
    let shift = 4_096 - BATCH_HEAD as usize - RECORD_HEAD;
    let mut payload = vec![0; shift];
    payload.extend(head.repeat(14 << 15));
    wal.append(StreamId(1), FSYNC, |to| to.extend(&payload));
    wal.run_once().unwrap();
    kill(&disk, wal);
    let disk = disk.restart(Survival::Everything);
    let (scan, _) = read(&disk, 0).unwrap();
    flip(&disk, &scan.files[1].path, 4_096 + 100);
    let begin = Instant::now();
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &[first]);
    assert!(begin.elapsed().as_secs() < 3, "{:?}", begin.elapsed());
}
