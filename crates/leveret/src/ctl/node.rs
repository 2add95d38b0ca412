//! Commands about the node.

use std::fmt::Write as _;

use serde_json::Value;

use super::client::Client;
use super::command::{Call, Command, Failed};
use super::output::print;
use crate::control::protocol::Request;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "ping",
        usage: "",
        summary: "Checks that the server answers",
        positional: 0..=0,
        options: &[],
        run: ping,
    },
    Command {
        name: "status",
        usage: "",
        summary: "Displays status of a node",
        positional: 0..=0,
        options: &[],
        run: status,
    },
    Command {
        name: "stop",
        usage: "",
        summary: "Stops the server in good order, and waits until it has ended",
        positional: 0..=0,
        options: &[],
        run: stop,
    },
    Command {
        name: "version",
        usage: "",
        summary: "Displays the version of this program",
        positional: 0..=0,
        options: &[],
        run: |_| print(concat!(env!("CARGO_PKG_VERSION"), "\n")),
    },
];

/// What the server calls itself; the option is only shown.
fn node_of(status: &Value) -> &str {
    text(status, "node")
}

fn ping(call: &Call) -> Result<(), Failed> {
    let mut client = Client::connect(&call.arguments)?;
    let status = client.ask(&Request::Status)?;
    let node = node_of(&status);
    call.output.say(&format!("Will ping {node}."))?;
    client.ask(&Request::Ping)?;
    call.output.say("Ping succeeded")
}

fn stop(call: &Call) -> Result<(), Failed> {
    let mut client = Client::connect(&call.arguments)?;
    let status = client.ask(&Request::Status)?;
    let node = node_of(&status);
    call.output
        .say(&format!("Stopping and halting node {node} ..."))?;
    client.ask(&Request::Stop)?;
    client.wait_for_end()
}

fn status(call: &Call) -> Result<(), Failed> {
    let status = call.ask(&Request::Status)?;
    if call.output.is_json() {
        return print(&format!("{status}\n"));
    }
    let node = node_of(&status);
    call.output.say(&format!("Status of node {node} ..."))?;
    print(&described(&status))
}

/// In the sections of rabbitmqctl.
fn described(status: &Value) -> String {
    let mut page = String::new();
    runtime(&mut page, status);
    section(&mut page, "Data directory", |page| {
        let _ = writeln!(
            page,
            "Node data directory: {}",
            text(status, "data_directory")
        );
    });
    section(&mut page, "Config files", |page| {
        bullets(page, items(status, "config_files"));
    });
    section(&mut page, "Alarms", |page| {
        bullets(page, items(status, "alarms"))
    });
    section(&mut page, "Memory", |page| {
        let _ = writeln!(page, "Total memory used: {}", size(&status["memory_used"]));
        let limit = size(&status["vm_memory_high_watermark_limit"]);
        let _ = writeln!(page, "Memory high watermark setting: computed to: {limit}");
    });
    section(&mut page, "Free Disk Space", |page| {
        let limit = size(&status["disk_free_limit"]);
        let _ = writeln!(page, "Low free disk space watermark: {limit}");
        let _ = writeln!(page, "Free disk space: {}", size(&status["disk_free"]));
    });
    section(&mut page, "Totals", |page| {
        let totals = &status["totals"];
        let _ = writeln!(page, "Connection count: {}", totals["connections"]);
        let _ = writeln!(page, "Queue count: {}", totals["queues"]);
        let _ = writeln!(page, "Virtual host count: {}", totals["virtual_hosts"]);
    });
    section(&mut page, "Listeners", |page| {
        for listener in items(status, "listeners") {
            let interface = text(listener, "interface");
            let interface = match interface.contains(':') {
                true => format!("[{interface}]"),
                false => interface.to_owned(),
            };
            let _ = writeln!(
                page,
                "Interface: {interface}, port: {}, protocol: {}, purpose: {}",
                listener["port"],
                text(listener, "protocol"),
                text(listener, "purpose")
            );
        }
    });
    page
}

fn runtime(page: &mut String, status: &Value) {
    section(page, "Runtime", |page| {
        let _ = writeln!(page, "OS PID: {}", status["pid"]);
        let _ = writeln!(page, "OS: {}", text(status, "os"));
        let _ = writeln!(page, "Uptime (seconds): {}", status["uptime"]);
        let _ = writeln!(page, "Leveret version: {}", text(status, "leveret_version"));
        let followed = text(status, "rabbitmq_version");
        let _ = writeln!(page, "RabbitMQ version that is followed: {followed}");
        let _ = writeln!(page, "Node name: {}", node_of(status));
    });
}

// Writing to a string cannot fail, here and above.
fn section(page: &mut String, title: &str, lines: impl FnOnce(&mut String)) {
    let before = if page.is_empty() { "" } else { "\n" };
    let _ = writeln!(page, "{before}{title}\n");
    lines(page);
}

fn bullets(page: &mut String, items: &[Value]) {
    if items.is_empty() {
        page.push_str("(none)\n");
    }
    for item in items.iter().filter_map(Value::as_str) {
        let _ = writeln!(page, " * {item}");
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// In gigabytes, as rabbitmqctl says it.
fn size(bytes: &Value) -> String {
    match bytes.as_f64() {
        Some(bytes) => format!("{:.4} gb", bytes / 1e9),
        None => "unknown".to_owned(),
    }
}
