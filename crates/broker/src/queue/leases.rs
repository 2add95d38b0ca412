//! Leases: messages that are out for delivery and come back unless they are settled.
//!
//! The one mechanism behind AMQP's unacknowledged messages; a lease without a consumer is a
//! basic.get. A slab, so that both ends are O(1) and one lease that stays out costs nothing more.

use slab::Slab;
use store::{Message, QueueSeq};

use super::State;
use super::consumers::ConsumerId;
use super::ready::{Entry, MAX_IDLE_CAPACITY};
use crate::outbox::{Delivery, Origin};

/// A lease, unique in its queue while it is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(pub u32);

/// How a lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done: the message is gone.
    Acknowledge,
    /// Refused: the message is gone, or dead-lettered.
    Discard,
    /// Back to its place, marked as redelivered.
    Requeue,
}

#[derive(Debug)]
struct Lease {
    /// `None`: it lies in a segment, and would have to be read should it come back.
    message: Option<Message>,
    seq: QueueSeq,
    consumer: Option<ConsumerId>,
}

#[derive(Debug, Default)]
pub(super) struct Leases {
    out: Slab<Lease>,
}

impl Leases {
    pub fn len(&self) -> usize {
        self.out.len()
    }

    #[inline]
    pub fn grant(
        &mut self,
        message: Option<Message>,
        seq: QueueSeq,
        consumer: Option<ConsumerId>,
    ) -> LeaseId {
        let lease = Lease {
            message,
            seq,
            consumer,
        };
        // A slab of 2³² leases would need more memory than any machine has.
        LeaseId(self.out.insert(lease) as u32)
    }

    /// Messages from a place on that are kept here, in order.
    pub fn resident_from(&self, from: QueueSeq) -> Vec<(QueueSeq, &Message)> {
        let mut found: Vec<_> = self
            .out
            .iter()
            .filter(|(_, lease)| lease.seq >= from)
            .filter_map(|(_, lease)| Some((lease.seq, lease.message.as_ref()?)))
            .collect();
        found.sort_unstable_by_key(|(seq, _)| *seq);
        found
    }

    /// All places that are out, in order, and whether a persistent message is there.
    pub fn places(&self) -> Vec<(QueueSeq, bool)> {
        let mut places: Vec<_> = self
            .out
            .iter()
            .map(|(_, lease)| {
                let message = lease.message.as_ref();
                (lease.seq, message.is_none_or(Message::is_persistent))
            })
            .collect();
        places.sort_unstable_by_key(|(seq, _)| *seq);
        places
    }

    fn end(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.out.try_remove(id.0 as usize);
        if self.out.is_empty() && self.out.capacity() > MAX_IDLE_CAPACITY {
            self.out = Slab::new();
        }
        lease
    }
}

impl State {
    /// Ends leases. Those that are not out are ignored: their queue was deleted meanwhile.
    pub fn settle(&mut self, leases: &[LeaseId], outcome: Outcome) {
        let mut returned = Vec::new();
        for id in leases {
            let Some(lease) = self.leases.end(*id) else {
                continue;
            };
            if let Some(consumer) = lease.consumer {
                self.consumers.release(consumer);
            }
            match outcome {
                Outcome::Requeue => returned.push(Entry {
                    message: lease.message,
                    seq: lease.seq,
                    redelivered: true,
                }),
                Outcome::Acknowledge | Outcome::Discard => {
                    self.store.remove(lease.seq, lease.message.as_ref());
                }
            }
        }
        if !returned.is_empty() {
            self.ready.put_back(returned);
        }
    }

    /// Puts back what no client has seen: not marked as redelivered unless it was before.
    pub fn take_back(&mut self, unsent: impl Iterator<Item = Delivery>) {
        if self.deleted {
            return;
        }
        let mut returned = Vec::new();
        for delivery in unsent {
            let seq = match delivery.origin {
                Origin::Taken(seq) => seq,
                Origin::Leased(id) | Origin::SettledWhenSent(id) => match self.leases.end(id) {
                    Some(lease) => {
                        if let Some(consumer) = lease.consumer {
                            self.consumers.release(consumer);
                        }
                        lease.seq
                    }
                    None => continue,
                },
            };
            let (message, redelivered) = (delivery.message, delivery.redelivered);
            returned.push(Entry {
                message: Some(message),
                seq,
                redelivered,
            });
        }
        self.ready.put_back(returned);
    }
}
