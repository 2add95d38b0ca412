//! Reading a log back: which files belong to it, every record in order, and where it ends.
//!
//! The last file may end in a batch that was never confirmed: that tail is cut off. A gap anywhere
//! else, or before a position that was durable, is damage, and nothing is guessed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::aligned::AlignedBuffer;
use crate::disk::{BLOCK, Disk, DiskFile, Open};
use crate::error::Error;
use crate::files::{path, slot};
use crate::format::{BATCH_HEAD, BadHead, BatchHead, FILE_HEAD, FileHead, Record, records};
use crate::lsn::Lsn;

/// Bytes that are read at a time.
const READ: usize = 4 * 1024 * 1024;

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Where it is.
    pub path: PathBuf,
    pub(crate) slot: u64,
    /// Its place in the order of files.
    pub number: u64,
    /// Where its first record begins.
    pub first_lsn: Lsn,
    /// Where its last record ends.
    pub end: Lsn,
    /// Bytes that it takes on the disk.
    pub size: u64,
    /// Where its last batch ends.
    pub used: u64,
    /// Batches in it.
    pub batches: u64,
    /// A batch at the end of the log that was not written whole.
    pub torn: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Files with records that are needed, oldest first.
    pub files: Vec<FileReport>,
    /// Files that are not needed: slot and size.
    pub(crate) spare: Vec<(u64, u64)>,
    /// Number of the next file.
    pub(crate) next_number: u64,
    /// Where the log ends.
    pub end: Lsn,
}

