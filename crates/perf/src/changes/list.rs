//! What was found, for programs.

use serde::Serialize;

use super::print::change_percent;
use super::series::{Along, Finding};

/// One series.
#[derive(Serialize)]
struct Series<'a> {
    title: &'a str,
    metric: String,
    unit: &'a str,
    /// `history` or `run`.
    along: &'static str,
    /// What each value belongs to: a release, a commit, or the second in which it begins.
    positions: &'a [String],
    values: &'a [f64],
    changes: Vec<Row<'a>>,
    /// Index of the first value of a run's steady state.
    #[serde(skip_serializing_if = "Option::is_none")]
    steady_from: Option<usize>,
    /// Whether the newest level is worse than the one before.
    regression: bool,
}

/// One change.
#[derive(Serialize)]
struct Row<'a> {
    /// Of the first value of the new level.
    index: usize,
    position: &'a str,
    confidence: f64,
    before: f64,
    after: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_percent: Option<f64>,
    worse: bool,
    warm_up: bool,
    depth: u32,
}

/// A list of series with their changes.
pub(super) fn json(findings: &[Finding]) -> String {
    let series: Vec<Series> = findings.iter().map(series).collect();
    match serde_json::to_string_pretty(&series) {
        Ok(text) => format!("{text}\n"),
        Err(error) => unreachable!("all keys are text: {error}"),
    }
}

fn series(found: &Finding) -> Series<'_> {
    let analysis = &found.analysis;
    let rows = analysis.changes.iter().map(|change| Row {
        index: change.index,
        position: &analysis.positions[change.index],
        confidence: change.confidence,
        before: change.before,
        after: change.after,
        change_percent: change_percent(change),
        worse: found.is_worse(change),
        warm_up: found.is_warm_up(change),
        depth: change.depth,
    });
    let (along, steady_from) = match found.along {
        Along::History => ("history", None),
        Along::Run { steady_from } => ("run", steady_from),
    };
    Series {
        title: &analysis.title,
        metric: found.metric.name(),
        unit: &analysis.unit,
        along,
        positions: &analysis.positions,
        values: &analysis.values,
        changes: rows.collect(),
        steady_from,
        regression: found.is_regression(),
    }
}
