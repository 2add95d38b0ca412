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
        let (disk, queues) = (self.shared.disk.clone(), self.shared.layout.queues.clone());
        let names = disk.list(&queues).map_err(Error::disk("list", &queues))?;
        if names
            .iter()
            .filter_map(|name| stream_of(name))
            .any(|stream| !claimed.contains(&stream))
        {
            // That a queue ended with the last process must be durable before its files go.
            self.sync_log()?;
        }
        for name in names {
            let Some(stream) = stream_of(&name) else {
                continue;
            };
            match self.shared.resident(stream) {
                Some(queue) if claimed.contains(&stream) => {
                    let dir = queue_dir(&queues, stream);
                    for name in disk.list(&dir).map_err(Error::disk("list", &dir))? {
                        let mut needed = true;
                        queue.with_store(&mut |store, _| {
                            needed = segment_number(&name).is_some_and(|n| store.has_segment(n));
                        });
                        if !needed {
                            let path = dir.join(&name);
                            disk.remove(&path).map_err(Error::disk("remove", path))?;
                        }
                    }
                }
                _ => self.remove_queue(stream)?,
            }
        }
        self.swept = true;
        Ok(())
    }
}
