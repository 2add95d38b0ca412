//! A log with its threads, on the machine's own disk.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wal::{Durability, Lsn, Options, RealDisk, StreamId, Wal};

use support::*;

/// Far longer than anything takes here.
const LONG: Duration = Duration::from_secs(30);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn open_dir(dir: &Path) -> (Wal, Vec<Kept>) {
    let (scan, found) = read_dir(&RealDisk, dir, 0).expect("a sound log");
    let options = Options {
        file_size: 1 << 20,
        ..Options::new(dir)
    };
    let wal = Wal::open(Arc::new(RealDisk), options, scan).expect("the disk has room");
    (wal, found)
}

/// Parks until the log is as durable as that, woken by nothing but the log.
#[track_caller]
fn wait_for(wal: &Wal, lsn: u64, durability: Durability) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let begin = Instant::now();
    while !wal.wait(Lsn(lsn), durability, &waker) {
        std::thread::park_timeout(LONG);
        assert!(begin.elapsed() < LONG, "nobody was woken");
    }
    assert!(wal.reached(durability).0 >= lsn);
}

#[test]
fn everybody_who_waits_is_woken_and_order_is_kept() {
    const THREADS: u64 = 16;
    const ROUNDS: u64 = 60;
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    let work = |thread: u64| {
        for round in 0..ROUNDS {
            let (urgency, durability) = match (thread + round) % 3 {
                0 => (OS, Durability::Os),
                _ => (FSYNC, Durability::Fsync),
            };
            let length = (round * 97 % 5_000) as usize;
            let payload = [round as u8 | 0x80].repeat(length + 8);
            let lsn = wal.append(StreamId(thread), urgency, |to| to.extend(&payload));
            // Some go on without having waited.
            if round % 4 > 0 {
                wait_for(&wal, lsn.0, durability);
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || work(thread));
        }
    });
    assert!(wal.failure().is_none());
    drop(wal);
    let (scan, found) = read_dir(&RealDisk, dir.path(), 0).unwrap();
    assert_eq!(found.len() as u64, THREADS * ROUNDS);
    assert!(scan.files.len() > 1);
    for thread in 0..THREADS {
        let records = found.iter().filter(|record| record.stream == thread);
        for (round, record) in records.enumerate() {
            assert_eq!(record.payload[0], round as u8 | 0x80);
            assert_eq!(record.payload.len(), round * 97 % 5_000 + 8);
        }
    }
}

#[test]
fn many_who_wait_share_a_sync() {
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let wal = &wal;
            scope.spawn(move || {
                for tag in 0..10 {
                    let lsn = append(wal, FSYNC, thread * 10 + tag, 100).lsn;
                    wait_for(wal, lsn, Durability::Fsync);
                }
            });
        }
    });
    drop(wal);
    let (scan, _) = read_dir(&RealDisk, dir.path(), 0).unwrap();
    let batches: u64 = scan.files.iter().map(|file| file.batches).sum();
    assert!(batches < 200, "{batches} batches for 320 records");
}

#[test]
fn dropping_the_log_writes_what_is_pending() {
    let dir = TempDir::new().unwrap();
    let mut expected = Vec::new();
    for life in 0..5 {
        let (wal, found) = open_dir(dir.path());
        assert_same(&found, &expected);
        for tag in 0..100 {
            let urgency = [LAZY, OS, FSYNC][tag as usize % 3];
            expected.push(append(&wal, urgency, life * 100 + tag, 20_000));
        }
        drop(wal);
    }
    let (_, found) = read_dir(&RealDisk, dir.path(), 0).unwrap();
    assert_same(&found, &expected);
}

#[test]
fn after_closing_nothing_is_taken() {
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    let kept = append(&wal, LAZY, 1, 10);
    wal.close();
    assert_eq!(wal.reached(Durability::Fsync).0, kept.lsn);
    assert_eq!(append(&wal, FSYNC, 2, 10).lsn, u64::MAX);
    wal.close();
    drop(wal);
    let (_, found) = read_dir(&RealDisk, dir.path(), 0).unwrap();
    assert_same(&found, &[kept]);
}

#[test]
fn syncing_makes_everything_durable() {
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    for tag in 0..10 {
        let kept = append(&wal, LAZY, tag, 1_000);
        wal.sync().unwrap();
        assert!(wal.reached(Durability::Fsync).0 >= kept.lsn);
    }
}

/// There is nobody left who could do it.
#[test]
fn syncing_a_closed_log_does_not_wait_for_ever() {
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        wal.close();
        let _ = done.send(wal.sync().is_err());
    });
    assert_eq!(is_done.recv_timeout(LONG), Ok(true));
}

#[test]
fn lazy_records_are_written_soon_without_anybody_asking() {
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    let mut fastest = LONG;
    // A machine that is busy with something else may be late now and then.
    for tag in 0..10 {
        let begin = Instant::now();
        let kept = append(&wal, LAZY, tag, 100);
        while wal.reached(Durability::Os).0 < kept.lsn {
            assert!(begin.elapsed() < LONG);
            std::thread::sleep(Duration::from_millis(1));
        }
        fastest = fastest.min(begin.elapsed());
    }
    assert!(fastest < Duration::from_millis(200), "{fastest:?}");
    assert_eq!(
        wal.reached(Durability::Fsync),
        Lsn(0),
        "nothing is synced for their sake"
    );
}

#[test]
fn log_is_released_while_it_is_written_to() {
    let dir = TempDir::new().unwrap();
    let (wal, _) = open_dir(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let wal = &wal;
            scope.spawn(move || {
                for tag in 0..60 {
                    let kept = append(wal, FSYNC, thread * 100 + tag, 200_000);
                    wait_for(wal, kept.lsn, Durability::Fsync);
                    wal.release(wal.reached(Durability::Fsync)).unwrap();
                }
            });
        }
    });
    assert!(wal.failure().is_none());
    let start = wal.reached(Durability::Fsync);
    let kept = append(&wal, FSYNC, 1_000, 10);
    drop(wal);
    let (_, found) = read_dir(&RealDisk, dir.path(), start.0).unwrap();
    assert_same(&found, &[kept]);
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert!(files <= 7, "{files} files");
}
