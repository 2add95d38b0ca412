//! queue.declare, queue.delete, queue.purge, and basic.get.

use std::sync::Arc;

use amqp::ReplyCode;

use super::{REPLY_TO, Session, generated_name, not_for_streams, refuse_reserved_name};
use crate::access::Operation;
use crate::burial;
use crate::error::Error;
use crate::queue::{Got, Queue, QueueKind, QueueOptions};

/// What queue.declare answers.
#[derive(Debug)]
pub struct Declared {
    /// The queue.
    pub queue: Arc<Queue>,
    /// Messages ready.
    pub messages: usize,
    /// Consumers.
    pub consumers: usize,
}

impl Declared {
    fn new(queue: Arc<Queue>) -> Self {
        let counts = queue.counts();
        Declared {
            queue,
            messages: counts.ready,
            consumers: counts.consumers,
        }
    }
}

impl Session {
    /// queue.declare with `passive`.
    pub fn check_queue(&self, name: &str) -> Result<Declared, Error> {
        if let Some(shards) = self.shards(name) {
            let first = shards.first().map(|first| Declared::new(first.clone()));
            return first.ok_or_else(|| Error::not_found(self.queue_resource(name)));
        }
        if name.starts_with(REPLY_TO) && name.len() > REPLY_TO.len() {
            // Whoever was given the address of replies may ask whether somebody waits for them.
            let queue = self.vhost.queue(name);
            return queue
                .map(Declared::new)
                .ok_or_else(|| Error::not_found(self.queue_resource(name)));
        }
        let queue = self.queue(name)?;
        queue.touch();
        Ok(Declared::new(queue))
    }

    /// queue.declare; an empty name gets one made up.
    pub fn declare_queue(&self, name: &str, mut options: QueueOptions) -> Result<Declared, Error> {
        let first_shard = self.vhost.first_shard(name);
        let name = first_shard.as_deref().unwrap_or(name);
        // An exclusive queue ends with its connection, so it cannot survive a restart.
        options.durable &= options.exclusive.is_none();
        self.vhost.add_queue_type(&mut options);
        let generated;
        let server_named = name.is_empty();
        let name = if server_named {
            generated = generated_name("amq.gen-");
            &generated
        } else {
            refuse_reserved_name("queue", name)?;
            name
        };
        let resource = self.queue_resource(name);
        self.permit(Operation::Configure, resource)?;
        if let Some(queue) = self.vhost.queue(name) {
            queue.assert_equivalent(&options)?;
            queue.touch();
            return Ok(Declared::new(queue));
        }
        options.validate(resource, server_named)?;
        self.permit_forwarding(resource, &options.arguments, "x-dead-letter-exchange")?;
        let queue = self.change(|topology| match topology.queues.get(name) {
            Some(queue) => {
                queue.assert_equivalent(&options)?;
                Ok::<_, Error>(queue.clone())
            }
            None => {
                let queue = self.vhost.make_queue(name.into(), options);
                topology.insert_queue(queue.clone());
                Ok(queue)
            }
        })?;
        Ok(Declared::new(queue))
    }

    /// queue.delete; returns the messages that went with it. Deleting what is not there is fine.
    pub fn delete_queue(
        &self,
        name: &str,
        if_unused: bool,
        if_empty: bool,
    ) -> Result<usize, Error> {
        self.refuse_shards("delete", name)?;
        self.permit(Operation::Configure, self.queue_resource(name))?;
        let Some(queue) = self.vhost.queue(name) else {
            return Ok(0);
        };
        queue.check_owner(self.connection)?;
        burial::bury_all(&queue);
        // Closed under the topology's lock: nobody may find a queue that is closed already. Its
        // messages are freed after the lock is released.
        let remains = self.change(|topology| {
            let remains = queue.close(if_unused, if_empty)?;
            topology.remove_queue(&queue);
            Ok::<_, Error>(remains)
        })?;
        queue.release_store();
        Ok(remains.ready())
    }

    /// queue.purge; returns how many messages went.
    pub fn purge_queue(&self, name: &str) -> Result<usize, Error> {
        self.refuse_shards("purge", name)?;
        self.permit(Operation::Read, self.queue_resource(name))?;
        let queue = self.queue(name)?;
        if queue.kind == QueueKind::Stream {
            return Err(not_for_streams("queue.purge", queue.resource()));
        }
        Ok(queue.purge())
    }

    /// basic.get.
    pub fn get(&self, name: &str, no_ack: bool) -> Result<(Arc<Queue>, Option<Got>), Error> {
        let shard = self.shard_to_get_from(name);
        let name = shard.as_ref().map_or(name, |shard| &*shard.name);
        self.permit(Operation::Read, self.queue_resource(name))?;
        let queue = self.queue(name)?;
        if queue.kind == QueueKind::Stream {
            return Err(not_for_streams("basic.get", queue.resource()));
        }
        match queue.get(&self.vhost.store, no_ack) {
            Ok(got) => Ok((queue, got)),
            Err(error) => {
                tracing::error!(queue = %queue.name, %error, "cannot read messages");
                let text = format!("cannot read messages of {}", queue.resource());
                Err(Error::new(ReplyCode::InternalError, text))
            }
        }
    }
}
