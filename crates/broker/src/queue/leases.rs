//! Leases: messages that are out for delivery and come back unless they are settled.
//!
//! The one mechanism behind AMQP's unacknowledged messages; a lease without a consumer is a
//! basic.get. A slab, so that both ends are O(1) and one lease that stays out costs nothing more.

use slab::Slab;
use store::{Message, QueueSeq, QueueStore};

use super::State;
use super::arguments::QueueKind;
use super::consumers::ConsumerId;
use super::dead_letter::Reason;
use super::delivery::Wakes;
use super::lane::LaneId;
use super::lease_times::Times;
use super::ready::{Entry, MAX_IDLE_CAPACITY};
use super::rules::Rules;
use crate::clock::Millis;
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

/// A message that is out.
#[derive(Debug)]
pub(super) struct Lease {
    /// `None`: it lies in a segment, and would have to be read should it come back.
    pub message: Option<Message>,
    pub seq: QueueSeq,
    /// Of a message that lies in a segment.
    pub body_len: u32,
    pub lane: LaneId,
    /// `None` for a basic.get.
    pub consumer: Option<ConsumerId>,
}

impl Lease {
    /// On a message that is about to go out.
    #[inline(always)]
    pub fn new(
        store: &mut QueueStore,
        lane: LaneId,
        seq: QueueSeq,
        message: &Message,
        consumer: Option<ConsumerId>,
    ) -> Lease {
        store.note_delivered(seq);
        let in_segment = store.is_flushed(seq);
        Lease {
            message: (!in_segment).then(|| message.clone()),
            seq,
            body_len: if in_segment {
                message.body_len() as u32
            } else {
                0
            },
            lane,
            consumer,
        }
    }

    fn returned(self) -> Entry {
        Entry::returned(self.message, self.seq, self.body_len)
    }
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
    pub fn grant(&mut self, lease: Lease) -> LeaseId {
        // A slab of 2³² leases would need more memory than any machine has.
        LeaseId(self.out.insert(lease) as u32)
    }

    fn of_lane(&self, lane: LaneId) -> impl Iterator<Item = &Lease> {
        let all = self.out.iter().map(|(_, lease)| lease);
        all.filter(move |lease| lease.lane == lane)
    }

    /// Messages of a lane, from a place on, that are kept here, in order.
    pub fn resident_from(&self, lane: LaneId, from: QueueSeq) -> Vec<(QueueSeq, &Message)> {
        let mut found: Vec<_> = self
            .of_lane(lane)
            .filter(|lease| lease.seq >= from)
            .filter_map(|lease| Some((lease.seq, lease.message.as_ref()?)))
            .collect();
        found.sort_unstable_by_key(|(seq, _)| *seq);
        found
    }

    /// All places of a lane that are out, in order, and whether a persistent message is there.
    pub fn places(&self, lane: LaneId) -> Vec<(QueueSeq, bool)> {
        let mut places: Vec<_> = self
            .of_lane(lane)
            .map(|lease| {
                let message = lease.message.as_ref();
                (lease.seq, message.is_none_or(Message::is_persistent))
            })
            .collect();
        places.sort_unstable_by_key(|(seq, _)| *seq);
        places
    }

    #[inline(always)]
    fn end(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.out.try_remove(id.0 as usize);
        if self.out.is_empty() && self.out.capacity() > MAX_IDLE_CAPACITY {
            self.out = Slab::new();
        }
        lease
    }
}

impl State {
    // Always, so that the lease is not copied.
    #[inline(always)]
    fn end_lease(&mut self, id: LeaseId) -> Option<(Lease, Times)> {
        let lease = self.leases.end(id)?;
        if let Some(consumer) = lease.consumer {
            self.consumers.release(consumer);
        }
        let mut times = Times::default();
        if let Some(rules) = &mut self.rules {
            times = rules.leases.remove(id);
            if self.leases.len() == 0 {
                rules.leases.give_back();
            }
            self.release_group(id);
        }
        Some((lease, times))
    }

