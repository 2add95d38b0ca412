//! One producer connection: a task that publishes on all its channels.
//!
//! Each turn appends what is due, up to a batch, writes it, and takes the confirms that have come.
//! It waits only when nothing is due or every channel's window is full.

mod channel;
mod content;
mod json;
mod keys;
mod outstanding;
mod schedule;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::Event;

use super::control::{Control, Report, Side, Stage};
use super::meter::Meter;
use super::plan::{self, ProducerChannel};
use super::random::Random;
use super::timer::Timer;
use super::verbose::Verbose;
use super::{checks, topology};
use crate::settings::Settings;
use crate::sync::lock;
use crate::{Error, clock};
use channel::Channel;
pub use content::{made_beforehand, names_producer};
pub use keys::uuid;

/// Bytes of publishes per write.
const BATCH: usize = 64 << 10;
/// How long a write may keep what has arrived from being dealt with.
const DEAF: Duration = Duration::from_millis(100);

/// What a producer task needs to know.
pub struct Task {
    pub settings: Arc<Settings>,
    pub plan: plan::Connection<ProducerChannel>,
    /// Mark of the first own producer.
    pub base: u32,
    /// Bodies that are made beforehand.
    pub bodies: Arc<[Vec<u8>]>,
    pub meter: Arc<Mutex<Meter>>,
    pub control: Control,
    /// Where each producer leaves what it has published.
    pub sent: Arc<Mutex<Vec<checks::Sent>>>,
}

/// Runs it to its end, and reports.
pub async fn run(mut task: Task) {
    let result = drive(&mut task).await;
    if let Err(error) = result {
        task.control.report(Report::Failed(error));
    }
    task.control.report(Report::Ended(Side::Producer));
}

async fn drive(task: &mut Task) -> Result<(), Error> {
    task.control.wait_for(Stage::ConnectProducers).await;
    let mut producer = Producer::connect(task).await?;
    task.control.report(Report::Ready(Side::Producer));
    producer.hold(&mut task.control, Stage::Run).await?;
    producer.start();
    let result = producer.publish(&mut task.control).await;
    let result = match result {
        Ok(()) => producer.settle(task).await,
        Err(error) => Err(error),
    };
    producer.leave(&task.sent);
    task.control.report(Report::Settled);
    result?;
    producer
        .hold(&mut task.control, Stage::StopConsumers)
        .await?;
    let limit = task.settings.limits.shutdown_timeout;
    // What matters has been confirmed already.
    let _ = tokio::time::timeout(limit, producer.connection.close()).await;
    Ok(())
}

struct Producer {
    connection: client::Connection,
    channels: Vec<Channel>,
    meter: Arc<Mutex<Meter>>,
    timer: Timer,
    settings: Arc<Settings>,
    verbose: Verbose,
    /// The channel that begins the next turn.
    turn: usize,
    /// Where channels with neither limit nor rate share a batch.
    share: usize,
    blocked: bool,
}

impl Producer {
    async fn connect(task: &Task) -> Result<Producer, Error> {
        let settings = &task.settings;
        let mut options = settings.brokers[task.plan.broker].clone();
        options.connection_name = Some(format!("perf-test-producer-{}", task.plan.number));
        options.channel_max = options.channel_max.max(settings.producers.channels);
        let mut connection = client::Connection::connect(&options).await?;
        if task.plan.number == 0 {
            topology::declare_exchange(&mut connection, &settings.topology).await?;
        }
        let mut channels = Vec::with_capacity(task.plan.channels.len());
        for planned in &task.plan.channels {
            let number = connection.open_channel().await?;
            if settings.producers.transaction.is_some() {
                connection.tx_select(number).await?;
            }
            if settings.producers.confirm.is_some() {
                connection.confirm_select(number).await?;
            }
            let bodies = task.bodies.clone();
            channels.push(Channel::new(settings, planned, number, task.base, bodies));
        }
        Ok(Producer {
            connection,
            share: (BATCH / channels.len().max(1)).max(1),
            channels,
            meter: task.meter.clone(),
            timer: Timer::new()?,
            settings: settings.clone(),
            verbose: Verbose::new(settings),
            turn: 0,
            blocked: false,
        })
    }

