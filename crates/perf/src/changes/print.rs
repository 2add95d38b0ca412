//! What was found, for people: a verdict a series, and a table of its changes.

use std::fmt::Write;

use super::series::{Along, Finding};
use crate::changepoint::Change;

/// Fewer values do not show a change with 95 % confidence, however large it is: of the 35 orders of
/// three low and four high ones, two have them apart.
const FEWEST: usize = 8;

/// All findings, after what a reader should know of the input.
pub(super) fn text(findings: &[Finding], notes: &[String]) -> String {
    let mut text = String::new();
    for note in notes {
        text += &format!("warning: {note}\n");
    }
    for (number, found) in findings.iter().enumerate() {
        if number > 0 || !notes.is_empty() {
            text.push('\n');
        }
        text += &format!("{}: {}\n", found.analysis.title, verdict(found));
        table(&mut text, found);
    }
    text
}

/// One line: what changed last, or that nothing did.
fn verdict(found: &Finding) -> String {
    let analysis = &found.analysis;
    let Some(change) = found.newest() else {
        return unchanged(found);
    };
    let place = match found.along {
        Along::History => format!("at {}", analysis.positions[change.index]),
        Along::Run { .. } => format!("from second {}", analysis.positions[change.index]),
    };
    let worse = match found.is_worse(change) {
        true => "worse",
        false => "better",
    };
    format!(
        "{} → {} {} ({}, {worse}) {place}, {} confident{}",
        number(change.before),
        number(change.after),
        analysis.unit,
        relative(change),
        percentage(change.confidence),
        match found.along {
            Along::History => String::new(),
            Along::Run { .. } => format!("; {}", steady(found)),
        }
    )
}

fn unchanged(found: &Finding) -> String {
    let analysis = &found.analysis;
    let count = analysis.values.len();
    let values = if count == 1 { "value" } else { "values" };
    match found.along {
        Along::Run { .. } => format!("{}, {count} {values}", steady(found)),
        Along::History if count < FEWEST => {
            format!("{count} {values} are too few to tell a change")
        }
        Along::History => format!(
            "no change in {count} values, {} to {}: {} {}",
            analysis.positions[0],
            analysis.positions[count - 1],
            number(mean(&analysis.values)),
            analysis.unit
        ),
    }
}

/// Where a run's steady state begins, and its mean.
fn steady(found: &Finding) -> String {
    let analysis = &found.analysis;
    match found.along {
        Along::Run {
            steady_from: Some(from),
        } => format!(
            "steady from second {} on at {} {}",
            analysis.positions[from],
            number(mean(&analysis.values[from..])),
            analysis.unit
        ),
        _ => "no steady state".into(),
    }
}

/// A row a change; nothing without changes.
fn table(text: &mut String, found: &Finding) {
    let analysis = &found.analysis;
    let head = match found.along {
        Along::History => "at",
        Along::Run { .. } => "from second",
    };
    let row = |change: &Change| {
        [
            analysis.positions[change.index].clone(),
            percentage(change.confidence),
            number(change.before),
            number(change.after),
            relative(change),
        ]
    };
    let rows: Vec<[String; 5]> = analysis.changes.iter().map(row).collect();
    if rows.is_empty() {
        return;
    }
    let heads = [head, "confidence", "before", "after", "change"].map(str::to_owned);
    let width = |column: usize| {
        let cells = std::iter::once(&heads).chain(&rows);
        let widths = cells.map(|cells| cells[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let [place, sure, before, after, change] = [0, 1, 2, 3, 4].map(width);
    let mut line = |[a, b, c, d, e]: &[String; 5], arrow: &str, mark: &str| {
        let _ = writeln!(
            text,
            "  {a:<place$}  {b:>sure$}  {c:>before$} {arrow} {d:<after$}  {e:>change$}{mark}"
        );
    };
    line(&heads, " ", "");
    for (cells, change) in rows.iter().zip(&analysis.changes) {
        let mark = match found.is_warm_up(change) {
            true => "  warm-up",
            false => "",
        };
        line(cells, "→", mark);
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// By how much a level changed, in percent of what it was.
pub(super) fn change_percent(change: &Change) -> Option<f64> {
    let percent = (change.after / change.before - 1.0) * 100.0;
    percent.is_finite().then_some(percent)
}

fn relative(change: &Change) -> String {
    match change_percent(change) {
        Some(percent) if percent.abs() < 9.95 => format!("{percent:+.1} %"),
        Some(percent) => format!("{percent:+.0} %"),
        None => "-".into(),
    }
}

/// A share as percent, to a tenth, rounded down: nothing is certain.
pub(super) fn percentage(share: f64) -> String {
    let tenths = (share * 1000.0 + 1e-6).floor() / 10.0;
    format!("{tenths} %")
}

/// Three digits or more, with commas between thousands.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => thousands(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits.as_str()),
    };
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
