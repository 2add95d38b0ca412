//! The figures of a run that tables show and comparisons compare.

use std::borrow::Cow;

use crate::number;
use crate::result::{Latency, Percentiles, Run};

/// One figure of a run.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What `--metric` calls it.
    pub key: Cow<'static, str>,
    /// What people call it.
    pub title: Cow<'static, str>,
    /// What it is counted in.
    pub unit: Unit,
    /// Which of two is to be preferred.
    pub better: Better,
    value: Value,
}

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Messages per second.
    Rate,
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds of CPU time per message.
    CpuPerMessage,
    /// Bytes.
    Bytes,
    /// Bytes per message.
    BytesPerMessage,
    /// What its title says.
    Own,
}

/// Which of two figures is to be preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The higher.
    More,
    /// The lower.
    Less,
    /// Only its reader can tell.
    Unknown,
}

/// What a ratio says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// To be preferred to what it is a ratio to.
    Better,
    /// The other is.
    Worse,
    /// About the same, or nobody can tell.
    Neither,
}

/// A difference that is not worth a colour.
const SAME: f64 = 0.03;

#[derive(Debug, Clone, Copy)]
enum Value {
    Of(fn(&Run) -> Option<f64>),
    /// Of [`Run::figures`], by key.
    Named,
}

impl Unit {
    /// A value as text. Latencies and sizes carry their unit, as that differs from value to value.
    pub fn format(self, value: f64) -> String {
        match self {
            Unit::Rate | Unit::CpuPerMessage | Unit::Own => number::grouped(value),
            Unit::Nanoseconds => number::duration(value),
            Unit::Bytes | Unit::BytesPerMessage => number::bytes(value),
        }
    }

    /// What a title must add to the value's text; empty if nothing.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Rate => "msg/s",
            Unit::CpuPerMessage => "µs/msg",
            Unit::BytesPerMessage => "per msg",
            Unit::Nanoseconds | Unit::Bytes | Unit::Own => "",
        }
    }
}

impl Figure {
    /// All that any run may have, in the order in which tables show them.
    pub fn all() -> Vec<Figure> {
        let rate = |key, title, value| Figure::new(key, title, Unit::Rate, Better::More, value);
        let late =
            |key, title, value| Figure::new(key, title, Unit::Nanoseconds, Better::Less, value);
        let cost = |key, title, unit, value| Figure::new(key, title, unit, Better::Less, value);
        vec![
            rate("sent", "sent rate", |run| Some(run.totals.sent_rate)),
            rate("received", "received rate", |run| {
                Some(run.totals.received_rate)
            }),
            late("p50", "latency p50", |run| consumer(run, |p| p.p50_ns)),
            late("p90", "latency p90", |run| consumer(run, |p| p.p90_ns)),
            late("p99", "latency p99", |run| consumer(run, |p| p.p99_ns)),
            late("p99.9", "latency p99.9", |run| consumer(run, |p| p.p999_ns)),
            late("max", "latency max", |run| consumer(run, |p| p.max_ns)),
            late("mean", "latency mean", |run| consumer(run, |p| p.mean_ns)),
            late("stdev", "latency st. dev.", |run| {
                consumer(run, |p| p.stdev_ns)
            }),
            late("confirm-p50", "confirm p50", |run| {
                confirm(run, |p| p.p50_ns)
            }),
            late("confirm-p90", "confirm p90", |run| {
                confirm(run, |p| p.p90_ns)
            }),
            late("confirm-p99", "confirm p99", |run| {
                confirm(run, |p| p.p99_ns)
            }),
            late("confirm-p99.9", "confirm p99.9", |run| {
                confirm(run, |p| p.p999_ns)
            }),
            late("confirm-max", "confirm max", |run| {
                confirm(run, |p| p.max_ns)
            }),
            cost("cpu", "broker CPU", Unit::CpuPerMessage, |run| {
                run.totals.broker_cpu_us_per_message
            }),
            cost("memory", "broker memory", Unit::Bytes, |run| {
                run.totals.broker_rss_bytes.map(|bytes| bytes as f64)
            }),
            cost(
                "written",
                "broker wrote",
                Unit::BytesPerMessage,
                written_per_message,
            ),
        ]
    }

    /// Those of [`Figure::all`] with these keys.
    pub fn choose(keys: &[&str]) -> Vec<Figure> {
        let mut figures = Figure::all();
        figures.retain(|figure| keys.contains(&&*figure.key));
        figures
    }

    /// A scenario's own figure, by its name in [`Run::figures`].
    pub fn named(name: &str) -> Figure {
        Figure {
            key: name.to_owned().into(),
            title: name.to_owned().into(),
            unit: Unit::Own,
            better: Better::Unknown,
            value: Value::Named,
        }
    }

