//! From ready to consumers: the hand-off, and basic.get.

use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;
use store::{Load, Message, Resident as _, Store};

use super::consumers::{ConsumerId, ConsumerOptions};
use super::leases::LeaseId;
use super::{MAX_PER_HOLD, Queue, State};
use crate::error::Error;
use crate::outbox::{Delivery, Origin};

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
    /// Messages still ready.
    pub remaining: usize,
}

/// The first message lies in a segment: it must be read, where no lock is held.
struct NotAtHand(Load);

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
        if state.consumers.exclusive || (options.exclusive && others) {
            return Err(Error::refused(format!(
                "{} in exclusive use",
                self.resource()
            )));
        }
        Ok(state.consumers.add(options))
    }

    /// Removes a consumer; its leases stay out. True if it was the queue's last one.
    pub(crate) fn remove_consumer(&self, id: ConsumerId) -> bool {
        self.change(|state| state.consumers.remove(id).is_some() && state.consumers.len() == 0)
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
                Err(NotAtHand(load)) => self.complete_load(store.load_now(load)?),
            }
        }
    }

    fn try_get(&self, no_ack: bool) -> Result<Option<Got>, NotAtHand> {
        let mut state = self.lock();
        if !state.ready.has_next() {
            return match state.load_next() {
                Some(load) => Err(NotAtHand(load)),
                None => Ok(None),
            };
        }
        let Some((message, seq, redelivered)) = state.ready.pop() else {
            return Ok(None);
        };
        let lease = if no_ack {
            state.store.remove(seq, Some(&message));
            None
        } else {
            state.store.note_delivered(seq);
            let kept = (!state.store.is_flushed(seq)).then(|| message.clone());
            Some(state.leases.grant(kept, seq, None))
        };
        state.settle_down();
        let remaining = state.ready.len();
        Ok(Some(Got {
            message,
            lease,
            redelivered,
            remaining,
        }))
    }
}

impl State {
    /// Moves ready messages to consumers with credit.
    ///
    /// Returns true where it stopped because it had held the lock long enough, not for want of
    /// messages or credit.
    pub(crate) fn dispatch(&mut self, wakes: &mut Wakes) -> bool {
        let mut budget = MAX_PER_HOLD;
        while self.ready.has_next() {
            let Some((id, alone)) = self.consumers.front() else {
                return false;
            };
            if budget == 0 {
                return true;
            }
            let wanted = if alone {
                self.ready.at_hand().take(budget).count()
            } else {
                1
            };
            let moved = self.hand_over(id, wanted, wakes);
            if moved < wanted {
                self.consumers.deactivate_front();
            } else if !alone {
                self.consumers.rotate();
            }
            budget -= moved;
        }
        false
    }

    /// Moves up to `wanted` messages to one consumer; fewer where its credit or room ends there.
    fn hand_over(&mut self, id: ConsumerId, wanted: usize, wakes: &mut Wakes) -> usize {
        let State {
            ready,
            leases,
            consumers,
            store,
            ..
        } = self;
        let Some(consumer) = consumers.get_mut(id) else {
            return 0;
        };
        let count = wanted.min(consumer.credit());
        if count == 0 {
            return 0;
        }
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
        for _ in 0..granted {
            let Some((message, seq, redelivered)) = ready.pop() else {
                break;
            };
            let origin = if leased {
                store.note_delivered(seq);
                let kept = (!store.is_flushed(seq)).then(|| message.clone());
                match no_ack {
                    true => Origin::SettledWhenSent(leases.grant(kept, seq, None)),
                    false => Origin::Leased(leases.grant(kept, seq, Some(id))),
                }
            } else {
                store.remove(seq, Some(&message));
                Origin::Taken(seq)
            };
            outbox.push(Delivery {
                message,
                origin,
                consumer: handle,
                redelivered,
            });
        }
        if !no_ack {
            consumer.outstanding += granted as u32;
        }
        wakes.add(outbox.release());
        granted
    }
}
