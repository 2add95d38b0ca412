//! Measures loads that PerfTest's options cannot say: one task on a thread of its own, with the same
//! figures and the same ends as any load.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use crate::interrupt::{interrupted, is_interrupted};
use crate::load::{INTERRUPTED, Meter, Sampler, conclude_figures};
use crate::output::Silent;
use crate::result::{Broker, Run};
use crate::{Error, clock};

use super::Target;

/// What the task of a load gets.
#[derive(Clone)]
pub struct Hand {
    /// To count into.
    pub meter: Arc<Mutex<Meter>>,
    stage: watch::Sender<Stage>,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    SetUp,
    Flow,
    CleanUp,
    Stop,
}

/// How long a task may take after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long setting up may take.
const SET_UP: Duration = Duration::from_secs(60);

impl Hand {
    /// Messages flow from here on: time and rates count.
    pub fn begin(&self) {
        self.go_on_to(Stage::Flow);
    }

    /// All messages have come: time and rates count no more.
    pub fn end(&self) {
        self.go_on_to(Stage::CleanUp);
    }

    /// True once it is to end.
    pub fn stopped(&self) -> bool {
        *self.stage.borrow() >= Stage::Stop
    }

    fn go_on_to(&self, stage: Stage) {
        self.stage.send_if_modified(|current| {
            let later = stage > *current;
            *current = stage.max(*current);
            later
        });
    }

    async fn reached(&self, stage: Stage) {
        // This end keeps the channel open.
        let _ = self
            .stage
            .subscribe()
            .wait_for(|current| *current >= stage)
            .await;
    }

    /// Given up: told to stop, and not done soon after.
    async fn given_up(&self) {
        self.reached(Stage::Stop).await;
        tokio::time::sleep(GRACE).await;
    }
}

/// Runs a task until it ends by itself, or for that time from when messages flow.
pub fn measure<F: Future<Output = Result<(), Error>>>(
    target: &Target,
    time: Option<Duration>,
    task: impl FnOnce(Hand) -> F + Send + 'static,
) -> Run {
    let hand = Hand {
        meter: Meter::shared(),
        stage: watch::channel(Stage::SetUp).0,
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
        look_on(target, time, hand, task, &mut run).await
    });
    run.error = result.err().map(|error| error.to_string());
    run
}

async fn look_on<F: Future<Output = Result<(), Error>>>(
    target: &Target,
    time: Option<Duration>,
    hand: Hand,
    task: impl FnOnce(Hand) -> F + Send + 'static,
    run: &mut Run,
) -> Result<(), Error> {
    let mut sampler = Sampler::start(vec![hand.meter.clone()], target.process, target.steady);
    let (sender, mut ended) = oneshot::channel();
    let of_thread = hand.clone();
    let thread = std::thread::Builder::new()
        .name("perf-own".into())
        .spawn(move || {
            let result = block_on(async {
                let given_up = of_thread.clone();
                tokio::select! {
                    result = task(of_thread) => result,
                    () = given_up.given_up() => {
                        Err(Error::Load("the broker does not answer; the load was given up".into()))
                    }
                }
            });
            let _ = sender.send(result);
        });
    let thread = thread.map_err(|source| Error::System {
        what: "cannot start a thread",
        source,
    })?;
    let panicked = |_| Err(Error::Load("a thread of the load panicked".into()));
    let mut result = tokio::select! {
        ended = &mut ended => Some(ended.unwrap_or_else(panicked)),
        () = hand.reached(Stage::Flow) => None,
        () = interrupted() => None,
        () = tokio::time::sleep(SET_UP) => None,
    };
    sampler.restart_rates();
    if result.is_none() && *hand.stage.borrow() < Stage::Flow {
        hand.go_on_to(Stage::Stop);
    }
    let end = time.map(|time| Instant::now() + time);
    let mut next = Instant::now();
    while result.is_none() && *hand.stage.borrow() < Stage::CleanUp {
        next = (next + INTERVAL).max(Instant::now());
        let wake = end.map_or(next, |end| end.min(next));
        tokio::select! {
            ended = &mut ended => result = Some(ended.unwrap_or_else(panicked)),
            () = hand.reached(Stage::CleanUp) => {}
            () = interrupted() => hand.go_on_to(Stage::Stop),
            () = tokio::time::sleep_until(wake.into()) => {
                sampler.tick();
                if end.is_some_and(|end| end <= Instant::now()) {
                    run.stopped.insert("Reached time limit".into(), 1);
                    hand.go_on_to(Stage::Stop);
                }
            }
        }
    }
    let summed = sampler.sum();
    if is_interrupted() {
        run.stopped.insert(INTERRUPTED.into(), 1);
    }
    conclude_figures(run, &sampler, summed, target.steady, &mut Silent);
    let result = match result {
        Some(result) => result,
        None => {
            let ended = async {
                tokio::select! {
                    ended = &mut ended => ended.unwrap_or_else(panicked),
                    () = async { interrupted().await; hand.go_on_to(Stage::Stop); std::future::pending().await } => Ok(()),
                }
            };
            tokio::time::timeout(SET_UP, ended)
                .await
                .unwrap_or_else(|_| {
                    hand.go_on_to(Stage::Stop);
                    Err(Error::Load("cleaning up took too long".into()))
                })
        }
    };
    // A panic has been printed by the thread itself.
    let _ = thread.join();
    result
}

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

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
