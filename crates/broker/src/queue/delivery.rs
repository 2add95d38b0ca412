//! From ready to consumers: the hand-off, and basic.get.

use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;
use store::{Load, Message, QueueSeq, Resident as _, Store};

use super::consumers::{ConsumerId, ConsumerOptions};
use super::lane::LaneId;
use super::leases::{Lease, LeaseId, Outcome};
use super::rules::Rules;
use super::settings::Settings;
use super::{MAX_PER_HOLD, Queue, State};
use crate::error::Error;
use crate::outbox::{Annotation, ConsumerHandle, Delivery, Origin, Outbox};

/// Connections to wake once locks are released.
#[derive(Debug, Default)]
pub struct Wakes(SmallVec<[Waker; 2]>);

impl Wakes {
    #[inline]
    pub(crate) fn add(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }

    /// Wakes them.
    #[inline]
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

/// What basic.get found.
#[derive(Debug)]
pub struct Got {
    /// The message.
    pub message: Message,
    /// The lease to settle; `None` for no-ack.
    pub lease: Option<LeaseId>,
    /// It was out for delivery before.
    pub redelivered: bool,
    /// What the queue adds to its headers.
    pub annotation: Annotation,
    /// Messages still ready.
    pub remaining: usize,
}

/// What came of removing consumers.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    any: bool,
    /// The queue has no consumers any more.
    pub last: bool,
    /// Leases on messages that were on their way, and were to be acknowledged.
    pub unsent: u32,
}

/// The first message lies in a segment: it must be read, where no lock is held.
struct NotAtHand(LaneId, Load);

impl Queue {
    /// Adds a consumer. What is ready it gets when it is resumed. Fails with 403 where an exclusive
    /// consumer is in the way, 404 where the queue has just gone.
    pub(crate) fn add_consumer(
        self: &Arc<Self>,
        options: ConsumerOptions,
    ) -> Result<ConsumerId, Error> {
        let mut state = self.lock();
        if state.deleted {
            return Err(Error::not_found(self.resource()));
        }
        let others = state.consumers.len() > 0;
        let one_at_a_time = state.consumers.is_single_active();
        if state.consumers.exclusive || (options.exclusive && (others || one_at_a_time)) {
            return Err(Error::refused(format!(
                "{} in exclusive use",
                self.resource()
            )));
        }
        if options.timeout.is_some() && state.rules.is_none() {
            state.rules = Some(Rules::new(Settings::default(), self.now()));
        }
        let reads = options.stream.clone();
        let id = state.consumers.add(options);
        if let Some(reads) = reads {
            state.start_reading(id, &reads);
        }
        Ok(id)
    }

    /// Removes consumers of one outbox. What was on its way to them returns to its place, and so do
    /// these leases; whoever consumes after them finds everything in order. Other leases of theirs
    /// stay out.
    pub(crate) fn remove_consumers(
        &self,
        consumers: &[(ConsumerId, ConsumerHandle)],
        outbox: &Outbox,
        unacked: &[LeaseId],
    ) -> Removed {
        self.change(|state| {
            let mut removed = Removed::default();
            for (id, _) in consumers {
                if let Some(stream) = state.stream() {
                    stream.stop(*id);
                }
                removed.any |= state.consumers.remove(*id).is_some();
            }
            removed.last = removed.any && state.consumers.len() == 0;
            if removed.last
                && let Some(rules) = &mut state.rules
            {
                rules.last_used = rules.now;
            }
            let is_theirs = |handle| consumers.iter().any(|(_, theirs)| *theirs == handle);
            let unsent = outbox.withdraw(is_theirs);
            let leased = |unsent: &&Delivery| unsent.origin.to_settle().is_some();
            removed.unsent = unsent.iter().filter(leased).count() as u32;
            state.take_back(unsent.into_iter());
            state.settle(unacked, Outcome::Requeue);
            removed
        })
    }

    /// Hands out more to a consumer that may have credit or room again.
    pub fn resume(&self, consumer: ConsumerId) {
        self.resume_all(&[consumer]);
    }

    /// Hands out more to several consumers, which take turns.
    pub fn resume_all(&self, consumers: &[ConsumerId]) {
        self.change(|state| {
            consumers
                .iter()
                .for_each(|id| state.consumers.activate(*id))
        });
    }

    /// Takes the first ready message. Where it lies in a segment it is read here and now: rare,
    /// and one short read.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&self, store: &Store, no_ack: bool) -> Result<Option<Got>, store::Error> {
        loop {
            match self.try_get(no_ack) {
                Ok(got) => return Ok(got),
                Err(NotAtHand(lane, load)) => {
                    let loaded = store.load_now(load)?;
                    if let Some(resident) = self.residents.get(usize::from(lane.0)) {
                        resident.complete_load(loaded);
                    }
                }
            }
        }
    }

    fn try_get(&self, no_ack: bool) -> Result<Option<Got>, NotAtHand> {
        self.change(|state| {
            if let Some(rules) = &mut state.rules {
                rules.last_used = rules.now;
            }
            state.get(no_ack)
        })
    }
}

