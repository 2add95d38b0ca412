//! Reading a log back: which files belong to it, every record in order, and where it ends.
//!
//! The last file may end in a batch that was never confirmed: that tail is cut off. A gap anywhere
//! else, or before a position that was durable, is damage, and nothing is guessed.
//!
//! A file ends where the next one begins: what was cut off stays so, whatever reading it again
//! shows. And what was read is written once more before the log goes on ([`settle`]), for it may be
//! in the page cache only, or on one half of a mirror.

use std::collections::VecDeque;
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
    /// From here on nothing says that what was read is durable.
    pub(crate) unsure: u64,
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
/// `start` is 0, or a position that was durable once.
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
    let (found, headless) = find(disk, dir, start, &mut scan)?;
    let mut reached = found.first().map_or(Lsn(0), |file| file.head.first_lsn);
    let missing = || {
        let dir = dir.to_owned();
        Err(Error::Missing { dir, start })
    };
    if reached > start {
        return missing();
    }
    let mut files = found.into_iter().peekable();
    while let Some(file) = files.next() {
        let until = files.peek().map(|next| next.head.first_lsn);
        let report = Reader::open(disk, file)?.read_all(until, |record| {
            if record.lsn > start {
                each(record);
            }
        })?;
        reached = report.end;
        if until.is_some_and(|until| until != reached) {
            return Err(report.damaged());
        }
        scan.files.push(report);
    }
    for file in headless {
        file.check(reached)?;
        scan.spare.push((file.slot, file.size));
    }
    if reached < start {
        return missing();
    }
    scan.end = reached;
    Ok(scan)
}

/// Makes what was read durable: the process that wrote it may not have come to that, or failed to.
/// Then the disk may have less than what the system shows, and a sync does not make up for it.
pub(crate) fn settle(disk: &dyn Disk, scan: &Scan) -> Result<(), Error> {
    let Some(last) = scan.files.last() else {
        return Ok(());
    };
    let path = &last.path;
    let file = disk
        .open(path, Open::Write)
        .map_err(Error::disk("open", path))?;
    let mut buffer = AlignedBuffer::default();
    let mut at = last.unsure;
    while at < last.used {
        buffer.resize(READ.min((last.used - at) as usize));
        file.read(buffer.as_mut_slice(), at)
            .map_err(Error::disk("read", path))?;
        file.write(buffer.as_slice(), at)
            .map_err(Error::disk("write to", path))?;
        at += buffer.len() as u64;
    }
    file.sync().map_err(Error::disk("sync", path))
}

/// A file whose head is right.
struct Found {
    slot: u64,
    path: PathBuf,
    size: u64,
    head: FileHead,
}

/// A file whose head is damaged, but not blank.
struct Headless {
    slot: u64,
    path: PathBuf,
    size: u64,
    /// Where its first batch says that it begins.
    first_lsn: Option<Lsn>,
}

impl Headless {
    /// An old one is no loss, but the log ends at `end` only if this one does not go on there.
    fn check(&self, end: Lsn) -> Result<(), Error> {
        if self.first_lsn.is_none_or(|first_lsn| first_lsn < end) {
            return Ok(());
        }
        let (path, offset) = (self.path.clone(), 0);
        Err(Error::Damaged { path, offset, end })
    }
}

