//! The program as its operator meets it: what it prints, how it ends, how soon it is ready.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::Broker;

use support::*;

/// Runs the program to its end, which has to come by itself.
fn run(arguments: &[&str]) -> Output {
    let mut child = command(arguments).spawn().expect("the program");
    let limit = std::time::Instant::now() + seconds(10);
    while child.try_wait().expect("its state").is_none() {
        if std::time::Instant::now() > limit {
            child.kill().expect("a running program");
            let output = child.wait_with_output().expect("its output");
            panic!("{arguments:?} did not end: {}", text(&output.stdout));
        }
        std::thread::sleep(millis(5));
    }
    child.wait_with_output().expect("its output")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
    command
        .args(arguments)
        .env_clear()
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A configuration file in a folder of its own.
struct ConfigFile(std::path::PathBuf);

impl ConfigFile {
    fn new(test: &str, lines: &str) -> ConfigFile {
        let folder = format!("leveret-startup-{}-{test}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("test.conf");
        fs::write(&file, lines).expect("a file");
        ConfigFile(file)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }

    /// Runs the server with it, and data beside it.
    fn run(&self) -> Output {
        let data = self.0.with_file_name("data");
        let data = data.to_str().expect("a path in UTF-8");
        run(&["--config", self.path(), "--data-dir", data])
    }
}

impl Drop for ConfigFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap_or(Path::new("/nowhere")));
    }
}

#[track_caller]
fn assert_status(output: &Output, status: i32) {
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}\n{errors}");
}

/// The whole log of a broker, which is stopped for that.
fn log_of(mut broker: Broker) -> String {
    broker.terminate().expect("a running broker");
    let status = broker.wait(seconds(5)).expect("an end");
    assert!(status.success(), "{status}");
    broker.log()
}

#[test]
fn banner_says_where_to_connect_and_how_to_stop() {
    let broker = builder().start().expect("a broker");
    let uri = broker.uri().to_owned();
    let log = log_of(broker);
    assert!(uri.starts_with("amqp://127.0.0.1:"), "{uri}");
    assert!(
        log.starts_with(concat!("Leveret ", env!("CARGO_PKG_VERSION"), "\n")),
        "{log}"
    );
    assert!(log.lines().any(|line| line.ends_with(&uri)), "{log}");
    let last = log.lines().find(|line| line.starts_with("ready in "));
    assert!(
        last.is_some_and(|line| line.ends_with("stop with Ctrl-C")),
        "{log}"
    );
}

#[test]
fn ready_in_no_time() {
    let times: Vec<Duration> = (0..3)
        .map(|_| builder().start().expect("a broker").start_time())
        .collect();
    let fastest = times.iter().min().expect("three of them");
    assert!(*fastest < seconds(1), "{times:?}");
}

#[test]
fn every_listener_of_the_configuration_accepts() {
    within(seconds(10), async {
        let broker = builder()
            .config("listeners.tcp.second = 127.0.0.1:0")
            .start();
        let broker = broker.expect("a broker");
        eventually("ready", seconds(5), async || {
            broker.log().contains("ready in")
        })
        .await;
        let log = broker.log();
        let uris: Vec<&str> = log
            .split_whitespace()
            .filter(|word| word.starts_with("amqp://"))
            .collect();
        assert_eq!(uris.len(), 2, "{log}");
        for uri in uris {
            let connection = client::Connection::connect_uri(uri).await;
            let connection = connection.expect("an open connection");
            connection.close().await.expect("close-ok");
        }
    });
}

