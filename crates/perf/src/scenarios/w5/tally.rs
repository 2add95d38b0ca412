//! Counts and latencies of a case, second by second and in all.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::result::{Interval, Latency, Percentiles, Run};
use crate::sqs;

/// What has happened since the case began.
pub(super) struct Tally {
    began: Instant,
    cpu_began: f64,
    sent: u64,
    refused: u64,
    received: u64,
    /// Seconds from the beginning until all was sent, and until the last message came.
    sent_seconds: Option<f64>,
    received_seconds: f64,
    calls: Latencies,
    deliveries: Latencies,
    first_failure: Option<String>,
    series: Vec<Interval>,
    /// Time, sent and received at the last look.
    last: (f64, u64, u64),
}

/// Latencies since the last look, and before it.
struct Latencies {
    recent: Histogram<u64>,
    earlier: Histogram<u64>,
}

impl Latencies {
    fn new() -> Latencies {
        Latencies {
            recent: Latency::default().histogram(),
            earlier: Latency::default().histogram(),
        }
    }

    fn record(&mut self, nanos: u64) {
        self.recent.saturating_record(nanos.max(1));
    }

    /// Percentiles of the recent ones, which become earlier ones.
    fn look(&mut self) -> Option<Percentiles> {
        let percentiles = Percentiles::of(&self.recent);
        // Both have the same bounds, so nothing is out of range.
        let _ = self.earlier.add(&self.recent);
        self.recent.reset();
        percentiles
    }
}

impl Tally {
    /// One that begins now.
    pub(super) fn begin() -> Tally {
        Tally {
            began: Instant::now(),
            cpu_began: cpu_seconds(),
            sent: 0,
            refused: 0,
            received: 0,
            sent_seconds: None,
            received_seconds: 0.0,
            calls: Latencies::new(),
            deliveries: Latencies::new(),
            first_failure: None,
            series: Vec::new(),
            last: (0.0, 0, 0),
        }
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// The service took a message; its call took so long.
    pub(super) fn sent(&mut self, took: Duration) {
        self.sent += 1;
        self.calls.record(took.as_nanos() as u64);
    }

    /// Messages that the service did not take, as far as anybody knows.
    pub(super) fn refused(&mut self, error: &sqs::Error, messages: u64) {
        self.refused += messages;
        self.first_failure.get_or_insert_with(|| error.to_string());
    }

    /// A message came; `nanos` after it was sent, if that is known.
    pub(super) fn received(&mut self, nanos: Option<u64>) {
        self.received += 1;
        self.received_seconds = self.seconds();
        if let Some(nanos) = nanos {
            self.deliveries.record(nanos);
        }
    }

    /// The last sender has ended.
    pub(super) fn all_sent(&mut self) {
        self.sent_seconds = Some(self.seconds());
    }

    /// Adds an entry to the series.
    pub(super) fn look(&mut self) {
        let now = self.seconds();
        let (last, sent, received) = self.last;
        let rate = |count: u64| count as f64 / (now - last).max(1e-9);
        let sent_rate = rate(self.sent - sent);
        self.series.push(Interval {
            time: now,
            sent_rate,
            confirmed_rate: sent_rate,
            received_rate: rate(self.received - received),
            consumer_latency: self.deliveries.look(),
            confirm_latency: self.calls.look(),
            ..Interval::default()
        });
        self.last = (now, self.sent, self.received);
    }

    /// Fills in a run. Its rates are each over the time that sending, or receiving, took.
    pub(super) fn finish(&mut self, run: &mut Run) {
        self.look();
        // Of a run that took no second, the totals say it all.
        if self.series.len() > 1 {
            run.series = std::mem::take(&mut self.series);
        }
        let seconds = self.sent_seconds.unwrap_or_else(|| self.seconds());
        let totals = &mut run.totals;
        totals.seconds = seconds;
        totals.sent = self.sent;
        totals.confirmed = self.sent;
        totals.nacked = self.refused;
        totals.received = self.received;
        totals.sent_rate = self.sent as f64 / seconds.max(1e-9);
        totals.received_rate = self.received as f64 / self.received_seconds.max(1e-9);
        totals.load_cpu_seconds = cpu_seconds() - self.cpu_began;
        let cpu_us = totals.load_cpu_seconds * 1e6 / self.sent.max(1) as f64;
        run.figures
            .insert("load CPU per message (µs)".into(), cpu_us);
        run.confirm_latency = Latency::of(&self.calls.earlier);
        run.consumer_latency = Latency::of(&self.deliveries.earlier);
        if let Some(first) = &self.first_failure {
            let messages = self.sent + self.refused;
            let refused = self.refused;
            let text = format!("{refused} of {messages} messages were not taken; first: {first}");
            run.error = Some(text);
        }
    }
}

/// CPU time of this process, user and system.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_all_intervals_are_in_the_run() {
        let mut tally = Tally::begin();
        tally.sent(Duration::from_millis(1));
        tally.look();
        tally.sent(Duration::from_millis(2));
        tally.received(Some(5));
        tally.received(None);
        tally.all_sent();
        let mut run = Run::default();
        tally.finish(&mut run);
        assert_eq!(run.series.len(), 2);
        assert_eq!((run.totals.sent, run.totals.received), (2, 2));
        assert_eq!(run.confirm_latency.unwrap().percentiles.count, 2);
        assert_eq!(run.consumer_latency.unwrap().percentiles.count, 1);
        assert_eq!(run.error, None);
    }

    #[test]
    fn messages_that_were_not_taken_make_the_run_fail() {
        let mut tally = Tally::begin();
        tally.sent(Duration::from_millis(1));
        tally.refused(&sqs::Error::refused(503, "", ""), 10);
        tally.refused(&sqs::Error::TooLong, 1);
        let mut run = Run::default();
        tally.finish(&mut run);
        assert_eq!((run.totals.sent, run.totals.nacked), (1, 11));
        let error = run.error.unwrap();
        assert_eq!(error, "11 of 12 messages were not taken; first: HTTP 503");
        assert!(run.series.is_empty());
    }
}