    /// Waits for a stage, and answers what the broker says meanwhile, heartbeats above all.
    async fn hold(&mut self, control: &mut Control, stage: Stage) -> Result<(), Error> {
        loop {
            tokio::select! {
                ready = self.connection.ready() => ready?,
                () = control.wait_for(stage) => return Ok(()),
            }
            self.take_events(control)?;
        }
    }

    fn start(&mut self) {
        let mut random = Random::seeded();
        let delay = self.settings.producers.start_delay.as_nanos() as u64;
        let now = clock::nanos();
        for channel in &mut self.channels {
            let later = match delay {
                0 => 0,
                delay => random.below(delay) as i64,
            };
            channel.start(&self.settings, now + later);
        }
    }

    /// Publishes until told to stop, or until every channel has reached its limit.
    async fn publish(&mut self, control: &mut Control) -> Result<(), Error> {
        while !control.stopping() {
            let published = self.turn(control)?;
            self.write(control).await?;
            if published == 0 {
                if self.channels.iter().all(Channel::done) {
                    return Ok(());
                }
                self.wait(control).await?;
            } else {
                self.look().await?;
            }
            self.take_events(control)?;
        }
        Ok(())
    }

    /// Appends what is due on each channel; returns how many messages.
    fn turn(&mut self, control: &Control) -> Result<u64, Error> {
        if self.blocked {
            return Ok(0);
        }
        let mut now = clock::nanos();
        let mut published = 0;
        let count = self.channels.len();
        let first = self.turn;
        for step in 0..count {
            let index = (first + step) % count;
            let output = self.connection.output();
            let limit = output.pending() + self.share.min(BATCH);
            let channel = &mut self.channels[index];
            published += channel.publish(output, limit, &mut now, &self.verbose)?;
            if output.pending() >= BATCH {
                self.turn = (index + 1) % count;
                break;
            }
        }
        if published > 0 {
            lock(&self.meter).counts.sent += published;
        }
        // Whoever hears that a channel is done must find its messages counted.
        for channel in &mut self.channels {
            if channel.newly_begun(now) {
                control.report(Report::Started);
            }
            if channel.newly_done() {
                control.report(Report::Done(Side::Producer, LIMIT_REACHED));
            }
        }
        Ok(published)
    }

    /// Writes what is pending, or gives up when producers are to stop and the socket takes nothing.
    async fn write(&mut self, control: &mut Control) -> Result<(), Error> {
        while !self.connection.try_flush() {
            tokio::select! {
                flushed = self.connection.flush() => return Ok(flushed?),
                () = control.wait_for(Stage::StopProducers) => return Ok(()),
                // A broker that blocks producers says so, and takes nothing more.
                () = tokio::time::sleep(DEAF) => self.take_events(control)?,
            }
        }
        Ok(())
    }

