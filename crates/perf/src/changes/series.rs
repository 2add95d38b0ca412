//! Makes series of documents: one a run name along a history, one a run along its seconds.

use super::Arguments;
use super::metric::Metric;
use crate::Error;
use crate::changepoint::{Analysis, Change, Options, cusum, detect_at, steady_from};
use crate::result::{Document, Run};

/// Changes so few values after the beginning of the steady state are the end of the warm-up: two
/// ways of looking do not place it alike to the value.
const WARM_UP_SLACK: usize = 2;

/// A series that was searched.
#[derive(Debug)]
pub(super) struct Finding {
    pub analysis: Analysis,
    pub metric: Metric,
    pub along: Along,
}

/// What a series goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// Results.
    History,
    /// Seconds of one run, which is steady from an index on, if ever.
    Run { steady_from: Option<usize> },
}

impl Finding {
    /// Whether a change belongs to a warm-up.
    pub fn is_warm_up(&self, change: &Change) -> bool {
        match self.along {
            Along::Run {
                steady_from: Some(steady),
            } => change.index <= steady + WARM_UP_SLACK,
            _ => false,
        }
    }

    /// The newest change that is none of a warm-up.
    pub fn newest(&self) -> Option<&Change> {
        let mut changes = self.analysis.changes.iter().rev();
        changes.find(|change| !self.is_warm_up(change))
    }

    pub fn is_worse(&self, change: &Change) -> bool {
        (change.after < change.before) == self.metric.more_is_better()
    }

    /// Whether the newest level is worse than the one before.
    pub fn is_regression(&self) -> bool {
        self.newest().is_some_and(|change| self.is_worse(change))
    }
}

/// Runs of one name, each with what it belongs to.
struct Group<'a> {
    name: String,
    runs: Vec<(String, &'a Run)>,
}

/// Makes the series that were asked for and searches them.
pub(super) fn findings(
    arguments: &Arguments,
    options: &Options,
    documents: &[Document],
    notes: &mut Vec<String>,
) -> Result<Vec<Finding>, Error> {
    let wanted = |document: &Document, run: &Run| {
        arguments
            .run
            .as_ref()
            .is_none_or(|name| *name == run.name || *name == full_name(document, run))
    };
    let groups = match documents {
        [document] => by_run(document, wanted),
        _ => by_name(documents, wanted, notes),
    };
    if groups.is_empty() {
        return Err(Error::Usage(no_run(arguments, documents)));
    }
    let history = documents.len() > 1;
    let mut findings = Vec::new();
    for group in &groups {
        for metric in metrics(arguments, group, history) {
            let found = match history {
                true => along_history(group, metric, options),
                false => along_run(group, metric, options),
            };
            findings.extend(found);
        }
    }
    let found = |name: &str| findings.iter().any(|found| found.metric.name() == name);
    let mut named = arguments.metric.iter().filter(|name| *name != "all");
    let missing = named.find(|name| !found(name));
    match missing.is_some() || findings.is_empty() {
        true => Err(Error::Usage(no_metric(missing, &groups, history))),
        false => Ok(findings),
    }
}

/// One group a run: its scenario, its name, and its round if there are several.
fn by_run(document: &Document, wanted: impl Fn(&Document, &Run) -> bool) -> Vec<Group<'_>> {
    let runs = document.runs.iter().filter(|run| wanted(document, run));
    let group = |run| {
        let name = full_name(document, run);
        let same = document.runs.iter().filter(|other| other.name == run.name);
        Group {
            name: match same.count() {
                0 | 1 => name,
                _ => format!("{name}, round {}", run.round),
            },
            runs: vec![(String::new(), run)],
        }
    };
    runs.map(group).collect()
}

/// One group a name, in the order in which they first come. Runs that failed are left out: how far
/// they came is no level.
fn by_name<'a>(
    documents: &'a [Document],
    wanted: impl Fn(&Document, &Run) -> bool,
    notes: &mut Vec<String>,
) -> Vec<Group<'a>> {
    // A label that never changes says nothing; then the time does.
    let labels_differ = documents
        .windows(2)
        .any(|pair| pair[0].label != pair[1].label);
    let mut groups: Vec<Group> = Vec::new();
    for document in documents {
        let label = document.label.as_ref().filter(|_| labels_differ);
        let position = label.unwrap_or(&document.started);
        for run in document.runs.iter().filter(|run| wanted(document, run)) {
            let name = full_name(document, run);
            if let Some(error) = &run.error {
                notes.push(format!(
                    "{name} at {position} left out: it failed ({error})"
                ));
                continue;
            }
            let entry = (position.clone(), run);
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.runs.push(entry),
                None => groups.push(Group {
                    name,
                    runs: vec![entry],
                }),
            }
        }
    }
    groups
}

/// `w3 / 4 queues`.
fn full_name(document: &Document, run: &Run) -> String {
    match &document.scenario {
        Some(scenario) => format!("{scenario} / {}", run.name),
        None => run.name.clone(),
    }
}

