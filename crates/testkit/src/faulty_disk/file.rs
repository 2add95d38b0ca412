//! A handle to an open file.

use std::io;

use wal::{BLOCK, DiskFile};

use super::FaultyDisk;
use super::inode::InodeId;

/// It keeps its file even if that has no name any more.
#[derive(Debug)]
pub(super) struct FaultyFile {
    disk: FaultyDisk,
    id: InodeId,
    writable: bool,
}

impl FaultyFile {
    /// Takes over a handle that is already counted.
    pub(super) fn new(disk: FaultyDisk, id: InodeId, writable: bool) -> Self {
        FaultyFile { disk, id, writable }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable {
            return Ok(());
        }
        let text = "the file was opened for reading only";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

impl DiskFile for FaultyFile {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        check_alignment("write", bytes, offset);
        self.check_writable()?;
        self.disk.machine().write(self.id, bytes, offset)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        check_alignment("read", buffer, offset);
        let machine = self.disk.machine();
        machine.faults.check()?;
        machine.inode(self.id).read(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.machine().sync(self.id)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        self.disk.machine().allocate(self.id, length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        self.disk.machine().set_len(self.id, length)
    }

    fn len(&self) -> io::Result<u64> {
        let machine = self.disk.machine();
        machine.faults.check()?;
        Ok(machine.inode(self.id).len())
    }
}

impl Drop for FaultyFile {
    fn drop(&mut self) {
        self.disk.machine().close(self.id);
    }
}

/// A real disk would refuse it, or some would: a mistake of the caller, not a fault of the disk.
#[track_caller]
fn check_alignment(what: &str, bytes: &[u8], offset: u64) {
    let (len, address) = (bytes.len(), bytes.as_ptr().addr());
    assert!(
        offset.is_multiple_of(BLOCK as u64),
        "unbuffered {what} at offset {offset}, which is not a multiple of {BLOCK}"
    );
    assert!(
        len.is_multiple_of(BLOCK),
        "unbuffered {what} of {len} bytes, which is not a multiple of {BLOCK}"
    );
    assert!(
        len == 0 || address.is_multiple_of(BLOCK),
        "unbuffered {what} with memory at {address:#x}, which is not a multiple of {BLOCK}"
    );
}
