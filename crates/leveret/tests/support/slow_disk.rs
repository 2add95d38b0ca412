//! A disk that a test holds up: a library that is loaded before the broker's own makes reads, writes
//! or syncs wait. It is the only way to see from outside what waits for the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use testkit::Builder;

use super::folder::Folder;

/// Its gates are files: closed while they are there.
pub struct SlowDisk {
    folder: Folder,
}

impl SlowDisk {
    pub fn new() -> SlowDisk {
        let folder = Folder::new("slow-disk");
        SlowDisk { folder }
    }

    /// A broker on this disk.
    pub fn under(&self, builder: Builder) -> Builder {
        let library = library().to_str().expect("a path in UTF-8");
        let path = |gate: &str| self.folder.path().join(gate).display().to_string();
        builder
            .environment("LD_PRELOAD", library)
            .environment("SLOW_DISK_READS", path("reads"))
            .environment("SLOW_DISK_WRITES", path("writes"))
            .environment("SLOW_DISK_SYNCS", path("syncs"))
    }

    /// From now on syncs wait.
    pub fn hold_syncs(&self) {
        self.hold("syncs");
    }

    /// From now on writes wait.
    pub fn hold_writes(&self) {
        self.hold("writes");
    }

    /// From now on reads wait.
    pub fn hold_reads(&self) {
        self.hold("reads");
    }

    fn hold(&self, gate: &str) {
        fs::write(self.folder.path().join(gate), "").expect("a gate");
    }

    /// Everything goes on.
    pub fn release(&self) {
        for gate in ["reads", "writes", "syncs"] {
            let _ = fs::remove_file(self.folder.path().join(gate));
        }
    }
}

/// Whoever waits is let go, so that a broker whose test has failed can end.
impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.release();
    }
}

/// The library, which is compiled once a process.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/slow_disk.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("slow_disk-{}.so", std::process::id()));
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .output()
            .expect("a C compiler `cc`, as Rust needs one to link");
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
        library
    })
}