    /// Ends leases. Those that are not out are ignored: their queue was deleted meanwhile.
    pub fn settle(&mut self, leases: &[LeaseId], outcome: Outcome) {
        let mut returned = Vec::new();
        for id in leases {
            let Some((lease, times)) = self.end_lease(*id) else {
                continue;
            };
            if self.stream().is_some() {
                // It was credit; what is in a stream stays there.
                continue;
            }
            match outcome {
                Outcome::Requeue if self.has_come_back_too_often(&lease) => {
                    self.discard(lease.lane, lease.returned(), Reason::DeliveryLimit);
                }
                Outcome::Requeue if self.has_come_back_too_late(&lease, times) => {
                    self.discard(lease.lane, lease.returned(), Reason::Expired);
                }
                Outcome::Requeue => returned.push((lease.lane, lease.returned())),
                Outcome::Acknowledge => {
                    let store = &mut self.lanes.get_mut(lease.lane).store;
                    store.remove(lease.seq, lease.message.as_ref());
                }
                Outcome::Discard => self.discard(lease.lane, lease.returned(), Reason::Rejected),
            }
        }
        self.put_back(returned);
    }

    /// Counts that it comes back, where there is a limit.
    fn has_come_back_too_often(&mut self, lease: &Lease) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        if rules.settings.kind != QueueKind::Quorum {
            return false;
        }
        let limit = rules.settings.delivery_limit;
        let store = &mut self.lanes.get_mut(lease.lane).store;
        store.note_returned(lease.seq);
        limit.is_some_and(|limit| store.returns(lease.seq) > limit)
    }

    /// Puts messages back to their places.
    pub(super) fn put_back(&mut self, mut returned: Vec<(LaneId, Entry)>) {
        while let Some((lane, _)) = returned.first() {
            let lane = *lane;
            let of_lane: Vec<Entry> = returned
                .extract_if(.., |(other, _)| *other == lane)
                .map(|(_, entry)| entry)
                .collect();
            self.note_returned(lane, &of_lane);
            self.lanes.get_mut(lane).ready.put_back(of_lane);
        }
    }

    /// Puts back what no client has seen: not marked as redelivered unless it was before.
    pub fn take_back(&mut self, unsent: impl Iterator<Item = Delivery>) {
        if self.deleted {
            return;
        }
        let mut returned = Vec::new();
        for delivery in unsent {
            let (message, redelivered) = (delivery.message, delivery.redelivered);
            let (lane, seq) = match delivery.origin {
                Origin::Taken(seq) => (self.lanes.of_priority(message.priority()), seq),
                Origin::Leased(id)
                | Origin::SettledWhenSent(id)
                | Origin::Read { lease: id, .. } => match self.end_lease(id) {
                    Some((lease, _)) => (lease.lane, lease.seq),
                    None => continue,
                },
            };
            returned.push((lane, Entry::new(message, seq, redelivered)));
        }
        if self.stream().is_none() {
            self.put_back(returned);
        }
    }

    /// Tells the owners of consumers that have kept a message for too long.
    pub(super) fn call_in_leases(&mut self, wakes: &mut Wakes) {
        let State {
            leases,
            consumers,
            rules,
            ..
        } = self;
        let Some(rules) = rules else { return };
        while let Some(id) = rules.leases.take_due(rules.now) {
            let lease = leases.out.get(id.0 as usize);
            let consumer = lease.and_then(|lease| lease.consumer);
            if let Some(consumer) = consumer.and_then(|id| consumers.get_mut(id)) {
                let timeout = consumer.options.timeout.or(rules.settings.consumer_timeout);
                let options = &consumer.options;
                let waker = options
                    .outbox
                    .push_timed_out(options.handle, timeout.unwrap_or_default());
                wakes.add(waker);
            }
        }
    }
}

impl Rules {
    /// A lease was granted.
    #[inline]
    pub fn note_lease(
        &mut self,
        id: LeaseId,
        deadline: Millis,
        (lane, seq): (LaneId, QueueSeq),
        message: &Message,
        in_segment: bool,
    ) {
        let expires = in_segment.then(|| self.deadline(message)).flatten();
        let times = Times {
            deadline,
            expires: expires.unwrap_or(0),
        };
        self.leases.add(id, times);
        if let Some(groups) = &mut self.groups {
            groups.lease(id, message, lane, seq);
        }
    }

    /// When a lease that is granted now has been out for too long; 0 = never.
    #[inline]
    pub fn lease_deadline(&self, of_consumer: Option<Millis>) -> Millis {
        let timeout = of_consumer.or(self.settings.consumer_timeout);
        timeout.map_or(0, |timeout| self.now.saturating_add(timeout))
    }
}
