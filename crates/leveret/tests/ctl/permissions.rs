//! Permissions: set, listed, cleared, and obeyed.

use crate::running::*;
use crate::support::*;

#[test]
fn permissions_are_set_listed_and_cleared() {
    let broker = builder().start().expect("a broker");
    done(&broker, &["add_user", "bob", "pw"]);
    done(&broker, &["add_vhost", "v1"]);
    assert_eq!(
        done(&broker, &["set_permissions", "bob", ".*", "^x", ""]),
        "Setting permissions for user \"bob\" in vhost \"/\" ...\n"
    );
    done(
        &broker,
        &["set_permissions", "-p", "v1", "bob", ".*", "^x", ""],
    );
    assert_eq!(
        done(&broker, &["list_permissions"]),
        "Listing permissions for vhost \"/\" ...\n\
         user\tconfigure\twrite\tread\n\
         bob\t.*\t^x\t\n\
         guest\t.*\t.*\t.*\n"
    );
    assert_eq!(
        done(&broker, &["list_user_permissions", "bob"]),
        "Listing permissions for user \"bob\" ...\n\
         vhost\tconfigure\twrite\tread\n\
         /\t.*\t^x\t\n\
         v1\t.*\t^x\t\n"
    );
    assert_eq!(
        done(&broker, &["clear_permissions", "bob"]),
        "Clearing permissions for user \"bob\" in vhost \"/\" ...\n"
    );
    assert_eq!(rows(&broker, &["list_permissions"]), ["guest\t.*\t.*\t.*"]);
    // Perl's look-ahead, as in RabbitMQ.
    done(&broker, &["set_permissions", "bob", "^(?!amq\\.)", "", ""]);
    let rest = ["bob\t^(?!amq\\.)\t\t", "guest\t.*\t.*\t.*"];
    assert_eq!(rows(&broker, &["list_permissions"]), rest);
    let outcome = ctl(&broker, &["-q", "set_permissions", "bob", "(", "^x", ""]);
    assert_eq!(outcome.status, 69);
    assert!(outcome.err.starts_with("Error:\n"), "{}", outcome.err);
}

/// RabbitMQ says 65 here and 69 there.
#[test]
fn vhosts_that_are_not_there_are_refused_with_status_65() {
    let broker = builder().start().expect("a broker");
    for arguments in [
        &["list_permissions"][..],
        &["set_permissions", "guest", "", "", ""],
        &["clear_permissions", "guest"],
        &["set_topic_permissions", "guest", "amq.topic", "", ""],
        &["clear_topic_permissions", "guest"],
        &["list_topic_permissions"],
        &["set_parameter", "shovel", "s", "{}"],
        &["list_parameters"],
        &["list_queues"],
        &["list_policies"],
        &["purge_queue", "q"],
        &["delete_queue", "q"],
    ] {
        let mut all = vec!["-q", "-p", "nope"];
        all.extend(arguments);
        let outcome = ctl(&broker, &all);
        assert_eq!(
            (outcome.status, &*outcome.err),
            (65, "Virtual host 'nope' does not exist\n"),
            "{arguments:?}"
        );
    }
}

#[test]
fn new_user_may_do_what_was_permitted_and_nothing_else() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        done(&broker, &["add_user", "bob", "pw"]);
        let bob = client::Options {
            user: "bob".into(),
            password: "pw".into(),
            ..options(&broker)
        };
        let outside = client::Connection::connect(&bob).await;
        assert!(outside.is_err(), "no access to the vhost yet");
        done(&broker, &["set_permissions", "bob", "^own-", "", ""]);
        let mut connection = connect_with(&bob).await;
        let channel = connection.open_channel().await.expect("a channel");
        declare(&mut connection, channel, "own-queue").await;
        let plain = client::QueueOptions::default();
        let other = connection.declare_queue(channel, "queue", &plain).await;
        match other {
            Err(client::Error::ChannelClosed { code, .. }) => assert_eq!(code, 403),
            other => panic!("403 expected, got {other:?}"),
        }
        connection.close().await.expect("close-ok");
    });
}
