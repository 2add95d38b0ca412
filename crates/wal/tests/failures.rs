//! A disk that fails ends the log for good; a disk that is full only makes it wait.

mod support;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{FaultyDisk, Survival};
use wal::{Disk, DiskFile, Durability, Error, Lsn, Open, Wal};

use support::*;

/// Far longer than anything takes here.
const LONG: Duration = Duration::from_secs(20);

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LONG, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn with_threads(disk: impl Disk + 'static) -> Wal {
    let scan = wal::scan(&disk, Path::new(DIR), Lsn(0), |_| {}).expect("an empty disk");
    let mut options = options(FILE);
    options.threads = true;
    Wal::open(Arc::new(disk), options, scan).expect("an empty disk has room for a log")
}

/// Batches over some files; ends early when the log has failed.
fn write_some(wal: &Wal) -> Vec<Kept> {
    let mut appended = Vec::new();
    for tag in 0..20 {
        appended.push(append(wal, [FSYNC, OS][tag as usize % 2], tag, 15_000));
        if wal.run_once().is_err() {
            break;
        }
    }
    appended
}

#[test]
fn failed_operation_ends_the_log() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    let opened = disk.operations();
    write_some(&wal);
    let written_some = disk.operations();
    drop(wal);
    for operation in opened + 1..=written_some {
        let disk = FaultyDisk::new(operation);
        let wal = new_log(&disk);
        disk.fail_at(operation, ErrorKind::Other);
        let appended = write_some(&wal);
        let failure = wal.failure().expect("an operation has failed");
        assert!(matches!(failure, Error::Disk { .. }));
        let (at, durable_at, written_at) = (disk.operations(), durable(&wal), written(&wal));
        assert!(durable_at < appended.last().unwrap().lsn);
        let lost = append(&wal, FSYNC, 99, 10).lsn;
        assert!(wal.run_once().is_err());
        wal.close();
        assert_eq!((durable(&wal), written(&wal)), (durable_at, written_at));
        assert!(lost > written_at && lost > appended.last().unwrap().lsn);
        assert_eq!(disk.operations(), at, "nothing more is tried");
        drop(wal);
        let disk = disk.restart(Survival::Nothing);
        let (_, found) = read(&disk, 0).unwrap();
        assert!(found.last().map_or(0, |last| last.lsn) >= durable_at);
        assert_same(&found, &appended[..found.len()]);
    }
}

#[test]
fn failed_operation_ends_the_threads() {
    for operation in 1..40 {
        let disk = FaultyDisk::new(operation);
        let wal = with_threads(disk.clone());
        disk.fail_at(disk.operations() + operation, ErrorKind::Other);
        let mut tag = 0;
        wait_until("failing", || {
            append(&wal, FSYNC, tag, 15_000);
            tag += 1;
            wal.failure().is_some()
        });
        wait_until("the end of appending", || {
            append(&wal, FSYNC, 1, 10).lsn == u64::MAX
        });
        wal.close();
    }
}

/// Memory, and whoever waits, must not wait for a thread that is gone.
#[test]
fn panic_in_a_thread_is_a_failure() {
    for (length, what) in [(100, "writing"), (30_000, "preparing")] {
        let panics = Arc::new(AtomicBool::new(false));
        let disk = PanickingDisk {
            disk: FaultyDisk::new(1),
            panics: panics.clone(),
            while_writing: what == "writing",
        };
        let wal = with_threads(disk);
        panics.store(true, Ordering::Relaxed);
        wait_until(what, || {
            append(&wal, FSYNC, 1, length);
            wal.failure().is_some()
        });
        wal.close();
    }
}

#[test]
fn full_disk_is_no_failure_and_nothing_is_lost() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    disk.set_capacity(FILE * 3);
    let mut appended = Vec::new();
    for tag in 0..20 {
        appended.push(append_alone(&wal, FSYNC, tag, 15_000));
    }
    assert!(wal.disk_full());
    assert!(wal.failure().is_none());
    let reached = durable(&wal);
    assert!(reached < appended.last().unwrap().lsn);
    wal.run_once().unwrap();
    assert_eq!(durable(&wal), reached);
    disk.set_capacity(FILE * 300);
    wal.run_once().unwrap();
    assert_eq!(durable(&wal), appended.last().unwrap().lsn);
    assert!(!wal.disk_full());
    appended.push(append_alone(&wal, FSYNC, 99, 15_000));
    drop(wal);
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &appended);
}

