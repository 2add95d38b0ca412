//! PerfTest's compact format: a table.

use std::io::{self, Write};

use super::format::{latency, rate};
use super::lines::summary;
use super::{Show, Shown};
use crate::clock;
use crate::result::{Interval, Run};

const RATE_WIDTH: usize = 13;
const LATENCY_WIDTH: usize = 27;

pub struct Compact {
    shown: Shown,
    headed: bool,
}

impl Compact {
    pub fn new(shown: Shown) -> Compact {
        Compact {
            shown,
            headed: false,
        }
    }

    /// Names of the columns of rates, and which latencies follow.
    fn columns(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        let confirmed = self.shown.sent && self.shown.confirmed;
        let rates = [
            ("sent", self.shown.sent),
            ("returned", self.shown.returned),
            ("confirmed", confirmed),
            ("nacked", confirmed),
            ("received", self.shown.received),
        ];
        let latencies = [
            ("consumer latency", self.shown.received),
            ("confirm latency", confirmed),
        ];
        let chosen = |all: &[(&'static str, bool)]| {
            all.iter()
                .filter(|(_, applies)| *applies)
                .map(|(name, _)| *name)
                .collect()
        };
        (chosen(&rates), chosen(&latencies))
    }
}

impl Show for Compact {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        // PerfTest is silent while nothing happens.
        if interval.idle() {
            return Ok(());
        }
        let (rates, latencies) = self.columns();
        if !self.headed {
            self.headed = true;
            let mut head = format!("{:<19}", "time");
            rates
                .iter()
                .for_each(|name| head.push_str(&format!("{name:>RATE_WIDTH$}")));
            latencies
                .iter()
                .for_each(|name| head.push_str(&format!("{name:>LATENCY_WIDTH$}")));
            self.say(&head)?;
        }
        let mut line = clock::timestamp()[..19].replace('-', "/").replace('T', " ");
        for name in rates {
            let value = match name {
                "sent" => interval.sent_rate,
                "returned" => interval.returned_rate,
                "confirmed" => interval.confirmed_rate,
                "nacked" => interval.nacked_rate,
                _ => interval.received_rate,
            };
            // Wide figures move the columns, but do not run into each other.
            let text = format!("{} msg/s", rate(value));
            line.push_str(&format!(" {text:>0$}", RATE_WIDTH - 1));
        }
        for name in latencies {
            let of = match name {
                "consumer latency" => &interval.consumer_latency,
                _ => &interval.confirm_latency,
            };
            let text = latency(of.as_ref(), self.shown.millis);
            line.push_str(&format!(" {text:>0$}", LATENCY_WIDTH - 1));
        }
        self.say(&line)
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{line}")
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for line in summary(None, self.shown, run) {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}
