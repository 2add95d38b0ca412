//! The charts of a run: rates and latencies over time, latencies by percentile.

use std::collections::BTreeMap;

use super::axis::NINES;
use super::{Axis, Chart, Line, Weight, positive_range, range};
use crate::number;
use crate::report::columns::{Column, Columns};
use crate::result::{Interval, Latency, Percentiles, Run};

/// Pixels of a chart.
const HEIGHT: u32 = 200;
/// Pixels of one of many.
const SMALL: u32 = 64;
/// Length of a step along the axis of percentiles, in nines.
const STEP: f64 = 0.02;

type Rate = fn(&Interval) -> f64;
type PerRun = fn(&Run) -> Option<&Latency>;

/// Messages per second over time: received, published. Of one scale, so that they can be compared.
/// One that is 0 throughout is left out.
pub fn throughput(columns: &Columns, name: &str) -> Vec<Chart> {
    let kinds: [(&str, Rate); 2] = [
        ("Received", |interval| interval.received_rate),
        ("Published", |interval| interval.sent_rate),
    ];
    let lines = kinds.map(|(title, rate)| {
        (
            title,
            over_time(columns, name, |interval| Some(rate(interval))),
        )
    });
    let highest = lines.iter().map(|(_, lines)| range(lines).1);
    let highest = highest.fold(0.0, f64::max);
    let lines = lines.into_iter().filter(|(_, lines)| range(lines).1 > 0.0);
    let charts = lines.map(|(title, lines)| {
        let y = Axis::linear(0.0, highest, 5, number::compact);
        timed(
            columns,
            name,
            format!("{title} over time,"),
            "messages/s",
            y,
            lines,
        )
    });
    charts.collect()
}

/// 99th percentiles of each interval over time: to delivery, to confirm.
pub fn latency_over_time(columns: &Columns, name: &str) -> Vec<Chart> {
    type PerInterval = fn(&Interval) -> Option<Percentiles>;
    let kinds: [(&str, PerInterval); 2] = [
        ("Latency to delivery, p99 over time", |i| i.consumer_latency),
        ("Latency to confirm, p99 over time", |i| i.confirm_latency),
    ];
    let charts = kinds.into_iter().filter_map(|(title, latency)| {
        let lines = over_time(columns, name, |interval| {
            latency(interval).map(|latency| latency.p99_ns as f64)
        });
        let (low, high) = positive_range(&lines);
        let y = (low <= high).then(|| Axis::log(low, high, number::compact_duration))?;
        let mut chart = timed(columns, name, title.into(), "", y, lines);
        chart.format = Box::new(number::duration);
        Some(chart)
    });
    charts.collect()
}

/// A small chart of messages received, or sent where none are, for an overview of many runs.
pub fn overview(columns: &Columns, name: &str) -> Option<Chart> {
    let mut chart = throughput(columns, name).into_iter().next()?;
    chart.title = name.into();
    chart.unit = String::new();
    chart.height = SMALL;
    chart.describe = None;
    let (_, high) = range(&chart.lines);
    chart.y = Axis::linear(0.0, high, 2, number::compact).sparse();
    chart.x = chart.x.sparse();
    Some(chart)
}

/// Latencies by percentile: to delivery, to confirm. Rounds of a column are taken together.
pub fn latency(columns: &Columns, name: &str) -> Vec<Chart> {
    let kinds: [(&str, PerRun); 2] = [
        ("Latency to delivery, by percentile", |run| {
            run.consumer_latency.as_ref()
        }),
        ("Latency to confirm, by percentile", |run| {
            run.confirm_latency.as_ref()
        }),
    ];
    let charts = kinds.into_iter().filter_map(|(title, latency)| {
        let mut longest = 0;
        let mut lines = Vec::new();
        for (style, column) in columns.columns.iter().enumerate() {
            let (count, points) = curve(column, name, latency);
            longest = longest.max(count);
            if !points.is_empty() {
                lines.push(line(columns, style, column, points));
            }
        }
        let (low, high) = positive_range(&lines);
        (low <= high).then(|| Chart {
            title: title.into(),
            unit: String::new(),
            x: Axis::percentiles(longest),
            y: Axis::log(low, high, number::compact_duration),
            lines,
            shade: None,
            marks: Vec::new(),
            height: HEIGHT,
            describe: Some(Box::new(percentile)),
            format: Box::new(number::duration),
        })
    });
    charts.collect()
}

