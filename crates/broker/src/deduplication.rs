//! Deduplication: a message whose identity has come lately is dropped (`x-message-deduplication`,
//! with LavinMQ's names; for queues and exchanges).
//!
//! Identities are kept in the log: a publisher that does not know what became of a message before a
//! crash may send it again after it. The window is bounded by count, and by time if that is set.

use ahash::HashMap;
use amqp::{FieldTable, FieldValue, Properties, Value};
use sha2::{Digest as _, Sha256};
use store::{Identity, Message, QueueStore};

use crate::clock::Millis;

const ENABLED: &str = "x-message-deduplication";
const SIZE: &str = "x-cache-size";
const TTL: &str = "x-cache-ttl";
const HEADER: &str = "x-deduplication-header";
/// All of them.
pub(crate) const ARGUMENTS: [&str; 4] = [ENABLED, SIZE, TTL, HEADER];
/// LavinMQ's.
const DEFAULT_SIZE: usize = 128;
/// The largest window: 24 MB in each manifest.
const MAX_SIZE: usize = 1_000_000;

/// What makes messages the same, and for how long that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deduplication {
    header: Box<str>,
    size: usize,
    ttl: Option<Millis>,
}

impl Deduplication {
    /// `None` where the arguments do not ask for it.
    pub fn of(arguments: &FieldTable) -> Option<Deduplication> {
        if arguments.get(ENABLED) != Some(&FieldValue::Bool(true)) {
            return None;
        }
        let number = |name| {
            let value = arguments.get(name).and_then(FieldValue::as_i64);
            value.and_then(|number| u64::try_from(number).ok())
        };
        let size = number(SIZE).map_or(DEFAULT_SIZE, |size| {
            usize::try_from(size).unwrap_or(MAX_SIZE)
        });
        let header = arguments.get(HEADER).and_then(FieldValue::as_str);
        Some(Deduplication {
            header: header.unwrap_or(HEADER).into(),
            size: size.clamp(1, MAX_SIZE),
            ttl: number(TTL),
        })
    }

    /// What a message is recognized by, and for how long; `None` if it does not say what it is.
    fn identify(&self, properties: Properties<'_>) -> Option<(Identity, Option<Millis>)> {
        let headers = properties.headers()?;
        let identity = match headers.get(&self.header)? {
            Value::LongStr(text) => hash(&[b"S", text]),
            number => hash(&[b"l", &number.as_i64()?.to_be_bytes()]),
        };
        let own = headers.get(TTL).and_then(|ttl| ttl.as_i64());
        let own = own.and_then(|ttl| Millis::try_from(ttl).ok());
        Some((identity, own.or(self.ttl)))
    }
}

fn hash(parts: &[&[u8]]) -> Identity {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    let digest = hasher.finalize();
    let mut identity = Identity::default();
    identity.copy_from_slice(&digest[..16]);
    identity
}

/// Identities that have come lately. The list itself is the store's.
#[derive(Debug)]
pub(crate) struct Window {
    rules: Deduplication,
    /// Until when each is known.
    known: HashMap<Identity, Millis>,
}

impl Window {
    /// With what a restart has found.
    pub fn new(rules: Deduplication, store: &QueueStore) -> Window {
        Window {
            known: store.remembered().copied().collect(),
            rules,
        }
    }

    /// True if the message is new: from now on it is known.
    pub fn admits(
        &mut self,
        properties: Properties<'_>,
        now: Millis,
        store: &mut QueueStore,
    ) -> bool {
        let Some((identity, ttl)) = self.rules.identify(properties) else {
            return true;
        };
        if self.known.get(&identity).is_some_and(|until| now < *until) {
            return false;
        }
        let until = ttl.map_or(Millis::MAX, |ttl| now.saturating_add(ttl));
        self.known.insert(identity, until);
        store.remember(identity, until);
        while store.remembered().len() > self.rules.size {
            let Some((oldest, until)) = store.forget_oldest() else {
                break;
            };
            // It may have come again since.
            if self.known.get(&oldest) == Some(&until) {
                self.known.remove(&oldest);
            }
        }
        true
    }

    /// A message that was admitted has not been taken.
    pub fn forget(&mut self, properties: Properties<'_>, store: &mut QueueStore) {
        if let Some((identity, _)) = self.rules.identify(properties) {
            self.known.remove(&identity);
            store.forget(identity);
        }
    }

    /// A restart has found the message; what was logged of its identity may have been lost.
    pub fn note(&mut self, message: &Message, now: Millis, store: &mut QueueStore) {
        self.admits(Properties::from_wire(message.properties()), now, store);
    }
}
