//! The least that a durable write can cost here: a loop that writes one block and syncs it, into a
//! file that needs nothing else from its file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::error::Error;
use crate::samples::Samples;

const BLOCK: usize = 4096;
const LENGTH: u64 = 64 << 20;
const STEP: usize = 1 << 20;

pub struct BareLoop {
    path: PathBuf,
    file: File,
    block: Aligned,
    position: u64,
}

impl BareLoop {
    /// Writes a file full of zeros next to the broker's log.
    pub fn prepare(data_dir: &Path) -> Result<BareLoop, Error> {
        let path = data_dir.join("bench-bare-loop");
        let prepare = || {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .custom_flags(OFlags::DIRECT.bits() as i32)
                .open(&path)?;
            let zeros = Aligned::zeroed(STEP);
            for position in (0..LENGTH).step_by(STEP) {
                file.write_all_at(zeros.bytes(), position)?;
            }
            file.sync_all()?;
            Ok(file)
        };
        let file = prepare().map_err(|source| failed(&path, source))?;
        Ok(BareLoop {
            path,
            file,
            block: Aligned::zeroed(BLOCK),
            position: 0,
        })
    }

    /// Writes and syncs block after block for that time; keeps how long each took.
    pub fn run(&mut self, time: Duration, samples: &mut Samples) -> Result<(), Error> {
        let end = Instant::now() + time;
        let mut began = Instant::now();
        while began < end {
            self.file
                .write_all_at(self.block.bytes(), self.position)
                .and_then(|()| self.file.sync_data())
                .map_err(|source| failed(&self.path, source))?;
            self.position = (self.position + BLOCK as u64) % LENGTH;
            samples.push(began.elapsed());
            began = Instant::now();
        }
        Ok(())
    }
}

impl Drop for BareLoop {
    fn drop(&mut self) {
        // It goes with the data directory at the latest.
        let _ = fs::remove_file(&self.path);
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

/// Bytes at an address that unbuffered writes accept.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn zeroed(length: usize) -> Aligned {
        let bytes = vec![0; length + BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK);
        Aligned {
            bytes,
            start,
            length,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_where_unbuffered_writes_want_them() {
        let aligned = Aligned::zeroed(BLOCK);
        assert_eq!(aligned.bytes().as_ptr() as usize % BLOCK, 0);
        assert_eq!(aligned.bytes().len(), BLOCK);
    }
}
