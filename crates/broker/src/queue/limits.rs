//! Limits on what waits: `x-max-length`, `x-max-length-bytes` and `x-overflow`.
//!
//! Only what waits counts, not what is out with consumers; of its bytes, those of bodies.

use store::{Lsn, Message, Record};

use super::State;
use super::dead_letter::Reason;
use super::settings::Overflow;

/// There was no room for a message, and none was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

impl State {
    /// Appends a message, unless there is no room for it; as [`State::append`] otherwise. One that
    /// is refused may be dead-lettered all the same.
    pub fn offer(
        &mut self,
        message: Message,
        record: &mut Record<'_>,
    ) -> Result<Option<Lsn>, Refused> {
        if !self.refuses(&message) {
            return Ok(self.append(std::iter::once(message), record));
        }
        let overflow = self.rules.as_ref().map(|rules| rules.settings.overflow);
        if overflow == Some(Overflow::RejectAndDeadLetter) {
            // It is in the queue for a moment, so that its way from there is as safe as others'.
            let lane = self.lanes.of_priority(message.priority());
            self.append(std::iter::once(message), record);
            if let Some(entry) = self.lanes.get_mut(lane).ready.pop_last() {
                self.discard(lane, entry, Reason::MaxLength);
            }
        }
        Err(Refused)
    }

    /// True if a message would be taken.
    pub fn takes(&self, message: &Message) -> bool {
        !self.deleted && !self.refuses(message)
    }

    /// True if there is no room for all of these, and none is made.
    pub fn refuses_any(&self, messages: &[Message]) -> bool {
        let bytes = messages.iter().map(|message| message.body_len() as u64);
        self.refuses_more(messages.len() as u64, bytes.sum())
    }

    /// True if there is no room for a message, and none is made.
    fn refuses(&self, message: &Message) -> bool {
        self.refuses_more(1, message.body_len() as u64)
    }

    fn refuses_more(&self, count: u64, bytes: u64) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        let settings = &rules.settings;
        settings.may_reject()
            && (exceeds(settings.max_length, self.len() as u64 + count)
                || exceeds(settings.max_length_bytes, self.lanes.body_bytes() + bytes))
    }

    /// Drops the first messages, at most so many, while there are too many; true if there still
    /// are. Where new ones are refused, it is a change of the limit that has made them too many:
    /// they stay.
    pub(super) fn trim(&mut self, most: usize) -> bool {
        for _ in 0..most {
            if !self.is_too_long() {
                return false;
            }
            let lane = self.lanes.first();
            let Some(entry) = self.pop_any(lane) else {
                return false;
            };
            self.discard(lane, entry, Reason::MaxLength);
        }
        self.is_too_long()
    }

    /// True if each new message may push out another one at once, which need not be the oldest.
    pub(super) fn trims_before_consumers(&self) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        let settings = &rules.settings;
        let limited = settings.max_length.is_some() || settings.max_length_bytes.is_some();
        limited && !settings.may_reject() && self.consumers.front().is_none()
    }

    fn is_too_long(&self) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        let settings = &rules.settings;
        !settings.may_reject()
            && !rules.dying.is_full()
            && !self.lanes.is_empty()
            && (exceeds(settings.max_length, self.len() as u64)
                || exceeds(settings.max_length_bytes, self.lanes.body_bytes()))
    }
}

fn exceeds(limit: Option<u64>, count: u64) -> bool {
    limit.is_some_and(|limit| count > limit)
}
