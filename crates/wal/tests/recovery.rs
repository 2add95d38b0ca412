//! What was appended is read back: in order, from any position, after any number of reopenings,
//! while files that are not needed are used again.

mod support;

use std::sync::Arc;

use testkit::{FaultyDisk, Survival};
use wal::{Lsn, Payload, StreamId, Wal};

use support::*;

/// Lengths of payloads, of which some batches fill a file and some do not.
const LENGTHS: [usize; 6] = [0, 1, 700, 4_096, 9_000, 30_000];

#[test]
fn records_come_back_in_order_over_many_files_and_reopenings() {
    let disk = FaultyDisk::new(1);
    let mut random = Random(1);
    let mut expected = Vec::new();
    for life in 0..6 {
        let (wal, found) = reopen(&disk, 0).unwrap();
        assert_same(&found, &expected);
        for tag in 0..60 {
            let urgency = random.pick(&[LAZY, OS, FSYNC]);
            let length = random.pick(&LENGTHS);
            expected.push(append(&wal, urgency, life * 100 + tag, length));
            if random.below(3) == 0 {
                wal.run_once().unwrap();
            }
        }
        wal.close();
        assert_eq!(durable(&wal), expected.last().unwrap().lsn);
    }
    let (scan, found) = read(&disk, 0).unwrap();
    assert_same(&found, &expected);
    assert!(scan.files.len() > 30, "{} files", scan.files.len());
    assert_eq!(scan.end.0, expected.last().unwrap().lsn);
    assert!(scan.files.iter().all(|file| !file.torn));
    let numbers: Vec<u64> = scan.files.iter().map(|file| file.number).collect();
    assert!(numbers.is_sorted());
}

#[test]
fn positions_are_where_records_end() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let first = append_alone(&wal, FSYNC, 1, 100);
    let second = append_alone(&wal, FSYNC, 2, 0);
    assert_eq!(first.lsn, 100 + wal::RECORD_HEAD as u64);
    assert_eq!(second.lsn, first.lsn + wal::RECORD_HEAD as u64);
}

#[test]
fn scan_from_a_later_position_gives_exactly_the_records_after_it() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let lengths = LENGTHS.iter().cycle().zip(0..40);
    let all: Vec<Kept> = lengths
        .map(|(length, tag)| append_alone(&wal, FSYNC, tag, *length))
        .collect();
    wal.close();
    for (index, record) in all.iter().enumerate() {
        let (scan, found) = read(&disk, record.lsn).unwrap();
        assert_same(&found, &all[index + 1..]);
        assert_eq!(scan.end.0, all.last().unwrap().lsn);
    }
}

#[test]
fn log_can_be_closed_and_reopened_at_its_very_end() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let first = append_alone(&wal, FSYNC, 1, 100);
    drop(wal);
    let (wal, found) = reopen(&disk, first.lsn).unwrap();
    assert_same(&found, &[]);
    assert_eq!((durable(&wal), written(&wal)), (first.lsn, first.lsn));
    let second = append_alone(&wal, FSYNC, 2, 100);
    assert_eq!(second.lsn, first.lsn + 112);
    drop(wal);
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &[first, second]);
}

#[test]
fn released_files_are_used_again() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    for tag in 0..200 {
        let kept = append_alone(&wal, FSYNC, tag, 20_000);
        wal.release(Lsn(kept.lsn)).unwrap();
    }
    // The one that is written to, the next, one whose successor is new, two spare ones.
    let names = files(&disk);
    assert!(names.len() <= 5, "{names:?}");
}

#[test]
fn releasing_never_loses_a_needed_record() {
    let disk = FaultyDisk::new(1);
    let mut random = Random(3);
    let (mut expected, mut start) = (Vec::<Kept>::new(), 0);
    for life in 0..8 {
        let (wal, found) = reopen(&disk, start).unwrap();
        assert_same(&found, &expected);
        for tag in 0..40 {
            let length = random.pick(&LENGTHS);
            expected.push(append_alone(&wal, FSYNC, life * 100 + tag, length));
            if random.below(4) == 0 {
                let released = random.below(expected.len() as u64) as usize;
                start = expected[released].lsn;
                expected.drain(..=released);
                wal.release(Lsn(start)).unwrap();
            }
        }
    }
    let (_, found) = read(&disk, start).unwrap();
    assert_same(&found, &expected);
}

