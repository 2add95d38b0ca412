//! New messages: where each goes that a queue takes in.

use amqp::Properties;
use store::{Lsn, Message, QueueSeq, Record};

use super::lane::{Lane, LaneId};
use super::ready::Appended;
use super::rules::MAX_STEP;
use super::{State, stream};
use crate::clock::Millis;
use crate::deduplication::Window;

impl State {
    /// Adds messages; returns where in the log they are, if they are in a record of their own.
    #[inline]
    pub fn append(
        &mut self,
        messages: impl Iterator<Item = Message>,
        record: &mut Record<'_>,
    ) -> Option<Lsn> {
        if self.deleted {
            return None;
        }
        if self.is_special() {
            return self.append_specially(messages, record);
        }

        let (lsn, appended) = self.lanes.lowest().append(messages, record);
        self.appended(LaneId::default(), appended);
        lsn
    }

    /// True if new messages do not simply go to the end of the queue.
    #[inline]
    pub(super) fn is_special(&self) -> bool {
        !self.lanes.is_single()
            || self
                .rules
                .as_ref()
                .is_some_and(|rules| rules.takes_specially())
    }

    /// Begins to know messages again, with what a restart has found.
    pub(super) fn open_window(&mut self, now: Millis) {
        let Some(rules) = &mut self.rules else { return };
        let Some(deduplication) = rules.settings.deduplication.clone() else {
            return;
        };
        let Lane { ready, store, .. } = self.lanes.lowest();
        let mut window = Window::new(deduplication, store);
        for (_, message) in ready.resident_from(QueueSeq(0)) {
            window.note(message, now, store);
        }
        rules.window = Some(window);
    }

    /// Drops what has come before.
    fn admitted(&mut self, messages: impl Iterator<Item = Message>) -> Vec<Message> {
        let store = &mut self.lanes.lowest().store;
        let Some(rules) = &mut self.rules else {
            return messages.collect();
        };
        let now = rules.now;
        let Some(window) = &mut rules.window else {
            return messages.collect();
        };
        let is_new = |message: &Message| {
            let properties = Properties::from_wire(message.properties());
            window.admits(properties, now, store)
        };
        messages.filter(is_new).collect()
    }

    #[cold]
    fn append_specially(
        &mut self,
        messages: impl Iterator<Item = Message>,
        record: &mut Record<'_>,
    ) -> Option<Lsn> {
        let messages = self.admitted(messages).into_iter();
        if let Some(delay) = self.rules.as_mut().and_then(|rules| rules.delay.as_mut()) {
            let (lsn, new) = self.lanes.lowest().append_elsewhere(messages, record);
            for (seq, message) in new {
                delay.messages.add(seq, message);
            }
            return lsn;
        }
        if self.stream().is_some() {
            return self.append_to_stream(messages, record);
        }
        let mut last = None;
        if self.trims_before_consumers() {
            for message in messages {
                let lane = self.lanes.of_priority(message.priority());
                let message = std::iter::once(message);
                let (lsn, appended) = self.lanes.get_mut(lane).append(message, record);
                self.appended(lane, appended);
                self.expire(MAX_STEP);
                self.trim(1);
                last = last.max(lsn);
            }
            return last;
        }
        for (lane, messages) in self.lanes.sort(messages) {
            let messages = messages.into_iter();
            let (lsn, appended) = self.lanes.get_mut(lane).append(messages, record);
            self.appended(lane, appended);
            last = last.max(lsn);
        }
        last
    }

    /// The last messages of a lane are new.
    #[inline]
    fn appended(&mut self, lane: LaneId, appended: Appended) {
        if self.rules.is_some() || appended.timed {
            self.note_deadlines(lane, appended.count);
        }
    }

    /// Adds messages to the end of the stream; all of them are kept.
    fn append_to_stream(
        &mut self,
        messages: impl Iterator<Item = Message>,
        record: &mut Record<'_>,
    ) -> Option<Lsn> {
        let now = self.rules.as_ref().map_or(0, |rules| rules.now);
        let messages = messages.map(|message| stream::kept(message, now));
        let (lsn, new) = self.lanes.lowest().append_elsewhere(messages, record);
        let stream = self.stream()?;
        new.into_iter()
            .for_each(|(seq, message)| stream.add(seq, message));
        for consumer in stream.take_waiting() {
            self.consumers.activate(consumer);
        }
        lsn
    }
}
