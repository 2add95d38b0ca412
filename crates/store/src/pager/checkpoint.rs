//! Checkpoints: a manifest that says what the log says, so that the log before it can go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wal::{Durability, Lsn, StreamId};

use super::Pager;
use crate::error::Error;
use crate::liveness::Epoch;
use crate::manifest::{Manifest, QueueSnapshot};
use crate::resident::Resident;
use crate::segment::{path, queue_dir};
use crate::shared::Done;

/// A checkpoint frees at least this much, and several times what it writes.
const WORTHWHILE: u64 = 48 * 1024 * 1024;

/// A queue in a manifest, and the files that the manifest makes superfluous.
struct Snapshots {
    queues: Vec<QueueSnapshot>,
    doomed: Vec<(StreamId, u64)>,
}

impl Pager {
    /// How many of the log's files are not needed once there is a new manifest, oldest first.
    fn releasable(&self, files: &[(Lsn, u64)]) -> usize {
        let end = self.shared.wal.reached(Durability::Os);
        let liveness = &self.shared.liveness;
        // The current epoch as well: a file may have ended in it, and nothing is added to that.
        let behind = Epoch(liveness.current(end).0 + 1);
        let needed = liveness.oldest(liveness.epoch(self.start), behind);
        // The last one is being written to.
        let all = &files[..files.len().saturating_sub(1)];
        let released = all
            .iter()
            .take_while(|(end, _)| liveness.epoch(*end) < needed);
        released.count()
    }

    /// `full`: the disk has no room, so that anything is worthwhile that makes some.
    pub(super) fn checkpoint_is_due(&self, full: bool) -> bool {
        let files = self.shared.wal.files();
        // What they take on the disk, not what is in them: each process begins a file.
        let freed: u64 = files[..self.releasable(&files)]
            .iter()
            .map(|(_, size)| size)
            .sum();
        let worthwhile = WORTHWHILE
            .min(self.shared.budget.log_file / 2)
            .max(self.manifests.size * 4);
        let worthwhile = if full { 1 } else { worthwhile };
        freed >= worthwhile || self.shared.garbage.bytes() >= worthwhile
    }

    /// Writes a manifest; then releases the log and removes files that nothing needs.
    pub(super) fn checkpoint(&mut self) -> Result<(), Error> {
        // Before the snapshots: what is acknowledged later is only in later parts of the log.
        let files = self.shared.wal.files();
        let released = self.releasable(&files);
        let Some(residents) = self.shared.residents_for_manifest() else {
            return Ok(());
        };
        let garbage = self.shared.garbage.take();
        let forgotten = std::mem::take(&mut *self.shared.forgotten.lock());
        let snapshots = self.snapshots(residents);
        // And after them: whoever was between logging and counting held his queue's lock, and has
        // counted by now.
        let released = released.min(self.releasable(&files));
        let start = files[..released].last().map_or(self.start, |(end, _)| *end);
        let start = start.max(self.start);
        let definitions = self.shared.definitions.lock().map.clone();
        let manifest = Manifest {
            start,
            next_stream: self.shared.next_stream.load(Ordering::Relaxed),
            definitions,
            queues: snapshots.queues,
        };
        // What the manifest says must not be ahead of the log: a crash would undo the log's part.
        if let Err(error) = self
            .sync_log()
            .and_then(|()| self.manifests.write(&manifest))
        {
            self.shared.garbage.add(garbage);
            self.shared.forgotten.lock().extend(forgotten);
            self.give_back(snapshots.doomed);
            return Err(error);
        }
        Done::count(&self.shared.done.checkpoints);
        self.start = start;
        self.shared.wal.release(start)?;
        for (stream, segment) in snapshots.doomed {
            let path = path(&self.shared.layout.queues, stream, segment);
            let removed = self.shared.disk.remove(&path);
            removed.map_err(Error::disk("remove", path))?;
        }
        for stream in forgotten {
            self.writers.remove(&stream);
            self.remove_queue(stream)?;
        }
        Ok(())
    }

    fn snapshots(&mut self, residents: Vec<(StreamId, Arc<dyn Resident>)>) -> Snapshots {
        let mut snapshots = Snapshots {
            queues: Vec::new(),
            doomed: Vec::new(),
        };
        // Of queues that went before anything of theirs was written.
        let is_there = |stream: &StreamId| {
            residents
                .binary_search_by_key(stream, |(stream, _)| *stream)
                .is_ok()
        };
        self.writers.retain(|stream, _| is_there(stream));
        for (stream, queue) in residents {
            let writers = &mut self.writers;
            queue.with_store(&mut |store, next_seq| {
                // An empty queue keeps no file open, and none at all.
                if store.live_in_segments() == 0 {
                    writers.remove(&stream);
                }
                let active = writers.get(&stream).and_then(|writer| writer.active());
                let snapshot = store.snapshot(next_seq, active);
                if store.is_logged() {
                    snapshots.queues.push(snapshot);
                }
                snapshots.doomed.extend(store.take_doomed());
            });
        }
        snapshots
    }

    fn give_back(&self, doomed: Vec<(StreamId, u64)>) {
        for (stream, segment) in doomed {
            if let Some(queue) = self.shared.resident(stream) {
                queue.with_store(&mut |store, _| store.doom_again(segment));
            }
        }
    }

    /// Removes all files of a queue.
    pub(super) fn remove_queue(&self, stream: StreamId) -> Result<(), Error> {
        let disk = &self.shared.disk;
        let dir = queue_dir(&self.shared.layout.queues, stream);
        for name in disk.list(&dir).map_err(Error::disk("list", &dir))? {
            let path = dir.join(name);
            disk.remove(&path).map_err(Error::disk("remove", path))?;
        }
        disk.remove_dir(&dir).map_err(Error::disk("remove", dir))
    }
}
