//! The time of day for deadlines that are kept over restarts.
//!
//! Read from the system once, when the node starts; from then on it is what a clock says that is
//! never set: a time server that corrects the system's clock by an hour neither expires messages
//! nor holds them back. It counts while the machine is suspended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds of the Unix epoch.
pub type Millis = u64;

/// The node's clock.
#[derive(Debug)]
pub struct Clock(Kind);

#[derive(Debug)]
enum Kind {
    /// The time of day minus the time since boot, when the node started.
    System { boot: Millis },
    /// Set by a test.
    Manual(AtomicU64),
}

impl Clock {
    /// The system's.
    pub fn system() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_millis() as u64);
        Clock(Kind::System {
            boot: now.saturating_sub(since_boot()),
        })
    }

    /// One that stands still until it is set, for simulations.
    pub fn manual(now: Millis) -> Self {
        Clock(Kind::Manual(AtomicU64::new(now)))
    }

    /// What it shows.
    #[inline]
    pub fn now(&self) -> Millis {
        match &self.0 {
            Kind::System { boot } => boot + since_boot(),
            Kind::Manual(now) => now.load(Ordering::Relaxed),
        }
    }

    /// Puts a manual clock forward; the system's goes by itself.
    pub fn advance(&self, by: Duration) {
        if let Kind::Manual(now) = &self.0 {
            now.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
        }
    }
}

fn since_boot() -> Millis {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Neither is negative.
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_with_the_time_of_day() {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.expect("it is later than 1970").as_millis() as u64;
        assert!(Clock::system().now().abs_diff(now) < 1_000);
    }

    #[test]
    fn a_manual_clock_goes_when_it_is_told_to() {
        let clock = Clock::manual(5);
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), 2_005);
    }
}
