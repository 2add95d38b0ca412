//! Waits for moments of the monotonic clock.
//!
//! The runtime's own timers have a resolution of a millisecond; this one has the system's, so that a
//! message leaves within microseconds of the time at which it should.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::Error;

/// A timer that one task waits on.
pub struct Timer {
    fd: AsyncFd<OwnedFd>,
    /// The moment it is set to.
    set_to: i64,
}

impl Timer {
    /// A timer of the current runtime.
    pub fn new() -> Result<Timer, Error> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|error| failed(error.into()))?;
        // SAFETY: an `OwnedFd` stays open, and the same file, for as long as it is owned.
        let fd = unsafe { AsyncFd::register(fd) }.map_err(|error| failed(error.into()))?;
        Ok(Timer { fd, set_to: 0 })
    }

    /// Waits until [`crate::clock::nanos`] has reached `moment`. Cancel safe.
    pub async fn until(&mut self, moment: i64) -> Result<(), Error> {
        if moment != self.set_to {
            self.set(moment)?;
        }
        loop {
            let mut guard = self.fd.readable().await.map_err(failed)?;
            let read = guard.try_io(|fd| {
                let mut expirations = [0; 8];
                Ok(rustix::io::read(fd.get_ref(), &mut expirations)?)
            });
            if let Ok(read) = read {
                self.set_to = 0;
                return read.map(drop).map_err(failed);
            }
        }
    }

    fn set(&mut self, moment: i64) -> Result<(), Error> {
        // Zero would turn the timer off.
        let nanos = moment.max(1);
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let once = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: nanos / 1_000_000_000,
                tv_nsec: nanos % 1_000_000_000,
            },
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)
            .map_err(|error| failed(error.into()))?;
        self.set_to = moment;
        Ok(())
    }
}

fn failed(source: io::Error) -> Error {
    Error::System {
        what: "cannot wait for a timer",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn it_waits_no_shorter_and_little_longer() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut timer = Timer::new().expect("a timer");
            for _ in 0..5 {
                let moment = clock::nanos() + 300_000;
                timer.until(moment).await.expect("it goes off");
                assert!(clock::nanos() >= moment);
            }
            timer.until(1).await.expect("the past is at once");
        });
    }
}
