//! The command on files, as people and programs see it.

use std::path::PathBuf;

use super::*;
use crate::result::{Broker, Document, Host, Interval, Latency, Percentiles, Run, Totals};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("changes-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn written(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).expect("a file for the test");
        path
    }

    /// A history with these documents, as the load tester appends them.
    fn history(&self, documents: &[Document]) -> PathBuf {
        let path = self.file("history.jsonl");
        for document in documents {
            document.append(&path).expect("appends");
        }
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

/// The arguments of a command line with one file.
fn arguments(file: &Path, options: &[&str]) -> Arguments {
    let mut words = vec!["changes", file.to_str().expect("text")];
    words.extend(options);
    let line = <CommandLine as clap::Parser>::try_parse_from(words);
    line.expect("a command line that makes sense").arguments
}

fn run_with(file: &Path, options: &[&str]) -> Result<(u8, String), Error> {
    let mut out = Vec::new();
    let page = |analyses: &[Analysis]| format!("<html>{}</html>", analyses.len());
    let status = run(&arguments(file, options), &mut out, page)?;
    Ok((status, String::from_utf8(out).expect("text")))
}

/// The message of an error, and whether it is one of usage.
fn error_of(file: &Path, options: &[&str]) -> (String, bool) {
    let error = run_with(file, options).expect_err("an error");
    let usage = matches!(error, Error::Usage(_));
    (error.to_string(), usage)
}

fn document(label: Option<&str>, number: u32, runs: Vec<Run>) -> Document {
    Document {
        format: crate::result::FORMAT.into(),
        leveret: "0.1.0".into(),
        started: format!("2026-01-01T00:{number:02}:00Z"),
        label: label.map(str::to_owned),
        command: Vec::new(),
        scenario: Some("w3".into()),
        host: Host::default(),
        runs,
    }
}

/// A run that received at this rate, with a latency of 1 / rate.
fn received(name: &str, rate: f64) -> Run {
    let percentiles = Percentiles {
        count: 100,
        p99_ns: (1e12 / rate) as u64,
        ..Percentiles::default()
    };
    Run {
        name: name.into(),
        broker: Broker::default(),
        totals: Totals {
            seconds: 10.0,
            received: (rate * 10.0) as u64,
            received_rate: rate,
            sent_rate: rate,
            ..Totals::default()
        },
        consumer_latency: Some(Latency {
            percentiles,
            counts: Vec::new(),
        }),
        ..Run::default()
    }
}

/// Something between -1 and 1 that looks like noise.
fn jitter(number: u32) -> f64 {
    f64::from(number * 7919 % 101) / 50.0 - 1.0
}

/// Four results of each of these releases: 4 queues are slower from 3.6.0 on, 1 queue is not.
fn releases() -> Vec<Document> {
    let names = ["3.3.5", "3.4.4", "3.5.7", "3.6.0", "3.6.1"];
    let document = |number: u32| {
        let release = number as usize / 4;
        let level = if release < 3 { 13_000.0 } else { 10_300.0 };
        let noise = 1.0 + 0.02 * jitter(number);
        let runs = vec![
            received("1 queue", 6_000.0 * noise),
            received("4 queues", level * noise),
        ];
        document(Some(names[release]), number, runs)
    };
    (0..20).map(document).collect()
}

#[test]
fn the_release_where_it_changed_is_found() {
    let folder = Folder::new("release");
    let file = folder.history(&releases());
    let (status, text) = run_with(&file, &[]).expect("runs");
    assert_eq!(status, 0);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("w3 / 1 queue, received: no change in 20 values, 3.3.5 to 3.6.1"));
    assert!(
        lines[2].starts_with("w3 / 4 queues, received: 12,9"),
        "{text}"
    );
    assert!(
        lines[2].ends_with(" msg/s (-20 %, worse) at 3.6.0, 99.9 % confident"),
        "{text}"
    );
    assert_eq!(lines[3], "  at     confidence  before   after   change");
    assert!(lines[4].starts_with("  3.6.0      99.9 %  12,9"), "{text}");
    assert_eq!(lines.len(), 5);
}

#[test]
fn a_regression_fails_if_asked_to() {
    let folder = Folder::new("regression");
    let file = folder.history(&releases());
    let status = |options: &[&str]| run_with(&file, options).expect("runs").0;
    assert_eq!(status(&["--fail-on-regression"]), 3);
    assert_eq!(status(&["--fail-on-regression", "--run", "1 queue"]), 0);
    // Latency rises as the rate falls: that is worse, too.
    let latency = ["--fail-on-regression", "--metric", "consumer-latency-p99"];
    assert_eq!(status(&latency), 3);
}

