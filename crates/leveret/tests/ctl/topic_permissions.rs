//! Topic permissions: set, listed and cleared. They have no effect yet.

use crate::running::*;
use crate::support::*;

const SET: &str =
    "Setting topic permissions on \"amq.topic\" for user \"guest\" in vhost \"/\" ...\n";
const WARNING: &str = "Warning: topic permissions are kept, but have no effect yet\n";

/// What was printed where there is a warning besides.
#[track_caller]
fn warned(broker: &testkit::Broker, arguments: &[&str]) -> String {
    let outcome = ctl(broker, arguments);
    assert_eq!((outcome.status, &*outcome.err), (0, WARNING));
    outcome.out
}

#[test]
fn topic_permissions_are_set_listed_and_cleared() {
    let mut broker = builder().start().expect("a broker");
    let set = ["set_topic_permissions", "guest", "amq.topic", "^w", "^r"];
    assert_eq!(warned(&broker, &set), SET);
    // Of an exchange that is not there, with what RabbitMQ puts names in the place of.
    let other = ["set_topic_permissions", "guest", "x", "", "^{username}-"];
    warned(&broker, &other);
    let all = "Listing topic permissions for vhost \"/\" ...\n\
               user\texchange\twrite\tread\n\
               guest\tamq.topic\t^w\t^r\n\
               guest\tx\t\t^{username}-\n";
    assert_eq!(done(&broker, &["list_topic_permissions"]), all);
    // What was answered is durable.
    broker.crash_and_restart().expect("a broker");
    assert_eq!(done(&broker, &["list_topic_permissions"]), all);
    // As rabbitmqctl does, without the names of columns.
    assert_eq!(
        done(&broker, &["list_user_topic_permissions", "guest"]),
        "Listing topic permissions for user \"guest\" ...\n\
         /\tamq.topic\t^w\t^r\n\
         /\tx\t\t^{username}-\n"
    );
    assert_eq!(
        done(&broker, &["clear_topic_permissions", "guest", "amq.topic"]),
        "Clearing topic permissions on \"amq.topic\" for user \"guest\" in vhost \"/\" ...\n"
    );
    let rest = ["guest\tx\t\t^{username}-"];
    assert_eq!(rows(&broker, &["list_topic_permissions"]), rest);
    assert_eq!(
        done(&broker, &["clear_topic_permissions", "guest"]),
        "Clearing topic permissions for user \"guest\" in vhost \"/\" ...\n"
    );
    assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
    broker.crash_and_restart().expect("a broker");
    assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
}

#[test]
fn wrong_topic_permissions_are_refused() {
    let broker = builder().start().expect("a broker");
    for arguments in [
        &["set_topic_permissions", "bob", "amq.topic", "", ""][..],
        &["clear_topic_permissions", "bob"],
        &["list_user_topic_permissions", "bob"],
    ] {
        let outcome = ctl(&broker, arguments);
        let expected = "Error:\nUser \"bob\" does not exist\n";
        assert_eq!((outcome.status, &*outcome.err), (67, expected));
    }
    let wrong = ["set_topic_permissions", "guest", "amq.topic", "(", ""];
    let outcome = ctl(&broker, &wrong);
    assert_eq!((outcome.status, &*outcome.out), (69, SET));
    let start = "Error:\ninvalid topic permission: ";
    assert!(outcome.err.starts_with(start), "{}", outcome.err);
    assert_eq!(rows(&broker, &["list_topic_permissions"]), [""; 0]);
}