    /// Reads what has arrived, and lets other tasks of the thread have a turn.
    async fn look(&mut self) -> Result<(), Error> {
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            ready = self.connection.ready() => Ok(ready?),
            () = std::future::ready(()) => Ok(()),
        }
    }

    /// Waits for a confirm, or for the next message to be due.
    async fn wait(&mut self, control: &mut Control) -> Result<(), Error> {
        let due = match self.blocked {
            true => None,
            false => self.channels.iter().filter_map(Channel::next_due).min(),
        };
        let patience = self.patience_ends();
        let moment = due.into_iter().chain(patience).min();
        let Producer {
            connection, timer, ..
        } = self;
        tokio::select! {
            ready = connection.ready() => return Ok(ready?),
            () = control.wait_for(Stage::StopProducers) => return Ok(()),
            waited = timer.until(moment.unwrap_or(0)), if moment.is_some() => waited?,
        }
        match patience {
            Some(end) if end <= clock::nanos() => Err(self.out_of_patience()),
            _ => Ok(()),
        }
    }

    /// When the oldest unconfirmed message of a channel that waits for it has waited too long.
    fn patience_ends(&self) -> Option<i64> {
        let limit = self.settings.producers.confirm_timeout.as_nanos() as i64;
        let waiting = self.channels.iter().filter_map(Channel::waits_since).min();
        waiting
            .map(|since| since.saturating_add(limit))
            .filter(|_| !self.blocked)
    }

    fn out_of_patience(&self) -> Error {
        Error::Load(format!(
            "no confirm from {} within {} s (--confirm-timeout)",
            self.connection.options().address(),
            self.settings.producers.confirm_timeout.as_secs()
        ))
    }

    fn take_events(&mut self, control: &Control) -> Result<(), Error> {
        let Producer {
            connection,
            channels,
            meter,
            blocked,
            verbose,
            ..
        } = self;
        let mut locked = None;
        let mut now = 0;
        while let Some(event) = connection.try_next()? {
            let meter = locked.get_or_insert_with(|| {
                now = clock::nanos();
                lock(meter)
            });
            match event {
                Event::Confirm(confirm) => {
                    if let Some(channel) = channels.get_mut(index(confirm.channel)) {
                        channel.confirmed(&confirm, now, meter);
                        verbose.confirmed(&confirm);
                        if channel.newly_done() {
                            control.report(Report::Done(Side::Producer, LIMIT_REACHED));
                        }
                    }
                }
                Event::Return(returned) => {
                    meter.counts.returned += 1;
                    if let Some(channel) = channels.get_mut(index(returned.channel)) {
                        channel.returned(returned.body, returned.properties);
                    }
                }
                Event::Reply {
                    channel,
                    method: client::Method::TxCommitOk(_),
                } => {
                    if let Some(channel) = channels.get_mut(index(channel)) {
                        channel.committed(now, meter);
                        if channel.newly_done() {
                            control.report(Report::Done(Side::Producer, LIMIT_REACHED));
                        }
                    }
                }
                Event::ChannelClosed(closed) => {
                    return Err(client::Error::from(closed).into());
                }
                Event::Blocked { reason } => {
                    *blocked = true;
                    let reason = reason.lossy();
                    control.report(Report::Note(format!(
                        "the broker blocks producers: {reason}"
                    )));
                }
                Event::Unblocked => {
                    *blocked = false;
                    control.report(Report::Note("the broker no longer blocks producers".into()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until everything published is with the broker.
    async fn settle(&mut self, task: &Task) -> Result<(), Error> {
        for channel in &mut self.channels {
            channel.commit_rest(self.connection.output());
        }
        let limit = self.settings.limits.shutdown_timeout;
        let settled = async {
            while self.channels.iter().any(Channel::unsettled) {
                self.connection.ready().await?;
                self.take_events(&task.control)?;
            }
            if self.settings.producers.mandatory {
                // What comes back has come back before the answer does.
                for channel in &self.channels {
                    self.connection.qos(channel.number(), 0, false).await?;
                }
                self.take_events(&task.control)?;
            }
            self.connection.flush().await?;
            Ok(())
        };
        // Whoever asked for a timeout of the shutdown gets it.
        tokio::time::timeout(limit, settled).await.unwrap_or(Ok(()))
    }

    /// Leaves what was published for the checks.
    fn leave(&self, sent: &Mutex<Vec<checks::Sent>>) {
        let mut sent = lock(sent);
        for channel in &self.channels {
            if let Some(place) = sent.get_mut(channel.producer() as usize) {
                *place = channel.sent();
            }
        }
    }
}

/// A channel's place; nowhere for channel 0.
fn index(channel: u16) -> usize {
    usize::from(channel).wrapping_sub(1)
}

const LIMIT_REACHED: &str = "Producer reached message limit";