#[test]
fn an_improvement_is_no_regression() {
    let folder = Folder::new("improvement");
    let mut documents = releases();
    documents.reverse();
    let (status, text) =
        run_with(&folder.history(&documents), &["--fail-on-regression"]).expect("runs");
    assert_eq!(status, 0);
    assert!(text.contains("(+25 %, better) at 3.5.7"), "{text}");
}

#[test]
fn a_label_that_never_changes_gives_way_to_the_time() {
    let folder = Folder::new("label");
    let mut documents = releases();
    documents
        .iter_mut()
        .for_each(|document| document.label = Some("nightly".into()));
    let (_, text) =
        run_with(&folder.history(&documents), &["--run", "w3 / 4 queues"]).expect("runs");
    assert!(text.contains(" at 2026-01-01T00:12:00Z, "), "{text}");
}

#[test]
fn programs_get_a_list_and_the_page_its_analyses() {
    let folder = Folder::new("json");
    let file = folder.history(&releases());
    let (json, html) = (folder.file("changes.json"), folder.file("changes.html"));
    let paths = [&json, &html].map(|path| path.to_str().expect("text"));
    let options = [
        "--json",
        paths[0],
        "--html",
        paths[1],
        "--metric",
        "received,sent",
    ];
    run_with(&file, &options).expect("runs");
    let text = fs::read_to_string(&json).expect("written");
    let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(4));
    let series = &list[2];
    assert_eq!(series["title"], "w3 / 4 queues, received");
    assert_eq!(series["regression"], true);
    assert_eq!(series["values"].as_array().map(Vec::len), Some(20));
    let change = &series["changes"][0];
    assert_eq!(
        (&change["position"], &change["index"]),
        (&"3.6.0".into(), &12.into())
    );
    assert_eq!(
        fs::read_to_string(&html).expect("written"),
        "<html>4</html>"
    );
    let (findings, _) = find(&arguments(&file, &[])).expect("runs");
    assert_eq!(findings.len(), 2);
    let analysis = &findings[0].analysis;
    assert_eq!(analysis.cusum.len(), analysis.values.len() + 1);
}

/// A run of a minute: 3 s of warm-up, then 10,000, then 8,000 from a second on.
fn minute(slower_from: u32) -> Run {
    let interval = |second: u32| {
        let level = match second {
            0..3 => 4_000.0,
            _ if second < slower_from => 10_000.0,
            _ => 8_000.0,
        };
        Interval {
            time: f64::from(second + 1) + 0.0004,
            sent_rate: level,
            received_rate: level * (1.0 + 0.02 * jitter(second)),
            ..Interval::default()
        }
    };
    Run {
        series: (0..60).map(interval).collect(),
        ..received("T=500", 9_000.0)
    }
}

#[test]
fn the_warm_up_of_one_run_is_marked() {
    let folder = Folder::new("seconds");
    let file = folder.file("result.json");
    document(None, 0, vec![minute(60)])
        .write(&file)
        .expect("writes");
    let (status, text) = run_with(&file, &["--fail-on-regression"]).expect("runs");
    assert_eq!(status, 0);
    assert!(
        text.starts_with("w3 / T=500, received: steady from second 3 on at 10,0"),
        "{text}"
    );
    assert!(text.contains("  warm-up\n"), "{text}");
}

#[test]
fn a_change_after_the_warm_up_is_told() {
    let folder = Folder::new("later");
    let file = folder.file("result.json");
    document(None, 0, vec![minute(45)])
        .write(&file)
        .expect("writes");
    let (status, text) = run_with(&file, &["--fail-on-regression"]).expect("runs");
    assert_eq!(status, 3);
    assert!(
        text.contains("(-20 %, worse) from second 45, 99.9 % confident"),
        "{text}"
    );
    assert!(text.contains("; steady from second 3 on at 9,"), "{text}");
}

#[test]
fn a_result_may_be_laid_out_over_lines() {
    let folder = Folder::new("pretty");
    let document = document(None, 0, vec![minute(60)]);
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    let file = folder.written("result.json", &text);
    assert!(run_with(&file, &["--metric", "all"]).is_ok());
}

