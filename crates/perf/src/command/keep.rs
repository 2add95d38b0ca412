//! What happens to the result, and who else may see the figures.

use std::path::PathBuf;

use client::{FieldValue, Options};

use super::given::Given;
use super::{connection, values};
use crate::Error;

/// What is asked for besides the load itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keep {
    /// `--json`: where the result goes.
    pub json: Option<PathBuf>,
    /// `-o`, `--csv`: where the lines go.
    pub csv: Option<PathBuf>,
    /// `--html`: where the report goes.
    pub html: Option<PathBuf>,
    /// `--label`: what the result is called.
    pub label: Option<String>,
    /// `--history`: the file that the result is added to.
    pub history: Option<PathBuf>,
    /// `--broker-pid`: the process to watch.
    pub broker_pid: Option<u32>,
    /// `--against`: the broker to compare with.
    pub against: Option<Options>,
    /// `--rounds`: how many times each of the two is loaded.
    pub rounds: u32,
    /// `--steady`: totals are about the steady state.
    pub steady: bool,
    /// `-mpr`: where Prometheus finds the figures.
    pub prometheus: Option<Prometheus>,
    /// `-em`: constants among them.
    pub exposed: Vec<(String, f64)>,
}

/// `-mpp`, `-mpe`, `-mpx`, `-mt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prometheus {
    /// The port to listen on, on all addresses.
    pub port: u16,
    /// The path, with its slash.
    pub endpoint: String,
    /// What the names of all figures begin with.
    pub prefix: String,
    /// Labels of all figures.
    pub tags: Vec<(String, String)>,
}

/// What is asked for besides the load itself. `channels` is how many one connection opens.
pub fn keep(given: &Given, channels: u16) -> Result<Keep, Error> {
    let path = |long| given.text(long).map(PathBuf::from);
    Ok(Keep {
        json: path("json"),
        csv: path("csv").or_else(|| path("output-file")),
        html: path("html"),
        label: given.text("label").map(str::to_owned),
        history: path("history"),
        broker_pid: given.number("broker-pid", 1..=i32::MAX as u32)?,
        against: connection::against(given, channels)?,
        rounds: given.number("rounds", 1..=1000)?.unwrap_or(3),
        steady: given.has("steady"),
        prometheus: prometheus(given)?,
        exposed: exposed(given)?,
    })
}

fn prometheus(given: &Given) -> Result<Option<Prometheus>, Error> {
    let port = given.number("metrics-prometheus-port", 1..=u16::MAX)?;
    let tags = tags(given)?;
    let endpoint = given
        .text("metrics-prometheus-endpoint")
        .unwrap_or("/metrics");
    let prefix = given.text("metrics-prefix").unwrap_or("perftest_");
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    if !prefix.chars().all(allowed) || prefix.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(given.wrong("metrics-prefix", prefix, "no name may begin like this"));
    }
    Ok(given.has("metrics-prometheus").then(|| Prometheus {
        port: port.unwrap_or(8080),
        endpoint: format!("/{}", endpoint.trim_start_matches('/')),
        prefix: prefix.to_owned(),
        tags,
    }))
}

fn tags(given: &Given) -> Result<Vec<(String, String)>, Error> {
    let text = given.text("metrics-tags").unwrap_or_default();
    let tags = text
        .split(',')
        .filter(|tag| !tag.trim().is_empty())
        .map(|tag| {
            let pair = tag.split_once('=').filter(|(key, _)| !key.is_empty());
            let (key, value) =
                pair.ok_or_else(|| given.wrong("metrics-tags", tag, "not KEY=VALUE"))?;
            Ok((key.to_owned(), value.to_owned()))
        });
    tags.collect()
}

fn exposed(given: &Given) -> Result<Vec<(String, f64)>, Error> {
    let texts = given.values("exposed-metrics");
    let wrong = |reason: String| given.wrong("exposed-metrics", &texts.join(" "), reason);
    let pairs = values::pairs(texts).map_err(wrong)?;
    let exposed = pairs.into_iter().map(|(name, value)| {
        let number = match &value {
            FieldValue::I64(number) => Some(*number as f64),
            text => text.as_str().and_then(|text| text.parse().ok()),
        };
        let number = number.ok_or_else(|| wrong(format!("{name} is given no number")))?;
        Ok((name, number))
    });
    exposed.collect()
}
