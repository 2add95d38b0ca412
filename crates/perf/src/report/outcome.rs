//! Whether runs went as they should: errors, and checks of what was received, in words.

use super::columns::Columns;
use super::html::{Markup, element};
use super::table::{key, plain};
use crate::number;
use crate::result::{Checks, Run};

/// How the rounds of one run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// In words: `passed`, `3 missing`, `1 of 3 rounds failed`.
    pub text: String,
    /// Whether somebody should look at it.
    pub bad: bool,
}

/// How these rounds ended.
pub fn of<'a>(rounds: impl Iterator<Item = &'a Run>) -> Outcome {
    let rounds: Vec<&Run> = rounds.collect();
    let failed = rounds.iter().filter(|run| run.error.is_some()).count();
    let checks: Vec<&Checks> = rounds
        .iter()
        .filter_map(|run| run.checks.as_ref())
        .collect();
    let sound = checks.iter().all(|checks| checks.passed());
    let mut parts = Vec::new();
    match (failed, rounds.len()) {
        (0, _) => {}
        (_, 1) => parts.push("run failed".to_owned()),
        (failed, all) => parts.push(format!("{failed} of {all} rounds failed")),
    }
    if !sound {
        let sum = |part: fn(&Checks) -> u64| checks.iter().map(|checks| part(checks)).sum();
        parts.push(faults(
            sum(|c| c.gaps),
            sum(|c| c.duplicates),
            sum(|c| c.reordered),
        ));
    }
    let bad = !parts.is_empty();
    match (bad, checks.is_empty()) {
        (false, false) => parts.push("passed".into()),
        (false, true) => parts.push("not checked".into()),
        _ => {}
    }
    Outcome {
        text: parts.join("; "),
        bad,
    }
}

/// `3 missing, 1 doubled, 2 out of order`, without those that are 0.
fn faults(gaps: u64, duplicates: u64, reordered: u64) -> String {
    let faults = [
        (gaps, "missing"),
        (duplicates, "doubled"),
        (reordered, "out of order"),
    ];
    let faults = faults.into_iter().filter(|(count, _)| *count > 0);
    let faults: Vec<String> = faults
        .map(|(count, what)| format!("{} {what}", number::count(count)))
        .collect();
    faults.join(", ")
}

/// What went wrong in any run, to be read before the figures; nothing if nothing did.
pub fn problems(columns: &Columns) -> Markup {
    let mut items = Markup::new();
    let (mut failed, mut unsound, mut all) = (0, 0, 0);
    for (index, column) in columns.columns.iter().enumerate() {
        for run in &column.runs {
            all += 1;
            failed += usize::from(run.error.is_some());
            unsound += usize::from(run.checks.as_ref().is_some_and(|checks| !checks.passed()));
            for problem in of_run(run) {
                let mut item = Markup::new();
                if !columns.is_single() {
                    item.push(key(index, &column.letter));
                    item.push(" ");
                }
                item.push(element("b", &[], &run.name));
                if columns.rounds(&run.name) > 1 {
                    item.push(format!(", round {}", run.round));
                }
                item.push(": ");
                item.push(problem);
                items.push(element("li", &[], item));
            }
        }
    }
    let mut counts = Vec::new();
    if failed > 0 {
        counts.push(format!("{failed} of {all} runs failed"));
    }
    if unsound > 0 {
        counts.push(format!(
            "{unsound} of {all} runs lost, doubled or reordered messages"
        ));
    }
    if counts.is_empty() {
        return Markup::new();
    }
    let content = element("h2", &[], counts.join("; ")).with(element("ul", &[], items));
    element("section", &[("class", "problems")], content)
}

/// The same for a terminal, a line each after an empty one; nothing if nothing went wrong.
pub fn text(columns: &Columns) -> String {
    let mut text = String::new();
    for column in &columns.columns {
        for run in &column.runs {
            for problem in of_run(run) {
                let start = format!("{} {}, round {}", column.letter, run.name, run.round);
                text.push_str(&plain(&format!("{start}: {problem}")));
                text.push('\n');
            }
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}

fn of_run(run: &Run) -> Vec<String> {
    let mut problems: Vec<String> = run.error.iter().cloned().collect();
    let Some(checks) = run.checks.as_ref().filter(|checks| !checks.passed()) else {
        return problems;
    };
    let faults = faults(checks.gaps, checks.duplicates, checks.reordered);
    let mut text = format!(
        "{faults} of {} messages checked",
        number::count(checks.checked)
    );
    // A few tell where to look; a thousand would hide the rest of the page.
    for part in checks.by_consumer.iter().take(3) {
        text.push_str(&format!(
            "; queue {}, producer {}{}: {}",
            part.queue,
            part.producer,
            part.consumer
                .map(|consumer| format!(", consumer {consumer}"))
                .unwrap_or_default(),
            self::faults(part.gaps, part.duplicates, part.reordered),
        ));
    }
    if checks.by_consumer.len() > 3 {
        text.push_str(&format!("; {} more", checks.by_consumer.len() - 3));
    }
    problems.push(text);
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(error: Option<&str>, checks: Option<Checks>) -> Run {
        Run {
            error: error.map(str::to_owned),
            checks,
            ..Run::default()
        }
    }

    #[test]
    fn outcomes_are_words() {
        let sound = run(None, Some(Checks::default()));
        let faulty = Checks {
            gaps: 1_200,
            reordered: 2,
            ..Checks::default()
        };
        let unsound = run(None, Some(faulty));
        let failed = run(Some("connection reset"), None);
        let text = |runs: &[&Run]| of(runs.iter().copied()).text;
        assert_eq!(text(&[&sound]), "passed");
        assert_eq!(text(&[&run(None, None)]), "not checked");
        assert_eq!(text(&[&failed]), "run failed");
        assert_eq!(
            text(&[&sound, &unsound, &failed]),
            "1 of 3 rounds failed; 1,200 missing, 2 out of order"
        );
        assert!(of([&unsound].into_iter()).bad && !of([&sound].into_iter()).bad);
    }
}
