//! The operating system's files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use super::{Disk, DiskFile, Open};

/// Files of the operating system. Written and read past the page cache: the broker keeps in memory
/// what it needs, and a copy in the cache would cost a third of a write's CPU time. File systems
/// that cannot do that get ordinary writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile(File);

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(how != Open::Read)
            .create(how == Open::Create)
            .truncate(how == Open::Create)
            .mode(0o600);
        let direct = options
            .clone()
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path);
        let file = match direct {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                options.open(path)?
            }
            opened => opened?,
        };
        Ok(Arc::new(RealFile(file)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let is_new = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let new: Vec<&Path> = path.ancestors().take_while(is_new).collect();
        fs::create_dir_all(path)?;
        for dir in new {
            let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
            self.sync_dir(above.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = entries
            .map(|entry| Ok(PathBuf::from(entry?.file_name())))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        unless_gone(fs::remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        unless_gone(fs::remove_dir(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl DiskFile for RealFile {
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        match retry_on_intr(|| fallocate(&self.0, FallocateFlags::empty(), 0, length)) {
            // Where it cannot be reserved it can still be written.
            Err(Errno::OPNOTSUPP) => self.0.set_len(length),
            other => Ok(other?),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}
