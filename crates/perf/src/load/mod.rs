//! Runs a load: connects, lets messages flow, looks once per interval, stops, checks.
//!
//! The main thread does no work of the load. Connections are tasks on threads of their own
//! (`workers`); they follow the stages of `control`, count into the `meter` of their thread, and
//! consumers note each message in the ledger of `checks`.

mod checks;
mod consumer;
mod control;
mod mark;
mod meter;
mod plan;
mod producer;
pub mod random;
mod sampler;
mod timer;
mod topology;
mod verbose;
mod workers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::interrupt::{interrupted, is_interrupted};
use crate::process::Process;
use crate::result::{Broker, Interval, Run};
use crate::settings::{ExitWhen, Settings};
use crate::sync::lock;
use crate::{Error, clock};
pub use checks::{Attribution, Checker, Ledger, MARKED, Routes, Sent};
use control::{Report, Side, Stage, Steering};
pub use mark::Mark;
pub use meter::Meter;
use plan::Plan;
pub use producer::names_producer;
pub use sampler::Sampler;
use sampler::Summed;
pub use topology::product_and_version;

/// Who looks on: what people see while a load runs.
pub trait Watch {
    /// A channel is about to be set up: `producer` or `consumer`, its connection, its channel.
    fn starting(&mut self, side: &str, connection: u32, channel: usize);
    /// Something that should be known; not an error.
    fn note(&mut self, note: &str);
    /// An interval has ended.
    fn interval(&mut self, interval: &Interval);
}

/// How a load is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The broker's process.
    pub process: Option<Process>,
    /// The figures are those of the steady state, if there is one.
    pub steady: bool,
}

/// Runs a load. What goes wrong is in the run's `error`, beside the figures up to there.
pub fn run(settings: &Settings, options: Options, watch: &mut dyn Watch) -> Run {
    let mut run = Run {
        name: settings.id.clone(),
        started: clock::timestamp(),
        round: 1,
        broker: Broker {
            address: settings.brokers[0].address(),
            pid: options.process.map(Process::pid),
            ..Broker::default()
        },
        ..Run::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(drive(settings, options, watch, &mut run)),
        Err(source) => Err(Error::System {
            what: "cannot start a runtime",
            source,
        }),
    };
    if let Err(error) = result {
        run.error.get_or_insert_with(|| error.to_string());
    }
    run
}

async fn drive(
    settings: &Settings,
    options: Options,
    watch: &mut dyn Watch,
    run: &mut Run,
) -> Result<(), Error> {
    let plan = Plan::new(settings);
    tokio::select! {
        configured = configure(settings, &plan, run) => configured?,
        () = interrupted() => {
            run.stopped.insert(INTERRUPTED.into(), 1);
            return Ok(());
        }
    }
    for (side, connection, channel) in channels(&plan) {
        watch.starting(side, connection, channel);
    }
    let mut load = Load::start(settings, plan)?;
    let connected = load.connect(watch).await;
    if connected.is_ok() && !is_interrupted() {
        let mut sampler = Sampler::start(load.meters.clone(), options.process, options.steady);
        load.steering.turn_to(Stage::Run);
        let failed = load.flow(&mut sampler, watch, run).await;
        let summed = sampler.sum();
        load.steering.turn_to(Stage::StopProducers);
        let drain = settings.verify && failed.is_none() && !is_interrupted();
        let all_came = load.stop(drain, watch).await;
        conclude_figures(run, &sampler, summed, options.steady, watch);
        run.checks = load.conclude_checks(all_came);
        clean_up(settings, watch).await;
        return failed.map_or(Ok(()), Err);
    }
    if is_interrupted() {
        run.stopped.insert(INTERRUPTED.into(), 1);
    }
    load.stop(false, watch).await;
    clean_up(settings, watch).await;
    connected
}

/// Why a load ended that somebody ended.
pub const INTERRUPTED: &str = "Interrupted";

/// Deletes what a scenario has declared.
async fn clean_up(settings: &Settings, watch: &mut dyn Watch) {
    if !settings.clean_up {
        return;
    }
    let limit = settings.limits.shutdown_timeout;
    let cleaned = async {
        let connection = client::Connection::connect(&settings.brokers[0]).await?;
        topology::clean_up(connection, &settings.topology).await
    };
    match tokio::time::timeout(limit, cleaned).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => watch.note(&format!("queues and exchange are left behind: {error}")),
        Err(_) => watch.note("queues and exchange are left behind: the broker does not answer"),
    }
}

