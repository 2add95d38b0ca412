//! One consumer connection: a task that consumes on all its channels.
//!
//! What has arrived is taken in batches. A channel whose messages take time, or whose rate is
//! limited, keeps them in a line and is served when it is time; while a line is long, nothing more
//! is read.

mod channel;
mod polling;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use client::method::basic;
use client::{Event, Method};

use super::checks::{Checker, Ledger};
use super::control::{Control, Report, Side, Stage};
use super::meter::Meter;
use super::plan::{self, ConsumerChannel};
use super::timer::Timer;
use super::topology;
use super::verbose::Verbose;
use crate::settings::{ExitWhen, Settings};
use crate::sync::lock;
use crate::{Error, clock};
use channel::{Channel, Message};

/// A connection whose channels hold more messages than this reads no more.
const LONG_LINE: usize = 4_096;
/// How often it does read a little, in nanoseconds.
const LONG_LINE_READS: i64 = 1_000_000_000;
/// A consumer that has had no message for so long is idle.
const IDLE: i64 = 1_000_000_000;
/// Consumers are not looked at for idleness before that.
const IDLE_AFTER: i64 = 2_000_000_000;

/// What a consumer task needs to know.
pub struct Task {
    pub settings: Arc<Settings>,
    pub plan: plan::Connection<ConsumerChannel>,
    pub meter: Arc<Mutex<Meter>>,
    pub control: Control,
    pub ledger: Arc<Ledger>,
}

/// Runs it to its end, and reports.
pub async fn run(mut task: Task) {
    let result = drive(&mut task).await;
    if let Err(error) = result {
        task.control.report(Report::Failed(error));
    }
    task.control.report(Report::Ended(Side::Consumer));
}

async fn drive(task: &mut Task) -> Result<(), Error> {
    let mut consumer = Consumer::connect(task).await?;
    task.control.report(Report::Ready(Side::Consumer));
    consumer.hold(task, Stage::Run, None).await?;
    let result = consumer.consume(task).await;
    let result = match result {
        Ok(()) => consumer.stop(task).await,
        Err(error) => Err(error),
    };
    for channel in consumer.channels {
        channel.checker.finish();
    }
    let limit = task.settings.limits.shutdown_timeout;
    let _ = tokio::time::timeout(limit, consumer.connection.close()).await;
    result
}

struct Consumer {
    connection: client::Connection,
    channels: Vec<Channel>,
    meter: Arc<Mutex<Meter>>,
    timer: Timer,
    settings: Arc<Settings>,
    verbose: Verbose,
    started: i64,
    last_read: i64,
}

impl Consumer {
    async fn connect(task: &Task) -> Result<Consumer, Error> {
        let settings = &task.settings;
        let mut options = settings.brokers[task.plan.broker].clone();
        options.connection_name = Some(format!("perf-test-consumer-{}", task.plan.number));
        options.channel_max = options.channel_max.max(task.plan.channels.len() as u16);
        let mut connection = client::Connection::connect(&options).await?;
        topology::declare_exchange(&mut connection, &settings.topology).await?;
        let declared_first = matches!(settings.topology.queues, crate::settings::Queues::InTurn(_))
            && !settings.topology.exclusive;
        let mut channels = Vec::with_capacity(task.plan.channels.len());
        for planned in &task.plan.channels {
            let number = connection.open_channel().await?;
            let mut queues = Vec::with_capacity(planned.queues.len());
            for queue in &planned.queues {
                queues.push(match declared_first {
                    true => queue.clone(),
                    false => {
                        let key = &planned.routing_key;
                        let topology = &settings.topology;
                        topology::declare_queue(&mut connection, number, topology, queue, key)
                            .await?
                    }
                });
            }
            let checker = Checker::new(task.ledger.clone(), planned.number);
            let mut channel = Channel::new(settings, planned.number, number, checker);
            // The default exchange binds each queue with its name.
            let default_exchange = settings.topology.exchange.is_empty();
            let named = |queue: String| {
                let key = if default_exchange {
                    &queue
                } else {
                    &planned.routing_key
                };
                (task.ledger.queue(&queue, key), queue)
            };
            channel.queues = queues.into_iter().map(named).collect();
            channel.prepare(&mut connection, settings).await?;
            channels.push(channel);
        }
        Ok(Consumer {
            connection,
            channels,
            meter: task.meter.clone(),
            timer: Timer::new()?,
            settings: settings.clone(),
            verbose: Verbose::new(settings),
            started: 0,
            last_read: 0,
        })
    }

    /// Starts the consumers and takes messages until told to stop.
    async fn consume(&mut self, task: &mut Task) -> Result<(), Error> {
        self.start(task).await?;
        self.started = clock::nanos();
        while !task.control.reached(Stage::StopConsumers) {
            self.take_events(task)?;
            self.serve(task)?;
            self.look_for_idle(task)?;
            self.wait(&mut task.control).await?;
        }
        Ok(())
    }

