//! What the log and the segments need from a disk: files that are written at offsets and synced.
//!
//! [`RealDisk`] is the operating system's. Tests put a faulty one in its place, which fails, tears
//! writes, and forgets what was not synced. The contract is POSIX's on a bad day: what
//! [`DiskFile::sync`] has not confirmed may be lost, in whole or in part, in any order; a created,
//! renamed or removed name may come back unless [`Disk::sync_dir`] has returned.

mod real;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use real::RealDisk;

/// Offsets and lengths of unbuffered writes are multiples of this.
pub const BLOCK: usize = 4_096;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// It must be there; for reading only.
    Read,
    /// It must be there; for reading and writing.
    Write,
    /// Makes a new, empty one in place of whatever is there.
    Create,
}

/// A place for files.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Opens a file. Writes bypass the page cache where the file system permits it, so offset,
    /// length and address of each are multiples of [`BLOCK`]; see [`crate::AlignedBuffer`].
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes a directory and those above it, durably; fine if it is there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Names of the files and directories in a directory, sorted; none if it does not exist.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Gives a file another name, in place of a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; fine if it is gone.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory; fine if it is gone.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Reads and writes take their offset with them, so threads may share it.
pub trait DiskFile: Send + Sync + std::fmt::Debug {
    /// Writes all of `bytes` at `offset`.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer` from `offset`; `UnexpectedEof` if the file ends before.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Makes everything written so far durable, and the length. After an error nothing is known
    /// about what was written since the last success: it must not be tried again.
    fn sync(&self) -> io::Result<()>;

    /// Reserves room, so that writes up to `length` do not run out of space; the file is that
    /// long afterwards, and reads as zeros where nothing was written.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Cuts the file off, or extends it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// True if it holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Fills `bytes` with zeros in a new file up to `length`, so that later writes change contents
/// only: a file system has nothing to note about them, and a sync is about twice as fast.
pub fn prewrite(file: &dyn DiskFile, length: u64) -> io::Result<()> {
    const STEP: usize = 1024 * 1024;
    file.allocate(length)?;
    let zeros = crate::AlignedBuffer::zeroed(STEP.min(length as usize));
    let mut at = 0;
    while at < length {
        let step = (length - at).min(STEP as u64) as usize;
        file.write(&zeros.as_slice()[..step], at)?;
        at += step as u64;
    }
    file.sync()
}
