//! Looks at the meters once per interval, and adds up.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::meter::{Counts, Meter};
use crate::process::{Process, Usage, own_cpu};
use crate::result::{Interval, Latency, Percentiles, Totals, empty_histogram};
use crate::sync::lock;

/// The figures of a run as they come.
pub struct Sampler {
    meters: Vec<Arc<Mutex<Meter>>>,
    process: Option<Process>,
    /// What has come since the last look.
    fresh: Meter,
    started: Instant,
    last: Look,
    series: Vec<Interval>,
    /// Each interval's latencies, for sums over a part of the run.
    kept: Vec<(Counts, Option<Latency>, Option<Latency>)>,
    keep: bool,
    /// How many intervals an entry of the series is made of, and how many are in the last one.
    stride: u32,
    in_last: u32,
    sum: Sum,
}

/// Entries of a series. A longer run has fewer, longer ones.
const MAX_SERIES: usize = if cfg!(test) { 64 } else { 8_192 };

/// All that is read at one moment.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    own_cpu: Duration,
    broker: Option<Usage>,
}

/// What a run adds up to.
struct Sum {
    counts: Counts,
    /// The part of it that rates are of.
    since: Look,
    rated: Counts,
    consumer: Histogram<u64>,
    confirm: Histogram<u64>,
    peak_rss: u64,
}

/// What a run adds up to.
pub struct Summed {
    pub totals: Totals,
    pub counts: Counts,
    pub consumer_latency: Option<Latency>,
    pub confirm_latency: Option<Latency>,
}

impl Look {
    fn now(process: Option<Process>) -> Look {
        Look {
            broker: process.and_then(Process::usage),
            at: Instant::now(),
            own_cpu: own_cpu(),
        }
    }
}

impl Sum {
    fn since(look: Look) -> Sum {
        Sum {
            counts: Counts::default(),
            since: look,
            rated: Counts::default(),
            consumer: empty_histogram(),
            confirm: empty_histogram(),
            peak_rss: 0,
        }
    }
}

impl Sampler {
    /// Begins. With `keep`, each interval's latencies are kept, for [`Sampler::steady`].
    pub fn start(meters: Vec<Arc<Mutex<Meter>>>, process: Option<Process>, keep: bool) -> Sampler {
        let now = Look::now(process);
        Sampler {
            meters,
            process,
            fresh: Meter {
                counts: Counts::default(),
                consumer: empty_histogram(),
                confirm: empty_histogram(),
            },
            started: now.at,
            last: now,
            series: Vec::new(),
            kept: Vec::new(),
            keep,
            stride: 1,
            in_last: 0,
            sum: Sum::since(now),
        }
    }

    /// All channels have started: rates are of the time from here on.
    pub fn restart_rates(&mut self) {
        self.collect();
        self.sum.since = Look::now(self.process);
        self.sum.rated = Counts::default();
    }

    /// Takes what the meters hold. It counts for the totals and for the interval under way.
    fn collect(&mut self) {
        let mut taken = Meter {
            counts: Counts::default(),
            consumer: empty_histogram(),
            confirm: empty_histogram(),
        };
        for meter in &self.meters {
            lock(meter).drain_into(&mut taken);
        }
        self.sum.counts.add(&taken.counts);
        self.sum.rated.add(&taken.counts);
        // All have the same bounds.
        let _ = self.sum.consumer.add(&taken.consumer);
        let _ = self.sum.confirm.add(&taken.confirm);
        taken.drain_into(&mut self.fresh);
    }

    /// Ends an interval.
    pub fn tick(&mut self) -> Interval {
        self.collect();
        let now = Look::now(self.process);
        let seconds = (now.at - self.last.at).as_secs_f64().max(1e-9);
        let counts = self.fresh.counts;
        let rate = |count: u64| count as f64 / seconds;
        let broker = self.last.broker.zip(now.broker);
        let interval = Interval {
            time: (now.at - self.started).as_secs_f64(),
            sent_rate: rate(counts.sent),
            confirmed_rate: rate(counts.confirmed),
            nacked_rate: rate(counts.nacked),
            returned_rate: rate(counts.returned),
            received_rate: rate(counts.received),
            consumer_latency: Percentiles::of(&self.fresh.consumer),
            confirm_latency: Percentiles::of(&self.fresh.confirm),
            broker_cpu_seconds: broker.map(|(a, b)| b.cpu.saturating_sub(a.cpu).as_secs_f64()),
            broker_rss_bytes: now.broker.map(|usage| usage.rss),
            broker_written_bytes: broker
                .and_then(|(a, b)| Some(b.written?.saturating_sub(a.written?))),
        };
        self.sum.peak_rss = self
            .sum
            .peak_rss
            .max(interval.broker_rss_bytes.unwrap_or(0));
        if self.keep {
            let consumer = Latency::of(&self.fresh.consumer);
            let confirm = Latency::of(&self.fresh.confirm);
            self.kept.push((counts, consumer, confirm));
        }
        self.last = now;
        self.fresh.counts = Counts::default();
        self.fresh.consumer.reset();
        self.fresh.confirm.reset();
        self.series.push(interval);
        self.thin_out();
        interval
    }

