//! What a consumer tag stands for: a consumer of one queue, or several, of the shards that are its
//! part of an exchange's (`broker::ShardMember`). The part changes as consumers and shards come and
//! go; then the consumers of single shards are started and ended, and the client sees none of it.

use amqp::FieldTable;
use broker::{ConsumerHandle, ShardHandle, ShardMember};
use smallvec::SmallVec;

use super::Channel;
use crate::connection::Core;
use crate::exception::Exception;

/// What basic.consume asked for.
#[derive(Clone)]
pub(super) struct Wanted {
    pub tag: Box<[u8]>,
    pub no_ack: bool,
    pub exclusive: bool,
    pub prefetch: u16,
    pub arguments: FieldTable,
}

/// What a consumer tag stands for.
pub(super) enum Consuming {
    /// One queue.
    One(ConsumerHandle),
    /// Shards.
    Shards(Box<Shards>),
}

/// A consumer's part of an exchange's shards.
pub(super) struct Shards {
    member: ShardMember,
    handle: ShardHandle,
    wanted: Wanted,
    /// With the queues' ids.
    consumers: Vec<(u64, ConsumerHandle)>,
}

/// Whose part of the shards has changed: channel and consumer tag.
pub(crate) type ShardConsumer = (u16, Box<[u8]>);

impl Consuming {
    /// The consumers of queues behind it.
    pub fn handles(&self) -> SmallVec<[ConsumerHandle; 1]> {
        match self {
            Consuming::One(handle) => SmallVec::from_slice(&[*handle]),
            Consuming::Shards(shards) => shards.consumers.iter().map(|(_, of)| *of).collect(),
        }
    }

    /// It is over: others get its shards.
    pub fn end(self, core: &mut Core) {
        if let Consuming::Shards(shards) = self {
            core.shard_consumers.try_remove(shards.handle.0 as usize);
        }
    }
}

impl Shards {
    /// That shard has gone.
    pub fn forget(&mut self, consumer: ConsumerHandle) {
        self.consumers.retain(|(_, other)| *other != consumer);
    }
}

impl Channel {
    /// Starts to consume the shards of an exchange; `None` if the name is not that of one.
    pub(super) fn consume_shards(
        &mut self,
        core: &mut Core,
        name: &str,
        wanted: &Wanted,
    ) -> Result<Option<Consuming>, Exception> {
        let handle = ShardHandle(core.shard_consumers.vacant_key() as u32);
        let joined = core.session.join_shards(name, &core.outbox, handle);
        let Some(member) = joined else {
            return Ok(None);
        };
        core.shard_consumers
            .insert((self.number, wanted.tag.clone()));
        let mut shards = Shards {
            member,
            handle,
            wanted: wanted.clone(),
            consumers: Vec::new(),
        };
        match self.take_part(core, &mut shards) {
            Ok(_) => Ok(Some(Consuming::Shards(Box::new(shards)))),
            Err(exception) => {
                for (_, consumer) in &shards.consumers {
                    self.end_consumer(core, *consumer);
                }
                Consuming::Shards(Box::new(shards)).end(core);
                Err(exception)
            }
        }
    }

    /// Starts and ends consumers, so that they are of the shards that are this consumer's now.
    /// Returns those that were started.
    fn take_part(
        &mut self,
        core: &mut Core,
        shards: &mut Shards,
    ) -> Result<Vec<ConsumerHandle>, Exception> {
        let part = shards.member.shards();
        let (kept, ended): (Vec<_>, Vec<_>) = std::mem::take(&mut shards.consumers)
            .into_iter()
            .partition(|(id, _)| part.iter().any(|queue| queue.id == *id));
        shards.consumers = kept;
        for (_, consumer) in ended {
            self.end_consumer(core, consumer);
        }
        let mut started = Vec::new();
        for queue in part {
            if shards.consumers.iter().all(|(id, _)| *id != queue.id) {
                let consumer = self.start_consumer(core, &queue.name, &shards.wanted)?;
                shards.consumers.push((queue.id, consumer));
                started.push(consumer);
            }
        }
        Ok(started)
    }

    /// Shards or consumers have come or gone.
    pub fn rebalance(&mut self, core: &mut Core, tag: &[u8]) {
        let Some(Consuming::Shards(mut shards)) = self.consumers.remove(tag) else {
            return;
        };
        match self.take_part(core, &mut shards) {
            Ok(started) => core.resume(started.into_iter()),
            // A shard has just gone, or somebody consumes it exclusively: the others go on.
            Err(exception) => tracing::warn!(
                channel = self.number, error = %exception.reply_text(),
                "cannot consume a shard"
            ),
        }
        self.consumers.insert(tag.into(), Consuming::Shards(shards));
    }
}
