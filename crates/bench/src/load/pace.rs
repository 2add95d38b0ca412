//! Keeps a producer to a fixed rate.
//!
//! The runtime's timers have a resolution of a millisecond; this one has the system's, so that a
//! message leaves within microseconds of the time at which it should.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::error::Error;

/// Messages per second, from a moment on.
pub struct Pace {
    timer: AsyncFd<OwnedFd>,
    started: Instant,
    rate: u32,
}

impl Pace {
    /// The first message is due now. `tick` is how often somebody will look.
    pub fn start(rate: u32, tick: Duration) -> Result<Pace, Error> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(failed)?;
        let started = Instant::now();
        let every = Timespec {
            tv_sec: tick.as_secs() as i64,
            tv_nsec: i64::from(tick.subsec_nanos()),
        };
        let ticking = Itimerspec {
            it_interval: every,
            it_value: every,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &ticking).map_err(failed)?;
        // SAFETY: an `OwnedFd` stays open, and the same file, for as long as it is owned.
        let timer =
            unsafe { AsyncFd::register(timer) }.map_err(|error| Error::Runtime(error.into()))?;
        Ok(Pace {
            timer,
            started,
            rate,
        })
    }

    /// Waits for the next tick; at once if one has been missed. Cancel safe.
    pub async fn tick(&self) -> Result<(), Error> {
        loop {
            let mut guard = self.timer.readable().await.map_err(Error::Runtime)?;
            let read = guard.try_io(|timer| {
                let mut expirations = [0; 8];
                Ok(rustix::io::read(timer.get_ref(), &mut expirations)?)
            });
            if let Ok(read) = read {
                return read.map(drop).map_err(Error::Runtime);
            }
        }
    }

    /// How many messages should have left by now.
    pub fn due(&self) -> u64 {
        let nanos = self.started.elapsed().as_nanos() * u128::from(self.rate);
        (nanos / 1_000_000_000) as u64 + 1
    }

    /// When a message should leave, by its number from 0.
    pub fn intended(&self, number: u64) -> Instant {
        let nanos = u128::from(number) * 1_000_000_000 / u128::from(self.rate);
        self.started + Duration::from_nanos(nanos as u64)
    }

    /// Begins anew: whatever is overdue is let go.
    pub fn restart(&mut self) {
        self.started = Instant::now();
    }
}

fn failed(error: rustix::io::Errno) -> Error {
    Error::Runtime(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::run_local;

    #[test]
    fn messages_become_due_one_by_one() {
        run_local(async {
            let pace = Pace::start(1_000, Duration::from_millis(1))?;
            assert!(pace.due() >= 1);
            for _ in 0..5 {
                pace.tick().await?;
            }
            assert!(pace.due() >= 6);
            assert!(pace.intended(5) <= Instant::now());
            assert_eq!(
                pace.intended(5) - pace.intended(0),
                Duration::from_millis(5)
            );
            Ok(())
        })
        .expect("timers work");
    }
}
