//! Who consumes a queue, and who has credit: round-robin among those that do.

use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use super::delivery::Wakes;
use super::line::Line;
use super::offset::StreamOptions;
use crate::outbox::{ConsumerHandle, Outbox};
use crate::prefetch::ChannelPrefetch;

/// A consumer, unique in its queue for ever: leases outlive their consumers, and must not be taken
/// for those of whoever comes to the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConsumerId {
    place: u32,
    serial: u64,
}

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
    /// Those with a higher one come first (`x-priority`); 0 is usual.
    pub priority: i64,
    /// Milliseconds that a message may stay unacknowledged (`x-consumer-timeout`); the queue's own
    /// where absent.
    pub timeout: Option<u64>,
    /// Where it begins to read, if the queue is a stream.
    pub stream: Option<StreamOptions>,
}

#[derive(Debug)]
pub(super) struct Consumer {
    pub options: ConsumerOptions,
    serial: u64,
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
    /// Those that may have credit, by descending priority; each consumer at most once.
    rings: Vec<Ring>,
    next_serial: u64,
    pub exclusive: bool,
    /// With `x-single-active-consumer`: only one gets messages, and the others wait in line.
    line: Option<Line>,
}

/// Consumers of one priority, next one first.
#[derive(Debug)]
struct Ring {
    priority: i64,
    consumers: VecDeque<ConsumerId>,
}

impl Consumers {
    pub fn new(line: Option<Line>) -> Self {
        Consumers {
            line,
            ..Consumers::default()
        }
    }

    /// True if that one may get messages.
    fn is_active(&self, id: ConsumerId) -> bool {
        self.line.as_ref().is_none_or(|line| line.is_active(id))
    }

    /// Everyone else waits for the first in line.
    pub fn is_single_active(&self) -> bool {
        self.line.is_some()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn add(&mut self, options: ConsumerOptions) -> ConsumerId {
        self.exclusive |= options.exclusive;
        let priority = options.priority;
        let serial = self.next_serial;
        self.next_serial += 1;
        let consumer = Consumer {
            options,
            serial,
            outstanding: 0,
            active: false,
        };
        let id = ConsumerId {
            place: self.all.insert(consumer) as u32,
            serial,
        };
        if let Some(line) = &mut self.line
            && line.join(id, priority)
            && let Some(first) = line.first()
        {
            self.leave_ring(first);
            self.succeed(first);
        }
        self.activate(id);
        id
    }

    pub fn remove(&mut self, id: ConsumerId) -> Option<Consumer> {
        self.get_mut(id)?;
        self.leave_ring(id);
        let consumer = self.all.remove(id.place as usize);
        if consumer.options.exclusive {
            self.exclusive = false;
        }
        if let Some(line) = &mut self.line
            && line.leave(id)
            && let Some(next) = line.choose()
        {
            self.activate(next);
        }
        Some(consumer)
    }

    /// It gets nothing until it is activated again.
    fn leave_ring(&mut self, id: ConsumerId) {
        let Some(consumer) = self.get_mut(id) else {
            return;
        };
        consumer.active = false;
        let priority = consumer.options.priority;
        if let Some(at) = self.rings.iter().position(|ring| ring.priority == priority) {
            let ring = &mut self.rings[at].consumers;
            ring.retain(|other| *other != id);
            // Clients choose priorities: none may leave anything behind.
            if ring.is_empty() {
                self.rings.remove(at);
            }
        }
    }

    /// The next one begins if the active one gives way and has nothing left.
    fn succeed(&mut self, active: ConsumerId) {
        let has_some = self.get_mut(active).is_some_and(|c| c.outstanding > 0);
        if let Some(line) = &mut self.line
            && line.is_finishing(active)
            && !has_some
            && let Some(next) = line.choose()
        {
            self.activate(next);
        }
    }

    #[inline]
    pub fn get_mut(&mut self, id: ConsumerId) -> Option<&mut Consumer> {
        let consumer = self.all.get_mut(id.place as usize)?;
        (consumer.serial == id.serial).then_some(consumer)
    }

    /// The consumer whose turn it is, and whether it is the only one in its ring.
    #[inline]
    pub fn front(&self) -> Option<(ConsumerId, bool)> {
        let ring = self.rings.iter().find(|ring| !ring.consumers.is_empty())?;
        Some((*ring.consumers.front()?, ring.consumers.len() == 1))
    }

    #[inline]
    fn current(&mut self) -> Option<&mut VecDeque<ConsumerId>> {
        let ring = self
            .rings
            .iter_mut()
            .find(|ring| !ring.consumers.is_empty())?;
        Some(&mut ring.consumers)
    }

    /// Gives the turn to the next one.
    #[inline]
    pub fn rotate(&mut self) {
        if let Some(ring) = self.current() {
            ring.rotate_left(1);
        }
    }

    /// Takes the one whose turn it is out of its ring, until it is activated again.
    pub fn deactivate_front(&mut self) {
        if let Some(id) = self.current().and_then(VecDeque::pop_front)
            && let Some(consumer) = self.get_mut(id)
        {
            consumer.active = false;
        }
    }

    /// Puts a consumer back into its ring.
    #[inline]
    pub fn activate(&mut self, id: ConsumerId) {
        if !self.is_active(id) {
            return;
        }
        let Some(consumer) = self.get_mut(id) else {
            return;
        };
        if consumer.active {
            return;
        }
        consumer.active = true;
        let priority = consumer.options.priority;
        let at = self.rings.partition_point(|ring| ring.priority > priority);
        match self.rings.get_mut(at) {
            Some(ring) if ring.priority == priority => ring.consumers.push_back(id),
            _ => self.rings.insert(
                at,
                Ring {
                    priority,
                    consumers: VecDeque::from([id]),
                },
            ),
        }
    }

    /// One lease of that consumer has ended.
    #[inline]
    pub fn release(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.get_mut(id) {
            consumer.outstanding = consumer.outstanding.saturating_sub(1);
            self.activate(id);
            if self.line.is_some() {
                self.succeed(id);
            }
        }
    }

    /// Tells every consumer that the queue has gone.
    pub fn cancel_all(self, wakes: &mut Wakes) {
        for (_, consumer) in self.all {
            wakes.add(
                consumer
                    .options
                    .outbox
                    .push_cancelled(consumer.options.handle),
            );
        }
    }
}
