//! Measures loads that PerfTest's options cannot say: one task on a thread of its own, with the same
//! figures and the same ends as any load.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::load::{Meter, Sampler};
use crate::result::{Broker, Run};
use crate::{Error, clock};

use super::Target;

/// What the task of a load gets.
#[derive(Clone)]
pub struct Hand {
    /// To count into.
    pub meter: Arc<Mutex<Meter>>,
    stop: Arc<AtomicBool>,
}

impl Hand {
    /// True once it is to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs a task until it ends by itself, or for that time.
pub fn measure<F: Future<Output = Result<(), Error>>>(
    target: &Target,
    time: Option<Duration>,
    task: impl FnOnce(Hand) -> F + Send + 'static,
) -> Run {
    let hand = Hand {
        meter: Meter::shared(),
        stop: Arc::new(AtomicBool::new(false)),
    };
    let mut run = Run {
        started: clock::timestamp(),
        broker: Broker {
            address: target.options.address(),
            pid: target.process.map(|process| process.pid()),
            ..Broker::default()
        },
        ..Run::default()
    };
    let result = block_on(async {
        let connection = client::Connection::connect(&target.options).await?;
        (run.broker.product, run.broker.version) = crate::load::product_and_version(&connection);
        connection.close().await?;
        watch(target, time, hand, task, &mut run).await
    });
    run.error = result.err().map(|error| error.to_string());
    run
}

async fn watch<F: Future<Output = Result<(), Error>>>(
    target: &Target,
    time: Option<Duration>,
    hand: Hand,
    task: impl FnOnce(Hand) -> F + Send + 'static,
    run: &mut Run,
) -> Result<(), Error> {
    let mut sampler = Sampler::start(vec![hand.meter.clone()], target.process, false);
    let (sender, mut ended) = oneshot::channel();
    let of_thread = hand.clone();
    let thread = std::thread::Builder::new()
        .name("perf-own".into())
        .spawn(move || {
            let _ = sender.send(block_on(task(of_thread)));
        });
    let thread = thread.map_err(|source| Error::System {
        what: "cannot start a thread",
        source,
    })?;
    let end = time.map(|time| Instant::now() + time);
    let mut next = Instant::now();
    let mut result = None;
    while result.is_none() && !hand.stopped() {
        next += Duration::from_secs(1);
        let wake = tokio::time::Instant::from_std(end.map_or(next, |end| end.min(next)));
        tokio::select! {
            ended = &mut ended => result = ended.ok(),
            _ = tokio::signal::ctrl_c() => {
                run.stopped.insert("Interrupted".into(), 1);
                hand.stop.store(true, Ordering::Relaxed);
            }
            () = tokio::time::sleep_until(wake) => {
                sampler.tick();
                if end.is_some_and(|end| end <= Instant::now()) {
                    run.stopped.insert("Reached time limit".into(), 1);
                    hand.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
    let summed = sampler.sum();
    run.series = sampler.series().to_vec();
    run.totals = summed.totals;
    run.consumer_latency = summed.consumer_latency;
    run.confirm_latency = summed.confirm_latency;
    let result = match result {
        Some(result) => result,
        None => ended.await.unwrap_or(Ok(())),
    };
    // A panic has been printed by the thread itself.
    let _ = thread.join();
    result
}

/// Runs a future on this thread alone.
pub fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| Error::System {
        what: "cannot start a runtime",
        source,
    })?;
    runtime.block_on(future)
}
