//! A disk and its operating system: files, names, faults to come, room. One mutex guards it all.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

use wal::BLOCK;

use super::Survival;
use super::faults::Faults;
use super::inode::{Inode, InodeId};
use super::names::Names;
use crate::random::Random;

/// Inodes are kept while they have a name, could have one after a crash, or are open.
#[derive(Debug)]
pub(super) struct Machine {
    random: Random,
    pub(super) faults: Faults,
    /// Bytes of room in all.
    pub(super) capacity: Option<u64>,
    pub(super) names: Names,
    inodes: BTreeMap<InodeId, Inode>,
    next_inode: u64,
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        Machine {
            random: Random::new(seed),
            faults: Faults::default(),
            capacity: None,
            names: Names::new(),
            inodes: BTreeMap::new(),
            next_inode: 0,
        }
    }

    /// What is found later.
    pub(super) fn restarted(&mut self, survival: Survival) -> Self {
        let mut random = self.random.fork();
        let names = self.names.restarted(survival, &mut random);
        let found = names.mentioned();
        let inodes = self.inodes.iter().filter(|(id, _)| found.contains(id));
        let inodes = inodes
            .map(|(id, inode)| (*id, inode.restarted(survival, &mut random)))
            .collect();
        Machine {
            random,
            faults: Faults::default(),
            capacity: None,
            names,
            inodes,
            next_inode: self.next_inode,
        }
    }

    pub(super) fn inode(&self, id: InodeId) -> &Inode {
        self.inodes.get(&id).expect("open files are kept")
    }

    fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        self.inodes.get_mut(&id).expect("open files are kept")
    }

    /// Opens the file that a name leads to.
    pub(super) fn open(&mut self, path: &Path) -> io::Result<InodeId> {
        self.faults.check()?;
        let id = self.names.find(path)?;
        self.inode_mut(id).handles += 1;
        Ok(id)
    }

    /// Opens a new file.
    pub(super) fn create(&mut self, path: &Path) -> io::Result<InodeId> {
        self.faults.operation()?;
        let id = InodeId(self.next_inode);
        self.names.create(path, id)?;
        self.next_inode += 1;
        self.inodes.entry(id).or_default().handles += 1;
        Ok(id)
    }

    pub(super) fn close(&mut self, id: InodeId) {
        self.inode_mut(id).handles -= 1;
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.faults.operation()?;
        self.names.sync_dir(dir)?;
        let mentioned = self.names.mentioned();
        self.inodes
            .retain(|id, inode| inode.handles > 0 || mentioned.contains(id));
        Ok(())
    }

    pub(super) fn write(&mut self, id: InodeId, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.faults.check()?;
        let first = offset / BLOCK as u64;
        let fits = self.check_room(id, first..first + (bytes.len() / BLOCK) as u64);
        let told = self.faults.operation();
        if fits.is_err() {
            return told.and(fits);
        }
        let inode = self.inodes.get_mut(&id).expect("open files are kept");
        match told {
            Ok(()) => inode.write(bytes, offset),
            Err(_) => inode.write_in_part(bytes, offset, &mut self.random),
        }
        told
    }

    pub(super) fn sync(&mut self, id: InodeId) -> io::Result<()> {
        let told = self.faults.operation();
        let inode = self.inodes.get_mut(&id).expect("open files are kept");
        match told {
            Ok(()) => inode.sync(),
            // The restart decides what was durable.
            Err(_) if self.faults.crashed => {}
            Err(_) => inode.sync_in_part(&mut self.random),
        }
        told
    }

    pub(super) fn allocate(&mut self, id: InodeId, length: u64) -> io::Result<()> {
        self.faults.operation()?;
        self.check_room(id, 0..length.div_ceil(BLOCK as u64))?;
        self.inode_mut(id).allocate(length);
        Ok(())
    }

    pub(super) fn set_len(&mut self, id: InodeId, length: u64) -> io::Result<()> {
        self.faults.operation()?;
        self.inode_mut(id).set_len(length);
        Ok(())
    }

    /// Fails if a file cannot have these pages.
    fn check_room(&self, id: InodeId, pages: Range<u64>) -> io::Result<()> {
        let Some(capacity) = self.capacity else {
            return Ok(());
        };
        let more = self.inode(id).room().missing(&pages);
        if more == 0 || self.pages_taken() + more <= capacity / BLOCK as u64 {
            return Ok(());
        }
        let text = format!("the simulated disk has no more than {capacity} bytes");
        Err(io::Error::new(io::ErrorKind::StorageFull, text))
    }

    /// Pages of all files that are named or open.
    fn pages_taken(&self) -> u64 {
        let named = self.names.named();
        let alive = self
            .inodes
            .iter()
            .filter(|(id, inode)| inode.handles > 0 || named.contains(id));
        alive.map(|(_, inode)| inode.room().pages()).sum()
    }
}
