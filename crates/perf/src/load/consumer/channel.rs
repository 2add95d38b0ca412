//! One channel of a consumer: how long its messages take, how they are acknowledged.

use std::collections::VecDeque;

use client::method::{queue, tx};
use client::{Connection, Delivery, GetOk, Output, Properties};

use super::polling::Polling;
use crate::load::checks::Checker;
use crate::load::mark::Mark;
use crate::load::meter::Meter;
use crate::settings::{Acks, Body, Settings};
use crate::{Error, clock};

pub const LIMIT_REACHED: &str = "Consumer reached message limit";

/// With a rate: what a consumer may have missed and still make up for, in nanoseconds. It wakes up
/// less often than messages are due.
const CATCH_UP: i64 = 5_000_000;

/// What is kept of a message until it is dealt with.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    tag: u64,
    queue: u32,
    mark: Option<Mark>,
    redelivered: bool,
}

impl Message {
    /// Of a delivery.
    #[inline]
    pub fn of(delivery: &Delivery<'_>, queue: u32, in_headers: bool) -> Message {
        Message {
            tag: delivery.delivery_tag,
            queue,
            mark: mark(delivery.body, delivery.properties, in_headers),
            redelivered: delivery.redelivered,
        }
    }

    /// Of an answer to basic.get.
    pub fn got(got: &GetOk<'_>, queue: u32, in_headers: bool) -> Message {
        Message {
            tag: got.delivery_tag,
            queue,
            mark: mark(got.body, got.properties, in_headers),
            redelivered: got.redelivered,
        }
    }
}

#[inline]
fn mark(body: &[u8], properties: Properties<'_>, in_headers: bool) -> Option<Mark> {
    match in_headers {
        true => Mark::read_headers(properties),
        false => Mark::read(body),
    }
}

pub struct Channel {
    /// Its number among all consumers, and on the wire.
    pub consumer: u32,
    pub number: u16,
    /// By consumer tag: the ledger's number and the name.
    pub queues: Vec<(u32, String)>,
    pub checker: Checker,
    pub polling: Option<Polling>,
    pub in_headers: bool,
    /// A commit is under way.
    pub committing: bool,
    /// Had a message in this batch.
    pub touched: bool,
    /// Consumers that have begun, and that have ended.
    pub consuming: usize,
    pub cancelled: usize,
    /// Messages that still come are looked at, and no more.
    pub stopping: bool,
    /// Told that it is done.
    pub reported: bool,
    /// When the last message came, or its queues were last asked for.
    pub last_active: i64,
    /// One of its queues was empty when it was asked for, and nothing has come since.
    pub found_empty: bool,
    use_millis: bool,
    acks: Acks,
    nack: Option<bool>,
    transaction: u64,
    limit: u64,
    /// Nanoseconds between messages, from the rate.
    spacing: i64,
    /// How long each message takes, and until when in the cycle; from the first message.
    latencies: Vec<(i64, i64)>,
    line: VecDeque<Message>,
    /// Until when the message at hand takes.
    busy: Option<(Message, i64)>,
    /// Not before, for the rate.
    next: i64,
    received: u64,
    handled: u64,
    last_tag: u64,
    acked_tag: u64,
}

impl Channel {
    pub fn new(settings: &Settings, consumer: u32, number: u16, checker: Checker) -> Channel {
        let consumers = &settings.consumers;
        let mut end = 0_i64;
        let latencies = consumers.latency.iter().map(|(latency, time)| {
            end = end.saturating_add(time.as_nanos().min(i64::MAX as u128) as i64);
            (latency.as_nanos() as i64, end)
        });
        Channel {
            consumer,
            number,
            queues: Vec::new(),
            checker,
            polling: consumers.polling.map(Polling::new),
            in_headers: matches!(settings.payload.body, Body::Files(_) | Body::Json { .. }),
            committing: false,
            touched: false,
            consuming: 0,
            cancelled: 0,
            stopping: false,
            reported: false,
            last_active: 0,
            found_empty: false,
            use_millis: settings.use_millis,
            acks: consumers.acks,
            nack: consumers.nack,
            transaction: consumers.transaction.map_or(0, u64::from),
            limit: consumers.limit.unwrap_or(u64::MAX),
            spacing: match consumers.rate {
                Some(rate) if rate > 0.0 => (1e9 / rate) as i64,
                _ => 0,
            },
            latencies: latencies.collect(),
            line: VecDeque::new(),
            busy: None,
            next: 0,
            received: 0,
            handled: 0,
            last_tag: 0,
            acked_tag: 0,
        }
    }

    /// Limits and transactions, before it consumes.
    pub async fn prepare(
        &self,
        connection: &mut Connection,
        settings: &Settings,
    ) -> Result<(), Error> {
        let consumers = &settings.consumers;
        if self.transaction > 0 {
            connection.tx_select(self.number).await?;
        }
        if consumers.qos > 0 {
            connection.qos(self.number, consumers.qos, false).await?;
        }
        if consumers.global_qos > 0 {
            let prefetch = consumers.global_qos;
            connection.qos(self.number, prefetch, true).await?;
        }
        Ok(())
    }

    /// The ledger's number of the queue of that index.
    #[inline]
    pub fn queue(&self, at: usize) -> u32 {
        self.queues.get(at).map_or(0, |(number, _)| *number)
    }

    pub fn queue_name(&self, at: usize) -> &str {
        self.queues.get(at).map_or("", |(_, name)| name)
    }

    /// A message has come: it is dealt with at once, or waits in line.
    #[inline]
    pub fn arrived(&mut self, message: Message, now: i64, meter: &mut Meter, output: &mut Output) {
        self.last_active = now;
        self.found_empty = false;
        if self.stopping {
            // Nobody counts any more, but it is not missing.
            self.checker
                .note(message.queue, message.mark, message.redelivered);
            return;
        }
        let takes_time = self.spacing > 0 || !self.latencies.is_empty() || self.transaction > 0;
        if takes_time {
            self.line.push_back(message);
        } else if self.receive(&message, now, meter) {
            self.handled(&message, output);
        }
    }

