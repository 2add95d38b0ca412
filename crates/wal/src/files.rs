//! The log's files: which hold records that are needed, which wait to be used.
//!
//! A file is made ready before it is needed: one that nobody needs any more is used again under
//! its old name, or a new one is written full of zeros. That is the only time that the log needs
//! room on the disk, so running out of space is noticed ahead: from the first roll-over on two files
//! are kept ready, and when there is no room for the second the disk counts as full while the first
//! can still take acknowledgements. A file's head, not its name, says where it belongs.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::disk::{Disk, DiskFile, Open, prewrite};
use crate::error::Error;
use crate::lsn::Lsn;
use crate::recovery::Scan;

/// Released files that are kept to be used again.
const MAX_SPARE: usize = 2;
/// How long to wait before asking a full disk again.
const RETRY: Duration = Duration::from_millis(100);

/// A file with records.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    pub slot: u64,
    /// Where its last record ends; grows while it is the last file.
    pub end: Lsn,
    pub size: u64,
}

/// A file to write to.
#[derive(Debug)]
pub(crate) struct Prepared {
    slot: u64,
    pub path: PathBuf,
    pub size: u64,
    pub file: Arc<dyn DiskFile>,
}

#[derive(Debug, Default)]
struct State {
    used: VecDeque<Used>,
    /// Slots of files that can be used again, and their sizes.
    spare: Vec<(u64, u64)>,
    next: VecDeque<Prepared>,
    /// Files that this process has begun.
    begun: u64,
    next_slot: u64,
    /// Number of the next file to be written to.
    next_number: u64,
    /// Somebody should prepare a file.
    wanted: bool,
    /// Nobody waits for room any longer.
    closed: bool,
    /// The log has failed: no file is wanted any more.
    failed: bool,
    /// The disk was full when a file was to be prepared.
    full: bool,
}

impl State {
    /// How many files are to be ready. A process that writes little needs no reserve.
    fn depth(&self) -> usize {
        if self.begun > 1 { 2 } else { 1 }
    }
}

#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Bytes of a file.
    pub size: u64,
    state: Mutex<State>,
    changed: Condvar,
}

/// A file's name says nothing but which file it is.
pub(crate) fn path(dir: &Path, slot: u64) -> PathBuf {
    dir.join(format!("{slot:06}.wal"))
}

/// The slot that a file is named after; `None` for files that are not the log's.
pub(crate) fn slot(name: &Path) -> Option<u64> {
    let number = name.to_str()?.strip_suffix(".wal")?.parse::<u32>().ok()?;
    let slot = u64::from(number);
    (path(Path::new(""), slot) == name).then_some(slot)
}

