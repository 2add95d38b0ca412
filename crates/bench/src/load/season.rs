//! Brings a broker's log into the state that it has in the long run.
//!
//! A new log writes each file full of zeros before it is used; one that has reached its size uses
//! its files again. Who measures the first minute measures the zeros.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Progress;
use crate::case::Stream;
use crate::cases::stream;
use crate::error::Error;
use crate::target::Target;

/// A log that has written so much without a new file uses its files again.
const WITHOUT_NEW_FILE: u64 = 512 << 20;
/// Whatever the log does, this much is enough.
const ENOUGH: u64 = 6 << 30;
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// How the log was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seasoned {
    /// It uses its files again.
    Yes,
    /// It still makes new ones.
    No,
    /// The broker is not of our own, so its files are not known.
    Unknown,
}

impl Seasoned {
    /// What has to be said about figures that follow.
    pub fn note(self) -> Option<String> {
        match self {
            Seasoned::Yes | Seasoned::Unknown => None,
            Seasoned::No => Some("the log still made new files: disk bytes include zeros".into()),
        }
    }
}

/// Lets messages flow through a broker of our own until its log uses its files again.
pub fn season(stream: &Stream, target: &Target) -> Result<Seasoned, Error> {
    let Some(log) = target.data_dir().map(|data| data.join("wal")) else {
        return Ok(Seasoned::Unknown);
    };
    stream::run(stream, LIMIT, target, |progress| {
        let outcome = watch(&log, target, progress);
        progress.stop();
        Ok(outcome)
    })
}

fn watch(log: &Path, target: &Target, progress: &Progress) -> Seasoned {
    let started = Instant::now();
    let mut files = HashSet::new();
    let mut written_before = 0;
    while started.elapsed() < LIMIT && !progress.stopped() {
        let written = target.written().unwrap_or(0);
        if find_new(log, &mut files) {
            written_before = written;
        }
        if written - written_before > WITHOUT_NEW_FILE {
            return Seasoned::Yes;
        }
        if written > ENOUGH {
            break;
        }
        thread::sleep(POLL);
    }
    Seasoned::No
}

/// Adds the names in a directory; true if one had not been there.
fn find_new(directory: &Path, known: &mut HashSet<OsString>) -> bool {
    let before = known.len();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    known.extend(entries.map(|entry| entry.file_name()));
    known.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_new_once() {
        let folder = std::env::temp_dir().join(format!("bench-season-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("folder");
        let mut known = HashSet::new();
        assert!(!find_new(&folder, &mut known));
        fs::write(folder.join("000001.wal"), "").expect("file");
        assert!(find_new(&folder, &mut known));
        assert!(!find_new(&folder, &mut known));
        fs::remove_dir_all(&folder).expect("folder");
    }
}
