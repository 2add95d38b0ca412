//! What a process uses, from `/proc`, and how many files it may open. Linux only.

use std::time::Duration;
use std::{fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Error;

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time of all its threads, user and system; counted in ticks of 10 ms.
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub rss: u64,
    /// The most that `rss` has been.
    pub peak_rss: u64,
}

impl Usage {
    /// Looks at a process now.
    pub fn of(pid: u32) -> Result<Usage, Error> {
        let failed = |source| Error::Process { pid, source };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(failed)?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(failed)?;
        let malformed = || failed(io::ErrorKind::InvalidData.into());
        let ticks = cpu_ticks(&stat).ok_or_else(malformed)?;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Usage {
            cpu: Duration::from_secs_f64(ticks as f64 / per_second as f64),
            rss: memory_bytes(&status, "VmRSS:").ok_or_else(malformed)?,
            peak_rss: memory_bytes(&status, "VmHWM:").ok_or_else(malformed)?,
        })
    }
}

/// `utime` + `stime`, fields 14 and 15. Field 2, the name, may hold spaces and parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn memory_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Bytes that a process has sent to disks so far. Only its owner, and root, may ask.
pub fn written_bytes(pid: u32) -> Result<u64, Error> {
    let failed = |source| Error::Process { pid, source };
    let io = fs::read_to_string(format!("/proc/{pid}/io")).map_err(failed)?;
    write_bytes(&io).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
}

/// `wchar` counts sockets too; `cancelled_write_bytes` has the same ending.
fn write_bytes(io: &str) -> Option<u64> {
    let line = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"))?;
    line.trim().parse().ok()
}

/// Lets this process, and those it starts later, open `wanted` files, as far as it may; returns how
/// many it can open now.
pub fn raise_open_files(wanted: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let current = now.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    let ample = Rlimit {
        current: Some(wanted),
        maximum: now.maximum.map(|max| max.max(wanted)),
    };
    if setrlimit(Resource::Nofile, ample).is_ok() {
        return wanted;
    }
    // Only root may raise the hard limit.
    let within_hard = now.maximum.unwrap_or(wanted).min(wanted);
    let limit = Rlimit {
        current: Some(within_hard),
        maximum: now.maximum,
    };
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => within_hard,
        Err(_) => current,
    }
}

/// How many files a process may open.
pub fn open_files_limit(pid: u32) -> Result<u64, Error> {
    let failed = |source| Error::Process { pid, source };
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).map_err(failed)?;
    soft_limit(&limits).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
}

fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_read_past_an_odd_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 150 25 0 0 20 0 4 0 99 1 2";
        assert_eq!(cpu_ticks(stat), Some(175));
    }

    #[test]
    fn memory_is_given_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    3072 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(memory_bytes(status, "VmRSS:"), Some(2 << 20));
        assert_eq!(memory_bytes(status, "VmHWM:"), Some(3 << 20));
    }

    #[test]
    fn only_bytes_that_went_to_a_disk_count_as_written() {
        let io = "wchar: 9\nread_bytes: 8\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(write_bytes(io), Some(4096));
    }

    #[test]
    fn soft_limit_is_the_first_column() {
        let limits =
            "Max processes 9 9 processes\nMax open files            1024   20000   files\n";
        assert_eq!(soft_limit(limits), Some(1024));
    }

    #[test]
    fn own_usage_can_be_read() {
        let usage = Usage::of(std::process::id()).expect("own process");
        assert!(usage.rss > 0 && usage.rss <= usage.peak_rss);
    }

    #[test]
    fn missing_process_is_an_error() {
        assert!(matches!(Usage::of(u32::MAX), Err(Error::Process { .. })));
    }
}
