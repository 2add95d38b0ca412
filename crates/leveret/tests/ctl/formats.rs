//! Formatters, and what is left out on request.

use crate::running::*;
use crate::support::*;

#[test]
fn lists_come_in_every_form() {
    let broker = builder().start().expect("a broker");
    done(&broker, &["add_user", "bob", "pw"]);
    let listed = |options: &[&str]| done(&broker, &[&["list_users"], options].concat());
    let all = "Listing users ...\nuser\ttags\nbob\t[]\nguest\t[administrator]\n";
    assert_eq!(listed(&[]), all);
    assert_eq!(listed(&["--formatter", "table"]), all);
    assert_eq!(
        listed(&["-q"]),
        "user\ttags\nbob\t[]\nguest\t[administrator]\n"
    );
    assert_eq!(listed(&["--silent"]), "bob\t[]\nguest\t[administrator]\n");
    assert_eq!(
        listed(&["--no-table-headers"]),
        "Listing users ...\nbob\t[]\nguest\t[administrator]\n"
    );
    assert_eq!(
        listed(&["--formatter", "csv"]),
        "\"user\",\"tags\"\n\"bob\",\"[]\"\n\"guest\",\"[administrator]\"\n"
    );
    assert_eq!(
        listed(&["--formatter=json"]),
        "[\n{\"user\":\"bob\",\"tags\":[]}\n,{\"user\":\"guest\",\"tags\":[\"administrator\"]}\n]\n"
    );
    let pretty = listed(&["--formatter", "pretty_table"]);
    assert!(pretty.contains("│ bob   │ []              │\n"), "{pretty}");
    let exchanges = done(
        &broker,
        &["list_exchanges", "name", "arguments", "--formatter", "json"],
    );
    let exchanges: serde_json::Value = serde_json::from_str(&exchanges).expect("JSON");
    assert_eq!(exchanges.as_array().map(Vec::len), Some(8));
}

#[test]
fn arguments_are_triples_in_json() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let options = client::QueueOptions {
            arguments: client::FieldTable::new().with("x-max-length", 10),
            ..Default::default()
        };
        connection
            .declare_queue(channel, "q", &options)
            .await
            .expect("it");
        assert_eq!(
            done(
                &broker,
                &["list_queues", "name", "arguments", "--formatter", "json"]
            ),
            "[\n{\"name\":\"q\",\"arguments\":[[\"x-max-length\",\"signedint\",10]]}\n]\n"
        );
    });
}

#[test]
fn names_cannot_break_a_table() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "a\tb\u{7}c").await;
        assert_eq!(rows(&broker, &["list_queues", "name"]), ["a\\tb\\u{7}c"]);
    });
}

#[test]
fn unknown_columns_and_formatters_are_refused() {
    let broker = builder().start().expect("a broker");
    for list in [
        "list_queues",
        "list_exchanges",
        "list_bindings",
        "list_consumers",
        "list_vhosts",
    ] {
        let outcome = ctl(&broker, &[list, "foo", "bar"]);
        assert_eq!((outcome.status, &*outcome.out), (64, ""), "{list}");
        let text = "Error (argument validation): Info key(s) bar,foo are not supported\n";
        assert!(outcome.err.starts_with(text), "{}", outcome.err);
    }
    let outcome = ctl(&broker, &["list_users", "--formatter", "xml"]);
    assert_eq!(outcome.status, 64);
    assert!(outcome.err.contains("'xml'"), "{}", outcome.err);
}
