//! Definitions that the configuration names: imported at every start, before anybody can come.

use std::fs;

use crate::definitions::EXPORTED;
use crate::running::*;
use crate::support::durable::Ending;
use crate::support::folder::Folder;
use crate::support::*;

#[test]
fn definitions_are_there_when_the_first_client_comes_and_after_every_start() {
    within(seconds(30), async {
        let folder = Folder::new("load");
        let file = folder.path().join("definitions.json");
        fs::write(&file, EXPORTED).expect("a file");
        let line = format!("load_definitions = {}", file.display());
        let mut broker = builder().config(line).start().expect("a broker");
        let names = ["list_queues", "name", "policy"];
        for ending in Ending::BOTH {
            // guest is one of RabbitMQ's users, with RabbitMQ's hash of the password.
            let mut connection = connect(&broker).await;
            let channel = connection.open_channel().await.expect("a channel");
            look_at(&mut connection, channel, "q1").await;
            connection.close().await.expect("close-ok");
            assert_eq!(rows(&broker, &names), ["q1\tp2", "q2\tp2", "q3\tp2"]);
            done(&broker, &["delete_user", "bob3"]);
            done(&broker, &["add_user", "carol", "pw"]);
            ending.restart(&mut broker);
            // What is in the file comes again; what is not, stays.
            let users = [
                "bob2\t[]",
                "bob3\t[]",
                "carol\t[]",
                "guest\t[administrator]",
            ];
            assert_eq!(rows(&broker, &["list_users"]), users);
            done(&broker, &["delete_user", "carol"]);
        }
    });
}

/// As in RabbitMQ: nobody may log in with a password that is in every manual.
#[test]
fn new_node_with_definitions_has_no_default_user() {
    let folder = Folder::new("no-guest");
    let file = folder.path().join("definitions.json");
    let definitions = r#"{"vhosts":[{"name":"v"}],"users":[{"name":"bob","password":"pw","tags":""}],
        "permissions":[{"user":"bob","vhost":"v","configure":"","write":"","read":""}]}"#;
    fs::write(&file, definitions).expect("a file");
    let line = format!("load_definitions = {}", file.display());
    let broker = builder().config(line).start().expect("a broker");
    assert_eq!(rows(&broker, &["list_users"]), ["bob\t[]"]);
    assert_eq!(rows(&broker, &["list_vhosts"]), ["v"]);
    done(&broker, &["authenticate_user", "bob", "pw"]);
}

#[test]
fn directory_of_definitions_is_imported_in_the_order_of_names() {
    let folder = Folder::new("directory");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("a file");
    };
    write("1-vhosts.json", r#"{"vhosts":[{"name":"v"}]}"#);
    write(
        "2-queues.json",
        r#"{"queues":[{"name":"q","vhost":"v","durable":true}]}"#,
    );
    write(".hidden", "no JSON");
    let broker = builder()
        .config("definitions.import_backend = local_filesystem")
        .config(format!(
            "definitions.local.path = {}",
            folder.path().display()
        ))
        .start()
        .expect("a broker");
    assert_eq!(rows(&broker, &["list_queues", "-p", "v", "name"]), ["q"]);
}

#[test]
fn wrong_definitions_stop_the_start_and_say_where() {
    let folder = Folder::new("wrong");
    let file = folder.path().join("definitions.json");
    let refused = || {
        let line = format!("load_definitions = {}", file.display());
        let log = support_refused(builder().config(line));
        assert!(log.contains(&*file.to_string_lossy()), "{log}");
        log
    };
    assert!(refused().contains("No such file"), "it is missing");
    for (text, said) in [
        ("{", "EOF while parsing"),
        (
            r#"{"queues":[{"name":"x","vhost":"nope"}]}"#,
            "queues, entry 1 'x' in vhost 'nope': Virtual host 'nope' does not exist",
        ),
        (
            r#"{"vhosts":[{"name":"/"}],"policies":[{"name":"p","vhost":"/","pattern":"^q",
                "definition":{"foo":1}}]}"#,
            "policies, entry 1 'p' in vhost '/': Validation failed: [{<<\"foo\">>,1}] are not \
             recognised policy settings",
        ),
    ] {
        fs::write(&file, text).expect("a file");
        let log = refused();
        assert!(log.contains(said), "{log}");
    }
}

fn support_refused(builder: testkit::Builder) -> String {
    crate::support::refused::refused(builder)
}
