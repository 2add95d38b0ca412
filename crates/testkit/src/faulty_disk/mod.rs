//! A disk in memory that fails, tears writes and forgets what was not synced, as a real one may.
//!
//! ```
//! use std::path::Path;
//! use testkit::{FaultyDisk, Survival};
//! use wal::{AlignedBuffer, BLOCK, Disk, Open};
//!
//! let disk = FaultyDisk::new(1);
//! let file = disk.open(Path::new("/log"), Open::Create)?;
//! disk.sync_dir(Path::new("/"))?;
//! disk.crash_at(disk.operations() + 1);
//! assert!(file.write(AlignedBuffer::zeroed(BLOCK).as_slice(), 0).is_err());
//!
//! let found = disk.restart(Survival::Random);
//! assert_eq!(found.list(Path::new("/"))?, [Path::new("log")]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! An operation is a call that changes something: `open` with [`Open::Create`], `write`, `sync`,
//! `allocate`, `set_len`, `create_dir`, `rename`, `remove`, `remove_dir`, `sync_dir`. The rest of
//! the module: `machine` does them, `inode` is a file's data and `names` its names, each with what
//! of it is durable.

mod contents;
mod faults;
mod file;
mod inode;
mod journal;
mod machine;
mod names;
mod room;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wal::{Disk, DiskFile, Open};

use file::FaultyFile;
use machine::Machine;

/// What outlives the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// What was synced; the machine lost all else.
    Nothing,
    /// All that was written, as when only the process was killed. It is as durable as it was
    /// before: what was not synced can still be lost.
    Everything,
    /// What was synced, and of the rest any part: single sectors of 512 bytes of each write, each
    /// new length, each new or removed name. A renamed file has its old name, its new one, or both.
    Random,
}

/// A simulated disk, or rather a handle to it: clones are the same disk.
///
/// One seed, with the same calls in the same order, gives the same faults.
#[derive(Clone)]
pub struct FaultyDisk(Arc<Mutex<Machine>>);

impl FaultyDisk {
    /// An empty disk without faults.
    pub fn new(seed: u64) -> Self {
        FaultyDisk::of(Machine::new(seed))
    }

    /// Operations so far, those that failed included. None are counted after a crash.
    pub fn operations(&self) -> u64 {
        self.machine().faults.operations
    }

    /// Lets the machine crash when this operation is about to be done; the first is 1. If it is a
    /// write, part of it may reach the disk. It fails, and all that is tried afterwards. If there
    /// have been as many operations already, the next one is meant.
    pub fn crash_at(&self, operation: u64) {
        self.machine().faults.crash_at = Some(operation);
    }

    /// Lets the machine crash between two operations.
    pub fn crash_now(&self) {
        self.machine().faults.crashed = true;
    }

    /// True after a crash. It stays so: see [`FaultyDisk::restart`].
    pub fn has_crashed(&self) -> bool {
        self.machine().faults.crashed
    }

    /// Lets this operation fail; the first is 1. May be called for several. If there have been as
    /// many already, the next one is meant.
    ///
    /// Part of a failed write may have been done. A failed sync makes part of what it should have
    /// made durable, and no later one makes up for the rest, though reads show it: the same as
    /// Linux, where the page cache then has what the disk has not. Other operations are not done;
    /// what a failed `sync_dir` was for can still be made durable by another.
    pub fn fail_at(&self, operation: u64, error: io::ErrorKind) {
        self.machine().faults.failures.insert(operation, error);
    }

    /// Limits the room for all files together, in bytes. Writing where nothing was allocated or
    /// written before, and allocating, fail with `StorageFull` beyond. A removed file gives its room
    /// back once it is closed.
    pub fn set_capacity(&self, bytes: u64) {
        self.machine().capacity = Some(bytes);
    }

    /// What is found when the machine, or the process, starts again: another disk, without faults,
    /// without a limit, its operations counted from 0.
    ///
    /// This one is not changed, whether it has crashed or not, so that many ends can be tried from
    /// one beginning: with [`Survival::Random`] each call gives another.
    #[must_use = "this disk stays as it is"]
    pub fn restart(&self, survival: Survival) -> FaultyDisk {
        FaultyDisk::of(self.machine().restarted(survival))
    }

    fn of(machine: Machine) -> Self {
        FaultyDisk(Arc::new(Mutex::new(machine)))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        // A panic in a test's thread must not hide behind those of the other threads.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.machine();
        f.debug_struct("FaultyDisk")
            .field("faults", &machine.faults)
            .field("capacity", &machine.capacity)
            .field("names", &machine.names)
            .finish_non_exhaustive()
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let id = match how {
            Open::Read | Open::Write => self.machine().open(path)?,
            Open::Create => self.machine().create(path)?,
        };
        let file = FaultyFile::new(self.clone(), id, how != Open::Read);
        Ok(Arc::new(file))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.faults.operation()?;
        machine.names.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let machine = self.machine();
        machine.faults.check()?;
        machine.names.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.faults.operation()?;
        machine.names.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.faults.operation()?;
        machine.names.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.faults.operation()?;
        machine.names.remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.machine().sync_dir(dir)
    }
}