#[test]
fn files_say_what_can_be_released() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let all: Vec<Kept> = (0..10)
        .map(|tag| append_alone(&wal, FSYNC, tag, 20_000))
        .collect();
    let files = wal.files();
    assert_eq!(files.len(), 4, "three batches to a file: {files:?}");
    assert_eq!(files[3].0, Lsn(all[9].lsn));
    wal.release(Lsn(files[1].0.0 + 1)).unwrap();
    assert_eq!(wal.files(), files[2..]);
    wal.release(Lsn(all[9].lsn + 1_000)).unwrap();
    assert_eq!(wal.files(), files[3..], "the last one stays");
}

#[test]
fn batch_larger_than_a_file_comes_back() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let length = FILE as usize * 3;
    let mut expected = vec![append_alone(&wal, FSYNC, 1, 10)];
    expected.push(append_alone(&wal, FSYNC, 2, length));
    expected.extend((3..7).map(|tag| append(&wal, FSYNC, tag, length / 2)));
    wal.run_once().unwrap();
    expected.push(append_alone(&wal, FSYNC, 7, 10));
    drop(wal);
    let (wal, found) = reopen(&disk, 0).unwrap();
    assert_same(&found, &expected);
    wal.release(Lsn(expected[5].lsn)).unwrap();
    drop(wal);
    let (_, found) = read(&disk, expected[5].lsn).unwrap();
    assert_same(&found, &expected[6..]);
}

/// A batch's length has 32 bits, and a buffer that doubles for ever holds up whoever appends.
#[test]
fn what_waits_for_long_is_written_as_several_batches() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let mut bytes = vec![7; 1 << 20];
    for tag in 0..100_u8 {
        bytes.fill(tag);
        wal.append(StreamId(1), OS, |to| to.extend(&bytes));
    }
    wal.run_once().unwrap();
    assert_eq!(wal.unwritten(), 0);
    wal.close();
    let mut next = 0;
    let scan = wal::scan(&disk, DIR.as_ref(), Lsn(0), |record| {
        assert!(record.payload.len() == 1 << 20 && record.payload[77] == next);
        next += 1;
    });
    assert_eq!(next, 100);
    let batches: u64 = scan.unwrap().files.iter().map(|file| file.batches).sum();
    assert!((3..30).contains(&batches), "{batches} batches");
}

#[test]
fn os_durability_advances_the_written_position_only() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let record = append_alone(&wal, OS, 1, 100);
    assert_eq!((written(&wal), durable(&wal)), (record.lsn, 0));
    let record = append_alone(&wal, LAZY, 2, 100);
    assert_eq!((written(&wal), durable(&wal)), (record.lsn, 0));
    let record = append_alone(&wal, FSYNC, 3, 100);
    assert_eq!((written(&wal), durable(&wal)), (record.lsn, record.lsn));
    let durable_at = durable(&wal);
    let record = append_alone(&wal, OS, 4, 100);
    assert_eq!((written(&wal), durable(&wal)), (record.lsn, durable_at));
}

#[test]
fn most_urgent_record_of_a_batch_decides() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    append(&wal, FSYNC, 1, 10);
    append(&wal, OS, 2, 10);
    let last = append_alone(&wal, LAZY, 3, 10);
    assert_eq!(durable(&wal), last.lsn);
}

#[test]
fn closing_makes_everything_durable() {
    for urgency in [LAZY, OS, FSYNC] {
        let disk = FaultyDisk::new(1);
        let wal = new_log(&disk);
        let first = append_alone(&wal, urgency, 1, 10);
        let second = append(&wal, urgency, 2, 10);
        wal.close();
        assert_eq!(durable(&wal), second.lsn);
        let disk = disk.restart(Survival::Nothing);
        let (_, found) = read(&disk, 0).unwrap();
        assert_same(&found, &[first, second]);
    }
}

#[test]
fn writing_that_is_given_up_half_way_leaves_nothing_behind() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let first = append(&wal, FSYNC, 1, 100);
    let give_up = |payload: &mut Payload<'_>| {
        payload.extend(&[0xff; 100]);
        panic!("as a bug in a caller may");
    };
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wal.append(StreamId(1), FSYNC, give_up)
    }));
    assert!(unwound.is_err());
    let second = append_alone(&wal, FSYNC, 2, 100);
    drop(wal);
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &[first, second]);
}

#[test]
fn any_file_size_will_do() {
    for file_size in [0, 1, 5_000, 8_192, 100_000] {
        let disk = FaultyDisk::new(1);
        let (scan, _) = read(&disk, 0).unwrap();
        let wal = Wal::open(Arc::new(disk.clone()), options(file_size), scan).unwrap();
        let all: Vec<Kept> = (0..20)
            .map(|tag| append_alone(&wal, FSYNC, tag, 3_000))
            .collect();
        drop(wal);
        let (_, found) = read(&disk, 0).unwrap();
        assert_same(&found, &all);
    }
}