    /// Keeps the series from growing without bound.
    fn thin_out(&mut self) {
        if self.in_last > 0 && self.in_last < self.stride {
            let at = self.series.len() - 2;
            self.join(at);
            self.in_last += 1;
        } else {
            self.in_last = 1;
        }
        if self.series.len() > MAX_SERIES {
            for at in 0..self.series.len() / 2 {
                self.join(at);
            }
            self.stride *= 2;
            // The last one may hold a single interval, or one that is full.
            self.in_last = self.stride;
        }
    }

    /// Makes one entry of that one and the next.
    fn join(&mut self, at: usize) {
        let before = at
            .checked_sub(1)
            .map_or(0.0, |before| self.series[before].time);
        let second = self.series.remove(at + 1);
        self.series[at] = self.series[at].followed_by(&second, before);
        if self.keep {
            let (counts, consumer, confirm) = self.kept.remove(at + 1);
            let first = &mut self.kept[at];
            first.0.add(&counts);
            first.1 = joined(first.1.take(), consumer);
            first.2 = joined(first.2.take(), confirm);
        }
    }

    /// The intervals so far.
    pub fn series(&self) -> &[Interval] {
        &self.series
    }

    /// Ends the run: everything since the totals began.
    pub fn sum(&mut self) -> Summed {
        self.collect();
        let now = Look::now(self.process);
        let since = self.sum.since;
        // A broker that has died has the figures of the last look.
        let broker = since.broker.zip(now.broker.or(self.last.broker));
        let rss = now
            .broker
            .map_or(0, |usage| usage.rss)
            .max(self.sum.peak_rss);
        let seconds = (now.at - since.at).as_secs_f64();
        let mut totals = totals(&self.sum.counts, &self.sum.rated, seconds);
        totals.load_cpu_seconds = (now.own_cpu - since.own_cpu).as_secs_f64();
        if let Some((before, after)) = broker {
            totals.broker_cpu_seconds = Some(after.cpu.saturating_sub(before.cpu).as_secs_f64());
            let written = before.written.zip(after.written);
            totals.broker_written_bytes = written.map(|(a, b)| b.saturating_sub(a));
            totals.broker_rss_bytes = Some(rss);
        }
        per_message(&mut totals, &self.sum.rated);
        Summed {
            totals,
            counts: self.sum.counts,
            consumer_latency: Latency::of(&self.sum.consumer),
            confirm_latency: Latency::of(&self.sum.confirm),
        }
    }

    /// What the intervals from that index on add up to. The load tester's own CPU time is taken in
    /// proportion.
    pub fn steady(&self, from: usize, all: &Totals) -> Option<Summed> {
        let intervals = self.series.get(from..)?;
        let before = match from {
            0 => 0.0,
            _ => self.series[from - 1].time,
        };
        let seconds = intervals.last()?.time - before;
        let mut counts = Counts::default();
        let (mut consumer, mut confirm) = (empty_histogram(), empty_histogram());
        for (interval, consumed, confirmed) in self.kept.get(from..)? {
            counts.add(interval);
            for (latency, sum) in [(consumed, &mut consumer), (confirmed, &mut confirm)] {
                for (value, count) in latency.iter().flat_map(|latency| &latency.counts) {
                    sum.saturating_record_n(*value, *count);
                }
            }
        }
        let mut totals = totals(&counts, &counts, seconds);
        totals.load_cpu_seconds = all.load_cpu_seconds * seconds / all.seconds.max(1e-9);
        let cpu: Option<f64> = intervals.iter().map(|i| i.broker_cpu_seconds).sum();
        totals.broker_cpu_seconds = cpu;
        totals.broker_written_bytes = intervals.iter().map(|i| i.broker_written_bytes).sum();
        totals.broker_rss_bytes = intervals.iter().filter_map(|i| i.broker_rss_bytes).max();
        per_message(&mut totals, &counts);
        Some(Summed {
            totals,
            counts,
            consumer_latency: Latency::of(&consumer),
            confirm_latency: Latency::of(&confirm),
        })
    }
}

