//! Consumers: listing them.

use ahash::HashSet;

use super::{Admin, AdminError};
pub use crate::consumers::ConsumerInfo;

impl Admin<'_> {
    /// A vhost's consumers, by queue.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_consumers(&self, vhost: &str) -> Result<Vec<ConsumerInfo>, AdminError> {
        let vhost = self.vhost(vhost)?;
        // A consumer learns a little later than others that its queue has gone.
        let there: HashSet<u64> = vhost.read().queues.values().map(|queue| queue.id).collect();
        Ok(vhost.consumers.list(|queue| there.contains(&queue)))
    }
}
