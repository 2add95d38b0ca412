//! What a queue does beyond keeping messages in order, and what it has to remember for it. A queue
//! without arguments, policies and messages that expire has none of this.
//!
//! Whatever takes long happens in steps, each under a hold of the lock of its own: the first with
//! whoever caused it, the others when the timer calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;
use store::QueueSeq;

use super::dead_letter::Dying;
use super::delay::Delayed;
use super::delivery::Wakes;
use super::expiry::Deadlines;
use super::groups::Groups;
use super::lane::LaneId;
use super::lease_times::LeaseTimes;
use super::settings::Settings;
use super::stream::Stream;
use super::{Queue, State};
use crate::burial;
use crate::clock::Millis;
use crate::deduplication::Window;
use crate::timer::Timed;

/// Messages that leave under one hold of the lock because of a rule.
pub(super) const MAX_STEP: usize = 512;

/// A queue's rules and what they need.
#[derive(Debug)]
pub(super) struct Rules {
    pub settings: Settings,
    /// Since when: messages that do not say when they came count from then.
    pub since: Millis,
    /// The time of this hold of the lock.
    pub now: Millis,
    pub deadlines: Deadlines,
    /// By lane, from where on messages have come under this hold of the lock.
    pub fresh: SmallVec<[(LaneId, QueueSeq); 1]>,
    pub dying: Dying,
    pub leases: LeaseTimes,
    /// For the queue of an exchange that delays messages: they do not wait for consumers.
    pub delay: Option<Delay>,
    /// For a stream.
    pub stream: Option<Stream>,
    /// With `x-message-deduplication`.
    pub window: Option<Window>,
    /// With `x-leveret-message-groups`.
    pub groups: Option<Groups>,
    /// When a stream is looked at for what is too old.
    pub next_look: Option<Millis>,
    /// When somebody last used the queue.
    pub last_used: Millis,
    /// When the timer is going to call.
    pub scheduled: Option<Millis>,
}

/// What an exchange holds back.
#[derive(Debug)]
pub(super) struct Delay {
    pub exchange: Arc<str>,
    pub messages: Delayed,
}

impl Rules {
    /// True if new messages do not simply go to the end of the queue.
    pub fn takes_specially(&self) -> bool {
        self.delay.is_some() || self.stream.is_some() || self.window.is_some()
    }

    /// Bytes in memory of messages that do not wait for consumers; `None` if all do.
    pub fn resident_bytes(&self) -> Option<usize> {
        let delayed = self.delay.as_ref().map(|delay| delay.messages.bytes());
        delayed.or(self.stream.as_ref().map(Stream::bytes))
    }

    /// Messages that wait for their time.
    pub fn delayed(&self) -> usize {
        self.delay.as_ref().map_or(0, |delay| delay.messages.len())
    }

    pub fn new(settings: Settings, now: Millis) -> Box<Rules> {
        Box::new(Rules {
            groups: settings.message_groups.then(Groups::default),
            settings,
            since: now,
            now,
            deadlines: Deadlines::default(),
            fresh: SmallVec::new(),
            dying: Dying::default(),
            leases: LeaseTimes::default(),
            delay: None,
            stream: None,
            window: None,
            next_look: None,
            last_used: now,
            scheduled: None,
        })
    }
}

/// What whoever publishes to a queue must know of its rules, without its lock. When they change,
/// routes are looked up anew.
#[derive(Debug)]
pub(crate) struct Traits {
    timed: AtomicBool,
    may_reject: AtomicBool,
}

impl Traits {
    /// `delaying`: its messages wait for their time.
    pub fn new(settings: Option<&Settings>, delaying: bool) -> Self {
        let traits = Traits {
            timed: AtomicBool::new(delaying),
            may_reject: AtomicBool::new(false),
        };
        if let Some(settings) = settings.filter(|_| !delaying) {
            traits.set(settings);
        }
        traits
    }

    fn set(&self, settings: &Settings) {
        self.timed.store(settings.is_timed(), Ordering::Relaxed);
        self.may_reject
            .store(settings.may_reject(), Ordering::Relaxed);
    }

    /// Its messages must say when they came.
    pub fn timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }

    /// It may refuse messages.
    pub fn may_reject(&self) -> bool {
        self.may_reject.load(Ordering::Relaxed)
    }
}

/// What is left to do once the lock is released.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct After {
    /// Messages wait to be dead-lettered.
    pub bury: bool,
}

impl Queue {
    /// Does what the rules say, after a change.
    pub(super) fn keep_rules(&self, state: &mut State) -> After {
        if let Some(rules) = &mut state.rules {
            rules.fresh.clear();
        }
        state.release_due();
        let too_much = state.keep_stream_short();
        let mut more = state.expire(MAX_STEP);
        more |= state.trim(MAX_STEP) || too_much;
        let next = match more {
            true => Some(self.timer.clock.now()),
            false => state.next_deadline(),
        };
        let Some(rules) = &mut state.rules else {
            return After::default();
        };
        if let Some(at) = next {
            self.call_at(rules, at);
        }
        After {
            bury: rules.dying.wants_burial(),
        }
    }

