//! Definitions: a durable map from keys to values, of which only the broker knows the meaning.
//!
//! Every change is one record of the log, so definitions and messages have one order. The map is
//! kept here as well, so that a manifest can hold all of it at one position of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use wal::{Durability, Lsn, StreamId, Urgency, Wal};

use crate::op;

/// Keys and values.
pub type DefinitionMap = BTreeMap<Box<[u8]>, Arc<[u8]>>;

/// A key and its new value, if it has one.
type Change = (Box<[u8]>, Option<Arc<[u8]>>);

/// Changes that become durable together.
#[derive(Debug, Default)]
pub struct DefinitionChange {
    record: Vec<u8>,
    changes: Vec<Change>,
    /// The highest stream whose queue goes.
    pub(crate) forgotten: Option<StreamId>,
}

impl DefinitionChange {
    /// Sets a key's value.
    pub fn define(&mut self, key: &[u8], value: &[u8]) {
        op::define(&mut self.record, key, value);
        self.changes.push((key.into(), Some(value.into())));
    }

    /// Removes a key.
    pub fn undefine(&mut self, key: &[u8]) {
        op::undefine(&mut self.record, key);
        self.changes.push((key.into(), None));
    }

    /// The queue of that stream is gone with all its messages.
    pub fn forget(&mut self, stream: StreamId) {
        op::forget(&mut self.record, stream);
        self.forgotten = self.forgotten.max(Some(stream));
    }

    /// True if nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.record.is_empty()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Definitions {
    pub map: DefinitionMap,
}

impl Definitions {
    /// Logs and applies a change; returns its position.
    pub fn apply(&mut self, wal: &Wal, change: DefinitionChange) -> Lsn {
        let urgency = Urgency::Prompt(Durability::Fsync);
        let lsn = wal.append(op::NODE, urgency, |payload| payload.extend(&change.record));
        for (key, value) in change.changes {
            match value {
                Some(value) => self.map.insert(key, value),
                None => self.map.remove(&key),
            };
        }
        lsn
    }
}
