//! The load tester's own cost: `leveret perf` as two processes, one that only publishes and one that
//! only consumes, 16 bytes a message, transient.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::args::Args;
use crate::error::Error;
use crate::reading::Reading;
use crate::target::{Target, binary};

const QUEUE: &str = "leveret-bench-generator";
/// Microseconds of CPU time that a message may cost on each side.
const BAR: f64 = 0.35;

/// One round.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let folder = std::env::temp_dir().join(format!("leveret-bench-{}", std::process::id()));
    let failed = |source| Error::File {
        path: folder.clone(),
        source,
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let seconds = args.round.as_secs().max(2);
    let side = |name: &str, own: &[&str], seconds: u64| {
        let result = folder.join(name);
        let child = start(target, &result, seconds, own)?;
        Ok::<(Child, PathBuf), Error>((child, result))
    };
    // The consumer is there before the first message and after the last.
    let consumer = side("consumer.json", &["-x", "0", "-y", "1", "-a"], seconds + 1)?;
    let producer = side(
        "producer.json",
        &["-x", "1", "-y", "0", "-k", QUEUE],
        seconds,
    )?;
    let sent = cost(producer, "sent")?;
    let received = cost(consumer, "received")?;
    fs::remove_dir_all(&folder).map_err(failed)?;
    Ok(vec![
        Reading::new("CPU, each sent", sent, "us").at_most(BAR),
        Reading::new("CPU, each received", received, "us").at_most(BAR),
    ])
}

fn start(target: &Target, result: &Path, seconds: u64, own: &[&str]) -> Result<Child, Error> {
    let path = binary()?;
    let options = &target.options;
    let uri = format!(
        "amqp://{}:{}@{}",
        options.user,
        options.password,
        options.address()
    );
    let seconds = seconds.to_string();
    let mut command = Command::new(&path);
    command
        .args([
            "perf",
            "-h",
            &uri,
            "-e",
            "amq.default",
            "-u",
            QUEUE,
            "-s",
            "16",
        ])
        .args(["-z", &seconds, "--quiet", "--json"])
        .arg(result)
        .args(own)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
        .spawn()
        .map_err(|source| Error::File { path, source })
}

/// Microseconds for each message of a side, once it has ended.
fn cost((mut child, result): (Child, PathBuf), counted: &str) -> Result<f64, Error> {
    let failed = |source| Error::File {
        path: result.clone(),
        source,
    };
    let status = child.wait().map_err(failed)?;
    let text = fs::read_to_string(&result).map_err(failed)?;
    let document: Value = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    let totals = &document["runs"][0]["totals"];
    let messages = totals[counted].as_f64().filter(|count| *count > 0.0);
    let cpu = totals["load_cpu_seconds"].as_f64();
    match (status.success(), cpu.zip(messages)) {
        (true, Some((cpu, messages))) => Ok(cpu * 1e6 / messages),
        _ => Err(Error::Silent),
    }
}