#[test]
fn a_last_line_that_was_cut_off_is_passed_over() {
    let folder = Folder::new("cut");
    let file = folder.history(&releases());
    let mut text = fs::read_to_string(&file).expect("written");
    text.push_str("{\"format\":\"leveret-perf/1\",\"lev");
    let file = folder.written("cut.jsonl", &text);
    let (_, text) = run_with(&file, &[]).expect("runs");
    assert!(
        text.contains("cut.jsonl, line 21: cut off, passed over\n"),
        "{text}"
    );
}

#[test]
fn a_broken_line_is_named() {
    let folder = Folder::new("broken");
    let whole = fs::read_to_string(folder.history(&releases())).expect("written");
    let lines: Vec<&str> = whole.lines().collect();
    let text = format!("{}\n{}\n{}\n", lines[0], &lines[1][..40], lines[2]);
    let (message, usage) = error_of(&folder.written("broken.jsonl", &text), &[]);
    assert!(message.contains("broken.jsonl"), "{message}");
    assert!(message.contains("line 2: "), "{message}");
    assert!(!usage && !message.contains('\n'));
    let (message, _) = error_of(&folder.written("other.json", "{\"a\": 1}\n"), &[]);
    assert!(message.contains("line 1: "), "{message}");
    assert!(
        error_of(&folder.written("empty", ""), &[])
            .0
            .contains("it is empty")
    );
    assert!(!error_of(&folder.file("absent"), &[]).1);
}

#[test]
fn unknown_names_are_answered_with_those_that_there_are() {
    let folder = Folder::new("names");
    let file = folder.history(&releases());
    let (message, usage) = error_of(&file, &["--run", "5 queues"]);
    assert!(usage);
    let expected = "no run is called '5 queues'; there are: w3 / 1 queue, w3 / 4 queues";
    assert_eq!(message, expected);
    let (message, usage) = error_of(&file, &["--metric", "confirm-latency-p50"]);
    assert!(usage);
    assert!(message.starts_with("no run has 'confirm-latency-p50'; there are: received, sent, "));
    assert!(
        error_of(&file, &["--metric", "received,latency"])
            .0
            .starts_with("no run has 'latency'")
    );
    assert!(error_of(&file, &["--confidence", "99.9", "--resamples", "100"]).1);
}

#[test]
fn one_result_without_intervals_is_too_little() {
    let folder = Folder::new("single");
    let file = folder.history(&releases()[..1]);
    let (message, usage) = error_of(&file, &[]);
    assert!(
        usage && message.contains("give several results"),
        "{message}"
    );
    let (_, text) = run_with(&folder.history(&releases()[1..5]), &[]).expect("runs");
    assert!(
        text.contains("5 values are too few to tell a change"),
        "{text}"
    );
}

#[test]
fn failed_runs_and_other_machines_are_noted() {
    let folder = Folder::new("notes");
    let mut documents = releases();
    documents[5].runs[1].error = Some("connection lost".into());
    documents[9].host.name = "elsewhere".into();
    let (_, text) = run_with(&folder.history(&documents), &[]).expect("runs");
    let failed = "warning: w3 / 4 queues at 3.4.4 left out: it failed (connection lost)\n";
    assert!(text.contains(failed), "{text}");
    assert!(text.contains("warning: results of 2 machines"), "{text}");
}

#[test]
fn a_scenarios_own_figure_is_looked_at_by_its_name() {
    let folder = Folder::new("figure");
    let mut documents = releases();
    for (number, document) in documents.iter_mut().enumerate() {
        let commit = if number < 8 { 4.0 } else { 9.0 } + jitter(number as u32);
        document.runs[0]
            .figures
            .insert("longest commit (ms)".into(), commit);
    }
    let options = ["--metric", "longest commit (ms)", "--fail-on-regression"];
    let (status, text) = run_with(&folder.history(&documents), &options).expect("runs");
    assert_eq!(status, 3);
    assert!(text.contains(" ms (+"), "{text}");
    assert!(text.contains("worse) at 3.5.7"), "{text}");
}

#[test]
fn confidence_is_a_percentage_or_a_share() {
    assert_eq!(parse_confidence("95"), Ok(0.95));
    assert_eq!(parse_confidence("99.5 %"), Ok(0.995));
    assert_eq!(parse_confidence("0.95"), Ok(0.95));
    for text in ["1", "100", "0.3", "-95", "high", ""] {
        assert!(parse_confidence(text).is_err(), "{text}");
    }
}