fn joined(first: Option<Latency>, second: Option<Latency>) -> Option<Latency> {
    match (first, second) {
        (Some(first), Some(second)) => {
            let mut histogram = first.histogram();
            // Both have the same bounds.
            let _ = histogram.add(second.histogram());
            Latency::of(&histogram)
        }
        (first, second) => first.or(second),
    }
}

/// `rated` is what was counted in those seconds.
fn totals(counts: &Counts, rated: &Counts, seconds: f64) -> Totals {
    let rate = |count: u64| count as f64 / seconds.max(1e-9);
    Totals {
        seconds,
        sent: counts.sent,
        confirmed: counts.confirmed,
        nacked: counts.nacked,
        returned: counts.returned,
        received: counts.received,
        sent_rate: rate(rated.sent),
        received_rate: rate(rated.received),
        ..Totals::default()
    }
}

/// CPU time is counted in ticks of 10 ms: below this it says nothing of a message.
const COUNTABLE: f64 = 0.1;

fn per_message(totals: &mut Totals, rated: &Counts) {
    let messages = match rated.received {
        0 => rated.sent,
        received => received,
    };
    let enough = |cpu: &f64| *cpu >= COUNTABLE && messages > 0;
    let cpu = totals.broker_cpu_seconds.filter(enough);
    totals.broker_cpu_us_per_message = cpu.map(|cpu| cpu * 1e6 / messages as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler() -> (Arc<Mutex<Meter>>, Sampler) {
        let meter = Meter::shared();
        let sampler = Sampler::start(vec![meter.clone()], None, true);
        (meter, sampler)
    }

    fn receive(meter: &Arc<Mutex<Meter>>, count: u64, latency: i64) {
        let mut meter = lock(meter);
        meter.counts.received += count;
        (0..count).for_each(|_| meter.received_after(latency));
    }

    #[test]
    fn rates_begin_where_all_have_started() {
        let (meter, mut sampler) = sampler();
        receive(&meter, 10, 1_000);
        sampler.restart_rates();
        receive(&meter, 5, 2_000);
        let interval = sampler.tick();
        assert_eq!(interval.consumer_latency.map(|l| l.count), Some(15));
        assert!(sampler.tick().idle());
        let sum = sampler.sum();
        assert_eq!((sum.totals.received, sum.totals.sent), (15, 0));
        let rated = sum.totals.received_rate * sum.totals.seconds;
        assert!((rated - 5.0).abs() < 1e-6, "{rated}");
        assert_eq!(sampler.series().len(), 2);
    }

    #[test]
    fn a_part_of_the_run_is_summed_from_its_intervals() {
        let (meter, mut sampler) = sampler();
        for (count, latency) in [(100, 1_000_000), (10, 1_000), (20, 1_000)] {
            receive(&meter, count, latency);
            sampler.tick();
        }
        let all = sampler.sum().totals;
        let steady = sampler.steady(1, &all).expect("two intervals");
        assert_eq!(steady.totals.received, 30);
        let latency = steady.consumer_latency.expect("some").percentiles;
        assert_eq!((latency.count, latency.max_ns), (30, 1_000));
        assert!(sampler.steady(3, &all).is_none());
    }

    #[test]
    fn long_series_get_coarser_and_keep_their_sums() {
        let (meter, mut sampler) = sampler();
        let ticks = MAX_SERIES as u64 * 5 + 3;
        for _ in 0..ticks {
            receive(&meter, 1, 1_000);
            sampler.tick();
        }
        let series = sampler.series().len();
        assert!(series <= MAX_SERIES && series > MAX_SERIES / 4, "{series}");
        let mut before = 0.0;
        let mut received = 0.0;
        for interval in sampler.series() {
            received += interval.received_rate * (interval.time - before);
            before = interval.time;
        }
        assert!(
            (received - ticks as f64).abs() < 1.0,
            "{received} of {ticks}"
        );
        let all = sampler.sum().totals;
        let steady = sampler.steady(0, &all).expect("all of it");
        assert_eq!(steady.totals.received, ticks);
        assert_eq!(
            steady.consumer_latency.map(|l| l.percentiles.count),
            Some(ticks)
        );
    }

    #[test]
    fn clocks_that_differ_are_noticed() {
        let (meter, mut sampler) = sampler();
        receive(&meter, 1, -5);
        receive(&meter, 1, i64::MAX);
        let counts = sampler.sum().counts;
        assert_eq!((counts.early, counts.ancient, counts.received), (1, 1, 2));
    }
}