impl Files {
    /// What recovery has found.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf, size: u64, scan: Scan) -> Files {
        let mut used = VecDeque::new();
        let mut spare = scan.spare;
        for file in &scan.files {
            // A file without records is needed only if it is the first one: it says where the log
            // begins.
            if file.batches == 0 && !used.is_empty() {
                spare.push((file.slot, file.size));
            } else {
                used.push_back(Used {
                    slot: file.slot,
                    end: file.end,
                    size: file.size,
                });
            }
        }
        let slots = scan.files.iter().map(|file| file.slot);
        let last = slots.chain(spare.iter().map(|(slot, _)| *slot)).max();
        Files {
            disk,
            dir,
            size,
            state: Mutex::new(State {
                used,
                spare,
                next_slot: last.map_or(1, |last| last + 1),
                next_number: scan.next_number,
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Makes a file ready: a spare one, or a new one of that size.
    pub fn prepare(&self, size: u64) -> Result<Prepared, Error> {
        let (slot, spare_size) = {
            let mut state = self.state.lock();
            match state.spare.iter().position(|(_, other)| *other >= size) {
                Some(index) => {
                    let (slot, size) = state.spare.swap_remove(index);
                    (slot, Some(size))
                }
                None => {
                    state.next_slot += 1;
                    (state.next_slot - 1, None)
                }
            }
        };
        let path = path(&self.dir, slot);
        let size = spare_size.unwrap_or(size);
        let (file, reserved) = if spare_size.is_some() {
            let file = self.disk.open(&path, Open::Write);
            let file = file.map_err(Error::disk("open", &path))?;
            // A process that was killed may not have come to that.
            let reserved = file.allocate(size);
            (file, reserved)
        } else {
            let file = self.disk.open(&path, Open::Create);
            let file = file.map_err(Error::disk("create", &path))?;
            let reserved = prewrite(&*file, size);
            (file, reserved)
        };
        if let Err(error) = reserved {
            // Its room must not be missing elsewhere.
            let _ = self.disk.remove(&path);
            return Err(Error::disk("reserve room for", path)(error));
        }
        // Neither may the name of a file that such a process left be durable.
        self.disk
            .sync_dir(&self.dir)
            .map_err(Error::disk("sync", &self.dir))?;
        Ok(Prepared {
            slot,
            path,
            size,
            file,
        })
    }

    /// Asks for a file to be prepared ahead.
    pub fn want_next(&self) {
        let mut state = self.state.lock();
        if state.next.len() < state.depth() && !state.wanted {
            state.wanted = true;
            self.changed.notify_all();
        }
    }

    /// Prepares a file if one is wanted. A full disk is no error: it is asked again.
    pub fn prepare_wanted(&self) -> Result<(), Error> {
        if !self.state.lock().wanted {
            return Ok(());
        }
        let prepared = self.prepare(self.size);
        let mut state = self.state.lock();
        match prepared {
            Ok(prepared) => {
                state.next.push_back(prepared);
                state.wanted = state.next.len() < state.depth();
                state.full &= state.wanted;
            }
            Err(ref error @ Error::Disk { ref path, .. }) if error.is_full() => {
                if !state.full {
                    tracing::warn!(path = %path.display(), "disk full: no room for the log");
                }
                state.full = true;
            }
            Err(error) => return Err(error),
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Prepares files until [`Files::close`].
    pub fn prepare_until_closed(&self) -> Result<(), Error> {
        loop {
            {
                let mut state = self.state.lock();
                while !state.wanted && !state.closed {
                    self.changed.wait(&mut state);
                }
                if state.full && !state.closed {
                    self.changed.wait_for(&mut state, RETRY);
                }
                if state.closed {
                    return Ok(());
                }
            }
            self.prepare_wanted()?;
        }
    }

    /// The file that was prepared ahead, once there is one; `None` if the log is closed first.
    pub fn wait_for_next(&self) -> Option<Prepared> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.next.pop_front() {
                return Some(next);
            }
            if state.closed {
                return None;
            }
            state.wanted = true;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
    }

    /// The file that was prepared ahead, if there is one.
    pub fn take_next(&self) -> Option<Prepared> {
        self.state.lock().next.pop_front()
    }

    /// A file that was prepared and does not fit is kept for later.
    pub fn discard(&self, prepared: Prepared) {
        let mut state = self.state.lock();
        state.spare.push((prepared.slot, prepared.size));
    }

    /// Prepares a file of at least that size, now; on a full disk once there is room for it, unless
    /// that is not to be waited for or the log is closed: then `None`.
    pub fn prepare_waiting(&self, size: u64, wait: bool) -> Result<Option<Prepared>, Error> {
        loop {
            if self.state.lock().failed {
                return Ok(None);
            }
            let prepared = self.prepare(size.max(self.size));
            let mut state = self.state.lock();
            match prepared {
                Err(error) if error.is_full() => state.full = true,
                Err(error) => return Err(error),
                Ok(prepared) => {
                    state.full = false;
                    return Ok(Some(prepared));
                }
            }
            if !wait || state.closed {
                return Ok(None);
            }
            self.changed.wait_for(&mut state, RETRY);
        }
    }

    /// A file begins to be written to; returns its number.
    pub fn begin(&self, prepared: &Prepared, first_lsn: Lsn) -> u64 {
        let mut state = self.state.lock();
        state.used.push_back(Used {
            slot: prepared.slot,
            end: first_lsn,
            size: prepared.size,
        });
        state.begun += 1;
        state.next_number += 1;
        state.next_number - 1
    }

    /// The file that is written to has grown.
    pub fn grown(&self, end: Lsn) {
        if let Some(last) = self.state.lock().used.back_mut() {
            last.end = end;
        }
    }

    /// Records up to there are not needed any more. Files that hold nothing else become spare, or
    /// go; but the log is `durable` in a file after them, for else a crash would leave no file.
    pub fn release(&self, up_to: Lsn, durable: Lsn) -> Result<(), Error> {
        {
            let mut state = self.state.lock();
            // Never the last one: nothing is durable beyond it.
            let superfluous = |file: &Used| file.end <= up_to && file.end < durable;
            while state.used.front().is_some_and(superfluous) {
                let file = state.used.pop_front();
                state.spare.extend(file.map(|file| (file.slot, file.size)));
            }
        }
        self.remove_surplus()?;
        self.changed.notify_all();
        Ok(())
    }

    /// Removes the spare files that will not be used again.
    pub fn remove_surplus(&self) -> Result<(), Error> {
        self.keep_spare(MAX_SPARE)
    }

    /// Removes spare files but for that many.
    pub fn keep_spare(&self, most: usize) -> Result<(), Error> {
        let mut surplus = Vec::new();
        {
            let mut state = self.state.lock();
            let mut kept = 0;
            state.spare.retain(|(slot, size)| {
                let keep = *size == self.size && kept < most;
                kept += usize::from(keep);
                if !keep {
                    surplus.push(*slot);
                }
                keep
            });
        }
        for slot in surplus {
            let path = path(&self.dir, slot);
            self.disk
                .remove(&path)
                .map_err(Error::disk("remove", path))?;
        }
        Ok(())
    }

    /// Where the records of each file end, and its size, oldest first.
    pub fn used(&self) -> Vec<(Lsn, u64)> {
        let state = self.state.lock();
        let used = state.used.iter();
        used.map(|used| (used.end, used.size)).collect()
    }

    /// True while the disk has no room for the next file.
    pub fn full(&self) -> bool {
        self.state.lock().full
    }

    /// Nobody waits for room any longer.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// What to say when one of the log's threads has panicked.
    pub fn panicked(&self) -> Error {
        let panicked = io::Error::other("a thread has panicked");
        Error::disk("write to", &self.dir)(panicked)
    }

    /// No file is wanted any more.
    pub fn fail(&self) {
        self.state.lock().failed = true;
        self.close();
    }
}