    async fn start(&mut self, task: &mut Task) -> Result<(), Error> {
        let consumers = &self.settings.consumers;
        let mut wait = consumers.start_delay;
        if consumers.slow_start {
            wait += Duration::from_secs(u64::from(task.plan.number));
        }
        if !wait.is_zero() {
            self.hold(task, Stage::StopConsumers, Some(wait)).await?;
        }
        let consumers = &self.settings.consumers;
        let no_ack = consumers.acks == crate::settings::Acks::Auto;
        let arguments = consumers.arguments.encode();
        for channel in &mut self.channels {
            if let Some(polling) = &mut channel.polling {
                polling.start(clock::nanos());
                task.control.report(Report::Started);
                continue;
            }
            // The answers come among deliveries, of which there may be any number by then.
            for (at, (_, queue)) in channel.queues.iter().enumerate() {
                let tag = tag(at);
                self.connection.send(
                    channel.number,
                    basic::Consume {
                        queue: client::ShortStr::truncated(queue),
                        consumer_tag: client::ShortStr::truncated(&tag),
                        no_ack,
                        arguments: client::Table::from_wire(&arguments),
                        ..Default::default()
                    },
                );
            }
            if channel.queues.is_empty() {
                task.control.report(Report::Started);
            }
        }
        Ok(())
    }

    /// Waits for a stage, or for that time, and answers what the broker says meanwhile, heartbeats
    /// above all.
    async fn hold(
        &mut self,
        task: &mut Task,
        stage: Stage,
        time: Option<Duration>,
    ) -> Result<(), Error> {
        let end = Instant::now() + time.unwrap_or(Duration::from_secs(1 << 32));
        loop {
            tokio::select! {
                ready = self.connection.ready() => ready?,
                () = task.control.wait_for(stage) => return Ok(()),
                () = tokio::time::sleep_until(end.into()), if time.is_some() => return Ok(()),
            }
            self.take_events(task)?;
        }
    }

    /// Takes all that has arrived.
    fn take_events(&mut self, task: &Task) -> Result<(), Error> {
        let Consumer {
            connection,
            channels,
            meter,
            verbose,
            ..
        } = self;
        let mut locked = None;
        let mut now = Now::default();
        let mut last = 0;
        while let Some((event, output)) = connection.try_next_and_output()? {
            let Some(channel) = channels.get_mut(channel_index(&event)) else {
                note_connection_event(&event, task);
                continue;
            };
            let meter = locked.get_or_insert_with(|| lock(meter));
            let now = now.get();
            match event {
                Event::Delivery(delivery) => {
                    if delivery.channel != last {
                        last = delivery.channel;
                        channel.touched = true;
                    }
                    verbose.received(channel.consumer, &delivery);
                    let at = tag_index(delivery.consumer_tag.as_bytes());
                    let message = Message::of(&delivery, channel.queue(at), channel.in_headers);
                    channel.arrived(message, now, meter, output);
                }
                Event::GetOk(got) => {
                    channel.touched = true;
                    let queue = channel.polling.as_mut().map_or(0, |p| p.answered(now));
                    let message = Message::got(&got, channel.queue(queue), channel.in_headers);
                    channel.arrived(message, now, meter, output);
                }
                Event::GetEmpty { .. } => {
                    channel
                        .polling
                        .as_mut()
                        .map(|polling| polling.answered(now));
                }
                Event::Reply {
                    method: Method::TxCommitOk(_),
                    ..
                } => channel.committing = false,
                Event::Reply {
                    method: Method::BasicConsumeOk(_),
                    ..
                } => {
                    channel.consuming += 1;
                    if channel.consuming == channel.queues.len() {
                        task.control.report(Report::Started);
                    }
                }
                Event::Reply {
                    method: Method::BasicCancelOk(_),
                    ..
                } => channel.cancelled += 1,
                Event::Reply {
                    method: Method::QueueDeclareOk(declared),
                    ..
                } => channel.found_empty |= declared.message_count == 0,
                Event::Cancel { consumer_tag, .. } => {
                    let queue = channel.queue_name(tag_index(consumer_tag.as_bytes()));
                    return Err(Error::Load(format!(
                        "the broker ended a consumer of queue '{queue}': the queue is gone"
                    )));
                }
                Event::ChannelClosed(closed) => {
                    return Err(client::Error::from(closed).into());
                }
                _ => {}
            }
        }
        drop(locked);
        for channel in channels {
            if channel.touched {
                channel.touched = false;
                channel.checker.settle();
            }
            if channel.newly_done() {
                channel.settle_rest(connection.output());
                let reason = channel::LIMIT_REACHED;
                task.control.report(Report::Done(Side::Consumer, reason));
            }
        }
        Ok(())
    }

    /// Serves the lines of channels whose time has come.
    fn serve(&mut self, task: &Task) -> Result<(), Error> {
        if !self.channels.iter().any(Channel::has_line) {
            return Ok(());
        }
        let mut meter = lock(&self.meter);
        for channel in &mut self.channels {
            let output = self.connection.output();
            while channel.serve(clock::nanos(), &mut meter, output) {}
            channel.poll(clock::nanos(), output)?;
            channel.checker.settle();
            if channel.newly_done() {
                channel.settle_rest(self.connection.output());
                let reason = channel::LIMIT_REACHED;
                task.control.report(Report::Done(Side::Consumer, reason));
            }
        }
        Ok(())
    }

