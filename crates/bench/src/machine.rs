//! Where and of what a measurement was made: without it a figure says nothing.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use serde_json::{Value, json};

pub struct Machine {
    pub cores: usize,
    pub kernel: String,
    pub cpu: String,
    /// The working tree's commit, with `+` where it has changes; `None` without git.
    pub commit: Option<String>,
}

impl Machine {
    pub fn look() -> Machine {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            cores: available_parallelism().map_or(0, usize::from),
            kernel: kernel.trim().to_owned(),
            cpu: cpu_model(&cpu_info).unwrap_or("unknown").to_owned(),
            commit: commit(),
        }
    }

    pub fn to_json(&self) -> Value {
        json!({ "cores": self.cores, "kernel": self.kernel, "cpu": self.cpu })
    }
}

fn cpu_model(cpu_info: &str) -> Option<&str> {
    let line = cpu_info
        .lines()
        .find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() {
        commit
    } else {
        commit + "+"
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_model_is_the_first_cores() {
        let info = "processor\t: 0\nmodel name\t: Fast 9000 @ 3 GHz\nmodel name\t: other\n";
        assert_eq!(cpu_model(info), Some("Fast 9000 @ 3 GHz"));
    }
}
