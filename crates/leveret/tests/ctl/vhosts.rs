//! Vhosts: added, listed and deleted; the default queue type.

use client::{FieldTable, QueueOptions};

use crate::running::*;
use crate::support::durable::{self, ask, declare_durable};
use crate::support::*;

#[test]
fn vhosts_are_added_and_listed() {
    let broker = builder().start().expect("a broker");
    let described = [
        "add_vhost",
        "v1",
        "--description",
        "My vhost",
        "--tags",
        "a,b",
        "--default-queue-type",
        "quorum",
    ];
    assert_eq!(done(&broker, &described), "Adding vhost \"v1\" ...\n");
    // As it is, it stays.
    assert_eq!(
        done(&broker, &["add_vhost", "v1"]),
        "Adding vhost \"v1\" ...\n"
    );
    assert_eq!(
        done(&broker, &["list_vhosts"]),
        "Listing vhosts ...\nname\n/\nv1\n"
    );
    let columns = [
        "list_vhosts",
        "name",
        "tracing",
        "description",
        "tags",
        "default_queue_type",
    ];
    assert_eq!(
        rows(&broker, &columns),
        [
            "/\tfalse\tDefault virtual host\t[]\tundefined",
            "v1\tfalse\tMy vhost\t[a, b]\tquorum",
        ]
    );
    refused(
        &broker,
        &["add_vhost", "v2", "--default-queue-type", "foo"],
        69,
        "Adding vhost \"v2\" ...\n",
        "Error:\ninvalid_queue_type\n",
    );
    assert_eq!(
        done(&broker, &["delete_vhost", "v1"]),
        "Deleting vhost \"v1\" ...\n"
    );
    refused(
        &broker,
        &["delete_vhost", "v1"],
        65,
        "Deleting vhost \"v1\" ...\n",
        "Virtual host 'v1' does not exist\n",
    );
    assert_eq!(rows(&broker, &["list_vhosts"]), ["/"]);
}

fn in_vhost(broker: &testkit::Broker, vhost: &str) -> client::Options {
    client::Options {
        vhost: vhost.into(),
        ..options(broker)
    }
}

#[test]
fn deleted_vhost_goes_with_all_that_is_in_it() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        done(&broker, &["add_vhost", "v"]);
        done(
            &broker,
            &["set_permissions", "-p", "v", "guest", ".*", ".*", ".*"],
        );
        done(
            &broker,
            &["set_policy", "-p", "v", "p", "^q", r#"{"max-length":5}"#],
        );
        let mut connection = connect_with(&in_vhost(&broker, "v")).await;
        let channel = connection.open_channel().await.expect("a channel");
        declare_durable(&mut connection, channel, "q").await;
        assert_eq!(
            rows(&broker, &["list_queues", "-p", "v", "name", "policy"]),
            ["q\tp"]
        );
        done(&broker, &["delete_vhost", "v"]);
        match connection.next().await {
            Err(client::Error::ConnectionClosed { code, text, .. }) => {
                assert_eq!(
                    (code, &*text),
                    (320, "CONNECTION_FORCED - vhost 'v' is deleted")
                );
            }
            other => panic!("connection.close expected, got {other:?}"),
        }
        done(&broker, &["add_vhost", "v"]);
        broker.crash_and_restart().expect("a broker");
        for list in [
            "list_queues",
            "list_policies",
            "list_permissions",
            "list_bindings",
        ] {
            assert_eq!(rows(&broker, &[list, "-p", "v"]), [""; 0], "{list}");
        }
        assert_healthy(&broker).await;
    });
}

#[test]
fn default_queue_type_is_that_of_queues_declared_without() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        done(
            &broker,
            &["add_vhost", "v", "--default-queue-type", "quorum"],
        );
        done(
            &broker,
            &["set_permissions", "-p", "v", "guest", ".*", ".*", ".*"],
        );
        for round in 0..2 {
            let mut connection = connect_with(&in_vhost(&broker, "v")).await;
            let channel = connection.open_channel().await.expect("a channel");
            declare_durable(&mut connection, channel, "q").await;
            let explicit = QueueOptions {
                arguments: FieldTable::new().with("x-queue-type", "quorum"),
                ..QueueOptions::durable()
            };
            let same = connection.declare_queue(channel, "q", &explicit).await;
            same.expect("the same queue");
            declare(&mut connection, channel, "transient").await;
            connection.close().await.expect("close-ok");
            assert_eq!(
                rows(
                    &broker,
                    &["list_queues", "-p", "v", "name", "type", "arguments"]
                ),
                [
                    "q\tquorum\t[{\"x-queue-type\",\"quorum\"}]",
                    "transient\tclassic\t[]",
                ],
                "{round}"
            );
            broker.restart().expect("a broker");
        }
        let elsewhere = ask(&broker, async |connection, channel| {
            connection
                .declare_queue(channel, "q", &QueueOptions::durable())
                .await
        });
        elsewhere.await.expect("a queue");
        assert_eq!(
            rows(&broker, &["list_queues", "name", "type"]),
            ["q\tclassic"]
        );
    });
}

#[test]
fn a_vhost_is_traced_until_it_is_told_otherwise() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "traces").await;
        durable::bind(
            &mut connection,
            channel,
            "traces",
            "amq.rabbitmq.trace",
            "#",
        )
        .await;
        for (command, said, shown, copies) in [
            ("trace_on", "Starting", "true", 1),
            ("trace_off", "Stopping", "false", 1),
        ] {
            let done = done(&broker, &[command]);
            let banner = format!("{said} tracing for vhost \"/\" ...\nTrace ");
            assert!(done.starts_with(&banner), "{done}");
            let listed = rows(&broker, &["list_vhosts", "name", "tracing"]);
            assert_eq!(listed, [format!("/\t{shown}")]);
            publish(&mut connection, channel, "nowhere", b"x");
            let traces = look_at(&mut connection, channel, "traces").await;
            assert_eq!(traces.messages, copies);
        }
        let refused = ctl(&broker, &["trace_on", "-p", "missing"]);
        assert_eq!(refused.status, 65, "{}", refused.err);
    });
}
