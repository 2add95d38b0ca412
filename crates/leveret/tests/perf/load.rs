//! `leveret perf` as a process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::folder::Folder;
use crate::support::*;

/// Longer than any load here takes.
const LIMIT: Duration = seconds(40);

/// A program that runs. It is killed with its owner.
pub struct Load {
    child: Child,
    pub out: Printed,
    pub err: Printed,
    folder: Folder,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    /// What `--json` wrote.
    pub document: Option<Value>,
}

/// A path as an argument.
pub fn path(folder: &Folder, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// `leveret perf` with those words, none of which holds a space. Nothing comes from the environment.
pub fn command(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
    command
        .arg("perf")
        .args(words.split_whitespace())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts a load on the broker there; its result is kept.
pub fn start(uri: &str, words: &str) -> Load {
    start_command(&format!("-h {uri} {words}"))
}

/// Starts what these words say, and keeps the result as with [`start`].
pub fn start_command(words: &str) -> Load {
    let folder = Folder::new("load");
    let mut command = command(words);
    command.arg("--json").arg(folder.path().join("result"));
    let mut child = command.spawn().expect("the program");
    Load {
        out: Printed::read(child.stdout.take().expect("piped")),
        err: Printed::read(child.stderr.take().expect("piped")),
        child,
        folder,
    }
}

/// Runs a load on the broker there to its end.
pub async fn run(uri: &str, words: &str) -> Ended {
    start(uri, words).end().await
}

/// Runs something that makes no result, such as `compare`.
pub fn plainly(words: &str) -> Ended {
    let output = command(words).output().expect("the program");
    Ended {
        status: output.status,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        document: None,
    }
}

impl Load {
    /// Waits for its end.
    pub async fn end(mut self) -> Ended {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if began.elapsed() > LIMIT {
                panic!("it goes on and on: {}{}", self.out.text(), self.err.text());
            }
            tokio::time::sleep(millis(5)).await;
        };
        Ended {
            status,
            out: self.out.whole(),
            err: self.err.whole(),
            document: document(&self.folder.path().join("result")),
        }
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        let command = format!("kill -INT {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &command]).status();
        assert!(killed.expect("a shell").success());
    }

    /// Nobody reads what it prints any more.
    pub fn close_out(&mut self) {
        self.out.close();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Makes sure that it did what it was asked for, without a word beside.
    #[track_caller]
    pub fn well(self) -> Ended {
        assert_eq!((self.code(), self.err.as_str()), (0, ""), "{}", self.out);
        self
    }

    /// Makes sure that it failed with that status, and one line; returns that.
    #[track_caller]
    pub fn failed(&self, code: i32) -> &str {
        assert_eq!(self.code(), code, "{}{}", self.err, self.out);
        let lines: Vec<&str> = self.err.lines().collect();
        let [line] = lines[..] else {
            panic!("one line expected, got {lines:?}");
        };
        line.strip_prefix("leveret perf: ").expect("its name")
    }

    /// Its exit status.
    pub fn code(&self) -> i32 {
        self.status.code().expect("no signal ended it")
    }

    /// The only run of the result.
    #[track_caller]
    pub fn run(&self) -> &Value {
        let runs = self.runs();
        assert_eq!(runs.len(), 1);
        &runs[0]
    }

    /// The runs of the result.
    #[track_caller]
    pub fn runs(&self) -> &[Value] {
        let document = self.document.as_ref().expect("a result");
        document["runs"].as_array().expect("runs")
    }

    /// One of the run's sums.
    #[track_caller]
    pub fn total(&self, name: &str) -> u64 {
        let total = &self.run()["totals"][name];
        total.as_u64().unwrap_or_else(|| panic!("no {name}"))
    }

    /// One of the run's checks.
    #[track_caller]
    pub fn check(&self, name: &str) -> u64 {
        let check = &self.run()["checks"][name];
        check.as_u64().unwrap_or_else(|| panic!("no {name}"))
    }

    /// How many agents gave that reason for the end.
    pub fn stopped(&self, reason: &str) -> u64 {
        self.run()["stopped"][reason].as_u64().unwrap_or(0)
    }

    /// Gaps, duplicates, reordered.
    #[track_caller]
    pub fn faults(&self) -> [u64; 3] {
        ["gaps", "duplicates", "reordered"].map(|name| self.check(name))
    }
}

fn document(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).expect("a document"))
}

/// What comes out of a pipe, line by line.
pub struct Printed {
    text: Arc<Mutex<String>>,
    /// The next line is the last.
    enough: Arc<Mutex<bool>>,
    reader: Option<JoinHandle<()>>,
}

impl Printed {
    fn read(pipe: impl Read + Send + 'static) -> Printed {
        let text = Arc::new(Mutex::new(String::new()));
        let enough = Arc::new(Mutex::new(false));
        let (kept, stop) = (text.clone(), enough.clone());
        let reader = std::thread::spawn(move || {
            let mut pipe = BufReader::with_capacity(1, pipe);
            let mut line = String::new();
            while !*lock(&stop) && pipe.read_line(&mut line).is_ok_and(|len| len > 0) {
                lock(&kept).push_str(&line);
                line.clear();
            }
        });
        Printed {
            text,
            enough,
            reader: Some(reader),
        }
    }

    /// What has come so far.
    pub fn text(&self) -> String {
        lock(&self.text).clone()
    }

    /// Waits until that has come.
    pub async fn says(&self, what: &str) {
        eventually(what, LIMIT, async || self.text().contains(what)).await;
    }

    fn close(&mut self) {
        *lock(&self.enough) = true;
        self.join();
    }

    /// All of it, once the pipe is closed.
    fn whole(&mut self) -> String {
        self.join();
        self.text()
    }

    fn join(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