    /// Has the timer call at that time, unless it does so before.
    fn call_at(&self, rules: &mut Rules, at: Millis) {
        if rules.scheduled.is_none_or(|scheduled| at < scheduled) {
            rules.scheduled = Some(at);
            self.timer.schedule(self.id, at, self.me.clone());
        }
    }

    /// Leaves to the timer what waits to be dead-lettered.
    pub(crate) fn bury_later(&self) {
        let mut state = self.lock();
        if let Some(rules) = &mut state.rules
            && rules.dying.wants_burial()
        {
            self.call_at(rules, self.timer.clock.now());
        }
    }

    /// Other rules apply from now on. What that asks for is done when the timer calls.
    pub(super) fn set_rules(&self, settings: Settings) {
        let now = self.timer.clock.now();
        self.traits.set(&settings);
        let mut state = self.lock();
        if state.set_rules(settings, now)
            && let Some(rules) = &mut state.rules
        {
            rules.scheduled = Some(now);
            self.timer.schedule(self.id, now, self.me.clone());
        }
    }

    /// Somebody uses the queue: it does not expire for a while.
    pub(crate) fn touch(&self) {
        let mut state = self.lock();
        if let Some(rules) = &mut state.rules {
            rules.last_used = self.timer.clock.now();
        }
    }
}

impl Timed for Queue {
    fn tick(&self) {
        let expired = {
            let mut state = self.lock();
            state.refresh(&self.timer.clock);
            if let Some(rules) = &mut state.rules {
                rules.scheduled = None;
            }
            !state.deleted && state.is_unused_for_too_long()
        };
        if expired
            && let Some(vhost) = self.vhost_ref.upgrade()
            && let Some(me) = self.me.upgrade()
        {
            vhost.expire_queue(&me);
        }
        let mut late = Wakes::default();
        let ((), After { bury }) = self.change_only(|state| {
            state.retry_burial();
            state.call_in_leases(&mut late);
        });
        late.wake();
        if bury && let Some(me) = self.me.upgrade() {
            burial::bury_and_read([me]);
        }
    }
}

impl State {
    /// Looks at the clock, where time matters.
    #[inline]
    pub(super) fn refresh(&mut self, clock: &crate::clock::Clock) {
        if let Some(rules) = &mut self.rules {
            rules.now = clock.now();
        }
    }

    /// True if they are others than before.
    fn set_rules(&mut self, settings: Settings, now: Millis) -> bool {
        let rules = match &mut self.rules {
            Some(rules) if rules.settings == settings => return false,
            Some(rules) => rules,
            None if settings.is_plain() => return false,
            None => {
                self.rules = Some(Rules::new(settings, now));
                return true;
            }
        };
        let before = std::mem::replace(&mut rules.settings, settings);
        // A stream may now be too long.
        rules.next_look = None;
        if before.message_ttl.is_none() {
            rules.since = now;
        }
        // Whoever has just got a time to live has been used until now.
        if before.expires.is_none() {
            rules.last_used = now;
        }
        if rules.settings.message_ttl != before.message_ttl {
            rules.leases.forget_expiries();
        }
        let ttl = |settings: &Settings| settings.message_ttl.unwrap_or(Millis::MAX);
        if ttl(&rules.settings) > ttl(&before) {
            // What was to expire in order of places, because all of it was, may no longer do so.
            self.note_recovered(now);
        }
        true
    }

    /// As [`State::refresh`], with a time that was read already.
    pub(crate) fn refresh_at(&mut self, now: Millis) {
        if let Some(rules) = &mut self.rules {
            rules.now = now;
        }
    }

    /// When something is to happen next.
    fn next_deadline(&mut self) -> Option<Millis> {
        let expiry = self.next_expiry();
        let consumers = self.consumers.len();
        let rules = self.rules.as_ref()?;
        let unused = rules.settings.expires.filter(|_| consumers == 0);
        let unused = unused.map(|after| rules.last_used.saturating_add(after));
        let retry = rules.dying.retry_at();
        // Moving what is due comes back to this.
        let delay = rules.delay.as_ref().filter(|_| !rules.dying.is_full());
        let due = delay.and_then(|delay| delay.messages.next());
        let too_old = rules.settings.max_age.and(rules.next_look);
        [expiry, unused, retry, due, too_old, rules.leases.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// True if the queue is to go because nobody has used it.
    pub(crate) fn is_unused_for_too_long(&self) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        let expires = rules.settings.expires.filter(|_| self.consumers.len() == 0);
        expires.is_some_and(|after| rules.last_used.saturating_add(after) <= rules.now)
    }
}
