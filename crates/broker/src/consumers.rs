//! Who consumes in a vhost, as administrators see it: queues know their consumers by numbers only.
//!
//! Filled and emptied by sessions; a small lock of its own, under which nothing else is locked.

use std::sync::Arc;

use ahash::HashMap;
use amqp::FieldTable;
use parking_lot::Mutex;

use crate::name::ConnectionId;
use crate::queue::{ConsumerId, Queue};

/// What is told about a consumer.
#[derive(Debug, Clone)]
pub struct ConsumerInfo {
    /// The queue that it consumes.
    pub queue: Arc<str>,
    /// Its connection.
    pub connection: ConnectionId,
    /// Its channel of that connection.
    pub channel: u16,
    /// What its client calls it.
    pub tag: String,
    /// It acknowledges.
    pub ack_required: bool,
    /// It alone may consume.
    pub exclusive: bool,
    /// Unacknowledged messages that it takes at most; 0 is no limit.
    pub prefetch: u16,
    /// Its arguments.
    pub arguments: FieldTable,
}

/// The consumers of a vhost, by queue.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    all: Mutex<HashMap<(u64, ConsumerId), ConsumerInfo>>,
}

impl Consumers {
    pub fn add(&self, queue: &Queue, id: ConsumerId, info: ConsumerInfo) {
        self.all.lock().insert((queue.id, id), info);
    }

    pub fn remove(&self, queue: &Queue, id: ConsumerId) -> Option<ConsumerInfo> {
        self.all.lock().remove(&(queue.id, id))
    }

    /// Those of the queues that `is_there` says are there, by queue, connection, channel and tag.
    pub fn list(&self, is_there: impl Fn(u64) -> bool) -> Vec<ConsumerInfo> {
        let all = self.all.lock();
        let there = all.iter().filter(|((queue, _), _)| is_there(*queue));
        let mut list: Vec<ConsumerInfo> = there.map(|(_, info)| info.clone()).collect();
        drop(all);
        list.sort_by(|a, b| {
            let place = |info: &ConsumerInfo| (info.connection, info.channel);
            (a.queue.cmp(&b.queue))
                .then_with(|| place(a).cmp(&place(b)))
                .then_with(|| a.tag.cmp(&b.tag))
        });
        list
    }
}
