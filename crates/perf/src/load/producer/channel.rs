//! One channel of a producer: its sequence of messages, its window, its transactions.

use std::sync::Arc;

use client::method::tx;
use client::{Confirm, Output, Properties, PublishFlags};

use super::content::Content;
use super::keys::Keys;
use super::outstanding::Outstanding;
use super::schedule::Schedule;
use crate::load::checks::Sent;
use crate::load::mark::Mark;
use crate::load::meter::Meter;
use crate::load::plan::ProducerChannel;
use crate::load::random::Random;
use crate::load::verbose::Verbose;
use crate::settings::{Body, Settings};
use crate::{Error, clock};

/// Messages without a schedule that share one look at the clock. They take less than two
/// microseconds together.
const CLOCK_EVERY: u64 = 16;

pub struct Channel {
    /// Its number on the wire.
    number: u16,
    /// Its number among all producers, and what its messages are marked with.
    producer: u32,
    mark: u32,
    exchange: Vec<u8>,
    keys: Keys,
    content: Content,
    flags: PublishFlags,
    schedule: Option<Schedule>,
    /// Not before; then the schedule says when.
    starts: i64,
    published: u64,
    limit: u64,
    /// Messages that may be unconfirmed, and those that are.
    window: u64,
    outstanding: Option<Outstanding>,
    /// When a confirm last settled something, or there was nothing to wait for before.
    progress: i64,
    transaction: Option<Transaction>,
    use_millis: bool,
    in_headers: bool,
    refused: Refused,
    begun: bool,
    reported: bool,
}

/// Numbers of messages that the broker did not take.
#[derive(Debug, Default)]
struct Refused {
    ranges: Vec<(u64, u64)>,
}

/// Ranges beyond this are joined, and what lies between them is not missed either: a load of which
/// so much is refused is no test of what gets lost.
const MAX_RANGES: usize = 1 << 20;

impl Refused {
    fn add(&mut self, number: u64) {
        let full = self.ranges.len() == MAX_RANGES;
        match self.ranges.last_mut() {
            Some(last) if last.1 == number || full => last.1 = last.1.max(number + 1),
            _ => self.ranges.push((number, number + 1)),
        }
    }
}

struct Transaction {
    size: u64,
    /// Messages published up to the last commit that was answered.
    committed: u64,
    /// Since when one is under way.
    committing: Option<i64>,
    /// Messages since the last commit.
    open: u64,
}

impl Channel {
    pub fn new(
        settings: &Settings,
        planned: &ProducerChannel,
        number: u16,
        base: u32,
        bodies: Arc<[Vec<u8>]>,
    ) -> Channel {
        let producers = &settings.producers;
        let topology = &settings.topology;
        let mut random = Random::seeded();
        let mark = base.wrapping_add(planned.number);
        let keys = Random::new(random.next());
        Channel {
            number,
            producer: planned.number,
            mark,
            exchange: topology.exchange.clone().into_bytes(),
            keys: Keys::new(&planned.routing_key, topology.random_routing_key, keys),
            content: Content::new(&settings.payload, producers, bodies, mark, random),
            flags: PublishFlags {
                mandatory: producers.mandatory,
                immediate: false,
            },
            schedule: None,
            starts: i64::MAX,
            published: 0,
            limit: producers.limit.unwrap_or(u64::MAX),
            window: match producers.confirm {
                Some(0) | None => u64::MAX,
                Some(window) => u64::from(window),
            },
            outstanding: producers.confirm.map(|_| Outstanding::default()),
            progress: 0,
            transaction: producers.transaction.map(|size| Transaction {
                size: u64::from(size),
                committed: 0,
                committing: None,
                open: 0,
            }),
            use_millis: settings.use_millis,
            in_headers: matches!(settings.payload.body, Body::Files(_) | Body::Json { .. }),
            refused: Refused::default(),
            begun: false,
            reported: false,
        }
    }

    /// Its messages are due from `moment` on.
    pub fn start(&mut self, settings: &Settings, moment: i64) {
        self.starts = moment;
        self.schedule = Schedule::new(&settings.producers.rate, moment);
    }

