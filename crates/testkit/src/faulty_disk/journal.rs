//! What a crash leaves of a disk's file names: those that are durable, and the changes since.
//!
//! Invariant: whichever changes become durable, a file that was renamed is found under its old name
//! or its new one, or under one that it got later; it is gone only if it was removed or replaced.
//! For that, the end of the old name waits for the new one, and a name that is used again waits
//! for all that happened to it before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::inode::InodeId;

/// What happened to one name.
#[derive(Debug, Clone)]
struct Change {
    serial: u64,
    name: PathBuf,
    /// The file that it leads to from now on, if any.
    file: Option<InodeId>,
    /// The change without which this one does not become durable.
    follows: Option<u64>,
}

/// Durable names, and changes that are not, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    durable: BTreeMap<PathBuf, InodeId>,
    unsynced: Vec<Change>,
    next_serial: u64,
}

impl Journal {
    /// A name leads to a new file, or to none.
    pub(super) fn record(&mut self, name: &Path, file: Option<InodeId>) {
        self.push(name, file, None);
    }

    /// A file has another name.
    pub(super) fn record_rename(&mut self, from: &Path, to: &Path, file: InodeId) {
        let serial = self.push(to, Some(file), None);
        self.push(from, None, Some(serial));
    }

    fn push(&mut self, name: &Path, file: Option<InodeId>, follows: Option<u64>) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.unsynced.push(Change {
            serial,
            name: name.to_owned(),
            file,
            follows,
        });
        serial
    }

    /// Makes the changes to some names durable, and those that they depend on.
    pub(super) fn settle(&mut self, mut chosen: impl FnMut(&Path) -> bool) {
        let (mut settled, mut rest) = (Vec::new(), Vec::new());
        let (mut names, mut followed) = (BTreeSet::new(), BTreeSet::new());
        // Backwards, since a change depends only on those before it.
        for change in self.unsynced.drain(..).rev() {
            let needed = names.contains(&change.name) || followed.contains(&change.serial);
            if chosen(&change.name) || needed {
                names.insert(change.name.clone());
                followed.extend(change.follows);
                settled.push(change);
            } else {
                rest.push(change);
            }
        }
        rest.reverse();
        self.unsynced = rest;
        for change in settled.into_iter().rev() {
            match change.file {
                Some(file) => self.durable.insert(change.name, file),
                None => self.durable.remove(&change.name),
            };
        }
    }

    /// Loses the changes that are not durable.
    pub(super) fn forget_unsynced(&mut self) {
        self.unsynced.clear();
    }

    /// The files that a crash now would leave.
    pub(super) fn durable(&self) -> &BTreeMap<PathBuf, InodeId> {
        &self.durable
    }

    /// The files that some crash could leave.
    pub(super) fn mentioned(&self) -> impl Iterator<Item = InodeId> {
        let unsynced = self.unsynced.iter().filter_map(|change| change.file);
        self.durable.values().copied().chain(unsynced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Renames and new files at random; each file that was never replaced must be found.
    #[test]
    fn no_file_is_lost_that_was_only_renamed() {
        let mut random = Random::new(7);
        for _ in 0..5_000 {
            let (mut journal, mut names) = (Journal::default(), BTreeMap::new());
            for id in 0..4 {
                let name = PathBuf::from(format!("/{}/{id}", id % 2));
                journal.record(&name, Some(InodeId(id)));
                names.insert(name, InodeId(id));
            }
            journal.settle(|_| true);
            let mut replaced = BTreeSet::new();
            for id in 4..12 {
                let to = PathBuf::from(format!("/{}/{}", random.below(2), random.below(6)));
                let (from, _) = names
                    .iter()
                    .nth(random.below(names.len()))
                    .expect("there are always names");
                let from: PathBuf = from.clone();
                if random.below(3) == 0 {
                    journal.record(&to, Some(InodeId(id)));
                    replaced.extend(names.insert(to, InodeId(id)));
                } else if from != to {
                    let file = names.remove(&from).expect("it was just there");
                    journal.record_rename(&from, &to, file);
                    replaced.extend(names.insert(to, file));
                }
                if random.below(6) == 0 {
                    let dir = PathBuf::from(format!("/{}", random.below(2)));
                    journal.settle(|name| name.starts_with(&dir));
                }
            }
            journal.settle(|_| random.coin());
            let found: BTreeSet<InodeId> = journal.durable().values().copied().collect();
            for id in (0..4).map(InodeId).filter(|id| !replaced.contains(id)) {
                assert!(
                    found.contains(&id),
                    "{id:?} of {names:?} is lost: {journal:?}"
                );
            }
        }
    }
}
