//! The display on a terminal: a few lines that are drawn anew each interval.
//!
//! ```text
//!  test-101500-123 · 12 s
//!  sent      25,104 msg/s   ▁▂▅▇▇▇▇▇
//!  received  25,098 msg/s   ▁▂▅▇▇▇▇▇
//!  latency   median 310 µs   p99 1.20 ms   max 4.50 ms   ▂▂▃▂▂▇▂▂ p99
//!  ██████████████░░░░░░░░░░░░░░ 12 of 30 s
//! ```

use std::io::{self, Write};
use std::time::Duration;

use super::lines::summary;
use super::{Show, Shown};
use crate::number::{count, duration, grouped};
use crate::result::{Interval, Percentiles, Run};
use crate::settings::Settings;

/// Intervals in a sparkline.
const SPARKS: usize = 30;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the progress bar.
const BAR: usize = 40;

pub struct Live {
    id: String,
    shown: Shown,
    /// What the run has to do, if that is known.
    time: Option<Duration>,
    messages: Option<u64>,
    sent: Vec<f64>,
    received: Vec<f64>,
    p99: Vec<f64>,
    confirm_p99: Vec<f64>,
    /// Messages so far, by the side that has a limit.
    done: f64,
    last: f64,
    drawn: usize,
}

impl Live {
    pub fn new(settings: &Settings, shown: Shown) -> Live {
        let producers = &settings.producers;
        let consumers = &settings.consumers;
        let all = |limit: Option<u64>, count: u32, channels: u16| {
            limit.map(|limit| {
                limit
                    .saturating_mul(u64::from(count))
                    .saturating_mul(u64::from(channels))
            })
        };
        Live {
            id: settings.id.clone(),
            shown,
            time: settings.limits.time,
            messages: all(consumers.limit, consumers.count, consumers.channels).or(all(
                producers.limit,
                producers.count,
                producers.channels,
            )),
            sent: Vec::new(),
            received: Vec::new(),
            p99: Vec::new(),
            confirm_p99: Vec::new(),
            done: 0.0,
            last: 0.0,
            drawn: 0,
        }
    }

    fn lines(&self, interval: &Interval) -> Vec<String> {
        let mut lines = vec![format!("{} · {:.0} s", self.id, interval.time)];
        if self.shown.sent {
            lines.push(flow("sent", interval.sent_rate, &self.sent));
        }
        if self.shown.sent && self.shown.confirmed {
            let nacked = match interval.nacked_rate {
                rate if rate > 0.0 => format!("   nacked {} msg/s", grouped(rate)),
                _ => String::new(),
            };
            let rate = grouped(interval.confirmed_rate);
            lines.push(format!("confirmed {rate:>11} msg/s{nacked}"));
        }
        if self.shown.returned {
            let rate = grouped(interval.returned_rate);
            lines.push(format!("returned  {rate:>11} msg/s"));
        }
        if self.shown.received {
            lines.push(flow("received", interval.received_rate, &self.received));
        }
        if let Some(latency) = &interval.consumer_latency {
            lines.push(times("latency", latency, &self.p99));
        }
        if let Some(latency) = &interval.confirm_latency {
            lines.push(times("confirm", latency, &self.confirm_p99));
        }
        if let (Some(cpu), Some(rss)) = (interval.broker_cpu_seconds, interval.broker_rss_bytes) {
            let seconds = (interval.time - self.last).max(1e-9);
            let share = cpu / seconds * 100.0;
            let messages = interval.received_rate.max(interval.sent_rate) * seconds;
            let each = cpu * 1e6 / messages.max(1.0);
            lines.push(format!(
                "broker    {share:>10.0} % CPU   {each:.2} µs a message   {} MiB",
                rss >> 20
            ));
        }
        lines.extend(self.progress(interval));
        lines
    }

