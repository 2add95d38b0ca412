//! The name of an exchange with shards, where a queue is meant.

use std::sync::Arc;

use super::Session;
use crate::error::Error;
use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::sharding::{ShardHandle, ShardMember};

impl Session {
    /// The shards that the name of an exchange stands for where a queue is meant.
    pub(super) fn shards(&self, name: &str) -> Option<Vec<Arc<Queue>>> {
        self.vhost.read().shards(name, &self.vhost.node)
    }

    /// Fails with 406 where the name stands for shards: that cannot be done to all of them.
    pub(super) fn refuse_shards(&self, operation: &str, name: &str) -> Result<(), Error> {
        match self.shards(name) {
            Some(_) => Err(Error::precondition(format!(
                "Can't {operation} sharded queue: <<\"{name}\">>"
            ))),
            None => Ok(()),
        }
    }

    /// basic.consume on the name of an exchange with shards: the consumer's part of them. `None`
    /// where the name is that of a queue; fails with 406 where there are no shards.
    pub fn join_shards(
        &self,
        name: &str,
        outbox: &Arc<Outbox>,
        handle: ShardHandle,
    ) -> Result<Option<ShardMember>, Error> {
        match self.shards(name) {
            None => Ok(None),
            Some(shards) if shards.is_empty() => Err(Error::precondition(format!(
                "Error finding sharded queue for: <<\"{name}\">>"
            ))),
            Some(_) => {
                let outbox = outbox.clone();
                let member = ShardMember::join(&self.vhost, &name.into(), outbox, handle);
                Ok(Some(member))
            }
        }
    }

    /// The shard that basic.get takes from: of those with messages the one with the fewest
    /// consumers.
    pub(super) fn shard_to_get_from(&self, name: &str) -> Option<Arc<Queue>> {
        let shards = self.shards(name)?.into_iter();
        let counted = shards.map(|queue| (queue.counts(), queue));
        let best = counted.min_by_key(|(counts, _)| (counts.ready == 0, counts.consumers));
        best.map(|(_, queue)| queue)
    }
}