    /// Waits for messages, for the time of one that waits, or for the end.
    async fn wait(&mut self, control: &mut Control) -> Result<(), Error> {
        let mut moment = self.channels.iter().filter_map(Channel::next_moment).min();
        if self.settings.limits.exit_when != ExitWhen::Never {
            let look = clock::nanos() + IDLE / 4;
            moment = Some(moment.map_or(look, |moment| moment.min(look)));
        }
        let held: usize = self.channels.iter().map(Channel::line_length).sum();
        let now = clock::nanos();
        // A little must be read all the same: otherwise broker and client take each other for dead.
        let reads = held <= LONG_LINE || now - self.last_read > LONG_LINE_READS;
        if reads {
            self.last_read = now;
        } else {
            let look = self.last_read + LONG_LINE_READS;
            moment = Some(moment.map_or(look, |moment| moment.min(look)));
            // The acknowledgements must leave.
            self.connection.try_flush();
        }
        let Consumer {
            connection, timer, ..
        } = self;
        tokio::select! {
            ready = connection.ready(), if reads => Ok(ready?),
            () = control.wait_for(Stage::StopConsumers) => Ok(()),
            waited = timer.until(moment.unwrap_or(0)), if moment.is_some() => waited,
        }
    }

    /// With `--exit-when`: consumers that have had nothing for a second are done.
    fn look_for_idle(&mut self, task: &Task) -> Result<(), Error> {
        let exit_when = self.settings.limits.exit_when;
        let now = clock::nanos();
        if exit_when == ExitWhen::Never || now - self.started < IDLE_AFTER {
            return Ok(());
        }
        for at in 0..self.channels.len() {
            let channel = &mut self.channels[at];
            let since = channel.last_active.max(self.started);
            if channel.reported || now - since < IDLE || channel.has_line_of_messages() {
                continue;
            }
            if exit_when == ExitWhen::Empty && !channel.found_empty {
                // The answers come among deliveries.
                channel.ask_counts(self.connection.output());
                channel.last_active = now;
                continue;
            }
            channel.settle_rest(self.connection.output());
            channel.reported = true;
            let reason = match exit_when {
                ExitWhen::Idle => "Consumer is idle for more than 1 second",
                _ => "Consumer queue(s) empty",
            };
            task.control.report(Report::Done(Side::Consumer, reason));
        }
        Ok(())
    }

    /// Ends the consumers, and takes what the broker has sent them up to then: nothing that it did
    /// send may look as if it were missing.
    async fn stop(&mut self, task: &Task) -> Result<(), Error> {
        let mut awaited = 0;
        for channel in &mut self.channels {
            channel.abandon_line();
            if channel.polling.is_none() {
                for at in 0..channel.queues.len() {
                    let tag = tag(at);
                    let consumer_tag = client::ShortStr::truncated(&tag);
                    let no_wait = false;
                    self.connection.send(
                        channel.number,
                        basic::Cancel {
                            consumer_tag,
                            no_wait,
                        },
                    );
                    awaited += 1;
                }
            }
        }
        let stopped = async {
            while self.channels.iter().map(|c| c.cancelled).sum::<usize>() < awaited {
                self.connection.ready().await?;
                self.take_events(task)?;
            }
            Ok(())
        };
        let limit = task.settings.limits.shutdown_timeout;
        tokio::time::timeout(limit, stopped).await.unwrap_or(Ok(()))
    }
}

/// One look at the clock for each batch.
#[derive(Default)]
struct Now(Option<i64>);

impl Now {
    #[inline]
    fn get(&mut self) -> i64 {
        *self.0.get_or_insert_with(clock::nanos)
    }
}

/// The tag of a channel's consumer on its queue of that index.
fn tag(at: usize) -> String {
    format!("perf-{at}")
}

#[inline]
fn tag_index(tag: &[u8]) -> usize {
    let digits = tag.strip_prefix(b"perf-").unwrap_or_default();
    digits.iter().fold(0, |number: usize, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(usize::from(digit & 0xf))
    })
}

/// Index of an event's channel among the task's channels; none for events of the connection.
#[inline]
fn channel_index(event: &Event<'_>) -> usize {
    let number = match event {
        Event::Delivery(delivery) => delivery.channel,
        Event::GetOk(got) => got.channel,
        Event::GetEmpty { channel }
        | Event::Reply { channel, .. }
        | Event::Cancel { channel, .. } => *channel,
        Event::ChannelClosed(closed) => closed.channel,
        _ => 0,
    };
    usize::from(number).wrapping_sub(1)
}

fn note_connection_event(event: &Event<'_>, task: &Task) {
    if let Event::Blocked { reason } = event {
        let reason = reason.lossy();
        let note = format!("the broker blocks a consumer's connection: {reason}");
        task.control.report(Report::Note(note));
    }
}
