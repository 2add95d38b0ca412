//! The broker's process on this machine: its CPU time, memory and bytes written, from `/proc`, and
//! which process it is, by the port that it listens on. Linux only.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// A process that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// User and system, all threads; counted in ticks of 10 ms.
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub rss: u64,
    /// Bytes sent to disks, unless this process may not ask.
    pub written: Option<u64>,
}

impl Process {
    /// The process of that id, if there is one.
    pub fn of(pid: u32) -> Option<Process> {
        let process = Process(pid);
        process.usage().map(|_| process)
    }

    /// The process that listens on a TCP port of this machine.
    pub fn listening_on(port: u16) -> Option<Process> {
        let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| listening_inodes(&table, port))
            .map(|inode| format!("socket:[{inode}]"))
            .collect();
        if inodes.is_empty() {
            return None;
        }
        let processes = fs::read_dir("/proc").ok()?.flatten();
        processes
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .find(|pid| owns(*pid, &inodes))
            .map(Process)
    }

    /// Its id.
    pub fn pid(self) -> u32 {
        self.0
    }

    /// What it has used; `None` once it is gone.
    pub fn usage(self) -> Option<Usage> {
        let read = |file| fs::read_to_string(format!("/proc/{}/{file}", self.0)).ok();
        let ticks = cpu_ticks(&read("stat")?)?;
        let per_second = rustix::param::clock_ticks_per_second();
        Some(Usage {
            cpu: Duration::from_secs_f64(ticks as f64 / per_second as f64),
            rss: field(&read("status")?, "VmRSS:")? * 1024,
            written: read("io").and_then(|io| field(&io, "write_bytes:")),
        })
    }
}

/// CPU time that this process has used.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Lets this process open as many files as it may.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, what there is has to do.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

fn owns(pid: u32, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|link| {
            sockets
                .iter()
                .any(|socket| link.as_os_str() == socket.as_str())
        })
}

/// Inodes of the sockets that listen on a port, from a table as in `/proc/net/tcp`.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let lines = table.lines().skip(1);
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let listens = fields.get(1)?.ends_with(&suffix) && *fields.get(3)? == LISTEN;
            fields.get(9)?.parse().ok().filter(|_| listens)
        })
        .collect()
}

/// `utime` + `stime`, fields 14 and 15. Field 2, the name, may hold spaces and parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The number of the line that begins with `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_listener_of_a_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let found = Process::listening_on(port).expect("this process listens");
        assert_eq!(found.pid(), std::process::id());
        assert!(found.usage().expect("it runs").rss > 0);
        drop(listener);
        assert_eq!(Process::listening_on(port), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_usage() {
        assert_eq!(Process::of(u32::MAX), None);
    }

    #[test]
    fn stat_and_tables_are_parsed() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 250 75 0 0 20 0 1 0 100 1 1";
        assert_eq!(cpu_ticks(stat), Some(325));
        assert_eq!(cpu_ticks("7 (x"), None);
        let table = "head\n 0: 0100007F:1628 00000000:0000 0A 0:0 0:0 0 0 0 4242 1\n\
                     1: 0100007F:1628 0100007F:9999 01 0:0 0:0 0 0 0 77 1\n";
        assert_eq!(listening_inodes(table, 0x1628), [4242]);
        assert!(listening_inodes(table, 1).is_empty());
    }
}
