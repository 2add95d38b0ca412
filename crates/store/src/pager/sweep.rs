//! After recovery: files that no manifest knows are left over from a crash, or belong to queues
//! that ended with the process.

use ahash::HashSet;
use wal::StreamId;

use super::Pager;
use crate::error::Error;
use crate::segment::{queue_dir, segment_number, stream_of};

impl Pager {
    /// Removes what does not belong to these queues. Comes before anything else is written.
    pub(super) fn sweep(&mut self, claimed: &HashSet<StreamId>) -> Result<(), Error> {
        let (disk, queues) = (&self.shared.disk, &self.shared.layout.queues);
        let names = disk.list(queues).map_err(Error::disk("list", queues))?;
        let is_needed =
            |stream: &StreamId| claimed.contains(stream) && self.shared.resident(*stream).is_some();
        let (needed, gone): (Vec<StreamId>, Vec<StreamId>) = names
            .iter()
            .filter_map(|name| stream_of(name))
            .partition(is_needed);
        if !gone.is_empty() {
            // That a queue ended with the last process, or was deleted already in this one, must
            // be durable before its files go.
            self.sync_log()?;
        }
        for stream in gone {
            self.remove_queue(stream)?;
        }
        for stream in needed {
            self.sweep_queue(stream)?;
        }
        self.swept = true;
        Ok(())
    }

    /// Removes segments that the queue's index does not know.
    fn sweep_queue(&self, stream: StreamId) -> Result<(), Error> {
        let (disk, queues) = (&self.shared.disk, &self.shared.layout.queues);
        let Some(queue) = self.shared.resident(stream) else {
            // Deleted meanwhile: the next checkpoint removes all of them.
            return Ok(());
        };
        let dir = queue_dir(queues, stream);
        for name in disk.list(&dir).map_err(Error::disk("list", &dir))? {
            let mut needed = true;
            queue.with_store(&mut |store, _| {
                needed = segment_number(&name).is_some_and(|number| store.has_segment(number));
            });
            if !needed && self.shared.resident(stream).is_some() {
                let path = dir.join(&name);
                disk.remove(&path).map_err(Error::disk("remove", path))?;
            }
        }
        Ok(())
    }
}