/// Declares what must be there before anybody connects.
async fn configure(settings: &Settings, plan: &Plan, run: &mut Run) -> Result<(), Error> {
    let mut options = settings.brokers[0].clone();
    options.connection_name = Some("perf-test-configuration-0".into());
    if let Some((time, count)) = settings.wait_for_brokers {
        wait_for_brokers(settings, time, count).await?;
    }
    let mut connection = client::Connection::connect(&options).await?;
    (run.broker.product, run.broker.version) = topology::product_and_version(&connection);
    topology::declare_exchange(&mut connection, &settings.topology).await?;
    if !plan.queues.is_empty() {
        let channel = connection.open_channel().await?;
        for (queue, key) in &plan.queues {
            topology::declare_queue(&mut connection, channel, &settings.topology, queue, key)
                .await?;
        }
        connection.close_channel(channel).await?;
    }
    Ok(connection.close().await?)
}

/// Waits until so many of the brokers accept connections.
async fn wait_for_brokers(settings: &Settings, time: Duration, count: usize) -> Result<(), Error> {
    let end = Instant::now() + time;
    let count = count.min(settings.brokers.len());
    loop {
        let (mut up, mut last) = (0, None);
        for options in &settings.brokers {
            match client::Connection::connect(options).await {
                Ok(connection) => {
                    up += 1;
                    // It has said enough by letting us in.
                    let _ = connection.close().await;
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) if up < count && Instant::now() >= end => {
                return Err(Error::Load(format!(
                    "{up} of {count} brokers accept connections after {} s: {error}",
                    time.as_secs()
                )));
            }
            _ if up >= count => return Ok(()),
            _ => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

/// Every channel in the order in which it is announced.
fn channels(plan: &Plan) -> Vec<(&'static str, u32, usize)> {
    let consumers = plan.consumers.iter().map(|c| (c.number, c.channels.len()));
    let producers = plan.producers.iter().map(|c| (c.number, c.channels.len()));
    consumers
        .map(|connection| ("consumer", connection))
        .chain(producers.map(|connection| ("producer", connection)))
        .flat_map(|(side, (connection, count))| {
            (0..count).map(move |channel| (side, connection, channel))
        })
        .collect()
}

/// The figures of a run that has ended: over all of it, or over its steady state.
pub fn conclude_figures(
    run: &mut Run,
    sampler: &Sampler,
    mut summed: Summed,
    steady: bool,
    watch: &mut dyn Watch,
) {
    run.series = sampler.series().to_vec();
    note_clocks(&summed, watch);
    if steady {
        let rates: Vec<f64> = run
            .series
            .iter()
            .map(|interval| interval.received_rate.max(interval.sent_rate))
            .collect();
        let from = crate::changepoint::steady_from(&rates);
        match from.and_then(|from| Some((from, sampler.steady(from, &summed.totals)?))) {
            Some((from, part)) => {
                let before = from
                    .checked_sub(1)
                    .map_or(0.0, |last| run.series[last].time);
                run.steady_from_second = Some(before);
                summed = part;
            }
            None => watch.note("no steady state was found: the figures are those of the whole run"),
        }
    }
    run.totals = summed.totals;
    run.consumer_latency = summed.consumer_latency;
    run.confirm_latency = summed.confirm_latency;
}

fn note_clocks(summed: &Summed, watch: &mut dyn Watch) {
    if summed.counts.early > 0 {
        watch.note(&format!(
            "{} messages arrived before they were sent: the clocks of producers and consumers \
             differ; latencies are off by as much",
            summed.counts.early
        ));
    }
    if summed.counts.ancient > 0 {
        watch.note(&format!(
            "{} messages carry a time of another clock and are in no latency: on several machines \
             use --use-millis on all, and keep their clocks together",
            summed.counts.ancient
        ));
    }
}

/// A load under way.
struct Load {
    steering: Steering,
    threads: Vec<JoinHandle<()>>,
    meters: Vec<Arc<Mutex<Meter>>>,
    ledger: Arc<Ledger>,
    sent: Arc<Mutex<Vec<checks::Sent>>>,
    settings: Arc<Settings>,
    /// Connections of each side whose task runs.
    producers: usize,
    consumers: usize,
    /// Producer connections, and those that will publish no more.
    publishers: usize,
    settled: usize,
    /// Channels.
    publishing: u32,
    consuming: u32,
    /// One side is elsewhere: nothing can be said of what is missing.
    complete: bool,
}

/// What a wait for reports ended with.
enum Woken {
    Report(Report),
    Tick,
    TimeIsUp,
    Interrupted,
}

impl Load {
    fn start(settings: &Settings, plan: Plan) -> Result<Load, Error> {
        let (steering, control) = control::pair();
        let settings = Arc::new(settings.clone());
        let ledger = Arc::new(Ledger::new(plan.attribution));
        let channels = |counts: Vec<usize>| counts.iter().sum::<usize>() as u32;
        let publishing = channels(plan.producers.iter().map(|c| c.channels.len()).collect());
        let consuming = channels(plan.consumers.iter().map(|c| c.channels.len()).collect());
        let sent = Arc::new(Mutex::new(vec![
            checks::Sent::default();
            publishing as usize
        ]));
        let (producers, consumers) = (plan.producers.len(), plan.consumers.len());
        let unmetered = Meter::shared();
        let bodies = producer::made_beforehand(&settings.payload.body, random::Random::seeded());
        let producing = plan.producers.into_iter().map(|plan| producer::Task {
            settings: settings.clone(),
            plan,
            base: ledger.base(),
            bodies: bodies.clone(),
            meter: unmetered.clone(),
            control: control.clone(),
            sent: sent.clone(),
        });
        let consuming_tasks = plan.consumers.into_iter().map(|plan| consumer::Task {
            settings: settings.clone(),
            plan,
            meter: unmetered.clone(),
            control: control.clone(),
            ledger: ledger.clone(),
        });
        let count = workers::threads(settings.threads, producers + consumers);
        let loads = workers::spread(producing.collect(), consuming_tasks.collect(), count);
        let mut load = Load {
            steering,
            threads: Vec::new(),
            meters: Vec::new(),
            ledger,
            sent,
            settings: settings.clone(),
            producers,
            consumers,
            publishers: producers,
            settled: 0,
            publishing,
            consuming,
            complete: publishing > 0 && consuming > 0,
        };
        for (number, mut part) in loads.into_iter().enumerate() {
            // The tasks of a thread share its meter.
            let meter = Meter::shared();
            part.producers
                .iter_mut()
                .for_each(|task| task.meter = meter.clone());
            part.consumers
                .iter_mut()
                .for_each(|task| task.meter = meter.clone());
            load.meters.push(meter);
            load.threads.push(workers::start(number, part, &control)?);
        }
        Ok(load)
    }

    /// Consumers first, so that no message is without a queue; then producers.
    async fn connect(&mut self, watch: &mut dyn Watch) -> Result<(), Error> {
        for (stage, side, count) in [
            (Stage::ConnectConsumers, Side::Consumer, self.consumers),
            (Stage::ConnectProducers, Side::Producer, self.producers),
        ] {
            self.steering.turn_to(stage);
            let mut ready = 0;
            while ready < count {
                let report = tokio::select! {
                    report = self.steering.reports.recv() => report,
                    () = interrupted() => return Ok(()),
                };
                match report {
                    Some(Report::Ready(of)) if of == side => ready += 1,
                    Some(Report::Note(note)) => watch.note(&note),
                    Some(Report::Failed(error)) => return Err(error),
                    Some(_) => {}
                    None => return Err(Error::Load("the load's threads have ended".into())),
                }
            }
        }
        Ok(())
    }

    /// Lets messages flow until a limit is reached, somebody interrupts, or something fails.
    async fn flow(
        &mut self,
        sampler: &mut Sampler,
        watch: &mut dyn Watch,
        run: &mut Run,
    ) -> Option<Error> {
        let limits = &self.settings.limits;
        let mut awaited = self.awaited();
        let mut starting = self.publishing + self.consuming;
        let begun = Instant::now();
        let end = limits.time.map(|time| begun + time);
        let interval = self.settings.output.interval.max(Duration::from_millis(10));
        let mut next = Instant::now() + interval;
        let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
        let mut ticked = begun;
        let failed = loop {
            match self.woken(next, end).await {
                Woken::Tick => {
                    next += interval;
                    // After a pause of this process there is one interval, not one for each missed.
                    if next <= Instant::now() {
                        next = Instant::now() + interval;
                    }
                    watch.interval(&sampler.tick());
                    ticked = Instant::now();
                }
                Woken::TimeIsUp => {
                    *reasons.entry("Reached time limit".into()).or_default() += 1;
                    break None;
                }
                Woken::Interrupted => {
                    *reasons.entry(INTERRUPTED.into()).or_default() += 1;
                    break None;
                }
                Woken::Report(Report::Started) => {
                    starting = starting.saturating_sub(1);
                    if starting == 0 && self.staggered() {
                        sampler.restart_rates();
                    }
                }
                Woken::Report(Report::Done(side, reason)) => {
                    *reasons.entry(reason.into()).or_default() += 1;
                    if let Some(count) = awaited.get_mut(&side) {
                        *count = count.saturating_sub(1);
                    }
                    if !awaited.is_empty() && awaited.values().all(|count| *count == 0) {
                        break None;
                    }
                }
                Woken::Report(Report::Note(note)) => watch.note(&note),
                Woken::Report(Report::Failed(error)) => break Some(error),
                Woken::Report(Report::Ended(side)) => self.ended(side),
                Woken::Report(Report::Settled) => self.settled += 1,
                Woken::Report(Report::Ready(_)) => {}
            }
        };
        // What is left of an interval counts as one, unless it is next to nothing.
        if ticked.elapsed() > interval / 10 {
            watch.interval(&sampler.tick());
        }
        run.stopped = reasons;
        failed
    }

    /// Channels start at different times on purpose.
    fn staggered(&self) -> bool {
        let consumers = &self.settings.consumers;
        let delays = self.settings.producers.start_delay + consumers.start_delay;
        !delays.is_zero() || consumers.slow_start
    }

    /// How many channels of each side have a limit of their own; the load ends with the last.
    fn awaited(&self) -> std::collections::HashMap<Side, u32> {
        let settings = &self.settings;
        let mut awaited = std::collections::HashMap::new();
        if settings.producers.limit.is_some() && self.publishing > 0 {
            awaited.insert(Side::Producer, self.publishing);
        }
        let ends = settings.limits.exit_when != ExitWhen::Never;
        if (settings.consumers.limit.is_some() || ends) && self.consuming > 0 {
            awaited.insert(Side::Consumer, self.consuming);
        }
        awaited
    }

    async fn woken(&mut self, next: Instant, end: Option<Instant>) -> Woken {
        let until = tokio::time::Instant::from_std(next.min(end.unwrap_or(next)));
        tokio::select! {
            () = tokio::time::sleep_until(until) => match end.is_some_and(|end| end <= next) {
                true => Woken::TimeIsUp,
                false => Woken::Tick,
            },
            () = interrupted() => Woken::Interrupted,
            report = self.steering.reports.recv() => match report {
                Some(report) => Woken::Report(report),
                None => Woken::Interrupted,
            },
        }
    }

    fn ended(&mut self, side: Side) {
        match side {
            Side::Producer => self.producers = self.producers.saturating_sub(1),
            Side::Consumer => self.consumers = self.consumers.saturating_sub(1),
        }
    }

    /// Stops producers, lets consumers take the rest if `drain`, and stops them. Returns true if
    /// all that was sent has had the time to come.
    async fn stop(&mut self, drain: bool, watch: &mut dyn Watch) -> bool {
        self.steering.turn_to(Stage::StopProducers);
        let drained = drain && self.complete && self.drain().await;
        self.steering.turn_to(Stage::StopConsumers);
        let limit = self.settings.limits.shutdown_timeout * 2 + Duration::from_secs(1);
        let all_ended = async {
            while self.producers + self.consumers > 0 {
                match self.steering.reports.recv().await {
                    Some(report) => self.note_end(&report),
                    None => break,
                }
            }
        };
        match tokio::time::timeout(limit, all_ended).await {
            Ok(()) => {
                for thread in self.threads.drain(..) {
                    // A panic has been printed by the thread itself.
                    let _ = thread.join();
                }
            }
            Err(_) => watch.note("not every connection could be closed in time"),
        }
        drained
    }

    /// Waits until all that must come has. What is missing when nothing has come for a while will
    /// not come any more.
    async fn drain(&mut self) -> bool {
        const LOOK: Duration = Duration::from_millis(50);
        /// For what would be there twice.
        const AFTERWARDS: Duration = Duration::from_millis(300);
        let patience = self.patience();
        let mut noted = self.ledger.noted();
        let mut since = Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = interrupted() => return false,
                report = self.steering.reports.recv() => match report {
                    Some(Report::Settled) => self.settled += 1,
                    Some(Report::Failed(_)) | None => return false,
                    Some(report) => {
                        self.note_end(&report);
                        continue;
                    }
                },
            }
            let now = self.ledger.noted();
            if now != noted {
                (noted, since) = (now, Instant::now());
            }
            if self.settled >= self.publishers && self.ledger.complete(&lock(&self.sent)) {
                tokio::time::sleep(AFTERWARDS).await;
                return true;
            }
            if since.elapsed() > patience {
                return true;
            }
        }
    }

    /// How long it may take from one message to the next.
    fn patience(&self) -> Duration {
        const LEAST: Duration = Duration::from_secs(10);
        let consumers = &self.settings.consumers;
        let latency = consumers.latency.iter().map(|(latency, _)| *latency).max();
        let spacing = consumers.rate.filter(|rate| *rate > 0.0);
        let each = latency.unwrap_or_default()
            + spacing.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate))
            + consumers.polling.unwrap_or_default();
        LEAST
            + each * 3
            + consumers.start_delay
            + self.settings.producers.confirm_timeout.min(LEAST)
    }

    fn note_end(&mut self, report: &Report) {
        if let Report::Ended(side) = report {
            self.ended(*side);
        }
    }

    fn conclude_checks(&self, all_came: bool) -> Option<crate::result::Checks> {
        (self.consuming > 0).then(|| self.ledger.conclude(&lock(&self.sent), all_came))
    }
}