/// Reads the log in `dir` from position `start` on; gives every record to `each`, in order.
///
/// # Errors
/// The disk's, a format of another version, damage: see [`Error`].
pub fn scan(
    disk: &dyn Disk,
    dir: &Path,
    start: Lsn,
    mut each: impl FnMut(Record<'_>),
) -> Result<Scan, Error> {
    let mut scan = Scan {
        end: start,
        ..Scan::default()
    };
    let found = find(disk, dir, start, &mut scan)?;
    if start > Lsn(0) && found.first().is_none_or(|file| file.head.first_lsn > start) {
        let dir = dir.to_owned();
        return Err(Error::Missing { dir, start });
    }
    let mut reached = found.first().map_or(start, |file| file.head.first_lsn);
    let count = found.len();
    for (index, file) in found.into_iter().enumerate() {
        let last = index + 1 == count;
        if file.head.first_lsn != reached {
            // The file before it breaks off too early.
            let damaged: Option<&FileReport> = scan.files.last();
            return Err(Error::Damaged {
                path: damaged.map_or(file.path, |file| file.path.clone()),
                offset: damaged.map_or(0, |file| file.used),
                end: reached,
            });
        }
        let report = Reader::new(file).read_all(last, |record| {
            if record.lsn > start {
                each(record);
            }
        })?;
        reached = report.end;
        scan.files.push(report);
    }
    scan.end = reached.max(start);
    Ok(scan)
}

/// A file whose head is right.
struct Found {
    slot: u64,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    size: u64,
    head: FileHead,
}

/// Opens the files that are needed, oldest first; notes the others as spare.
fn find(disk: &dyn Disk, dir: &Path, start: Lsn, scan: &mut Scan) -> Result<Vec<Found>, Error> {
    let mut found: Vec<Found> = Vec::new();
    let names = disk.list(dir).map_err(Error::disk("list", dir))?;
    for slot in names.iter().filter_map(|name| slot(name)) {
        let path = path(dir, slot);
        let file = disk.open(&path, Open::Read);
        let file = file.map_err(Error::disk("open", &path))?;
        let size = file.len().map_err(Error::disk("measure", &path))?;
        match read_head(&*file, size).map_err(Error::disk("read", &path))? {
            Ok(head) => found.push(Found {
                slot,
                path,
                file,
                size,
                head,
            }),
            Err(BadHead::Version(version)) => return Err(Error::Version { path, version }),
            Err(BadHead::Blank) => scan.spare.push((slot, size)),
        }
    }
    found.sort_by_key(|file| file.head.number);
    scan.next_number = found.last().map_or(1, |file| file.head.number + 1);
    // Needed from the last file on that begins no later than the start.
    let needed = found.partition_point(|file| file.head.first_lsn <= start);
    let old = found.drain(..needed.saturating_sub(1));
    scan.spare.extend(old.map(|file| (file.slot, file.size)));
    Ok(found)
}

fn read_head(file: &dyn DiskFile, size: u64) -> std::io::Result<Result<FileHead, BadHead>> {
    if size < BLOCK as u64 {
        return Ok(Err(BadHead::Blank));
    }
    let mut block = AlignedBuffer::zeroed(BLOCK);
    file.read(block.as_mut_slice(), 0)?;
    Ok(FileHead::decode(&block.as_slice()[..FILE_HEAD]))
}

/// Reads one file through a window that moves over it.
struct Reader {
    found: Found,
    window: AlignedBuffer,
    /// Where the window begins in the file.
    window_at: u64,
}

impl Reader {
    fn new(found: Found) -> Self {
        Reader {
            found,
            window: AlignedBuffer::default(),
            window_at: 0,
        }
    }

    /// Gives every record to `each`; finds where the file's records end.
    fn read_all(
        mut self,
        last: bool,
        mut each: impl FnMut(Record<'_>),
    ) -> Result<FileReport, Error> {
        let mut position = BLOCK as u64;
        let mut end = self.found.head.first_lsn;
        let mut batches = 0;
        let mut torn = false;
        let salt = self.found.head.salt;
        while let Some(head) = self.batch_head(position)? {
            // Whatever else is there is from an earlier life of the file.
            if head.first_lsn != end {
                break;
            }
            if position + head.size() > self.found.size {
                torn = true;
                break;
            }
            let batch = self.bytes(position, head.size() as usize)?;
            if !head.verify(batch, salt) {
                torn = true;
                break;
            }
            let length = head.length as usize;
            // A checksum that is right over lengths that are not is no accident of a disk.
            let whole = records(&batch[BATCH_HEAD..BATCH_HEAD + length], end)
                .try_for_each(|record| record.map(&mut each));
            whole.map_err(|lsn| self.found.damaged(position, lsn))?;
            end.0 += head.length as u64;
            batches += 1;
            position += head.size();
        }
        if last {
            self.check_tail(position, end)?;
        }
        Ok(FileReport {
            slot: self.found.slot,
            number: self.found.head.number,
            first_lsn: self.found.head.first_lsn,
            end,
            size: self.found.size,
            used: position,
            batches,
            // Stale batches of a recycled file look the same as one that was never finished.
            torn: torn && last,
            path: self.found.path,
        })
    }

    /// The tail that is cut off must hold nothing that was durable: a later batch would know.
    fn check_tail(&mut self, from: u64, end: Lsn) -> Result<(), Error> {
        let salt = self.found.head.salt;
        let mut position = from;
        while let Some(head) = self.batch_head_or_blank(position)? {
            let later = head.is_some_and(|head| head.first_lsn > end && head.durable > end);
            if let Some(head) = head
                && later
                && position + head.size() <= self.found.size
                && head.verify(self.bytes(position, head.size() as usize)?, salt)
            {
                return Err(self.found.damaged(from, end));
            }
            position += BLOCK as u64;
        }
        Ok(())
    }

    fn batch_head(&mut self, position: u64) -> Result<Option<BatchHead>, Error> {
        Ok(self.batch_head_or_blank(position)?.flatten())
    }

    /// `None` at the end of the file.
    fn batch_head_or_blank(&mut self, position: u64) -> Result<Option<Option<BatchHead>>, Error> {
        if position + BLOCK as u64 > self.found.size {
            return Ok(None);
        }
        let head = BatchHead::peek(self.bytes(position, BLOCK)?);
        Ok(Some(head))
    }

    /// Bytes of the file; the caller has checked that they are in it.
    fn bytes(&mut self, position: u64, length: usize) -> Result<&[u8], Error> {
        let inside = position >= self.window_at
            && position + length as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            let rest = (self.found.size - position) as usize / BLOCK * BLOCK;
            self.window.resize(length.max(READ.min(rest)));
            self.window_at = position;
            self.found
                .file
                .read(self.window.as_mut_slice(), position)
                .map_err(Error::disk("read", &self.found.path))?;
        }
        let start = (position - self.window_at) as usize;
        Ok(&self.window.as_slice()[start..start + length])
    }
}

impl Found {
    fn damaged(&self, offset: u64, end: Lsn) -> Error {
        let path = self.path.clone();
        Error::Damaged { path, offset, end }
    }
}
