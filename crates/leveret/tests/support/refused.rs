//! Brokers that must not come up, and directories that they must not touch.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::{Builder, Error};

/// Starts a broker that must not come up; returns what it prints. It has to end with status 1 and
/// one line that says why, and must not panic.
pub fn refused(builder: Builder) -> String {
    match builder.start() {
        Ok(_) => panic!("it started"),
        Err(Error::EndedEarly { status, log }) => {
            assert_eq!(status.code(), Some(1), "{log}");
            assert!(!log.contains("panicked"), "{log}");
            let errors: Vec<&str> = log.lines().filter(|l| l.starts_with("leveret: ")).collect();
            assert_eq!(errors.len(), 1, "{log}");
            assert!(!log.contains("ready in"), "{log}");
            assert!(log.matches("(os error ").count() <= 1, "said twice: {log}");
            log
        }
        Err(other) => panic!("{other}"),
    }
}

/// All that there is, to see that a refusal changes nothing.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => all.extend(contents(&path)),
            path if path.ends_with("lock") || path.ends_with("control.sock") => {}
            path => all.push((path.clone(), fs::read(path).expect("it"))),
        }
    }
    all.sort();
    all
}