/// Those that were asked for; without `--metric` the rate of what is received, or sent if nothing
/// is.
fn metrics(arguments: &Arguments, group: &Group, history: bool) -> Vec<Metric> {
    let mut names = arguments.metric.iter();
    match names.clone().any(|name| name == "all") {
        true => available(std::slice::from_ref(group), history),
        false if arguments.metric.is_empty() => vec![rate(group)],
        false => names.by_ref().map(|name| Metric::named(name)).collect(),
    }
}

fn rate(group: &Group) -> Metric {
    let receives = |run: &Run| run.totals.received > 0;
    match group.runs.iter().any(|(_, run)| receives(run)) {
        true => Metric::Received,
        false => Metric::Sent,
    }
}

/// The metrics that groups have.
fn available(groups: &[Group], history: bool) -> Vec<Metric> {
    let runs = || {
        groups
            .iter()
            .flat_map(|group| group.runs.iter().map(|(_, run)| *run))
    };
    let mut metrics = Metric::known();
    if history {
        let mut figures: Vec<&String> = runs().flat_map(|run| run.figures.keys()).collect();
        figures.sort();
        figures.dedup();
        metrics.extend(figures.into_iter().map(|name| Metric::Figure(name.clone())));
    }
    metrics.retain(|metric| match history {
        true => runs().any(|run| metric.of_run(run).is_some()),
        false => runs().any(|run| !values_of_run(run, metric).is_empty()),
    });
    metrics
}

/// `None` if no run has the metric.
fn along_history(group: &Group, metric: Metric, options: &Options) -> Option<Finding> {
    let entries = group.runs.iter();
    let (positions, values): (Vec<String>, Vec<f64>) = entries
        .filter_map(|(position, run)| Some((position.clone(), metric.of_run(run)?)))
        .unzip();
    // Several results of one release are one level.
    let begins = |index: usize| index == 0 || positions[index] != positions[index - 1];
    let changes = detect_at(&values, begins, options);
    let along = Along::History;
    finding(&group.name, metric, positions, values, changes, along)
}

/// `None` if no interval has the metric.
fn along_run(group: &Group, metric: Metric, options: &Options) -> Option<Finding> {
    let (_, run) = group.runs.first()?;
    let (begins, values): (Vec<f64>, Vec<f64>) = values_of_run(run, &metric).into_iter().unzip();
    let changes = detect_at(&values, |_| true, options);
    let steady = steady_second(run, &rate(group));
    let along = Along::Run {
        steady_from: steady.and_then(|second| begins.iter().position(|begin| *begin >= second)),
    };
    let positions = begins.iter().map(|begin| second(*begin)).collect();
    finding(&group.name, metric, positions, values, changes, along)
}

/// When the steady state of a run begins: what the run says, or what its rates do.
fn steady_second(run: &Run, rate: &Metric) -> Option<f64> {
    // Digits that the two ways of writing a time do not share must not cost an interval.
    if let Some(second) = run.steady_from_second {
        return Some(second - 1e-6);
    }
    let (begins, values): (Vec<f64>, Vec<f64>) = values_of_run(run, rate).into_iter().unzip();
    Some(begins[steady_from(&values)?])
}

/// When each interval that has the metric began, and its value.
fn values_of_run(run: &Run, metric: &Metric) -> Vec<(f64, f64)> {
    let mut values = Vec::with_capacity(run.series.len());
    let mut begin = 0.0;
    for interval in &run.series {
        if let Some(value) = metric.of_interval(interval, interval.time - begin) {
            values.push((begin, value));
        }
        begin = interval.time;
    }
    values
}

/// A time in seconds, to a tenth if it is none to the second.
fn second(time: f64) -> String {
    let tenths = (time * 10.0).round() / 10.0;
    format!("{tenths}")
}

fn finding(
    name: &str,
    metric: Metric,
    positions: Vec<String>,
    values: Vec<f64>,
    changes: Vec<Change>,
    along: Along,
) -> Option<Finding> {
    if values.is_empty() {
        return None;
    }
    let analysis = Analysis {
        title: format!("{name}, {}", metric.name()),
        unit: metric.unit(),
        positions,
        cusum: cusum(&values),
        values,
        changes,
    };
    Some(Finding {
        analysis,
        metric,
        along,
    })
}

fn no_run(arguments: &Arguments, documents: &[Document]) -> String {
    let runs = documents
        .iter()
        .flat_map(|document| document.runs.iter().map(|run| full_name(document, run)));
    let names = listed(runs);
    match &arguments.run {
        _ if names.is_empty() => "there are no runs in it".into(),
        Some(name) => format!("no run is called '{name}'; there are: {names}"),
        None => format!("all runs failed: {names}"),
    }
}

fn no_metric(missing: Option<&String>, groups: &[Group], history: bool) -> String {
    let names = listed(available(groups, history).iter().map(Metric::name));
    match missing {
        Some(missing) if !names.is_empty() => {
            format!("no run has '{missing}'; there are: {names}")
        }
        _ => "no run has a series of intervals: give several results instead".into(),
    }
}

/// Each once, in the order in which they come.
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once.join(", ")
}
