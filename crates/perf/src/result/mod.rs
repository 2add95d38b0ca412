//! What a run leaves behind: one self-describing JSON document, which reports, comparisons and the
//! search for changes read.
//!
//! Times are in the unit that a field's name ends in; rates are messages per second. A field that
//! does not apply is left out.

mod histogram;
mod host;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use histogram::{Latency, Percentiles, empty as empty_histogram};
pub use host::Host;

use crate::Error;

/// The value of [`Document::format`] that this version writes.
pub const FORMAT: &str = "leveret-perf/1";

/// The results of one command: one run, or those of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the load tester.
    pub leveret: String,
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// What the user calls this state of affairs: a release or a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The arguments, without passwords.
    pub command: Vec<String>,
    /// `w1` … `w5`, `suite`; none for a load by PerfTest's options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Where the load ran.
    pub host: Host,
    /// In the order in which they ran.
    pub runs: Vec<Run>,
}

/// One load on one broker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// Its id, or within a scenario what sets it apart: `T=500`, `4 queues`. Runs of the same name
    /// are compared with each other.
    pub name: String,
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// Which round of the scenario, from 1.
    #[serde(default = "first")]
    pub round: u32,
    /// What it loaded.
    pub broker: Broker,
    /// What was asked for: PerfTest's long names, or the scenario's own.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
    /// Why it ended, with how many agents said so.
    #[serde(default)]
    pub stopped: BTreeMap<String, u32>,
    /// What went wrong; the figures up to there are in the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of all of it, or of its steady state if `steady_from_second` is there.
    pub totals: Totals,
    /// Where the steady state begins that `totals` and `latency` are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_from_second: Option<f64>,
    /// One entry an interval.
    #[serde(default)]
    pub series: Vec<Interval>,
    /// From publish to delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_latency: Option<Latency>,
    /// From publish to confirm, or in a transaction from commit to commit-ok.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_latency: Option<Latency>,
    /// The order and completeness of what was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
    /// A scenario's own figures, by name with unit: `longest commit (ms)`.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// What somebody published for the same case, by name: context, not a bar.
    #[serde(default)]
    pub published: BTreeMap<String, f64>,
}

fn first() -> u32 {
    1
}

/// A broker under load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Broker {
    /// Where it is, without user and password.
    pub address: String,
    /// What it calls itself.
    #[serde(default)]
    pub product: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its process, if it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// Sums over a run, and rates of the time in which all its channels ran.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// How long all channels ran, in seconds: what rates, CPU time and bytes are of.
    pub seconds: f64,
    /// Messages published.
    pub sent: u64,
    /// Messages confirmed.
    pub confirmed: u64,
    /// Messages refused with basic.nack.
    pub nacked: u64,
    /// Mandatory messages that came back.
    pub returned: u64,
    /// Messages received.
    pub received: u64,
    /// Messages per second.
    pub sent_rate: f64,
    /// Messages per second.
    pub received_rate: f64,
    /// CPU time of the load tester, user and system.
    pub load_cpu_seconds: f64,
    /// CPU time of the broker, if it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_cpu_seconds: Option<f64>,
    /// Broker CPU time by messages received, or sent where none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_cpu_us_per_message: Option<f64>,
    /// Highest resident memory of the broker that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_rss_bytes: Option<u64>,
    /// Bytes that the broker wrote to disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_written_bytes: Option<u64>,
}

/// What happened between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Interval {
    /// When it ended, in seconds since the start.
    pub time: f64,
    /// Messages per second published.
    pub sent_rate: f64,
    /// Messages per second confirmed.
    #[serde(default)]
    pub confirmed_rate: f64,
    /// Messages per second refused.
    #[serde(default)]
    pub nacked_rate: f64,
    /// Messages per second returned.
    #[serde(default)]
    pub returned_rate: f64,
    /// Messages per second received.
    pub received_rate: f64,
    /// Of the messages received in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_latency: Option<Percentiles>,
    /// Of the messages confirmed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_latency: Option<Percentiles>,
    /// CPU seconds of the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_cpu_seconds: Option<f64>,
    /// Resident memory of the broker at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_rss_bytes: Option<u64>,
    /// Bytes that the broker wrote to disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_written_bytes: Option<u64>,
}

impl Interval {
    /// True if nothing happened in it.
    pub fn idle(&self) -> bool {
        let rates = self.sent_rate + self.confirmed_rate + self.nacked_rate;
        rates + self.returned_rate + self.received_rate == 0.0
    }

    /// This interval and the next as one; `before` is where this one began.
    pub fn followed_by(&self, next: &Interval, before: f64) -> Interval {
        let (first, second) = (self.time - before, next.time - self.time);
        let whole = (first + second).max(1e-9);
        let rate = |a: f64, b: f64| (a * first + b * second) / whole;
        Interval {
            time: next.time,
            sent_rate: rate(self.sent_rate, next.sent_rate),
            confirmed_rate: rate(self.confirmed_rate, next.confirmed_rate),
            nacked_rate: rate(self.nacked_rate, next.nacked_rate),
            returned_rate: rate(self.returned_rate, next.returned_rate),
            received_rate: rate(self.received_rate, next.received_rate),
            consumer_latency: worse(self.consumer_latency, next.consumer_latency),
            confirm_latency: worse(self.confirm_latency, next.confirm_latency),
            broker_cpu_seconds: sum(self.broker_cpu_seconds, next.broker_cpu_seconds),
            broker_rss_bytes: self.broker_rss_bytes.max(next.broker_rss_bytes),
            broker_written_bytes: sum(self.broker_written_bytes, next.broker_written_bytes),
        }
    }
}

