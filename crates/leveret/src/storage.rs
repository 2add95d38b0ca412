//! The store's surroundings: how much it may use, how much room its disk has, whether it works.

use std::path::Path;
use std::time::Duration;

use broker::Broker;
use store::Budget;

use crate::config::{Config, ResourceLimit};
use crate::memory;

const INTERVAL: Duration = Duration::from_millis(100);

/// What the configuration lets the store use.
pub fn budget(config: &Config) -> Budget {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let queue = size(config.queue_memory);
    // The other half is for connections, deliveries that are out, and the allocator's slack.
    let node = memory::watermark(config.vm_memory_high_watermark).map(|bytes| size(bytes / 2));
    Budget {
        queue,
        node: node.unwrap_or(Budget::default().node),
        log: config.log_size,
        log_file: config.log_file_size,
        ..Budget::default()
    }
}

/// Rings the disk alarm while there is too little room; returns when nothing can be kept any more,
/// and why.
pub async fn watch(broker: &Broker, data_dir: &Path, limit: ResourceLimit) -> String {
    let limit = memory::watermark(limit);
    if limit.is_none() {
        tracing::warn!("cannot tell how much memory there is: no relative disk_free_limit");
    }
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        if let Some(failure) = broker.store.failure() {
            return failure;
        }
        let Some(free) = free(data_dir) else { continue };
        let full = broker.store.disk_full() || limit.is_some_and(|limit| free < limit);
        broker.store.note_disk_low(full);
        if broker.alarms.set_disk(full) {
            broker.events.alarm("disk", full);
            match full {
                true => tracing::warn!(
                    free_bytes = free,
                    limit_bytes = limit,
                    "disk alarm: publishers are blocked until there is room"
                ),
                false => tracing::info!(free_bytes = free, "disk alarm cleared"),
            }
            broker.connections.wake_all();
        }
    }
}

/// Bytes that this process may still write to the disk of that directory.
pub fn free(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tells_free_space() {
        assert!(free(Path::new(".")).is_some_and(|free| free > 0));
        assert_eq!(free(Path::new("/no/such/place")), None);
    }
}
