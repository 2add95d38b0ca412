//! The node: status, ping and stop.

use serde_json::Value;

use crate::running::*;
use crate::support::folder::Folder;
use crate::support::*;

#[test]
fn status_tells_what_the_node_is_and_has() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "q").await;
        let status = done(&broker, &["status"]);
        assert!(status.starts_with("Status of node rabbit@"), "{status}");
        for line in [
            format!("OS PID: {}", broker.pid()),
            format!("Node data directory: {}", broker.data_dir().display()),
            "Connection count: 1".to_owned(),
            "Queue count: 1".to_owned(),
            "Virtual host count: 1".to_owned(),
            "(none)".to_owned(),
        ] {
            assert!(
                status.lines().any(|other| other == line),
                "{line}: {status}"
            );
        }
        let port = broker.uri().rsplit(':').next().expect("a port").to_owned();
        assert!(
            status.contains(&format!("port: {port}, protocol: amqp")),
            "{status}"
        );
        let json = done(&broker, &["status", "--formatter", "json"]);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["totals"]["connections"], 1);
        assert_eq!(json["pid"], broker.pid());
    });
}

#[test]
fn alarms_are_in_the_status() {
    let broker = builder()
        .config("vm_memory_high_watermark.absolute = 1MB")
        .start()
        .expect("a broker");
    within(seconds(10), async {
        eventually("an alarm", seconds(5), async || {
            done(&broker, &["status"]).contains(" * low on memory\n")
        })
        .await;
    });
}

#[test]
fn ping_succeeds_while_the_server_runs() {
    let broker = builder().start().expect("a broker");
    let said = done(&broker, &["ping"]);
    assert!(said.starts_with("Will ping rabbit@"), "{said}");
    assert!(said.ends_with("Ping succeeded\n"), "{said}");
    assert_eq!(done(&broker, &["-q", "ping"]), "");
}

#[test]
fn stop_returns_when_the_directory_is_free() {
    let folder = Folder::new("stop");
    let at_folder = || builder().data_dir(folder.path());
    for _ in 0..3 {
        let mut broker = at_folder().start().expect("a broker");
        let said = done(&broker, &["stop"]);
        assert!(
            said.starts_with("Stopping and halting node rabbit@"),
            "{said}"
        );
        // At once: nobody else has it.
        at_folder().start().expect("a broker").stop().expect("0");
        let status = broker.wait(seconds(5)).expect("it has ended");
        assert!(status.success(), "{}", broker.log());
    }
}
