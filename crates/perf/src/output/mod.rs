//! What people see while a load runs, and at its end: PerfTest's lines, its table, its CSV, or a
//! live display on a terminal.

mod compact;
mod csv;
mod format;
mod lines;
mod live;
mod prometheus;

use std::io::{self, IsTerminal, Write};

use crate::command::Load;
use crate::load::Watch;
use crate::result::{Interval, Run};
use crate::settings::{Format, Settings};
use crate::{Error, load};

/// Which figures apply to a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// There are producers.
    pub sent: bool,
    /// There are consumers.
    pub received: bool,
    /// Messages may be returned.
    pub returned: bool,
    /// Messages are confirmed.
    pub confirmed: bool,
    /// Latencies are in milliseconds, not microseconds.
    pub millis: bool,
}

impl Shown {
    /// Those of settings.
    pub fn of(settings: &Settings) -> Shown {
        Shown {
            sent: settings.producers.count > 0,
            received: settings.consumers.count > 0,
            returned: settings.producers.mandatory,
            confirmed: settings.producers.confirm.is_some(),
            millis: settings.use_millis,
        }
    }
}

/// One way of showing.
trait Show {
    /// An interval has ended.
    fn interval(&mut self, interval: &Interval) -> io::Result<()>;
    /// A line that is no figure.
    fn say(&mut self, line: &str) -> io::Result<()>;
    /// The run has ended.
    fn end(&mut self, run: &Run) -> io::Result<()>;
}

/// All that a load is shown on.
pub struct Output {
    shows: Vec<Box<dyn Show>>,
    id: String,
    live: bool,
    announce: bool,
}

impl Output {
    /// As the settings say.
    ///
    /// # Errors
    /// The CSV file cannot be written, or nothing can be served to Prometheus.
    pub fn new(asked: &Load) -> Result<Output, Error> {
        let settings = &asked.settings;
        let shown = Shown::of(settings);
        let output = &settings.output;
        let mut shows: Vec<Box<dyn Show>> = Vec::new();
        let live = output.live && !output.quiet && io::stdout().is_terminal();
        if live {
            shows.push(Box::new(live::Live::new(settings, shown)));
        } else if !output.quiet {
            shows.push(match output.format {
                Format::Default => Box::new(lines::Lines::new(settings.id.clone(), shown)),
                Format::Compact => Box::new(compact::Compact::new(shown)),
            });
        }
        if let Some(path) = &output.csv {
            shows.push(Box::new(csv::Csv::create(
                path,
                settings.id.clone(),
                shown,
            )?));
        }
        if let Some(names) = &asked.keep.prometheus {
            let exporter = prometheus::Exporter::start(names, &asked.keep.exposed)?;
            shows.push(Box::new(exporter));
        }
        Ok(Output {
            shows,
            id: settings.id.clone(),
            live,
            announce: !live && !output.quiet,
        })
    }

    /// Shows the end of a run.
    pub fn end(&mut self, run: &Run) {
        self.each(|show| show.end(run));
    }

    /// Whoever does not read any more, as when a pager is left, does not stop the load.
    fn each(&mut self, mut show: impl FnMut(&mut dyn Show) -> io::Result<()>) {
        self.shows.retain_mut(|one| show(one.as_mut()).is_ok());
    }
}

impl Watch for Output {
    fn starting(&mut self, side: &str, connection: u32, channel: usize) {
        if self.announce {
            if channel == 0 {
                let line = format!("id: {}, starting {side} #{connection}", self.id);
                self.each(|show| show.say(&line));
            }
            let line = format!(
                "id: {}, starting {side} #{connection}, channel #{channel}",
                self.id
            );
            self.each(|show| show.say(&line));
        }
    }

    fn note(&mut self, note: &str) {
        let line = format!("leveret perf: {note}");
        if self.live {
            return self.each(|show| show.say(&line));
        }
        // Beside the figures, so that scripts that read those are not disturbed.
        let _ = writeln!(io::stderr(), "{line}");
    }

    fn interval(&mut self, interval: &Interval) {
        self.each(|show| show.interval(interval));
    }
}

/// Shows nothing: for scenarios, which print tables.
pub struct Silent;

impl load::Watch for Silent {
    fn starting(&mut self, _: &str, _: u32, _: usize) {}

    fn note(&mut self, note: &str) {
        let _ = writeln!(io::stderr(), "leveret perf: {note}");
    }

    fn interval(&mut self, _: &Interval) {}
}
