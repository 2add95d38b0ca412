//! Queues: listing, deleting and purging them.

use std::sync::Arc;

use amqp::FieldTable;

use super::{Admin, AdminError};
use crate::burial;
use crate::name::ConnectionId;
use crate::queue::{Queue, QueueKind};

/// What is told about a queue.
#[derive(Debug, Clone)]
pub struct QueueInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Survives a restart.
    pub durable: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// The connection that alone may use it.
    pub owner: Option<ConnectionId>,
    /// As declared.
    pub arguments: FieldTable,
    /// `classic`, `quorum` or `stream`.
    pub type_name: &'static str,
    /// The policy that applies.
    pub policy: Option<Arc<str>>,
    /// The operator policy that applies.
    pub operator_policy: Option<Arc<str>>,
    /// What both of them set.
    pub effective_policy: FieldTable,
    /// Messages waiting.
    pub messages_ready: usize,
    /// Messages out for delivery.
    pub messages_unacknowledged: usize,
    /// Consumers.
    pub consumers: usize,
}

impl QueueInfo {
    /// A queue as it is now.
    pub fn of(queue: &Queue) -> QueueInfo {
        let (counts, applied) = (queue.counts(), queue.applied());
        let name = |policy: &Option<Arc<crate::policy::Policy>>| {
            policy.as_ref().map(|policy| policy.name.clone())
        };
        QueueInfo {
            name: queue.name.clone(),
            durable: queue.durable,
            auto_delete: queue.auto_delete,
            owner: queue.exclusive_owner,
            arguments: queue.arguments.clone(),
            type_name: queue.type_name(),
            policy: name(&applied.policy),
            operator_policy: name(&applied.operator),
            effective_policy: applied.definition(),
            messages_ready: counts.ready,
            messages_unacknowledged: counts.unacked,
            consumers: counts.consumers,
        }
    }
}

impl Admin<'_> {
    /// A vhost's queues, by name.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_queues(&self, vhost: &str) -> Result<Vec<QueueInfo>, AdminError> {
        let mut queues = self.queues(vhost)?;
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(queues.iter().map(|queue| QueueInfo::of(queue)).collect())
    }

    /// Looked at without the topology's lock, which their locks would make last.
    pub(super) fn queues(&self, vhost: &str) -> Result<Vec<Arc<Queue>>, AdminError> {
        let vhost = self.vhost(vhost)?;
        Ok(vhost.read().queues.values().cloned().collect())
    }

    /// Deletes a queue; returns how many ready messages went with it.
    ///
    /// # Errors
    /// There is no such vhost or queue, or a condition does not hold.
    pub fn delete_queue(
        &self,
        vhost: &str,
        name: &str,
        if_empty: bool,
        if_unused: bool,
    ) -> Result<usize, AdminError> {
        let vhost = self.vhost(vhost)?;
        let queue = vhost.queue(name).ok_or(AdminError::NoSuchQueue)?;
        let counts = queue.counts();
        let refused = || match if_unused && counts.consumers > 0 {
            true => AdminError::QueueInUse,
            false => AdminError::QueueNotEmpty,
        };
        burial::bury_all(&queue);
        let remains = vhost.change_by(self.by, |topology| {
            let remains = queue.close(if_unused, if_empty).map_err(|_| refused())?;
            topology.remove_queue(&queue);
            Ok::<_, AdminError>(remains)
        })?;
        queue.release_store();
        Ok(remains.ready())
    }

    /// Drops a queue's ready messages; returns how many.
    ///
    /// # Errors
    /// There is no such vhost or queue, a connection has it for itself, or it is a stream.
    pub fn purge_queue(&self, vhost: &str, name: &str) -> Result<usize, AdminError> {
        let queue = self.vhost(vhost)?.queue(name);
        let queue = queue.ok_or(AdminError::NoSuchQueue)?;
        if queue.exclusive_owner.is_some() {
            return Err(AdminError::QueueLocked);
        }
        if queue.kind == QueueKind::Stream {
            return Err(AdminError::NotForStreams);
        }
        Ok(queue.purge())
    }
}
