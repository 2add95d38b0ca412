//! The tree of names: which files and directories are there now, and which a crash would leave.
//!
//! A directory is durable once it is made. One that was removed may come back, with the files that
//! were removed from it, until the directory above is synced or it is made again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Survival;
use super::inode::InodeId;
use super::journal::Journal;
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    Present,
    /// It is gone, but a crash may bring it back.
    Removed,
}

/// The names on a disk. Paths are not resolved: `a/../b` is not `b`.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// What the names lead to now.
    files: BTreeMap<PathBuf, InodeId>,
    journal: Journal,
    directories: BTreeMap<PathBuf, Directory>,
}

impl Names {
    /// An empty tree: the root, and the current directory that relative paths start from.
    pub(super) fn new() -> Self {
        let roots = ["/", ""].map(|root| (PathBuf::from(root), Directory::Present));
        Names {
            files: BTreeMap::new(),
            journal: Journal::default(),
            directories: BTreeMap::from(roots),
        }
    }

    /// The file that a name leads to.
    pub(super) fn find(&self, path: &Path) -> io::Result<InodeId> {
        if self.is_dir(path) {
            return Err(error(io::ErrorKind::IsADirectory, path));
        }
        let found = self.files.get(path).copied();
        found.ok_or_else(|| error(io::ErrorKind::NotFound, path))
    }

    /// Files that have a name.
    pub(super) fn named(&self) -> BTreeSet<InodeId> {
        self.files.values().copied().collect()
    }

    /// Files that have a name, or might have one after a crash.
    pub(super) fn mentioned(&self) -> BTreeSet<InodeId> {
        let named = self.files.values().copied();
        self.journal.mentioned().chain(named).collect()
    }

    /// Fails if no file can have this name.
    pub(super) fn check_new(&self, path: &Path) -> io::Result<()> {
        if self.is_dir(path) {
            return Err(error(io::ErrorKind::IsADirectory, path));
        }
        match path.parent() {
            Some(parent) => self.check_dir(parent),
            None => Err(error(io::ErrorKind::InvalidInput, path)),
        }
    }

    /// Lets a name lead to a new file, in place of the one that it led to.
    pub(super) fn create(&mut self, path: &Path, file: InodeId) -> io::Result<()> {
        self.check_new(path)?;
        self.files.insert(path.to_owned(), file);
        self.journal.record(path, Some(file));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.find(from)?;
        self.check_new(to)?;
        // POSIX: two names of one file both stay.
        if self.files.get(to) != Some(&file) {
            self.files.remove(from);
            self.files.insert(to.to_owned(), file);
            self.journal.record_rename(from, to, file);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        if self.is_dir(path) {
            return Err(error(io::ErrorKind::IsADirectory, path));
        }
        if self.files.remove(path).is_some() {
            self.journal.record(path, None);
        }
        Ok(())
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        let all = || path.ancestors().filter(|dir| !self.is_dir(dir));
        if let Some(file) = all().find(|dir| self.files.contains_key(*dir)) {
            return Err(error(io::ErrorKind::AlreadyExists, file));
        }
        let missing: Vec<&Path> = all().collect();
        for dir in missing.into_iter().rev() {
            self.forget_dir(dir);
            self.directories.insert(dir.to_owned(), Directory::Present);
        }
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        if self.files.contains_key(path) {
            return Err(error(io::ErrorKind::NotADirectory, path));
        }
        if !self.is_dir(path) {
            return Ok(());
        }
        if path.parent().is_none() {
            return Err(error(io::ErrorKind::ResourceBusy, path));
        }
        if !self.list(path)?.is_empty() {
            return Err(error(io::ErrorKind::DirectoryNotEmpty, path));
        }
        self.directories.insert(path.to_owned(), Directory::Removed);
        Ok(())
    }

    /// Names in a directory, sorted.
    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        if self.files.contains_key(dir) {
            return Err(error(io::ErrorKind::NotADirectory, dir));
        }
        let directories = self.directories.iter();
        let directories = directories.filter(|(_, state)| **state == Directory::Present);
        let paths = self.files.keys().chain(directories.map(|(path, _)| path));
        let mut names: Vec<PathBuf> = paths
            .filter(|path| path.parent() == Some(dir))
            .filter_map(|path| path.file_name().map(PathBuf::from))
            .collect();
        names.sort();
        Ok(names)
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.check_dir(dir)?;
        let removed = self
            .directories
            .iter()
            .filter(|(path, state)| path.parent() == Some(dir) && **state == Directory::Removed);
        let removed: Vec<PathBuf> = removed.map(|(path, _)| path.clone()).collect();
        for path in removed {
            self.forget_dir(&path);
        }
        self.journal.settle(|name| name.parent() == Some(dir));
        Ok(())
    }

    /// What is found of it later.
    pub(super) fn restarted(&self, survival: Survival, random: &mut Random) -> Self {
        let mut names = self.clone();
        match survival {
            Survival::Everything => return names,
            Survival::Nothing => {}
            Survival::Random => names.lose_some(random),
        }
        names.journal.forget_unsynced();
        names.files = names.journal.durable().clone();
        for state in names.directories.values_mut() {
            *state = Directory::Present;
        }
        names
    }

    /// Makes some of the changes durable.
    fn lose_some(&mut self, random: &mut Random) {
        let mut gone: Vec<PathBuf> = Vec::new();
        for (path, state) in &self.directories {
            if *state == Directory::Removed && random.coin() {
                gone.push(path.clone());
            }
        }
        // With a directory goes what is in it.
        let is_gone = |path: &Path| gone.iter().any(|dir| path.starts_with(dir));
        self.journal.settle(|name| is_gone(name) || random.coin());
        self.directories.retain(|path, _| !is_gone(path));
    }

    /// Makes the removal of a directory durable, and of everything that was in it.
    fn forget_dir(&mut self, dir: &Path) {
        self.journal.settle(|name| name.starts_with(dir));
        self.directories.retain(|path, _| !path.starts_with(dir));
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.directories.get(path) == Some(&Directory::Present)
    }

    fn check_dir(&self, path: &Path) -> io::Result<()> {
        if self.is_dir(path) {
            return Ok(());
        }
        let kind = match self.files.contains_key(path) {
            true => io::ErrorKind::NotADirectory,
            false => io::ErrorKind::NotFound,
        };
        Err(error(kind, path))
    }
}

fn error(kind: io::ErrorKind, path: &Path) -> io::Error {
    io::Error::new(kind, format!("{}: {kind}", path.display()))
}
