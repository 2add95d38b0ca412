//! Cutting a log off, offline: for a damaged one, when its owner has decided to do without the
//! rest.

use std::path::{Path, PathBuf};

use crate::aligned::AlignedBuffer;
use crate::disk::{BLOCK, Disk, DiskFile, Open};
use crate::error::Error;
use crate::files::{path, slot};
use crate::recovery::read_head;

/// Ends the log in `dir` at byte `offset` of `file`: what is there and behind it, and all later
/// files, are no part of it any more. Returns those files.
///
/// # Errors
/// The disk's.
pub fn cut(disk: &dyn Disk, dir: &Path, file: &Path, offset: u64) -> Result<Vec<PathBuf>, Error> {
    let number = number(disk, file)?;
    let opened = disk.open(file, Open::Write);
    let opened = opened.map_err(Error::disk("open", file))?;
    let size = opened.len().map_err(Error::disk("measure", file))?;
    blank(&*opened, offset, size).map_err(Error::disk("write to", file))?;
    let mut later = Vec::new();
    let names = disk.list(dir).map_err(Error::disk("list", dir))?;
    for slot in names.iter().filter_map(|name| slot(name)) {
        let other = path(dir, slot);
        if number.is_some_and(|number| self::number(disk, &other).is_ok_and(|n| n > Some(number))) {
            let opened = disk.open(&other, Open::Write);
            let opened = opened.map_err(Error::disk("open", &other))?;
            blank(&*opened, 0, BLOCK as u64).map_err(Error::disk("write to", &other))?;
            later.push(other);
        }
    }
    Ok(later)
}

/// A file's place in the order of files, if it has one.
fn number(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, Error> {
    let file = disk.open(path, Open::Read);
    let file = file.map_err(Error::disk("open", path))?;
    let size = file.len().map_err(Error::disk("measure", path))?;
    let head = read_head(&*file, size).map_err(Error::disk("read", path))?;
    Ok(head.ok().map(|head| head.number))
}

fn blank(file: &dyn DiskFile, from: u64, to: u64) -> std::io::Result<()> {
    let zeros = AlignedBuffer::zeroed(BLOCK);
    let mut at = from;
    while at + BLOCK as u64 <= to {
        file.write(zeros.as_slice(), at)?;
        at += BLOCK as u64;
    }
    file.sync()
}
