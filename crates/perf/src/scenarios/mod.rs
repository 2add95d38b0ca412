//! Loads with a name: the workloads that people published, with their parameters as defaults, and a
//! standard set.
//!
//! A scenario is a list of [`Case`]s. They run one after the other, with a second broker in
//! alternation, so that what disturbs the machine disturbs both.

mod arguments;
mod own;
pub mod suite;
mod table;
pub mod w1;
pub mod w2;
pub mod w3;
pub mod w3_sharded;
pub mod w4;
pub mod w5;

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::Value;

pub use arguments::{Common, Keeping, Target, find_process};
pub use table::table;

use crate::Error;
use crate::interrupt::is_interrupted;
use crate::load;
use crate::number;
use crate::output::Silent;
use crate::report;
use crate::result::{Document, Run};
use crate::settings::Settings;

/// The exchange of loads that need no particular one.
const EXCHANGE: &str = "leveret-perf";

/// One load of a scenario.
pub struct Case {
    /// What sets it apart from the others: `4 queues`.
    pub name: String,
    /// What it was asked to do.
    pub parameters: BTreeMap<String, Value>,
    /// What others got: who, and the figure's name, as in `RabbitMQ 3.3.5, received rate`.
    pub published: BTreeMap<String, f64>,
    work: Work,
}

enum Work {
    /// A load as by PerfTest's options.
    Load(Box<Settings>),
    /// Something that those cannot say.
    Own(Box<dyn Fn(&Target) -> Run>),
}

impl Case {
    /// A load as by PerfTest's options; the broker is filled in.
    fn load(name: impl Into<String>, settings: Settings) -> Case {
        Case {
            name: name.into(),
            parameters: BTreeMap::new(),
            published: BTreeMap::new(),
            work: Work::Load(Box::new(settings)),
        }
    }

    /// A load of its own kind.
    fn own(name: impl Into<String>, work: impl Fn(&Target) -> Run + 'static) -> Case {
        Case {
            name: name.into(),
            parameters: BTreeMap::new(),
            published: BTreeMap::new(),
            work: Work::Own(Box::new(work)),
        }
    }

    fn with(mut self, parameter: &str, value: impl Into<Value>) -> Case {
        self.parameters.insert(parameter.into(), value.into());
        self
    }

    fn published(mut self, name: &str, value: f64) -> Case {
        self.published.insert(name.into(), value);
        self
    }

    /// Runs it once.
    fn run(&self, target: &Target, round: u32) -> Run {
        let run = match &self.work {
            Work::Own(work) => work(target),
            Work::Load(settings) => {
                let mut settings = settings.clone();
                settings.brokers = vec![target.options.clone()];
                let options = load::Options {
                    process: target.process,
                    steady: target.steady,
                };
                load::run(&settings, options, &mut Silent)
            }
        };
        Run {
            name: self.name.clone(),
            round,
            parameters: self.parameters.clone(),
            published: self.published.clone(),
            ..run
        }
    }
}

/// A scenario, resolved.
pub struct Scenario {
    /// `w3`.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What its table shows.
    pub figures: Vec<&'static str>,
    /// What its table explains.
    pub notes: Vec<String>,
    /// In order.
    pub cases: Vec<Case>,
}

/// Runs a scenario, says what happens, and returns the results.
pub fn run(
    scenario: &Scenario,
    common: &Common,
    command: Vec<String>,
    out: &mut dyn Write,
) -> Result<Document, Error> {
    let targets = common.targets()?;
    let mut document = Document::begin(Some(scenario.name), common.keeping.label.clone(), command);
    say(out, &format!("{}: {}", scenario.name, scenario.about));
    for round in 1..=common.rounds() {
        for case in &scenario.cases {
            for target in &targets {
                let run = case.run(target, round);
                say(out, &line(&run));
                document.runs.push(run);
                if is_interrupted() {
                    return Ok(document);
                }
            }
        }
    }
    say(out, "");
    say(out, &table(&document, &scenario.figures));
    for note in &scenario.notes {
        say(out, note);
    }
    Ok(document)
}

/// Whoever does not read any more does not stop the scenario.
fn say(out: &mut dyn Write, line: &str) {
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A run as it is done.
pub fn line(run: &Run) -> String {
    let totals = &run.totals;
    let mut line = format!(
        "  {:<24} {:<22} {:>9} msg/s",
        run.name,
        report::broker_name(&run.broker),
        number::count(totals.received_rate.max(totals.sent_rate) as u64),
    );
    if let Some(latency) = &run.consumer_latency {
        let percentiles = latency.percentiles;
        line.push_str(&format!(
            "   median {}, p99 {}",
            number::duration(percentiles.p50_ns as f64),
            number::duration(percentiles.p99_ns as f64)
        ));
    }
    if let Some(cpu) = totals.broker_cpu_us_per_message {
        line.push_str(&format!("   {cpu:.2} µs CPU"));
    }
    if run.checks.as_ref().is_some_and(|checks| !checks.passed()) {
        line.push_str("   NOT IN ORDER");
    }
    if let Some(error) = &run.error {
        line.push_str(&format!("   failed: {error}"));
    }
    line
}