/// Count and curve of a column's rounds; those that failed only if all did.
fn curve(column: &Column, name: &str, latency: PerRun) -> (u64, Vec<(f64, f64)>) {
    let all_failed = column.rounds(name).all(|run| run.error.is_some());
    let rounds = column.rounds(name);
    let rounds = rounds.filter(|run| all_failed || run.error.is_none());
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in rounds
        .filter_map(latency)
        .flat_map(|latency| &latency.counts)
    {
        let sum = counts.entry(*value).or_default();
        *sum = sum.saturating_add(*count);
    }
    let total = counts
        .values()
        .fold(0, |sum: u64, count| sum.saturating_add(*count));
    let last = (total as f64).log10().min(NINES);
    let mut points = Vec::new();
    let mut below = 0.0;
    let mut step = 0.0;
    for (value, count) in counts {
        below += count as f64;
        // The largest value is that of a quantile of 1, which has no place.
        while step * STEP <= last && below >= (1.0 - 10_f64.powf(-step * STEP)) * total as f64 {
            points.push((step * STEP, value as f64));
            step += 1.0;
        }
    }
    (total, points)
}

/// A place on the axis of percentiles in words.
fn percentile(nine: f64) -> String {
    let digits = ((nine - 1e-6).ceil() - 2.0).clamp(0.0, 5.0) as usize;
    format!("{:.digits$}%", (1.0 - 10_f64.powf(-nine)) * 100.0)
}

/// Whole lines for single runs, thin ones for several rounds.
fn over_time(columns: &Columns, name: &str, value: impl Fn(&Interval) -> Option<f64>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (style, column) in columns.columns.iter().enumerate() {
        let several = column.rounds(name).count() > 1;
        for run in column.rounds(name) {
            let points = run.series.iter();
            let points =
                points.map(|interval| (interval.time, value(interval).unwrap_or(f64::NAN)));
            let mut line = line(columns, style, column, points.collect());
            if several {
                line.weight = Weight::Thin;
                line.name = format!("{}, round {}", line.name, run.round);
            }
            lines.push(line);
        }
    }
    lines
}

fn line(columns: &Columns, style: usize, column: &Column, points: Vec<(f64, f64)>) -> Line {
    let (letter, name) = match columns.is_single() {
        true => (String::new(), column.name.clone()),
        false => (
            column.letter.clone(),
            format!("{} {}", column.letter, column.name),
        ),
    };
    Line {
        style,
        letter,
        name,
        weight: Weight::Normal,
        points,
    }
}

fn timed(
    columns: &Columns,
    name: &str,
    title: String,
    unit: &str,
    y: Axis,
    lines: Vec<Line>,
) -> Chart {
    let times = lines
        .iter()
        .flat_map(|line| &line.points)
        .map(|(time, _)| *time);
    let last = times.fold(0.0, f64::max);
    let runs = columns
        .columns
        .iter()
        .flat_map(|column| column.rounds(name));
    let steady = runs
        .filter_map(|run| run.steady_from_second)
        .fold(0.0, f64::max);
    Chart {
        title,
        unit: unit.into(),
        x: Axis::time(last),
        y,
        lines,
        shade: (steady > 0.0).then_some((0.0, steady, "warm-up")),
        marks: Vec::new(),
        height: HEIGHT,
        describe: Some(Box::new(super::axis::seconds_label)),
        format: Box::new(number::grouped),
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::nines;
    use super::*;
    use crate::report::sample;
    use crate::result::Document;

    #[test]
    fn a_curve_goes_through_the_percentiles() {
        let documents = sample::two_brokers();
        let columns = Columns::of(&documents);
        let column = &columns.columns[0];
        let run = column.runs[0];
        let one = Column {
            runs: vec![run],
            ..column.clone()
        };
        let (count, points) = curve(&one, &run.name, |run| run.consumer_latency.as_ref());
        let latency = run.consumer_latency.as_ref().expect("a latency");
        assert_eq!(count, latency.percentiles.count);
        let at = |quantile| {
            let index = (nines(quantile) / STEP).round() as usize;
            points[index].1
        };
        for (quantile, value) in [
            (0.9, latency.percentiles.p90_ns),
            (0.99, latency.percentiles.p99_ns),
            (0.999, latency.percentiles.p999_ns),
        ] {
            let off = at(quantile) / value as f64;
            assert!((0.99..1.01).contains(&off), "{quantile}: {off}");
        }
        assert!(points.is_sorted_by(|one, other| one.1 <= other.1));
    }

    #[test]
    fn nothing_measured_is_no_chart() {
        let mut document = Document::begin(None, None, Vec::new());
        document.runs.push(Run {
            name: "test".into(),
            ..Run::default()
        });
        let documents = [("a.json".to_owned(), document)];
        let columns = Columns::of(&documents);
        assert!(throughput(&columns, "test").is_empty());
        assert!(latency(&columns, "test").is_empty());
        assert!(latency_over_time(&columns, "test").is_empty());
        assert!(overview(&columns, "test").is_none());
    }

    #[test]
    fn percentiles_have_as_many_nines_as_they_need() {
        assert_eq!(percentile(nines(0.5)), "50%");
        assert_eq!(percentile(nines(0.999)), "99.9%");
        assert_eq!(percentile(nines(0.9997)), "99.97%");
    }
}