    /// True once, when its first message has become due.
    pub fn newly_begun(&mut self, now: i64) -> bool {
        let newly = !self.begun && now >= self.starts;
        self.begun |= newly;
        newly
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn producer(&self) -> u32 {
        self.producer
    }

    /// Appends messages that are due until the output reaches `limit` bytes; returns how many.
    /// `now` is kept up to date.
    #[inline]
    pub fn publish(
        &mut self,
        output: &mut Output,
        limit: usize,
        now: &mut i64,
        verbose: &Verbose,
    ) -> Result<u64, Error> {
        let mut published = 0;
        while self.may_publish() && output.pending() < limit {
            let time = match &mut self.schedule {
                None => {
                    if *now < self.starts {
                        break;
                    }
                    if published % CLOCK_EVERY == CLOCK_EVERY - 1 {
                        *now = clock::nanos();
                    }
                    *now
                }
                Some(schedule) => {
                    let due = schedule.next();
                    if due > *now {
                        break;
                    }
                    schedule.advance();
                    due
                }
            };
            if published == 0 && self.outstanding.as_ref().is_some_and(|o| o.count() == 0) {
                self.progress = *now;
            }
            self.publish_one(output, time, *now, verbose)?;
            published += 1;
        }
        Ok(published)
    }

    #[inline]
    fn publish_one(
        &mut self,
        output: &mut Output,
        time: i64,
        now: i64,
        verbose: &Verbose,
    ) -> Result<(), Error> {
        let mark = Mark {
            sequence: self.published as u32,
            time: match self.use_millis {
                true => clock::millis() - (now - time) / 1_000_000,
                false => time,
            },
            producer: self.mark,
        };
        let (properties, body) = self.content.next(&mark);
        let key = self.keys.next();
        output.publish(
            self.number,
            &self.exchange,
            key,
            self.flags,
            properties,
            body,
        )?;
        verbose.published(self.producer, &mark, properties, body);
        self.published += 1;
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.push(time);
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.open += 1;
            if transaction.open == transaction.size {
                self.commit(output);
            }
        }
        Ok(())
    }

    fn commit(&mut self, output: &mut Output) {
        if let Some(transaction) = &mut self.transaction {
            output.send(self.number, tx::Commit::default());
            transaction.committing = Some(clock::nanos());
            transaction.open = 0;
        }
    }

    /// Commits what is left of a transaction.
    pub fn commit_rest(&mut self, output: &mut Output) {
        let open = self.transaction.as_ref();
        if open.is_some_and(|t| t.open > 0 && t.committing.is_none()) {
            self.commit(output);
        }
    }

    #[inline]
    fn may_publish(&self) -> bool {
        self.published < self.limit
            && self
                .outstanding
                .as_ref()
                .is_none_or(|outstanding| outstanding.count() < self.window)
            && self
                .transaction
                .as_ref()
                .is_none_or(|transaction| transaction.committing.is_none())
    }

    /// When the next message is due, if nothing else is in its way.
    pub fn next_due(&self) -> Option<i64> {
        if !self.may_publish() {
            return None;
        }
        let due = match &self.schedule {
            Some(schedule) => schedule.next(),
            None => self.starts,
        };
        Some(due).filter(|due| *due < i64::MAX)
    }

    /// Since when a full window, or a commit, keeps it from publishing.
    pub fn waits_since(&self) -> Option<i64> {
        if let Some(transaction) = &self.transaction {
            return transaction.committing;
        }
        let outstanding = self.outstanding.as_ref()?;
        let full = outstanding.count() >= self.window || self.published >= self.limit;
        // Not since the oldest was due: behind its schedule is not without confirms.
        (full && outstanding.count() > 0).then_some(self.progress)
    }

    pub fn confirmed(&mut self, confirm: &Confirm, now: i64, meter: &mut Meter) {
        let Some(outstanding) = &mut self.outstanding else {
            return;
        };
        let (tag, multiple) = (confirm.delivery_tag, confirm.multiple);
        if confirm.acked {
            let settled = outstanding.settle(tag, multiple, |_, time| {
                meter.confirmed_after(now - time);
            });
            meter.counts.confirmed += settled;
        } else {
            let refused = &mut self.refused;
            let settled = outstanding.settle(tag, multiple, |number, _| refused.add(number));
            meter.counts.nacked += settled;
        }
        self.progress = now;
    }

    /// A mandatory message came back.
    pub fn returned(&mut self, body: &[u8], properties: Properties<'_>) {
        let mark = match self.in_headers {
            true => Mark::read_headers(properties),
            false => Mark::read(body),
        };
        if let Some(mark) = mark {
            // The number below `published` that wraps to this.
            let behind = (self.published as u32).wrapping_sub(mark.sequence);
            if let Some(number) = self.published.checked_sub(u64::from(behind)) {
                self.refused.add(number);
            }
        }
    }

    pub fn committed(&mut self, now: i64, meter: &mut Meter) {
        if let Some(transaction) = &mut self.transaction
            && let Some(since) = transaction.committing.take()
        {
            transaction.committed = self.published;
            meter.confirmed_after(now - since);
        }
    }

    /// True while something published is not known to be with the broker.
    pub fn unsettled(&self) -> bool {
        self.outstanding.as_ref().is_some_and(|o| o.count() > 0)
            || self
                .transaction
                .as_ref()
                .is_some_and(|t| t.committing.is_some())
    }

    /// True once everything it was to publish is with the broker.
    pub fn done(&self) -> bool {
        self.published >= self.limit && !self.unsettled()
    }

    /// The same, once.
    pub fn newly_done(&mut self) -> bool {
        let newly = !self.reported && self.done();
        self.reported |= newly;
        newly
    }

    /// What the checks may expect.
    pub fn sent(&self) -> Sent {
        let taken = match (&self.outstanding, &self.transaction) {
            (Some(outstanding), _) => outstanding.settled_up_to(),
            (None, Some(transaction)) => transaction.committed,
            (None, None) => self.published,
        };
        Sent {
            taken,
            refused: self.refused.ranges.clone(),
        }
    }
}
