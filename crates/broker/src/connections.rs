//! The open connections: whose they are, how to reach their owners, and which of them must end.
//!
//! One mutex guards the table. That none must end, which is what connections ask whenever they are
//! woken, is told without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use ahash::HashMap;
use parking_lot::Mutex;

use crate::access::Users;
use crate::name::ConnectionId;
use crate::outbox::Outbox;
use crate::session::Session;

/// The open connections.
#[derive(Debug, Default)]
pub struct Connections {
    next_id: AtomicU64,
    open: Mutex<HashMap<ConnectionId, Open>>,
    stopping: AtomicBool,
    /// How many of the open ones have been told to end.
    ending: AtomicUsize,
}

#[derive(Debug)]
struct Open {
    outbox: Arc<Outbox>,
    user: Arc<str>,
    vhost: Arc<str>,
    /// Why it must end.
    reason: Option<Arc<str>>,
}

impl Connections {
    /// An id for a client that has just come.
    pub fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Registers a connection whose handshake is done, of one of these users.
    pub fn open(&self, session: &Session, outbox: Arc<Outbox>, users: &Users) {
        let id = session.connection;
        let open = Open {
            outbox,
            user: session.user.name.clone(),
            vhost: session.vhost.name.clone(),
            reason: None,
        };
        self.open.lock().insert(id, open);
        // Whoever deletes a vhost or a user looks for its connections afterwards: one of us sees the
        // other.
        let reason = if session.vhost.is_dissolved() {
            deleted_vhost(&session.vhost.name)
        } else if users.get(&session.user.name).is_none() {
            deleted_user(&session.user.name)
        } else {
            return;
        };
        self.end_where(&reason, |connection, _, _| connection == id);
    }

    /// Forgets a connection.
    pub fn close(&self, id: ConnectionId) {
        let closed = self.open.lock().remove(&id);
        if closed.is_some_and(|open| open.reason.is_some()) {
            self.ending.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Number of open connections.
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Wakes every connection's task, to look at alarms and at [`Connections::must_end`].
    pub fn wake_all(&self) {
        let open = self.open.lock();
        let outboxes: Vec<Arc<Outbox>> = open.values().map(|open| open.outbox.clone()).collect();
        drop(open);
        outboxes.iter().for_each(|outbox| outbox.wake());
    }

    /// Asks every connection to close with 320.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Asks the connections to a vhost that is gone to close with 320.
    pub(crate) fn end_of_vhost(&self, name: &str) {
        self.end_where(&deleted_vhost(name), |_, _, vhost| vhost == name);
    }

    /// Asks the connections of a user that is gone to close with 320.
    pub(crate) fn end_of_user(&self, name: &str) {
        self.end_where(&deleted_user(name), |_, user, _| user == name);
    }

    /// Asks those to close, chosen by their id, user and vhost.
    fn end_where(&self, reason: &str, chosen: impl Fn(ConnectionId, &str, &str) -> bool) {
        let reason: Arc<str> = reason.into();
        let mut outboxes = Vec::new();
        for (id, open) in self.open.lock().iter_mut() {
            if open.reason.is_none() && chosen(*id, &open.user, &open.vhost) {
                open.reason = Some(reason.clone());
                self.ending.fetch_add(1, Ordering::AcqRel);
                outboxes.push(open.outbox.clone());
            }
        }
        outboxes.iter().for_each(|outbox| outbox.wake());
    }

    /// Why a connection must be closed with 320, if it must.
    #[inline]
    pub fn must_end(&self, id: ConnectionId) -> Option<Arc<str>> {
        if self.stopping.load(Ordering::Acquire) {
            return Some("broker forced connection closure with reason 'shutdown'".into());
        }
        if self.ending.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.open.lock().get(&id)?.reason.clone()
    }
}

fn deleted_user(name: &str) -> String {
    format!("user '{name}' is deleted")
}

fn deleted_vhost(name: &str) -> String {
    format!("vhost '{name}' is deleted")
}
