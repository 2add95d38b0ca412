//! A folder that goes with its owner.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Its name says whose it is; a test may have several of the same.
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("leveret-test-{}-{count}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes of all files in a folder, as far as they are still there.
pub fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder");
    let sizes = entries.flatten().map(|entry| {
        // What is being removed meanwhile counts for nothing.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        }
    });
    sizes.sum()
}