impl State {
    fn get(&mut self, no_ack: bool) -> Result<Option<Got>, NotAtHand> {
        let mut lane = self.lanes.first();
        if self.rules.is_some() {
            self.skip_expired();
            // What is behind those that are in the way is looked for; nothing, if all are.
            self.skip_busy_groups();
            lane = self.lanes.first();
        }
        if self.is_held_up(lane) {
            return Ok(None);
        }
        if !self.lanes.get_mut(lane).ready.has_next() {
            return match self.load_next(lane) {
                Some(load) => Err(NotAtHand(lane, load)),
                None => Ok(None),
            };
        }
        let Some((message, seq, redelivered)) = self.lanes.get_mut(lane).ready.pop() else {
            return Ok(None);
        };
        let deliveries = self.deliveries(lane, seq);
        let lease = if no_ack {
            self.lanes.get_mut(lane).store.remove(seq, Some(&message));
            self.left_group(lane, seq);
            None
        } else {
            let store = &mut self.lanes.get_mut(lane).store;
            let lease = Lease::new(store, lane, seq, &message, None);
            let lease = self.leases.grant(lease);
            if let Some(rules) = &mut self.rules {
                let in_segment = store.is_flushed(seq);
                rules.note_lease(lease, 0, (lane, seq), &message, in_segment);
            }
            Some(lease)
        };
        Ok(Some(Got {
            message,
            lease,
            redelivered,
            annotation: Annotation::returned(deliveries),
            remaining: self.lanes.len(),
        }))
    }

    /// How often a message has come back, if the queue counts that.
    #[inline]
    fn deliveries(&self, lane: LaneId, seq: QueueSeq) -> u32 {
        match self.rules {
            Some(_) => self.lanes.get(lane).store.returns(seq),
            None => 0,
        }
    }
}

impl State {
    /// Moves ready messages to consumers with credit.
    ///
    /// Returns true where it stopped because it had held the lock long enough, not for want of
    /// messages or credit.
    pub(crate) fn dispatch(&mut self, wakes: &mut Wakes) -> bool {
        if self.stream().is_some() {
            return self.dispatch_stream(wakes);
        }
        let mut budget = MAX_PER_HOLD;
        loop {
            let mut lane = self.lanes.first();
            if self.rules.is_some() && self.consumers.front().is_some() {
                self.skip_expired();
                if !self.skip_busy_groups() {
                    return false;
                }
                lane = self.lanes.first();
            }
            if !self.lanes.get_mut(lane).ready.has_next() {
                return false;
            }
            let Some((id, alone)) = self.consumers.front() else {
                return false;
            };
            if budget == 0 {
                return true;
            }
            let wanted = match alone {
                true => self.wanted_at_once(lane, budget),
                false => 1,
            };
            let moved = self.hand_over(lane, id, wanted, wakes);
            if moved < wanted {
                self.consumers.deactivate_front();
            } else if !alone {
                self.consumers.rotate();
            }
            budget -= moved;
        }
    }

    /// How many of the first messages may be handed over together.
    #[inline]
    fn wanted_at_once(&mut self, lane: LaneId, most: usize) -> usize {
        let ready = &mut self.lanes.get_mut(lane).ready;
        match &self.rules {
            None => ready.at_hand().take(most).count(),
            // Each may make the next one wait.
            Some(rules) if rules.groups.is_some() => 1,
            Some(rules) => {
                let good = |(seq, message): &(QueueSeq, &Message)| {
                    let deadline = rules.deadline(message);
                    deadline.is_none_or(|deadline| deadline >= rules.now)
                        || rules.is_fresh(lane, *seq)
                };
                ready.places_at_hand().take(most).take_while(good).count()
            }
        }
    }

    /// Moves up to `wanted` messages to one consumer; fewer where its credit or room ends there.
    fn hand_over(
        &mut self,
        lane_id: LaneId,
        id: ConsumerId,
        wanted: usize,
        wakes: &mut Wakes,
    ) -> usize {
        let State {
            lanes,
            leases,
            consumers,
            rules,
            ..
        } = self;
        let Some(consumer) = consumers.get_mut(id) else {
            return 0;
        };
        let count = wanted.min(consumer.credit());
        if count == 0 {
            return 0;
        }
        let super::lane::Lane { ready, store, .. } = lanes.get_mut(lane_id);
        let ConsumerOptions { no_ack, handle, .. } = consumer.options;
        // What a log must know of is only gone once it has been sent.
        let leased = !no_ack || store.is_logged();
        let mut outbox = consumer.options.outbox.lock();
        // What fits is counted before the channel's limit is claimed, so that no claim is ever
        // given back: a consumer that is refused meanwhile would not hear of it.
        let lengths = ready.at_hand().take(count).map(Message::stored_len);
        let room = outbox.room_for(lengths);
        if room < count {
            outbox.stall(handle);
        }
        let granted = if no_ack {
            room
        } else {
            consumer.options.channel.acquire(room)
        };
        let deadline = match rules {
            Some(rules) if !no_ack => rules.lease_deadline(consumer.options.timeout),
            _ => 0,
        };
        let mut freed = Vec::new();
        for _ in 0..granted {
            let Some((message, seq, redelivered)) = ready.pop() else {
                break;
            };
            let deliveries = if rules.is_some() {
                store.returns(seq)
            } else {
                0
            };
            let origin = if leased {
                let consumer = (!no_ack).then_some(id);
                let lease = Lease::new(store, lane_id, seq, &message, consumer);
                let lease = leases.grant(lease);
                if let Some(rules) = rules {
                    let in_segment = store.is_flushed(seq);
                    rules.note_lease(lease, deadline, (lane_id, seq), &message, in_segment);
                }
                match no_ack {
                    true => Origin::SettledWhenSent(lease),
                    false => Origin::Leased(lease),
                }
            } else {
                store.remove(seq, Some(&message));
                let groups = rules.as_mut().and_then(|rules| rules.groups.as_mut());
                freed.extend(groups.and_then(|groups| groups.left(lane_id, seq)));
                Origin::Taken(seq)
            };
            outbox.push(Delivery {
                message,
                origin,
                consumer: handle,
                redelivered,
                returns: u16::try_from(deliveries).unwrap_or(u16::MAX),
            });
        }
        if !no_ack {
            consumer.outstanding += granted as u32;
        }
        wakes.add(outbox.release());
        if !freed.is_empty() {
            self.put_back(freed);
        }
        granted
    }
}
