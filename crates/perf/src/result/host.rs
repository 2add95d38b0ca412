//! The machine that a load runs on.

use std::fs;

use serde::{Deserialize, Serialize};

/// What a reader of figures must know of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Operating system and its kernel's release.
    pub system: String,
    /// Processor model.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

impl Host {
    /// Looks at this machine.
    pub fn look() -> Host {
        let uname = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Host {
            name: text(uname.nodename()),
            system: format!("{} {}", text(uname.sysname()), text(uname.release())),
            cpu: entry("/proc/cpuinfo", "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: entry("/proc/meminfo", "MemTotal")
                .and_then(|size| size.split(' ').next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib * 1024),
        }
    }
}

/// The value of the first line `key : value` of a file.
fn entry(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