    fn progress(&self, interval: &Interval) -> Option<String> {
        let (share, text) = match (self.messages, self.time) {
            (Some(messages), _) => (
                self.done / messages as f64,
                format!(
                    "{} of {} messages",
                    count(self.done as u64),
                    count(messages)
                ),
            ),
            (None, Some(time)) => (
                interval.time / time.as_secs_f64(),
                format!("{:.0} of {:.0} s", interval.time, time.as_secs_f64()),
            ),
            (None, None) => return None,
        };
        let full = (share.clamp(0.0, 1.0) * BAR as f64) as usize;
        Some(format!(
            "{}{} {text}",
            "█".repeat(full),
            "░".repeat(BAR - full)
        ))
    }

    /// Puts the cursor back to where the display began, and clears from there.
    fn rewind(&mut self) -> String {
        let up = match self.drawn {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        };
        self.drawn = 0;
        up
    }
}

impl Show for Live {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        let p99 = |latency: &Option<Percentiles>| latency.map_or(0.0, |l| l.p99_ns as f64);
        self.sent.push(interval.sent_rate);
        self.received.push(interval.received_rate);
        self.p99.push(p99(&interval.consumer_latency));
        self.confirm_p99.push(p99(&interval.confirm_latency));
        for series in [
            &mut self.sent,
            &mut self.received,
            &mut self.p99,
            &mut self.confirm_p99,
        ] {
            let surplus = series.len().saturating_sub(SPARKS);
            series.drain(..surplus);
        }
        let rate = match self.shown.received {
            true => interval.received_rate,
            false => interval.sent_rate,
        };
        self.done += rate * (interval.time - self.last).max(0.0);
        let (columns, rows) = size();
        let mut lines = self.lines(interval);
        // What has scrolled away cannot be drawn anew.
        lines.truncate(rows.saturating_sub(1).max(1));
        self.last = interval.time;
        let mut text = self.rewind();
        self.drawn = lines.len();
        // A line that wrapped would be two to the cursor.
        for line in &lines {
            text.extend(line.chars().take(columns));
            text.push('\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        let text = self.rewind();
        writeln!(io::stdout().lock(), "{text}{line}")
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        // The last picture stays.
        self.drawn = 0;
        let mut out = io::stdout().lock();
        for line in summary(None, self.shown, run) {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

/// The terminal's columns and rows.
fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let (columns, rows) = size.map_or((0, 0), |size| (size.ws_col, size.ws_row));
    let or = |given: u16, usual| {
        if given == 0 {
            usual
        } else {
            usize::from(given)
        }
    };
    (or(columns, 80), or(rows, 24))
}

fn flow(name: &str, rate: f64, series: &[f64]) -> String {
    format!(
        "{name:<9} {:>11} msg/s   {}",
        grouped(rate),
        sparkline(series)
    )
}

fn times(name: &str, latency: &Percentiles, series: &[f64]) -> String {
    format!(
        "{name:<9} median {}   p99 {}   max {}   {} p99",
        duration(latency.p50_ns as f64),
        duration(latency.p99_ns as f64),
        duration(latency.max_ns as f64),
        sparkline(series)
    )
}

/// A bar for each value, from zero to the highest.
fn sparkline(series: &[f64]) -> String {
    let highest = series.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match highest > 0.0 {
        true => BARS[((value / highest * 7.0).round() as usize).min(7)],
        false => BARS[0],
    };
    series.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_reach_from_zero_to_the_highest() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0]), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
    }

    #[test]
    fn progress_is_by_messages_before_time() {
        let mut settings = Settings::default();
        settings.limits.time = Some(Duration::from_secs(30));
        let live = Live::new(&settings, Shown::of(&settings));
        let interval = Interval {
            time: 15.0,
            ..Interval::default()
        };
        let bar = live.progress(&interval).expect("a known end");
        assert!(
            bar.ends_with("░ 15 of 30 s") && bar.starts_with('█'),
            "{bar}"
        );
        settings.consumers.limit = Some(1_000);
        let mut live = Live::new(&settings, Shown::of(&settings));
        live.done = 250.0;
        let bar = live.progress(&interval).expect("a known end");
        assert!(bar.ends_with(" 250 of 1,000 messages"), "{bar}");
    }
}