fn sum<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

fn worse(a: Option<Percentiles>, b: Option<Percentiles>) -> Option<Percentiles> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.worse_of(&b)),
        (a, b) => a.or(b),
    }
}

/// Whether each producer's messages came once each and in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Checks {
    /// Messages whose place in their producer's sequence was looked at.
    pub checked: u64,
    /// Messages that could not be attributed to a producer.
    pub unchecked: u64,
    /// Numbers that never came, though later ones of the same producer did.
    pub gaps: u64,
    /// The same for producers of other processes. They may be no loss: whether all their messages
    /// were to come here is not known.
    #[serde(default)]
    pub foreign_gaps: u64,
    /// Messages that came more than once, without being marked as redelivered.
    pub duplicates: u64,
    /// Messages that came after a later one of the same producer, on one queue and consumer.
    pub reordered: u64,
    /// Messages marked as redelivered: neither duplicates nor out of order.
    pub redelivered: u64,
    /// Those queues and consumers that had any of the above.
    #[serde(default)]
    pub by_consumer: Vec<ConsumerChecks>,
}

impl Checks {
    /// No gap, no duplicate, nothing out of order.
    pub fn passed(&self) -> bool {
        self.gaps == 0 && self.duplicates == 0 && self.reordered == 0
    }
}

/// The part of [`Checks`] that one consumer saw on one queue.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConsumerChecks {
    /// The queue.
    pub queue: String,
    /// The consumer's number; none for gaps, which belong to a queue as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<u32>,
    /// The producer's number.
    pub producer: u32,
    /// See [`Checks::gaps`].
    #[serde(default)]
    pub gaps: u64,
    /// See [`Checks::duplicates`].
    #[serde(default)]
    pub duplicates: u64,
    /// See [`Checks::reordered`].
    #[serde(default)]
    pub reordered: u64,
}

impl Document {
    /// An empty one that begins now, on this machine.
    pub fn begin(scenario: Option<&str>, label: Option<String>, command: Vec<String>) -> Document {
        Document {
            format: FORMAT.into(),
            leveret: env!("CARGO_PKG_VERSION").into(),
            started: crate::clock::timestamp(),
            label,
            command,
            scenario: scenario.map(str::to_owned),
            host: Host::look(),
            runs: Vec::new(),
        }
    }

    /// Reads one from a file.
    pub fn read(path: &Path) -> Result<Document, Error> {
        let text = read_text(path).map_err(|source| Error::file(path, source))?;
        Document::parse(&text).map_err(|reason| Error::NotAResult {
            path: path.to_owned(),
            reason,
        })
    }

    /// Reads one from its text.
    pub fn parse(text: &str) -> Result<Document, String> {
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match document.format == FORMAT {
            true => Ok(document),
            false => Err(format!(
                "its format is '{}'; this version reads '{FORMAT}'",
                document.format
            )),
        }
    }

    /// Writes it to a file, whole or not at all; to what is no file, such as a pipe, as it comes.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_string(self).map_err(|error| Error::file(path, error.into()))?;
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return fs::write(path, format!("{text}\n"))
                .map_err(|source| Error::file(path, source));
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        fs::write(&beside, format!("{text}\n"))
            .and_then(|()| fs::rename(&beside, path))
            .map_err(|source| Error::file(path, source))
    }

    /// Adds it as one line to a history file.
    pub fn append(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_string(self).map_err(|error| Error::file(path, error.into()))?;
        append_line(path, &text).map_err(|source| Error::file(path, source))
    }
}

/// A result larger than this is none.
const MAX_FILE: u64 = 1 << 30;

/// Reads a text file of sane size.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = fs::File::open(path)?.take(MAX_FILE + 1);
    file.read_to_string(&mut text)?;
    match text.len() as u64 > MAX_FILE {
        true => Err(std::io::Error::other("it has more than 1 GiB")),
        false => Ok(text),
    }
}

/// A line that was cut off, as when the disk was full, stays a line of its own.
fn append_line(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).open(path)?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let newline = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{newline}{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_back_and_appended_as_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let document = Document::begin(Some("w3"), Some("0.1".into()), vec!["leveret".into()]);
        let path = folder.path().join("one.json");
        document.write(&path).expect("written");
        assert_eq!(Document::read(&path).expect("read"), document);
        let history = folder.path().join("history.jsonl");
        fs::write(&history, "{\"format\": \"cut of").expect("written");
        document.append(&history).expect("appended");
        document.append(&history).expect("appended");
        let text = fs::read_to_string(&history).expect("read");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(Document::parse(lines[2]), Ok(document));
    }

    #[test]
    fn other_formats_are_refused_by_name() {
        let mut document = Document::begin(None, None, Vec::new());
        document.format = "leveret-perf/9".into();
        let text = serde_json::to_string(&document).expect("JSON");
        let reason = Document::parse(&text).expect_err("another format");
        assert!(reason.contains("leveret-perf/9"), "{reason}");
    }
}
