//! Running `leveret ctl`, and looking at what came of it.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

use testkit::Broker;

/// How a run went.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// The program, with nothing around it.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
    command
        .arg("ctl")
        .env_clear()
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command to its end, with that on its standard input.
pub fn run(mut command: Command, input: &str) -> Outcome {
    let mut child = command.spawn().expect("the program");
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read ends before.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().expect("its output");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Outcome {
        status: output.status.code().expect("no signal"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Runs a command against a server.
pub fn ctl<S: AsRef<OsStr>>(broker: &Broker, arguments: &[S]) -> Outcome {
    ctl_with(broker, arguments, "")
}

/// The same, with that on its standard input.
pub fn ctl_with<S: AsRef<OsStr>>(broker: &Broker, arguments: &[S], input: &str) -> Outcome {
    let mut command = program();
    command.arg("--data-dir").arg(broker.data_dir());
    command.args(arguments);
    run(command, input)
}

/// A command that must be done; returns what it printed.
#[track_caller]
pub fn done<S: AsRef<OsStr>>(broker: &Broker, arguments: &[S]) -> String {
    let outcome = ctl(broker, arguments);
    assert_eq!((outcome.status, &*outcome.err), (0, ""), "{}", outcome.out);
    outcome.out
}

/// A command that must be refused after it said what it would do.
#[track_caller]
pub fn refused(broker: &Broker, arguments: &[&str], status: i32, out: &str, err: &str) {
    let outcome = ctl(broker, arguments);
    let expected = Outcome {
        status,
        out: out.to_owned(),
        err: err.to_owned(),
    };
    assert_eq!(outcome, expected, "{arguments:?}");
}

/// What a list says, without banner and names of columns.
#[track_caller]
pub fn rows(broker: &Broker, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["--silent"];
    all.extend(arguments);
    done(broker, &all).lines().map(str::to_owned).collect()
}
