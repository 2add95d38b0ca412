//! The memory alarm: compares what the process uses with the watermark, a few times a second.
//!
//! What a thread frees of another thread's memory goes back to that other thread, which gives it
//! back to the system when it next allocates: a worker that has become idle would keep the memory
//! of a deleted queue, and the alarm would ring over an empty broker. So while it rings, every
//! worker is asked to collect what was returned to it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use broker::Broker;

use crate::config::ResourceLimit;

const INTERVAL: Duration = Duration::from_millis(200);

/// Counts the calls to collect; each worker answers each once.
static CALLS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static ANSWERED: Cell<u64> = const { Cell::new(0) };
}

/// For every worker, whenever it runs out of work.
pub fn collect_if_called() {
    let calls = CALLS.load(Ordering::Relaxed);
    if ANSWERED.replace(calls) != calls {
        // SAFETY: takes no pointers, and works on the heap of the calling thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

/// Calls on all workers to collect. Idle ones sleep, so each is given something to do: tasks that
/// last long enough for the next one to go to another worker.
fn call_workers(workers: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    for _ in 0..workers {
        tokio::spawn(async { std::thread::sleep(Duration::from_millis(1)) });
    }
}

/// Watches until it is aborted. Where the system does not say what is used, there is no alarm.
pub async fn watch(broker: Arc<Broker>, limit: ResourceLimit, workers: usize) {
    let Some(watermark) = watermark(limit) else {
        tracing::warn!("cannot tell how much memory there is: no memory alarm");
        return;
    };
    tracing::debug!(watermark_bytes = watermark, "watching memory");
    let mut interval = tokio::time::interval(INTERVAL);
    let mut ringing = false;
    loop {
        interval.tick().await;
        let Some(used) = used() else { continue };
        broker.store.note_memory_use(used);
        // Once it rings, somewhat more has to be free again: no ringing on and off at the mark.
        let mark = if ringing {
            watermark - watermark / 20
        } else {
            watermark
        };
        let now_ringing = used > mark;
        if now_ringing {
            call_workers(workers);
        }
        ringing = now_ringing;
        if broker.alarms.set_memory(ringing) {
            broker.events.alarm("memory", ringing);
            match ringing {
                true => tracing::warn!(
                    used_bytes = used,
                    watermark_bytes = watermark,
                    "memory alarm: publishers are blocked until consumers have made room"
                ),
                false => tracing::info!(used_bytes = used, "memory alarm cleared"),
            }
            broker.connections.wake_all();
        }
    }
}

/// Bytes that the limit stands for, where the system says how much memory there is.
pub fn watermark(limit: ResourceLimit) -> Option<u64> {
    match limit {
        ResourceLimit::Absolute(bytes) => Some(bytes),
        ResourceLimit::Relative(share) => Some((total()? as f64 * share) as u64),
    }
}

/// Bytes of memory that this process may use: the machine's, or its control group's if less.
fn total() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = field(&machine, "MemTotal:")?.parse().ok()?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|limit| limit.trim().parse().ok());
    Some(group.unwrap_or(u64::MAX).min(kib * 1_024))
}

/// Resident bytes of this process, but for pages of files: those are the program itself, which the
/// system can drop, and no consumer can make less of them.
pub fn used() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = |name| field(&status, name)?.parse::<u64>().ok();
    let own = kib("RssAnon:").map(|own| own + kib("RssShmem:").unwrap_or(0));
    own.or_else(|| kib("VmRSS:")).map(|kib| kib * 1_024)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tells_memory() {
        let (total, used) = (total().expect("a total"), used().expect("a use"));
        assert!(used > 0 && used < total, "{used} of {total}");
    }
}
