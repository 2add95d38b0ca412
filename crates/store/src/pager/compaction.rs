//! Compaction: segments of which little is needed are written anew without the rest.
//!
//! Only segments whose messages have all had their turn: what is left of them are stragglers that
//! may stay for long. One that is being consumed will be empty before long anyway.

use std::sync::Arc;

use wal::{AlignedBuffer, StreamId};

use super::Pager;
use crate::error::Error;
use crate::resident::Resident;
use crate::segment::SegmentWriter;
use crate::shared::Done;

impl Pager {
    pub(super) fn compact(&mut self) -> Result<(), Error> {
        for (stream, queue) in self.shared.all_residents() {
            let active = self.writers.get(&stream).and_then(SegmentWriter::active);
            let mut sparse = Vec::new();
            queue.with_store(&mut |store, _| sparse = store.sparse_segments(active));
            for segment in sparse {
                self.rewrite(stream, &queue, segment)?;
            }
        }
        Ok(())
    }

    fn rewrite(
        &mut self,
        stream: StreamId,
        queue: &Arc<dyn Resident>,
        segment: u64,
    ) -> Result<(), Error> {
        let (disk, queues) = (self.shared.disk.clone(), &self.shared.layout.queues);
        let mut plan = None;
        queue.with_store(&mut |store, _| plan = store.plan_segment(segment));
        let Some((load, ends)) = plan else {
            return Ok(());
        };
        let loaded = load.read(&*disk, queues, &mut AlignedBuffer::default())?;
        if loaded.lost > 0 {
            // What cannot be read stays where it is.
            return Ok(());
        }
        let chunks = self.write(stream, &**queue, &loaded.messages, &ends)?;
        let mut chunks = Some(chunks);
        queue.with_store(&mut |store, _| {
            if let Some(chunks) = chunks.take() {
                Done::count(&self.shared.done.compactions);
                store.replace_segment(segment, chunks);
            }
        });
        Ok(())
    }
}