#[test]
fn full_disk_makes_the_threads_wait_for_room() {
    let disk = FaultyDisk::new(1);
    let wal = with_threads(disk.clone());
    disk.set_capacity(FILE * 3);
    let mut appended: Vec<Kept> = (0..20)
        .map(|tag| append(&wal, FSYNC, tag, 15_000))
        .collect();
    wait_until("filling the disk", || wal.disk_full());
    // Larger than a file: it needs one of its own.
    appended.push(append(&wal, FSYNC, 20, 2 * FILE as usize));
    assert!(wal.failure().is_none());
    disk.set_capacity(FILE * 300);
    let end = appended.last().unwrap().lsn;
    wait_until("writing", || wal.reached(Durability::Fsync).0 == end);
    wait_until("asking again", || !wal.disk_full());
    drop(wal);
    let (_, found) = read(&disk, 0).unwrap();
    assert_same(&found, &appended);
}

/// A log that is full makes room by being released.
#[test]
fn releasing_lets_a_full_log_go_on() {
    let disk = FaultyDisk::new(1);
    let wal = new_log(&disk);
    disk.set_capacity(FILE * 3);
    let mut tag = 0;
    while !wal.disk_full() {
        append_alone(&wal, FSYNC, tag, 15_000);
        tag += 1;
    }
    let start = durable(&wal);
    let last = append_alone(&wal, FSYNC, tag, 15_000);
    wal.release(Lsn(start)).unwrap();
    wal.run_once().unwrap();
    assert_eq!(durable(&wal), last.lsn);
    drop(wal);
    let (_, found) = read(&disk, start).unwrap();
    assert_same(&found, &[last]);
}

#[test]
fn closing_does_not_wait_for_room() {
    for threads in [false, true] {
        let disk = FaultyDisk::new(1);
        let wal = match threads {
            true => with_threads(disk.clone()),
            false => new_log(&disk),
        };
        disk.set_capacity(FILE * 3);
        let appended: Vec<Kept> = (0..40)
            .map(|tag| append(&wal, FSYNC, tag, 15_000))
            .collect();
        wal.close();
        assert!(wal.failure().is_none());
        let reached = durable(&wal);
        drop(wal);
        let disk = disk.restart(Survival::Nothing);
        let (_, found) = read(&disk, 0).unwrap();
        assert_eq!(found.last().map_or(0, |last| last.lsn), reached);
        assert_same(&found, &appended[..found.len()]);
    }
}

#[test]
fn syncing_ends_when_the_log_is_closed_on_a_full_disk() {
    let disk = FaultyDisk::new(1);
    let wal = with_threads(disk.clone());
    disk.set_capacity(FILE);
    (0..10).for_each(|tag| drop(append(&wal, LAZY, tag, 15_000)));
    wait_until("filling the disk", || wal.disk_full());
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| wal.sync());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!syncing.is_finished());
        wal.close();
        assert!(syncing.join().unwrap().is_err());
    });
}

/// The last thing that a full disk said may be long ago.
#[test]
fn closing_asks_a_disk_that_was_full_once_more() {
    let disk = FaultyDisk::new(1);
    let wal = with_threads(disk.clone());
    disk.set_capacity(FILE);
    append(&wal, FSYNC, 1, 15_000);
    wait_until("filling the disk", || wal.disk_full());
    disk.set_capacity(FILE * 300);
    let appended: Vec<Kept> = (2..40)
        .map(|tag| append(&wal, FSYNC, tag, 15_000))
        .collect();
    wal.close();
    assert_eq!(durable(&wal), appended.last().unwrap().lsn);
}

/// Panics when a file is written to, or a new one is made.
#[derive(Debug)]
struct PanickingDisk {
    disk: FaultyDisk,
    panics: Arc<AtomicBool>,
    while_writing: bool,
}

#[derive(Debug)]
struct PanickingFile(Arc<dyn DiskFile>, Arc<AtomicBool>);

impl Disk for PanickingDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let panics = self.panics.load(Ordering::Relaxed);
        assert!(self.while_writing || !panics, "as a bug may");
        let file = self.disk.open(path, how)?;
        if !self.while_writing {
            return Ok(file);
        }
        Ok(Arc::new(PanickingFile(file, self.panics.clone())))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
}

impl DiskFile for PanickingFile {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        assert!(!self.1.load(Ordering::Relaxed), "as a bug may");
        self.0.write(bytes, offset)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.0.allocate(length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}