#[test]
fn version_is_one_line() {
    for flag in ["--version", "-V"] {
        let output = run(&[flag]);
        assert_status(&output, 0);
        let expected = concat!("leveret ", env!("CARGO_PKG_VERSION"), "\n");
        assert_eq!(text(&output.stdout), expected);
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn help_goes_to_standard_output() {
    for arguments in [&["--help"][..], &["-h"], &["server", "--help"]] {
        let output = run(arguments);
        assert_status(&output, 0);
        let help = text(&output.stdout);
        assert!(help.contains("Usage: leveret"), "{help}");
        assert!(help.contains("--config"), "{help}");
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn unknown_options_are_refused_with_status_2() {
    for arguments in [&["--confg", "x"][..], &["--port=5672"], &["serve"]] {
        let output = run(arguments);
        assert_status(&output, 2);
        assert_eq!(text(&output.stdout), "");
        let errors = text(&output.stderr);
        let wrong = arguments[0].split('=').next().expect("a first part");
        assert!(errors.contains(wrong), "{errors}");
    }
    let errors = text(&run(&["--confg", "x"]).stderr);
    assert!(errors.contains("--config"), "{errors}");
}

#[test]
fn unknown_keys_are_named_with_line_and_nearest_key() {
    let file = ConfigFile::new(
        "unknown-key",
        "# A comment.\nlisteners.tcp.1 = 127.0.0.1:0\nhartbeat = 10\n",
    );
    let output = file.run();
    assert_status(&output, 2);
    assert_eq!(text(&output.stdout), "", "nothing was started");
    let errors = text(&output.stderr);
    assert!(errors.contains(&format!("{}:3:", file.path())), "{errors}");
    assert!(errors.contains("`hartbeat`"), "{errors}");
    assert!(errors.contains("did you mean `heartbeat`?"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let file = ConfigFile::new(
        "mistakes",
        "heartbeat = often\nno equals sign\nframe_max = 1\n",
    );
    let output = file.run();
    assert_status(&output, 2);
    let errors = text(&output.stderr);
    for line in 1..=3 {
        let place = format!("{}:{line}:", file.path());
        assert!(errors.contains(&place), "{errors}");
    }
    assert!(errors.contains("\"often\""), "{errors}");
}

#[test]
fn missing_configuration_file_is_refused_with_status_2() {
    let output = run(&["--config", "/nowhere/leveret.conf"]);
    assert_status(&output, 2);
    let errors = text(&output.stderr);
    assert!(errors.contains("/nowhere/leveret.conf"), "{errors}");
    assert!(errors.contains("--config"), "{errors}");
}

#[test]
fn port_in_use_is_refused_with_status_1_and_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let file = ConfigFile::new("port-in-use", &format!("listeners.tcp.1 = {address}\n"));
    let output = file.run();
    assert_status(&output, 1);
    let errors = text(&output.stderr);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("leveret: "), "{errors}");
    assert!(errors.contains(&address), "{errors}");
    assert!(errors.contains("in use"), "{errors}");
    let out = text(&output.stdout);
    assert!(!out.contains("ready in"), "{out}");
}

#[test]
fn json_log_is_one_object_a_line() {
    within(seconds(20), async {
        let broker = builder()
            .config("log.console.formatter = json")
            .config("log.console.level = debug")
            .start()
            .expect("a broker");
        // Something to log, with characters that JSON has to escape.
        let (mut connection, channel) = open(&broker).await;
        let queue = "no \"such\" queue\t\u{1F407}";
        let passive = client::QueueOptions {
            passive: true,
            ..Default::default()
        };
        let missing = connection.declare_queue(channel, queue, &passive).await;
        missing.expect_err("there is none");
        let wrong = client::Options {
            user: "no\nbody".into(),
            ..options(&broker)
        };
        let refused = client::Connection::connect(&wrong).await;
        assert!(refused.is_err());
        connection.close().await.expect("close-ok");

        let log = log_of(broker);
        let (banner, lines): (Vec<&str>, Vec<&str>) =
            log.lines().partition(|line| !line.starts_with('{'));
        assert!(
            banner.iter().any(|line| line.starts_with("ready in")),
            "{log}"
        );
        assert!(banner.len() < 10, "lines that are not JSON:\n{log}");
        let entries: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect();
        for entry in &entries {
            for key in ["timestamp", "level", "message", "target"] {
                assert!(entry[key].is_string(), "no {key} in {entry}");
            }
        }
        let levels: BTreeSet<&str> = entries.iter().filter_map(|e| e["level"].as_str()).collect();
        assert!(
            levels.contains("INFO") && levels.contains("DEBUG"),
            "{levels:?}"
        );
    });
}

#[test]
fn warnings_about_the_configuration_do_not_stop_it() {
    let broker = builder()
        .config("cluster_partition_handling = autoheal")
        .start()
        .expect("a broker");
    let log = log_of(broker);
    assert!(log.contains("WARN"), "{log}");
    assert!(log.contains("cluster_partition_handling"), "{log}");
}