    fn new(
        key: &'static str,
        title: &'static str,
        unit: Unit,
        better: Better,
        value: fn(&Run) -> Option<f64>,
    ) -> Figure {
        Figure {
            key: key.into(),
            title: title.into(),
            unit,
            better,
            value: Value::Of(value),
        }
    }

    /// Its value in a run that has it.
    pub fn value(&self, run: &Run) -> Option<f64> {
        let value = match self.value {
            Value::Of(value) => value(run),
            Value::Named => run.figures.get(&*self.key).copied(),
        };
        value.filter(|value| value.is_finite())
    }

    /// Whether somebody who asks for that name means it: its key, or a part of what a scenario calls it.
    pub fn is(&self, name: &str) -> bool {
        match self.value {
            Value::Of(_) => self.key == name,
            Value::Named => !name.is_empty() && self.key.contains(name),
        }
    }

    /// Key and unit of the plain number, for programs: `p99 (ns)`.
    pub fn key_with_unit(&self) -> Cow<'static, str> {
        let unit = match self.unit {
            Unit::Rate => "msg/s",
            Unit::Nanoseconds => "ns",
            Unit::CpuPerMessage => "µs/msg",
            Unit::Bytes => "bytes",
            Unit::BytesPerMessage => "bytes/msg",
            Unit::Own => return self.key.clone(),
        };
        format!("{} ({unit})", self.key).into()
    }

    /// What a ratio of two of its values says.
    pub fn verdict(&self, ratio: f64) -> Verdict {
        let (more, less) = (ratio > 1.0 + SAME, ratio < 1.0 / (1.0 + SAME));
        match self.better {
            Better::More if more => Verdict::Better,
            Better::More if less => Verdict::Worse,
            Better::Less if less => Verdict::Better,
            Better::Less if more => Verdict::Worse,
            _ => Verdict::Neither,
        }
    }

    /// Title and unit: `sent rate (msg/s)`.
    pub fn heading(&self) -> String {
        match self.unit.name() {
            "" => self.title.to_string(),
            unit => format!("{} ({unit})", self.title),
        }
    }

    /// A short name under a heading that says the rest: `p50` of `confirm p50`, `sent`, `CPU`.
    pub fn short(&self) -> &str {
        match (self.unit, self.title.split_once(' ')) {
            (Unit::Own, _) | (_, None) => &self.title,
            (Unit::Rate, Some((first, _))) => first,
            (_, Some((_, last))) => last,
        }
    }

    /// A name as short as a terminal needs it, with the unit: `sent/s`, `confirm p50`, `CPU µs/msg`.
    pub fn brief(&self) -> String {
        match self.unit {
            Unit::Rate => format!("{}/s", self.short()),
            Unit::Nanoseconds => self.key.replace('-', " "),
            unit => format!("{} {}", self.short(), unit.name()),
        }
    }
}

fn of(latency: Option<&Latency>, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
    latency.map(|latency| percentile(&latency.percentiles) as f64)
}

fn consumer(run: &Run, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
    of(run.consumer_latency.as_ref(), percentile)
}

fn confirm(run: &Run, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
    of(run.confirm_latency.as_ref(), percentile)
}

/// By the messages that CPU time is divided by, too: those received, or sent where none are.
fn written_per_message(run: &Run) -> Option<f64> {
    let bytes = run.totals.broker_written_bytes? as f64;
    match (run.totals.received, run.totals.sent) {
        (0, 0) => None,
        (0, sent) => Some(bytes / sent as f64),
        (received, _) => Some(bytes / received as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_lacks_is_none() {
        let run = Run::default();
        for figure in Figure::all() {
            let rate = figure.unit == Unit::Rate;
            assert_eq!(figure.value(&run), rate.then_some(0.0), "{}", figure.key);
        }
        let mut run = Run::default();
        run.figures.insert("longest commit (ms)".into(), f64::NAN);
        assert_eq!(Figure::named("longest commit (ms)").value(&run), None);
    }

    #[test]
    fn more_is_better_for_rates_and_worse_for_latencies() {
        let verdict = |key, ratio| Figure::choose(&[key])[0].verdict(ratio);
        assert_eq!(verdict("sent", 1.5), Verdict::Better);
        assert_eq!(verdict("sent", 0.5), Verdict::Worse);
        assert_eq!(verdict("sent", 1.02), Verdict::Neither);
        assert_eq!(verdict("p99", 1.5), Verdict::Worse);
        assert_eq!(verdict("p99", 0.5), Verdict::Better);
        assert_eq!(Figure::named("pauses").verdict(9.0), Verdict::Neither);
    }

    #[test]
    fn written_bytes_are_by_message() {
        let mut run = Run::default();
        run.totals.broker_written_bytes = Some(5_000);
        assert_eq!(written_per_message(&run), None);
        run.totals.sent = 5;
        assert_eq!(written_per_message(&run), Some(1_000.0));
        run.totals.received = 10;
        assert_eq!(written_per_message(&run), Some(500.0));
    }
}
