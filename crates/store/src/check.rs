//! Looking at a data directory while nobody uses it: what is in it, what is damaged, and cutting
//! out what is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::{AlignedBuffer, BLOCK, Disk, FileReport, Lsn, Open, StreamId};

use crate::data_dir::Layout;
use crate::definitions::DefinitionMap;
use crate::error::Error;
use crate::load::verify;
use crate::manifest::ManifestFiles;
use crate::recovery::Recovering;
use crate::segment::{SegmentHead, path, queue_dir, stream_of};

/// What was found in a data directory.
#[derive(Debug)]
pub struct Report {
    /// The log is needed from here on.
    pub start: Lsn,
    /// Files of the log that are needed, oldest first; up to the damage, if there is any.
    pub log: Vec<FileReport>,
    /// Where the log ends.
    pub end: Lsn,
    /// Where the log is damaged.
    pub damage: Option<Damage>,
    /// All definitions.
    pub definitions: DefinitionMap,
    /// Queues with something in them, or that once had, by stream.
    pub queues: Vec<QueueReport>,
    /// Files and directories that no queue needs: left over from a crash, or from queues that
    /// ended with their process. They go at the next start.
    pub leftovers: Vec<PathBuf>,
}

/// A damaged log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// The last good position.
    pub end: Lsn,
}

/// A queue.
#[derive(Debug)]
pub struct QueueReport {
    /// Its stream.
    pub stream: StreamId,
    /// Messages that are in the log only.
    pub in_log: u64,
    /// Messages in segments.
    pub in_segments: u64,
    /// How many segments it has.
    pub segments: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Chunks with messages that cannot be read.
    pub unreadable: Vec<UnreadableChunk>,
}

/// A chunk of a segment that cannot be read.
#[derive(Debug)]
pub struct UnreadableChunk {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// Messages in it that are not gone.
    pub messages: u64,
    /// What is wrong.
    pub problem: String,
}

impl Report {
    /// True if everything that was kept can be read.
    pub fn is_sound(&self) -> bool {
        self.damage.is_none() && self.queues.iter().all(|queue| queue.unreadable.is_empty())
    }

    /// The last file of the log, if a batch at its end was not written whole.
    pub fn torn(&self) -> Option<&FileReport> {
        self.log.last().filter(|file| file.torn)
    }
}

/// Reads a whole data directory.
///
/// # Errors
/// It cannot be read, is of another version, or has no manifest.
pub fn check(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Report, Error> {
    let layout = Layout::of(dir);
    let (_, manifest) = ManifestFiles::open(disk.clone(), dir, false)?;
    let start = manifest.start;
    let mut recovering = Recovering::new(manifest);
    let scanned = wal::scan(&**disk, &layout.wal, start, |record| {
        recovering.replay(record)
    });
    let (log, end, damage) = match scanned {
        Ok(scan) => (scan.files, scan.end, None),
        Err(wal::Error::Damaged { path, offset, end }) => {
            (Vec::new(), end, Some(Damage { path, offset, end }))
        }
        Err(error) => return Err(error.into()),
    };
    let recovered = recovering.finish()?;
    let mut queues = Vec::new();
    let mut buffer = AlignedBuffer::default();
    for (stream, parts) in &recovered.queues {
        let mut report = QueueReport {
            stream: *stream,
            in_log: parts.live_in_log() as u64,
            in_segments: parts.index.live(),
            segments: parts.index.segments().count() as u64,
            bytes: parts.index.bytes(),
            unreadable: Vec::new(),
        };
        for (number, _) in parts.index.segments() {
            let path = path(&layout.queues, *stream, number);
            if !has_head(&**disk, &path, *stream, number) {
                report.unreadable.push(UnreadableChunk {
                    path,
                    offset: 0,
                    messages: 0,
                    problem: "the file's head is damaged".to_owned(),
                });
            }
        }
        for chunk in parts.index.chunks().filter(|chunk| chunk.live > 0) {
            let path = path(&layout.queues, *stream, chunk.place.segment);
            if let Err(problem) = verify(&**disk, &path, chunk, &mut buffer) {
                report.unreadable.push(UnreadableChunk {
                    path,
                    offset: chunk.place.offset,
                    messages: u64::from(chunk.live),
                    problem,
                });
            }
        }
        queues.push(report);
    }
    queues.sort_by_key(|queue| queue.stream);
    let mut leftovers = Vec::new();
    let names = disk.list(&layout.queues);
    for name in names.map_err(Error::disk("list", &layout.queues))? {
        let known = stream_of(&name).is_some_and(|stream| recovered.queues.contains_key(&stream));
        if !known {
            leftovers.push(layout.queues.join(name));
        }
    }
    Ok(Report {
        start,
        log,
        end,
        damage,
        definitions: recovered.definitions,
        queues,
        leftovers,
    })
}

fn has_head(disk: &dyn Disk, path: &Path, stream: StreamId, number: u64) -> bool {
    let mut block = AlignedBuffer::zeroed(BLOCK);
    let read = disk
        .open(path, Open::Read)
        .and_then(|file| file.read(block.as_mut_slice(), 0));
    read.is_ok() && SegmentHead::decode(block.as_slice()) == Some(SegmentHead { stream, number })
}

/// What was cut out.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// The log ends there now: what was behind that is lost.
    Log {
        /// Where.
        damage: Damage,
        /// Later files, all of whose records are lost.
        files: Vec<PathBuf>,
    },
    /// The unfinished batch at the log's end, which was never confirmed.
    Tail(PathBuf, u64),
    /// Messages that could not be read.
    Messages {
        /// Whose.
        stream: StreamId,
        /// How many.
        count: u64,
    },
}

/// Cuts out what is damaged, so that a server can start with the rest.
///
/// # Errors
/// The disk's.
pub fn repair(disk: &Arc<dyn Disk>, dir: &Path, report: &Report) -> Result<Vec<Cut>, Error> {
    let layout = Layout::of(dir);
    let mut cuts = Vec::new();
    if let Some(damage) = &report.damage {
        let files = wal::cut(&**disk, &layout.wal, &damage.path, damage.offset)?;
        let damage = damage.clone();
        cuts.push(Cut::Log { damage, files });
    }
    if let Some(file) = report.torn() {
        wal::cut(&**disk, &layout.wal, &file.path, file.used)?;
        cuts.push(Cut::Tail(file.path.clone(), file.used));
    }
    let damaged: Vec<&QueueReport> = report
        .queues
        .iter()
        .filter(|queue| !queue.unreadable.is_empty())
        .collect();
    if damaged.is_empty() {
        return Ok(cuts);
    }
    let (mut files, mut manifest) = ManifestFiles::open(disk.clone(), dir, false)?;
    for report in damaged {
        for queue in &mut manifest.queues {
            let dir = queue_dir(&layout.queues, report.stream);
            queue.chunks.retain(|chunk| {
                let path = path(&layout.queues, queue.stream, chunk.place.segment);
                let unreadable = report.unreadable.iter();
                let mut unreadable = unreadable.filter(|bad| bad.path.starts_with(&dir));
                !unreadable.any(|bad| bad.path == path && bad.offset == chunk.place.offset)
            });
        }
        cuts.push(Cut::Messages {
            stream: report.stream,
            count: report.unreadable.iter().map(|chunk| chunk.messages).sum(),
        });
    }
    files.write(&manifest)?;
    Ok(cuts)
}
