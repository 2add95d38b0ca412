//! One round: warm up, look, wait, look again. The difference is the figures.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use testkit::Usage;

use crate::args::Args;
use crate::error::Error;
use crate::target::Target;

const WARM_UP: Duration = Duration::from_secs(1);

/// How far the load has come. Load threads add once per batch.
#[derive(Debug, Default)]
pub struct Progress {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// True once the round is over.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Messages sent and not yet received.
    pub fn in_flight(&self) -> u64 {
        let received = self.received.load(Ordering::Relaxed);
        self.sent.load(Ordering::Relaxed).saturating_sub(received)
    }
}

/// What one round gave.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Messages received per second.
    pub rate: f64,
    /// Broker CPU time per message received, in microseconds.
    pub broker_cpu: Option<f64>,
    /// This process' CPU time per message received, in microseconds.
    pub load_cpu: f64,
    /// Broker memory at the end, in bytes.
    pub rss: Option<u64>,
}

/// All that is read at one moment.
struct Look {
    at: Instant,
    received: u64,
    broker: Option<Usage>,
    own_cpu: Duration,
}

impl Look {
    fn now(progress: &Progress, target: &Target) -> Result<Look, Error> {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Look {
            broker: target.usage()?,
            at: Instant::now(),
            received: progress.received.load(Ordering::Relaxed),
            own_cpu: Duration::new(own.tv_sec as u64, own.tv_nsec as u32),
        })
    }
}

/// Measures while load threads run, then tells them to stop.
pub fn round(args: &Args, target: &Target, progress: &Progress) -> Result<Figures, Error> {
    thread::sleep(WARM_UP);
    let before = Look::now(progress, target)?;
    thread::sleep(args.round);
    let after = Look::now(progress, target)?;
    progress.stop.store(true, Ordering::Relaxed);
    if after.received == before.received {
        return Err(Error::Silent);
    }
    let messages = (after.received - before.received) as f64;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / messages;
    let broker = before.broker.zip(after.broker);
    Ok(Figures {
        rate: messages / (after.at - before.at).as_secs_f64(),
        broker_cpu: broker.map(|(before, after)| micros(after.cpu - before.cpu)),
        load_cpu: micros(after.own_cpu - before.own_cpu),
        rss: after.broker.map(|usage| usage.rss),
    })
}

/// Runs a future on this thread alone.
pub fn run_local<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(Error::Runtime)?.block_on(future)
}

/// Tells other threads to stop when a load thread ends early, so that nobody waits for it.
pub struct StopOnDrop<'a>(pub &'a Progress);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}
