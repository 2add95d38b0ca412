//! PerfTest's default format: one line an interval, each figure with its name. Scripts parse it.

use std::io::{self, Write};

use super::format::{LATENCY_HEADER, latency, rate};
use super::{Show, Shown};
use crate::number::{count, duration, grouped};
use crate::result::{Checks, Interval, Percentiles, Run};

pub struct Lines {
    id: String,
    shown: Shown,
}

impl Lines {
    pub fn new(id: String, shown: Shown) -> Lines {
        Lines { id, shown }
    }
}

impl Show for Lines {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        // PerfTest is silent while nothing happens.
        if interval.idle() {
            return Ok(());
        }
        self.say(&line(&self.id, self.shown, interval))
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{line}")
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for line in summary(Some(&self.id), self.shown, run) {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

/// An interval's line.
fn line(id: &str, shown: Shown, interval: &Interval) -> String {
    let mut line = format!("id: {id}, time {:.3} s", interval.time);
    let mut figure = |name: &str, value: f64, applies: bool| {
        if applies {
            line.push_str(&format!(", {name}: {} msg/s", rate(value)));
        }
    };
    let confirmed = shown.sent && shown.confirmed;
    figure("sent", interval.sent_rate, shown.sent);
    figure("returned", interval.returned_rate, shown.returned);
    figure("confirmed", interval.confirmed_rate, confirmed);
    figure("nacked", interval.nacked_rate, confirmed);
    figure("received", interval.received_rate, shown.received);
    let mut latencies = Vec::new();
    if shown.received {
        let text = latency(interval.consumer_latency.as_ref(), shown.millis);
        latencies.push(format!("consumer latency: {text}"));
    }
    if confirmed {
        let text = latency(interval.confirm_latency.as_ref(), shown.millis);
        latencies.push(format!("confirm latency: {text}"));
    }
    if !latencies.is_empty() {
        line.push_str(&format!(", {LATENCY_HEADER} {}", latencies.join(", ")));
    }
    line
}

/// The lines at the end: PerfTest's, then what it does not have.
pub fn summary(id: Option<&str>, shown: Shown, run: &Run) -> Vec<String> {
    let begin = id.map_or(String::new(), |id| format!("id: {id}, "));
    let percentiles =
        |latency: &Option<crate::result::Latency>| latency.as_ref().map(|l| l.percentiles);
    let consumer = percentiles(&run.consumer_latency);
    let confirm = percentiles(&run.confirm_latency);
    let mut lines = vec![
        stop_line(run),
        format!(
            "{begin}sending rate avg: {} msg/s",
            rate(run.totals.sent_rate)
        ),
        format!(
            "{begin}receiving rate avg: {} msg/s",
            rate(run.totals.received_rate)
        ),
    ];
    if shown.received {
        let text = latency(consumer.as_ref(), shown.millis);
        lines.push(format!("{begin}consumer latency {LATENCY_HEADER} {text}"));
    }
    if shown.sent && shown.confirmed {
        let text = latency(confirm.as_ref(), shown.millis);
        lines.push(format!("{begin}confirm latency {LATENCY_HEADER} {text}"));
    }
    lines.extend(beyond_perftest(consumer, confirm, run));
    lines
}

fn stop_line(run: &Run) -> String {
    let reasons = run.stopped.iter().map(|(reason, count)| match count {
        0 | 1 => reason.clone(),
        count => format!("{reason} [{count}]"),
    });
    let reasons: Vec<String> = reasons
        .chain(run.error.iter().map(|error| format!("Error: {error}")))
        .collect();
    match reasons.is_empty() {
        true => "test stopped".into(),
        false => format!("test stopped ({})", reasons.join(", ")),
    }
}

fn beyond_perftest(
    consumer: Option<Percentiles>,
    confirm: Option<Percentiles>,
    run: &Run,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(from) = run.steady_from_second {
        lines.push(format!(
            "  steady state: from second {from:.1}; the figures are about it"
        ));
    }
    for (name, latency) in [("consumer", consumer), ("confirm", confirm)] {
        if let Some(l) = latency {
            lines.push(format!(
                "  {name} latency: median {}, p90 {}, p99 {}, p99.9 {}, max {}; mean {}, st. dev. {}",
                duration(l.p50_ns as f64),
                duration(l.p90_ns as f64),
                duration(l.p99_ns as f64),
                duration(l.p999_ns as f64),
                duration(l.max_ns as f64),
                duration(l.mean_ns as f64),
                duration(l.stdev_ns as f64)
            ));
        }
    }
    lines.extend(cpu(run));
    lines.extend(run.checks.as_ref().map(checks));
    if let Some(checks) = &run.checks {
        lines.extend(faults(checks));
    }
    lines
}

/// What a message cost.
fn cpu(run: &Run) -> Option<String> {
    let totals = &run.totals;
    let messages = (totals.sent + totals.received) as f64;
    if messages == 0.0 {
        return None;
    }
    let own = totals.load_cpu_seconds * 1e6 / messages;
    let mut line = format!("  load tester: {own:.2} µs of CPU for each message sent or received");
    if let (Some(cpu), Some(rss)) = (totals.broker_cpu_us_per_message, totals.broker_rss_bytes) {
        line = format!("  broker: {cpu:.2} µs of CPU a message, {} MiB", rss >> 20);
        if let Some(written) = totals.broker_written_bytes.filter(|bytes| *bytes > 0) {
            let each = written as f64 / totals.received.max(totals.sent) as f64;
            line.push_str(&format!(", {} bytes written a message", grouped(each)));
        }
        line.push_str(&format!("; load tester: {own:.2} µs"));
    }
    Some(line)
}

fn checks(checks: &Checks) -> String {
    let verdict = if checks.passed() {
        "in order"
    } else {
        "NOT IN ORDER"
    };
    let mut line = format!(
        "  order: {verdict}; {} checked, gaps {}, duplicates {}, reordered {}",
        count(checks.checked),
        checks.gaps,
        checks.duplicates,
        checks.reordered
    );
    if checks.redelivered > 0 {
        line.push_str(&format!(", redelivered {}", checks.redelivered));
    }
    if checks.foreign_gaps > 0 {
        line.push_str(&format!(
            "; gaps of other processes' producers: {} (if all their messages were to come here)",
            checks.foreign_gaps
        ));
    }
    if checks.unchecked > 0 {
        line.push_str(&format!(
            "; {} unchecked (they name no producer: a size below 16, or another program's)",
            count(checks.unchecked)
        ));
    }
    line
}

/// The worst places, by queue, consumer and producer.
fn faults(checks: &Checks) -> Vec<String> {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = checks
        .by_consumer
        .iter()
        .take(SHOWN)
        .map(|part| {
            let consumer = part
                .consumer
                .map_or(String::new(), |c| format!("consumer #{c}, "));
            format!(
                "    queue '{}', {consumer}producer #{}: gaps {}, duplicates {}, reordered {}",
                part.queue, part.producer, part.gaps, part.duplicates, part.reordered
            )
        })
        .collect();
    if checks.by_consumer.len() > SHOWN {
        lines.push(format!("    and {} more", checks.by_consumer.len() - SHOWN));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Latency, Totals};

    const SHOWN: Shown = Shown {
        sent: true,
        received: true,
        returned: true,
        confirmed: true,
        millis: false,
    };

    fn percentiles() -> Percentiles {
        Percentiles {
            count: 6,
            min_ns: 1_000,
            p50_ns: 2_000,
            p75_ns: 3_000,
            p90_ns: 3_500,
            p95_ns: 4_000,
            p99_ns: 5_000,
            p999_ns: 5_500,
            max_ns: 6_000,
            ..Percentiles::default()
        }
    }

    #[test]
    fn a_line_is_perftests() {
        let interval = Interval {
            time: 1.0004,
            sent_rate: 25_000.7,
            confirmed_rate: 9.0,
            received_rate: 24_000.0,
            consumer_latency: Some(percentiles()),
            ..Interval::default()
        };
        assert_eq!(
            line("t", SHOWN, &interval),
            "id: t, time 1.000 s, sent: 25000 msg/s, returned: 0 msg/s, confirmed: 9.0 msg/s, \
             nacked: 0 msg/s, received: 24000 msg/s, min/median/75th/95th/99th/max consumer \
             latency: 1/2/3/4/5/6 µs, confirm latency: 0/0/0/0/0/0 µs"
        );
        let only_received = Shown {
            sent: false,
            returned: false,
            millis: true,
            ..SHOWN
        };
        assert_eq!(
            line("t", only_received, &interval),
            "id: t, time 1.000 s, received: 24000 msg/s, min/median/75th/95th/99th/max consumer \
             latency: 0/0/0/0/0/0 ms"
        );
    }

    #[test]
    fn the_summary_begins_as_perftests() {
        let run = Run {
            stopped: [("Producer reached message limit".to_owned(), 2)].into(),
            totals: Totals {
                sent_rate: 10.5,
                received_rate: 0.5,
                ..Totals::default()
            },
            consumer_latency: Some(Latency {
                percentiles: percentiles(),
                counts: Vec::new(),
            }),
            ..Run::default()
        };
        let lines = summary(Some("t"), SHOWN, &run);
        assert_eq!(
            lines[..5],
            [
                "test stopped (Producer reached message limit [2])",
                "id: t, sending rate avg: 10 msg/s",
                "id: t, receiving rate avg: 0.50 msg/s",
                "id: t, consumer latency min/median/75th/95th/99th/max 1/2/3/4/5/6 µs",
                "id: t, confirm latency min/median/75th/95th/99th/max 0/0/0/0/0/0 µs",
            ]
        );
    }
}
