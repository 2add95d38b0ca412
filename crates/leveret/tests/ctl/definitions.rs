//! Definitions: exported, imported, and back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::running::*;
use crate::support::durable::declare_durable;
use crate::support::folder::Folder;
use crate::support::*;

/// What RabbitMQ 3.10.8 wrote with `rabbitmqctl export_definitions`.
pub const EXPORTED: &str = include_str!("../../../broker/src/admin/definitions/rabbitmq-3.10.json");

#[test]
fn what_one_broker_exports_another_imports() {
    within(seconds(30), async {
        let folder = Folder::new("definitions");
        let file = folder.path().join("definitions.json");
        let path = file.to_str().expect("UTF-8");
        let first = builder().start().expect("a broker");
        let (mut connection, channel) = open(&first).await;
        declare_durable(&mut connection, channel, "q1").await;
        durable::bind(&mut connection, channel, "q1", "amq.topic", "a.#").await;
        connection.close().await.expect("close-ok");
        done(&first, &["add_user", "bob", "pw"]);
        done(&first, &["add_vhost", "v", "--tags", "a,b"]);
        done(
            &first,
            &["set_permissions", "-p", "v", "bob", "^x", "", ".*"],
        );
        done(&first, &["set_policy", "p", "^q", r#"{"max-length":5}"#]);
        done(
            &first,
            &["set_operator_policy", "o", "^q", r#"{"max-length":3}"#],
        );
        assert_eq!(
            done(&first, &["export_definitions", path]),
            format!("Exporting definitions in JSON to a file at \"{path}\" ...\n")
        );
        let mode = fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "password hashes are in it");
        let mut second = builder().start().expect("a broker");
        assert_eq!(
            done(&second, &["import_definitions", path]),
            format!(
                "Importing definitions in JSON from a file at \"{path}\" ...\nSuccessfully \
                 imported 10 definitions.\n"
            )
        );
        let exported = |broker: &_| done(broker, &["export_definitions", "-"]);
        assert_eq!(exported(&second), exported(&first));
        second.crash_and_restart().expect("a broker");
        assert_eq!(exported(&second), exported(&first));
        done(&second, &["authenticate_user", "bob", "pw"]);
        let columns = ["list_queues", "name", "policy", "operator_policy"];
        assert_eq!(rows(&second, &columns), ["q1\tp\to"]);
    });
}

#[test]
fn export_of_rabbitmq_is_imported_from_standard_input() {
    let broker = builder().start().expect("a broker");
    let outcome = ctl_with(&broker, &["import_definitions"], EXPORTED);
    assert_eq!((outcome.status, &*outcome.err), (0, ""), "{}", outcome.out);
    assert!(
        outcome
            .out
            .starts_with("Importing definitions in JSON from standard input ...\n"),
        "{}",
        outcome.out
    );
    let columns = ["list_queues", "name", "type", "policy"];
    assert_eq!(
        rows(&broker, &columns),
        ["q1\tclassic\tp2", "q2\tclassic\tp2", "q3\tquorum\tp2"]
    );
    assert_eq!(rows(&broker, &["list_users"]).len(), 3);
    done(&broker, &["authenticate_user", "bob2", "secret"]);
}

#[test]
fn wrong_definitions_are_refused_as_a_whole() {
    let broker = builder().start().expect("a broker");
    let before = done(&broker, &["export_definitions", "-"]);
    let refused = |text: &str, status, err: &str| {
        let outcome = ctl_with(&broker, &["-q", "import_definitions", "-"], text);
        assert_eq!(outcome.status, status, "{}", outcome.err);
        assert!(outcome.err.starts_with(err), "{}", outcome.err);
        assert_eq!(done(&broker, &["export_definitions", "-"]), before);
    };
    refused(
        r#"{"users":[{"name":5}]"#,
        65,
        "Error:\nFailed to deserialise input (format: JSON) (error: ",
    );
    refused(
        r#"{"vhosts":[{"name":"v"}],"queues":[{"name":"x","vhost":"nope"}]}"#,
        69,
        "Error:\nqueues, entry 1 'x' in vhost 'nope': Virtual host 'nope' does not exist\n",
    );
    let outcome = ctl(&broker, &["import_definitions", "/nowhere/x"]);
    assert_eq!(outcome.status, 65);
    let text = "Error (argument validation): Bad argument: File /nowhere/x does not exist\n";
    assert!(outcome.err.starts_with(text), "{}", outcome.err);
    let outcome = ctl(&broker, &["export_definitions", "/nowhere/x.json"]);
    assert_eq!(outcome.status, 65);
    let text = "Error (argument validation): Bad argument: Directory /nowhere does not exist\n";
    assert!(outcome.err.starts_with(text), "{}", outcome.err);
    let outcome = ctl(&broker, &["export_definitions", "-", "--format", "erlang"]);
    assert_eq!(outcome.status, 64);
}

#[test]
fn what_has_no_effect_yet_is_warned_of() {
    let broker = builder().start().expect("a broker");
    let definitions =
        r#"{"parameters":[{"vhost":"/","component":"shovel","name":"s","value":{}}]}"#;
    let outcome = ctl_with(&broker, &["-q", "import_definitions"], definitions);
    assert_eq!(outcome.status, 0);
    assert_eq!(
        outcome.err,
        "Warning: parameters of component 'shovel' are kept, but have no effect yet\n"
    );
    let exported = done(&broker, &["export_definitions", "-"]);
    let exported: Value = serde_json::from_str(&exported).expect("JSON");
    assert_eq!(exported["parameters"][0]["name"], "s");
}
