//! Intervals as comma-separated values, for whoever draws charts of their own.
//!
//! Quotes are those of RFC 4180; lines end in a line feed alone, as other tools on Unix expect.

use crate::result::{Document, Interval, Percentiles, Run};

/// What each row says of its run.
const RUN: &[&str] = &[
    "file", "label", "run", "round", "product", "version", "address",
];

/// A name, and how to get what it names from an interval, or from the latencies in it.
type Column = (&'static str, fn(&Interval) -> Option<f64>);
type Latencies = (&'static str, fn(&Interval) -> Option<Percentiles>);
type Percentile = (&'static str, fn(&Percentiles) -> u64);

/// What each row says of its interval, besides latencies.
const INTERVAL: &[Column] = &[
    ("time_s", |interval| Some(interval.time)),
    ("sent_rate", |interval| Some(interval.sent_rate)),
    ("confirmed_rate", |interval| Some(interval.confirmed_rate)),
    ("nacked_rate", |interval| Some(interval.nacked_rate)),
    ("returned_rate", |interval| Some(interval.returned_rate)),
    ("received_rate", |interval| Some(interval.received_rate)),
    ("broker_cpu_s", |interval| interval.broker_cpu_seconds),
    ("broker_rss_bytes", |interval| {
        interval.broker_rss_bytes.map(|bytes| bytes as f64)
    }),
    ("broker_written_bytes", |interval| {
        interval.broker_written_bytes.map(|bytes| bytes as f64)
    }),
];

/// Both kinds of latency.
const LATENCIES: &[Latencies] = &[
    ("consumer", |interval| interval.consumer_latency),
    ("confirm", |interval| interval.confirm_latency),
];

/// What a row says of each.
const PERCENTILES: &[Percentile] = &[
    ("min", |latency| latency.min_ns),
    ("mean", |latency| latency.mean_ns),
    ("p50", |latency| latency.p50_ns),
    ("p75", |latency| latency.p75_ns),
    ("p90", |latency| latency.p90_ns),
    ("p95", |latency| latency.p95_ns),
    ("p99", |latency| latency.p99_ns),
    ("p999", |latency| latency.p999_ns),
    ("max", |latency| latency.max_ns),
];

/// One row for each interval of each run, under a row of names. What was not measured is empty.
pub fn intervals(documents: &[(String, Document)]) -> String {
    let mut names: Vec<String> = RUN.iter().map(|name| (*name).into()).collect();
    names.extend(INTERVAL.iter().map(|(name, _)| (*name).into()));
    for (kind, _) in LATENCIES {
        names.extend(
            PERCENTILES
                .iter()
                .map(|(name, _)| format!("{kind}_{name}_ns")),
        );
    }
    let mut text = record(&names);
    for (file, document) in documents {
        for run in &document.runs {
            let start = run_fields(file, document, run);
            for interval in &run.series {
                let mut fields = start.clone();
                fields.extend(interval_fields(interval));
                text.push_str(&record(&fields));
            }
        }
    }
    text
}

fn run_fields(file: &str, document: &Document, run: &Run) -> Vec<String> {
    vec![
        file.into(),
        document.label.clone().unwrap_or_default(),
        run.name.clone(),
        run.round.to_string(),
        run.broker.product.clone(),
        run.broker.version.clone(),
        run.broker.address.clone(),
    ]
}

fn interval_fields(interval: &Interval) -> Vec<String> {
    let number = |value: Option<f64>| match value {
        Some(value) if value.is_finite() => value.to_string(),
        _ => String::new(),
    };
    let mut fields: Vec<String> = INTERVAL
        .iter()
        .map(|(_, value)| number(value(interval)))
        .collect();
    for (_, latency) in LATENCIES {
        let latency = latency(interval);
        fields.extend(PERCENTILES.iter().map(|(_, value)| {
            let value = latency.as_ref().map(value);
            value.map_or_else(String::new, |value| value.to_string())
        }));
    }
    fields
}

/// One line of fields, with its end.
pub fn record<T: AsRef<str>>(fields: &[T]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| quote(field.as_ref())).collect();
    fields.join(",") + "\n"
}

/// A field in quotes if it needs them; quotes within it are doubled.
fn quote(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn fields_are_quoted_when_they_must_be() {
        assert_eq!(
            record(&["a", "", "b,c", "say \"x\"", "two\r\nlines", " d "]),
            "a,,\"b,c\",\"say \"\"x\"\"\",\"two\r\nlines\", d \n"
        );
    }

    #[test]
    fn each_interval_is_a_row_as_wide_as_the_header() {
        let documents = sample::two_brokers();
        let text = intervals(&documents);
        let intervals: usize = documents
            .iter()
            .flat_map(|(_, document)| &document.runs)
            .map(|run| run.series.len())
            .sum();
        assert_eq!(text.lines().count(), intervals + 1);
        let width = text.lines().next().map(|line| line.split(',').count());
        assert_eq!(width, Some(34));
        assert!(
            text.lines()
                .all(|line| Some(line.split(',').count()) == width)
        );
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn what_was_not_measured_is_empty() {
        let interval = Interval {
            time: 1.5,
            sent_rate: f64::NAN,
            ..Interval::default()
        };
        let fields = interval_fields(&interval);
        assert_eq!(&fields[..3], ["1.5", "", "0"]);
        assert_eq!(fields.last().map(String::as_str), Some(""));
    }
}
