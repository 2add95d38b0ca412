//! `x-message-deduplication` of an exchange: what has been published to it lately is not published
//! again.
//!
//! The window has a stream of its own in the log, of which it uses nothing but the identities. One
//! becomes known when the message goes to its queues, and is logged after the message: whoever was
//! told of nothing may send it again, and it is not lost.

use std::sync::Arc;

use amqp::Properties;
use parking_lot::Mutex;
use store::{
    Flush, FlushGoal, Loaded, Message, QueueSeq, QueueStore, RecoveredQueue, Resident, Written,
};

use crate::deduplication::{Deduplication, Window};
use crate::timer::Timer;

/// An exchange's window.
#[derive(Debug)]
pub(crate) struct ExchangeWindow {
    /// Its stream in the log.
    pub stream: store::StreamId,
    /// It outlasts a restart.
    pub logged: bool,
    timer: Arc<Timer>,
    state: Mutex<(Window, QueueStore)>,
}

impl ExchangeWindow {
    /// With what a restart has found.
    pub fn new(rules: Deduplication, found: RecoveredQueue, timer: Arc<Timer>) -> Arc<Self> {
        let store = found.store;
        Arc::new(ExchangeWindow {
            stream: store.stream(),
            logged: store.is_logged(),
            timer,
            state: Mutex::new((Window::new(rules, &store), store)),
        })
    }

    /// True if the message is new. [`ExchangeWindow::keep`] or [`ExchangeWindow::forget`] follows,
    /// once it is known what has become of it.
    pub fn admits(&self, message: &Message) -> bool {
        let now = self.timer.clock.now();
        let (window, store) = &mut *self.state.lock();
        window.admits(Properties::from_wire(message.properties()), now, store)
    }

    /// What was admitted is with its queues.
    pub fn keep(&self) {
        self.state.lock().1.log_remembered();
    }

    /// It is not: it may come again.
    pub fn forget(&self, message: &Message) {
        let (window, store) = &mut *self.state.lock();
        window.forget(Properties::from_wire(message.properties()), store);
    }

    /// The exchange has gone, and the log knows.
    pub fn release_store(&self) {
        self.state.lock().1.close();
    }
}

/// To the store it is a queue without messages.
impl Resident for ExchangeWindow {
    fn begin_flush(&self, _: FlushGoal) -> Option<Flush> {
        None
    }

    fn abort_flush(&self) {}

    fn complete_flush(&self, _: Written) {}

    fn complete_load(&self, _: Loaded) {}

    fn resident_bytes(&self) -> usize {
        0
    }

    fn with_store(&self, act: &mut dyn FnMut(&mut QueueStore, QueueSeq)) {
        act(&mut self.state.lock().1, QueueSeq(0));
    }
}