    /// Counts a message; false if it is beyond the limit.
    #[inline]
    fn receive(&mut self, message: &Message, now: i64, meter: &mut Meter) -> bool {
        self.checker
            .note(message.queue, message.mark, message.redelivered);
        if self.received == self.limit {
            return false;
        }
        self.received += 1;
        meter.counts.received += 1;
        if let Some(mark) = message.mark {
            meter.received_after(match self.use_millis {
                true => clock::millis()
                    .saturating_sub(mark.time)
                    .saturating_mul(1_000_000),
                false => now.saturating_sub(mark.time),
            });
        }
        true
    }

    /// Acknowledges, and commits where it is time.
    #[inline]
    fn handled(&mut self, message: &Message, output: &mut Output) {
        self.handled += 1;
        self.last_tag = message.tag;
        match self.acks {
            Acks::Auto => {}
            Acks::Each => self.settle(message.tag, false, output),
            Acks::Every(every) => {
                if self.handled.is_multiple_of(u64::from(every)) {
                    self.settle(message.tag, true, output);
                }
            }
        }
        if self.transaction > 0 && self.handled.is_multiple_of(self.transaction) {
            output.send(self.number, tx::Commit::default());
            self.committing = true;
        }
    }

    #[inline]
    fn settle(&mut self, tag: u64, multiple: bool, output: &mut Output) {
        self.acked_tag = tag;
        match self.nack {
            None => output.ack(self.number, tag, multiple),
            Some(requeue) => output.nack(self.number, tag, multiple, requeue),
        }
    }

    /// Asks how many messages its queues hold.
    pub fn ask_counts(&self, output: &mut Output) {
        for (_, name) in &self.queues {
            output.send(
                self.number,
                queue::Declare {
                    queue: client::ShortStr::truncated(name),
                    passive: true,
                    ..Default::default()
                },
            );
        }
    }

    /// Settles what `-A` has left over.
    pub fn settle_rest(&mut self, output: &mut Output) {
        if self.acks != Acks::Auto && self.acked_tag < self.last_tag {
            self.settle(self.last_tag, true, output);
            if self.transaction > 0 {
                output.send(self.number, tx::Commit::default());
                self.committing = true;
            }
        }
    }

    /// One step along the line, if it is time; true if there may be another.
    pub fn serve(&mut self, now: i64, meter: &mut Meter, output: &mut Output) -> bool {
        if let Some((message, until)) = self.busy {
            if now < until {
                return false;
            }
            self.busy = None;
            self.handled(&message, output);
            return true;
        }
        if self.committing || now < self.next {
            return false;
        }
        let Some(message) = self.line.pop_front() else {
            return false;
        };
        if !self.receive(&message, now, meter) {
            return true;
        }
        if self.spacing > 0 {
            // What was not used of the rate a while ago is gone.
            self.next = self.next.max(now - self.spacing.max(CATCH_UP)) + self.spacing;
        }
        match self.latency(now) {
            0 => self.handled(&message, output),
            latency => self.busy = Some((message, now + latency)),
        }
        true
    }

    /// Nobody serves the line any more, but what is in it is not missing.
    pub fn abandon_line(&mut self) {
        self.stopping = true;
        for message in self.line.drain(..) {
            self.checker
                .note(message.queue, message.mark, message.redelivered);
        }
    }

    /// How long a message takes now.
    fn latency(&self, now: i64) -> i64 {
        let cycle = match &self.latencies[..] {
            [] => return 0,
            [(always, _)] => return *always,
            [.., (_, cycle)] => cycle,
        };
        let at = now % (*cycle).max(1);
        let current = self.latencies.iter().find(|(_, end)| at < *end);
        current.map_or(0, |(latency, _)| *latency)
    }

    /// Asks for a message, if it is time.
    pub fn poll(&mut self, now: i64, output: &mut Output) -> Result<(), Error> {
        let idle = self.busy.is_none() && self.line.is_empty() && !self.committing;
        if !idle || self.received >= self.limit || self.stopping {
            return Ok(());
        }
        let no_ack = self.acks == Acks::Auto;
        let count = self.queues.len();
        if let Some(polling) = &mut self.polling
            && let Some(at) = polling.ask(now, count)
        {
            let queue = client::ShortStr::truncated(&self.queues[at].1);
            output.send(
                self.number,
                client::method::basic::Get {
                    queue,
                    no_ack,
                    ..Default::default()
                },
            );
        }
        Ok(())
    }

    /// True if it is to be served between messages.
    pub fn has_line(&self) -> bool {
        self.polling.is_some() || self.has_line_of_messages()
    }

    /// True if messages wait in it.
    pub fn has_line_of_messages(&self) -> bool {
        self.busy.is_some() || !self.line.is_empty()
    }

    /// Messages in line.
    pub fn line_length(&self) -> usize {
        self.line.len()
    }

    /// When it is to be served again, if not by a message's arrival.
    pub fn next_moment(&self) -> Option<i64> {
        if let Some((_, until)) = self.busy {
            return Some(until);
        }
        if !self.committing && !self.line.is_empty() {
            return Some(self.next.max(1));
        }
        let polling = self.polling.as_ref().filter(|_| !self.committing)?;
        polling.next().filter(|_| self.received < self.limit)
    }

    /// True once, when its limit is reached.
    pub fn newly_done(&mut self) -> bool {
        let newly = !self.reported && self.received >= self.limit && self.busy.is_none();
        self.reported |= newly;
        newly
    }
}
