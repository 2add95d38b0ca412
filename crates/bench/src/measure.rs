//! One round: warm up, look, wait, look again. The difference is the figures.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use testkit::Usage;

use crate::args::Args;
use crate::error::Error;
use crate::load::Progress;
use crate::target::Target;

pub const WARM_UP: Duration = Duration::from_secs(1);
/// How soon a round ends after its load has failed.
const POLL: Duration = Duration::from_millis(20);

/// What one round gave.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Messages received per second.
    pub rate: f64,
    /// Broker CPU time per message received, in microseconds.
    pub broker_cpu: Option<f64>,
    /// This process' CPU time per message received, in microseconds.
    pub load_cpu: f64,
    /// Bytes that the broker sent to disks per message received.
    pub disk: Option<f64>,
    /// Broker memory at the end, in bytes.
    pub rss: Option<u64>,
}

/// All that is read at one moment.
struct Look {
    at: Instant,
    received: u64,
    broker: Option<Usage>,
    written: Option<u64>,
    own_cpu: Duration,
}

impl Look {
    fn now(progress: &Progress, target: &Target) -> Result<Look, Error> {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Look {
            broker: target.usage()?,
            written: target.written(),
            at: Instant::now(),
            received: progress.received(),
            own_cpu: Duration::new(own.tv_sec as u64, own.tv_nsec as u32),
        })
    }
}

/// Measures while load threads run, then tells them to stop.
pub fn round(args: &Args, target: &Target, progress: &Progress) -> Result<Figures, Error> {
    wait(WARM_UP, progress);
    let before = Look::now(progress, target)?;
    wait(args.round, progress);
    let after = Look::now(progress, target)?;
    progress.stop();
    if after.received == before.received {
        return Err(Error::Silent);
    }
    let messages = (after.received - before.received) as f64;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / messages;
    let broker = before.broker.zip(after.broker);
    let written = before.written.zip(after.written);
    Ok(Figures {
        rate: messages / (after.at - before.at).as_secs_f64(),
        broker_cpu: broker.map(|(before, after)| micros(after.cpu - before.cpu)),
        load_cpu: micros(after.own_cpu - before.own_cpu),
        disk: written.map(|(before, after)| (after - before) as f64 / messages),
        rss: after.broker.map(|usage| usage.rss),
    })
}

/// Waits for that time, or until the load has ended.
pub fn wait(time: Duration, progress: &Progress) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        if progress.stopped() {
            return;
        }
        thread::sleep(left.min(POLL));
    }
}

/// Runs a future on this thread alone.
pub fn run_local<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(Error::Runtime)?.block_on(future)
}
