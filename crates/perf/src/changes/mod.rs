//! `leveret perf changes`: since when is it slower? Looks for changes of level along a history of
//! results, or within the seconds of one run.
//!
//! `read` gets the documents, `metric` says what is looked at in them, `series` makes series of it
//! and has them searched, `print` and `list` tell people and programs what was found.

mod list;
mod metric;
mod print;
mod read;
mod series;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::changepoint::{Analysis, Options};
use series::Finding;

/// Exit status if `--fail-on-regression` was given and the newest level is worse.
const REGRESSION: u8 = 3;

/// Find the release, commit or second where a level changed.
///
/// With several results, as in a history.jsonl: along them, for each run by its name. With one
/// result: along the seconds of its runs, and where their warm-up ends. Exits with 0 whether or not
/// something changed, unless --fail-on-regression is given.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Histories (one result a line) or results, oldest first
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// What to look at: received, sent, confirmed, consumer-latency-p99 (or -min, -mean, -p50, -p75,
    /// -p90, -p95, -p999, -max), confirm-latency-p99 (…), broker-cpu-us, broker-rss, a scenario's
    /// own figure, or all [default: received, or sent where nothing is received]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub metric: Vec<String>,

    /// Only runs of this name: "4 queues" or "w3 / 4 queues"
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,

    /// Random orders that each part of a series is compared with
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(20..=1_000_000))]
    pub resamples: u32,

    /// Confidence from which on a change counts: 95 or 0.95
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = parse_confidence)]
    pub confidence: f64,

    /// Work on ranks instead of values: single outliers lose their weight
    #[arg(long)]
    pub ranks: bool,

    /// Seed of the random orders: the same one gives the same answer
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Write what was found as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a page with the series and their CUSUM charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Exit with 3 if the newest level is worse than the one before, in any series
    #[arg(long)]
    pub fail_on_regression: bool,
}

impl Arguments {
    /// How to search; an error if no change could ever count.
    fn options(&self) -> Result<Options, Error> {
        let resamples = f64::from(self.resamples);
        if resamples / (resamples + 1.0) < self.confidence {
            let least = (self.confidence / (1.0 - self.confidence)).round();
            return Err(Error::Usage(format!(
                "a confidence of {} needs --resamples of {least} or more",
                print::percentage(self.confidence)
            )));
        }
        Ok(Options {
            resamples: self.resamples as usize,
            confidence: self.confidence,
            ranks: self.ranks,
            seed: self.seed,
        })
    }
}

/// 95, 95% or 0.95 as a share.
fn parse_confidence(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let value: f64 = number.parse().map_err(|_| "not a number".to_owned())?;
    let share = if value < 1.0 { value } else { value / 100.0 };
    match (0.5..=0.9999).contains(&share) {
        true => Ok(share),
        false => Err("must be from 50 to 99.99, or from 0.5 to 0.9999".into()),
    }
}

/// Reads, searches, and writes what was found to `out` and to the files that the arguments name;
/// `page` makes the HTML page. Returns the exit status: 0, or 3 for a regression if asked for.
pub fn run(
    arguments: &Arguments,
    out: &mut dyn Write,
    page: impl Fn(&[Analysis]) -> String,
) -> Result<u8, Error> {
    let (findings, notes) = find(arguments)?;
    let text = print::text(&findings, &notes);
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| Error::System {
            what: "writing what was found",
            source,
        })?;
    if let Some(path) = &arguments.json {
        write(path, &list::json(&findings))?;
    }
    if let Some(path) = &arguments.html {
        let analyses: Vec<Analysis> = findings
            .iter()
            .map(|found| found.analysis.clone())
            .collect();
        write(path, &page(&analyses))?;
    }
    let worse = arguments.fail_on_regression && findings.iter().any(Finding::is_regression);
    Ok(if worse { REGRESSION } else { 0 })
}

/// What was found, and what a reader should know of the input.
fn find(arguments: &Arguments) -> Result<(Vec<Finding>, Vec<String>), Error> {
    let options = arguments.options()?;
    let mut input = read::files(&arguments.files)?;
    let findings = series::findings(arguments, &options, &input.documents, &mut input.notes)?;
    Ok((findings, input.notes))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::file(path, source))
}
