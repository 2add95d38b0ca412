//! Who consumes a queue, and who has credit: round-robin among those that do.

use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use super::delivery::Wakes;
use crate::outbox::{ConsumerHandle, Outbox};
use crate::prefetch::ChannelPrefetch;

/// A consumer, unique in its queue while it consumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerId(pub u32);

/// How a consumer wants its messages, and where they go.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// Messages count as acknowledged when they are handed out.
    pub no_ack: bool,
    /// Nobody else may consume.
    pub exclusive: bool,
    /// Unacknowledged messages at a time; 0 = no limit.
    pub prefetch: u16,
    /// The limit that the channel's consumers share.
    pub channel: Arc<ChannelPrefetch>,
    /// Where deliveries go.
    pub outbox: Arc<Outbox>,
    /// What the outbox's owner calls this consumer.
    pub handle: ConsumerHandle,
}

#[derive(Debug)]
pub(super) struct Consumer {
    pub options: ConsumerOptions,
    /// Leases of this consumer.
    pub outstanding: u32,
    /// In the round-robin ring.
    active: bool,
}

impl Consumer {
    /// How many more messages its own prefetch permits.
    #[inline]
    pub fn credit(&self) -> usize {
        let limit = u32::from(self.options.prefetch);
        if self.options.no_ack || limit == 0 {
            return usize::MAX;
        }
        limit.saturating_sub(self.outstanding) as usize
    }
}

#[derive(Debug, Default)]
pub(super) struct Consumers {
    all: Slab<Consumer>,
    /// Those that may have credit, next one first. Each at most once.
    ring: VecDeque<ConsumerId>,
    pub exclusive: bool,
}

impl Consumers {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn add(&mut self, options: ConsumerOptions) -> ConsumerId {
        self.exclusive |= options.exclusive;
        let id = ConsumerId(self.all.insert(Consumer { options, outstanding: 0, active: true }) as u32);
        self.ring.push_back(id);
        id
    }

    pub fn remove(&mut self, id: ConsumerId) -> Option<Consumer> {
        let consumer = self.all.try_remove(id.0 as usize)?;
        self.ring.retain(|other| *other != id);
        if consumer.options.exclusive {
            self.exclusive = false;
        }
        Some(consumer)
    }

    pub fn get_mut(&mut self, id: ConsumerId) -> Option<&mut Consumer> {
        self.all.get_mut(id.0 as usize)
    }

    /// The consumer whose turn it is, and whether it is the only one in the ring.
    #[inline]
    pub fn front(&self) -> Option<(ConsumerId, bool)> {
        Some((*self.ring.front()?, self.ring.len() == 1))
    }

    /// Gives the turn to the next one.
    #[inline]
    pub fn rotate(&mut self) {
        self.ring.rotate_left(1);
    }

    /// Takes the one whose turn it is out of the ring, until it is activated again.
    pub fn deactivate_front(&mut self) {
        if let Some(id) = self.ring.pop_front()
            && let Some(consumer) = self.get_mut(id)
        {
            consumer.active = false;
        }
    }

    /// Puts a consumer back into the ring.
    #[inline]
    pub fn activate(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.all.get_mut(id.0 as usize)
            && !consumer.active
        {
            consumer.active = true;
            self.ring.push_back(id);
        }
    }

    /// One lease of that consumer has ended.
    #[inline]
    pub fn release(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.all.get_mut(id.0 as usize) {
            consumer.outstanding = consumer.outstanding.saturating_sub(1);
            self.activate(id);
        }
    }

    /// Tells every consumer that the queue has gone.
    pub fn cancel_all(self, wakes: &mut Wakes) {
        for (_, consumer) in self.all {
            wakes.add(consumer.options.outbox.push_cancelled(consumer.options.handle));
        }
    }
}
