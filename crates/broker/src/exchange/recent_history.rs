//! `x-recent-history`: routes as a fanout exchange does, and keeps the last messages, which every new
//! binding's destination gets first.
//!
//! A history is in memory only: a restart empties it. It keeps as many messages as its exchange's
//! `x-recent-history-length` says, and 64 MiB at most; the oldest go first. Its mutex comes after the
//! topology's lock. A binding changes the topology and takes what it will get under the lock of the
//! topology; whoever publishes says as of how many bindings its route was found. So each message comes
//! to a new destination once: with the history, or by a route.

use std::collections::VecDeque;
use std::sync::Arc;

use amqp::{FieldTable, FieldValue, Properties, Value};
use parking_lot::{Condvar, Mutex};
use store::Message;

use super::{ExchangeKind, delayed_message};
use crate::binding::Destination;
use crate::error::Error;
use crate::terms::Term;

const LENGTH: &str = "x-recent-history-length";
/// Set to `true` in a message's headers, it is not kept.
const NO_STORE: &str = "x-recent-history-no-store";
const DEFAULT_LENGTH: usize = 20;
/// Bytes that a history keeps at most.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// What a message costs besides its bytes.
const OVERHEAD: usize = 64;

/// The last messages of one exchange.
#[derive(Debug)]
pub(crate) struct History {
    /// Messages that it keeps at most.
    length: usize,
    state: Mutex<State>,
    /// No replay is going on any more.
    replayed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    bytes: usize,
    /// Bindings that were made so far.
    bindings: u64,
    /// Replays that are going on.
    replays: usize,
}

/// A history on a message's way, as of when the way was found.
#[derive(Debug, Clone)]
pub(crate) struct Passage {
    pub history: Arc<History>,
    bindings: u64,
}

/// What a new binding's destination gets. Until this is dropped, publishers wait.
pub(crate) struct Replay {
    history: Arc<History>,
    pub messages: Vec<Message>,
    pub destination: Destination,
}

/// The history of a new exchange of that type.
pub(super) fn history(kind: ExchangeKind, arguments: &FieldTable) -> Option<Arc<History>> {
    let keeps = delayed_message::routed_as(kind, arguments) == ExchangeKind::RecentHistory;
    keeps.then(|| {
        let length = arguments.get(LENGTH).and_then(FieldValue::as_i64);
        let length = length.and_then(|length| usize::try_from(length).ok());
        Arc::new(History {
            length: length.unwrap_or(DEFAULT_LENGTH),
            state: Mutex::default(),
            replayed: Condvar::new(),
        })
    })
}

/// Checks the arguments of a new exchange; types and text are the plugin's.
pub(super) fn validate(arguments: &FieldTable) -> Result<(), Error> {
    match arguments.get(LENGTH) {
        None => Ok(()),
        Some(FieldValue::I8(1..) | FieldValue::I16(1..)) => Ok(()),
        Some(FieldValue::I32(1..) | FieldValue::I64(1..)) => Ok(()),
        Some(other) => Err(Error::precondition(format!(
            "Invalid argument {}, '{LENGTH}' must be a positive integer",
            Term(other)
        ))),
    }
}

/// True for a message that no history is to keep.
fn stays_out(message: &Message) -> bool {
    let headers = Properties::from_wire(message.properties()).headers();
    headers.and_then(|headers| headers.get(NO_STORE)) == Some(Value::Bool(true))
}

impl History {
    /// For a route that is being found, under the topology's lock.
    pub fn passage(self: &Arc<Self>) -> Passage {
        Passage {
            history: self.clone(),
            bindings: self.state.lock().bindings,
        }
    }

    /// A binding is new: what its destination gets, if that is anything. Under the topology's lock.
    pub fn replay_to(self: &Arc<Self>, destination: Destination) -> Option<Replay> {
        let mut state = self.state.lock();
        state.bindings += 1;
        if state.messages.is_empty() {
            return None;
        }
        state.replays += 1;
        Some(Replay {
            history: self.clone(),
            messages: state.messages.iter().cloned().collect(),
            destination,
        })
    }

    fn keep(&self, state: &mut State, message: &Message) {
        state.bytes += message.stored_len() + OVERHEAD;
        state.messages.push_back(message.clone());
        while state.messages.len() > self.length || state.bytes > MAX_BYTES {
            let Some(oldest) = state.messages.pop_front() else {
                break;
            };
            state.bytes -= oldest.stored_len() + OVERHEAD;
        }
    }
}

impl Passage {
    /// Keeps a message of a publisher, once what is being replayed has arrived. False if there are
    /// bindings that the route does not know: then nothing has happened.
    #[must_use]
    pub fn remember(&self, message: &Message) -> bool {
        if stays_out(message) {
            return true;
        }
        let mut state = self.history.state.lock();
        if state.bindings != self.bindings {
            return false;
        }
        while state.replays > 0 {
            self.history.replayed.wait(&mut state);
        }
        // A binding may have come meanwhile.
        if state.bindings != self.bindings {
            return false;
        }
        self.history.keep(&mut state, message);
        true
    }

    /// Keeps a message that comes from inside the broker, where nobody may wait.
    pub fn remember_now(&self, message: &Message) {
        if !stays_out(message) {
            self.history.keep(&mut self.history.state.lock(), message);
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.history.state.lock().replays -= 1;
        self.history.replayed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use store::MessageHead;

    use super::*;

    fn message(body: &[u8]) -> Message {
        let head = MessageHead {
            exchange: b"x",
            routing_key: b"",
            properties: &[0, 0],
            persistent: false,
            priority: 0,
            times: None,
            has_bcc: false,
        };
        Message::new(&head, body)
    }

    fn with_length(length: i64) -> Arc<History> {
        let arguments = FieldTable::new().with(LENGTH, length);
        history(ExchangeKind::RecentHistory, &arguments).expect("it has one")
    }

    fn kept(history: &Arc<History>) -> usize {
        let replay = history.replay_to(Destination::Exchange("x".into()));
        replay.map_or(0, |replay| replay.messages.len())
    }

    #[test]
    fn large_messages_take_the_oldest_with_them() {
        let history = with_length(1_000);
        let large = message(&vec![0; MAX_BYTES / 4]);
        for _ in 0..10 {
            assert!(history.passage().remember(&large));
        }
        assert_eq!(kept(&history), 3);
        assert!(history.passage().remember(&message(&vec![0; MAX_BYTES])));
        assert_eq!(kept(&history), 0);
        assert_eq!(history.state.lock().bytes, 0);
    }

    #[test]
    fn a_route_that_misses_a_binding_is_told_so() {
        let history = with_length(2);
        let before = history.passage();
        assert!(before.remember(&message(b"1")));
        let replay = history.replay_to(Destination::Exchange("y".into()));
        assert_eq!(replay.map(|replay| replay.messages.len()), Some(1));
        assert!(!before.remember(&message(b"2")));
        assert!(history.passage().remember(&message(b"2")));
        assert_eq!(kept(&history), 2);
    }
}