/// The files that are needed, oldest first, and those that may be; notes the others as spare.
fn find(
    disk: &dyn Disk,
    dir: &Path,
    start: Lsn,
    scan: &mut Scan,
) -> Result<(Vec<Found>, Vec<Headless>), Error> {
    let (mut found, mut headless) = (Vec::<Found>::new(), Vec::new());
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
                size,
                head,
            }),
            Err(BadHead::Damaged) => headless.push(Headless {
                slot,
                size,
                first_lsn: first_lsn(&*file, size).map_err(Error::disk("read", &path))?,
                path,
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
    Ok((found, headless))
}

/// Where the first batch of a file says that it begins.
fn first_lsn(file: &dyn DiskFile, size: u64) -> std::io::Result<Option<Lsn>> {
    if size < 2 * BLOCK as u64 {
        return Ok(None);
    }
    let mut block = AlignedBuffer::zeroed(BLOCK);
    file.read(block.as_mut_slice(), BLOCK as u64)?;
    Ok(BatchHead::claimed_first_lsn(block.as_slice()))
}

/// The head of a file that has `size` bytes.
pub(crate) fn read_head(
    file: &dyn DiskFile,
    size: u64,
) -> std::io::Result<Result<FileHead, BadHead>> {
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
    file: Arc<dyn DiskFile>,
    window: AlignedBuffer,
    /// Where the window begins in the file.
    window_at: u64,
}

impl Reader {
    fn open(disk: &dyn Disk, found: Found) -> Result<Self, Error> {
        let file = disk
            .open(&found.path, Open::Read)
            .map_err(Error::disk("open", &found.path))?;
        Ok(Reader {
            found,
            file,
            window: AlignedBuffer::default(),
            window_at: 0,
        })
    }

    /// Gives every record to `each`; finds where the file's records end. They do so at the latest
    /// where the next file begins, `until`; the last file has none after it.
    fn read_all(
        mut self,
        until: Option<Lsn>,
        mut each: impl FnMut(Record<'_>),
    ) -> Result<FileReport, Error> {
        let mut position = BLOCK as u64;
        let mut end = self.found.head.first_lsn;
        let mut batches = 0;
        let mut torn = false;
        let mut unsure = Unsure::default();
        let salt = self.found.head.salt;
        while until.is_none_or(|until| end < until)
            && let Some(head) = self.batch_head(position)?.flatten()
        {
            if head.first_lsn != end || position + head.size() > self.found.size {
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
            unsure.add(position, end, head.durable);
            position += head.size();
        }
        if until.is_none() {
            self.check_tail(position, end)?;
        }
        Ok(FileReport {
            slot: self.found.slot,
            number: self.found.head.number,
            first_lsn: self.found.head.first_lsn,
            end,
            size: self.found.size,
            used: position,
            unsure: unsure.begins(self.found.head.first_lsn),
            batches,
            torn: torn && until.is_none(),
            path: self.found.path,
        })
    }

    /// The tail that is cut off must hold nothing that was durable: a later batch would know.
    fn check_tail(&mut self, from: u64, end: Lsn) -> Result<(), Error> {
        let mut position = from;
        while let Some(head) = self.batch_head(position)? {
            if head.is_some_and(|head| head.durable > end) {
                return Err(self.found.damaged(from, end));
            }
            position += BLOCK as u64;
        }
        Ok(())
    }

    /// The head of the batch that begins there, if one does; `None` at the end of the file.
    fn batch_head(&mut self, position: u64) -> Result<Option<Option<BatchHead>>, Error> {
        if position + BLOCK as u64 > self.found.size {
            return Ok(None);
        }
        let salt = self.found.head.salt;
        let head = BatchHead::peek(self.bytes(position, BLOCK)?, salt);
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
            self.file
                .read(self.window.as_mut_slice(), position)
                .map_err(Error::disk("read", &self.found.path))?;
        }
        let start = (position - self.window_at) as usize;
        Ok(&self.window.as_slice()[start..start + length])
    }
}

/// Batches of which no later one says that they were durable.
#[derive(Default)]
struct Unsure {
    /// Where they begin in the file, and where their records end.
    batches: VecDeque<(u64, Lsn)>,
    durable: Lsn,
}

impl Unsure {
    fn add(&mut self, position: u64, end: Lsn, durable: Lsn) {
        self.durable = self.durable.max(durable);
        while let Some((_, end)) = self.batches.front()
            && *end <= self.durable
        {
            self.batches.pop_front();
        }
        self.batches.push_back((position, end));
    }

    /// Where the first one begins; with the file's head, if nothing in the file is known to be
    /// durable.
    fn begins(&self, first_lsn: Lsn) -> u64 {
        let first = self.batches.front();
        first.map_or(0, |(position, _)| match self.durable > first_lsn {
            true => *position,
            false => 0,
        })
    }
}

impl FileReport {
    /// It should not end where it does.
    fn damaged(self) -> Error {
        Error::Damaged {
            path: self.path,
            offset: self.used,
            end: self.end,
        }
    }
}

impl Found {
    fn damaged(&self, offset: u64, end: Lsn) -> Error {
        let path = self.path.clone();
        Error::Damaged { path, offset, end }
    }
}
