//! Policies: set, refused, listed, cleared, and at work on queues that are there.

use crate::running::*;
use amqp::FieldTable;

use crate::support::durable::{ask, declare_durable};
use crate::support::rules::declare_with;
use crate::support::*;

#[test]
fn policies_are_set_listed_and_cleared() {
    let broker = builder().start().expect("a broker");
    assert_eq!(
        done(&broker, &["set_policy", "p1", "^q", r#"{"max-length":5}"#]),
        "Setting policy \"p1\" for pattern \"^q\" to \"{\"max-length\":5}\" with priority \"0\" \
         for vhost \"/\" ...\n"
    );
    let second = [
        "set_policy",
        "--apply-to",
        "queues",
        "--priority",
        "3",
        "p2",
        "^q",
        r#"{"max-length":7,"dead-letter-exchange":"dlx"}"#,
    ];
    done(&broker, &second);
    assert_eq!(
        done(&broker, &["list_policies"]),
        "Listing policies for vhost \"/\" ...\n\
         vhost\tname\tpattern\tapply-to\tdefinition\tpriority\n\
         /\tp1\t^q\tall\t{\"max-length\":5}\t0\n\
         /\tp2\t^q\tqueues\t{\"dead-letter-exchange\":\"dlx\",\"max-length\":7}\t3\n"
    );
    assert_eq!(
        done(&broker, &["list_policies", "--formatter", "json"]),
        r#"[
{"vhost":"/","name":"p1","pattern":"^q","apply-to":"all","definition":"{\"max-length\":5}","priority":0}
,{"vhost":"/","name":"p2","pattern":"^q","apply-to":"queues","definition":"{\"dead-letter-exchange\":\"dlx\",\"max-length\":7}","priority":3}
]
"#
    );
    assert_eq!(
        done(&broker, &["clear_policy", "p1"]),
        "Clearing policy \"p1\" on vhost \"/\" ...\n"
    );
    refused(
        &broker,
        &["clear_policy", "p1"],
        69,
        "Clearing policy \"p1\" on vhost \"/\" ...\n",
        "Error:\nParameter does not exist\n",
    );
    assert_eq!(rows(&broker, &["list_policies"]).len(), 1);
}

#[test]
fn operator_policies_are_set_listed_and_cleared() {
    let broker = builder().start().expect("a broker");
    let definition = r#"{"max-length":5}"#;
    assert_eq!(
        done(&broker, &["set_operator_policy", "o1", "^q", definition]),
        "Setting operator policy override \"o1\" for pattern \"^q\" to \"{\"max-length\":5}\" \
         with priority \"0\" for vhost \"/\" ...\n"
    );
    assert_eq!(
        done(&broker, &["list_operator_policies"]),
        "Listing operator policy overrides for vhost \"/\" ...\n\
         vhost\tname\tpattern\tapply-to\tdefinition\tpriority\n\
         /\to1\t^q\tall\t{\"max-length\":5}\t0\n"
    );
    assert_eq!(rows(&broker, &["list_policies"]), [""; 0]);
    let outcome = ctl(
        &broker,
        &[
            "-q",
            "set_operator_policy",
            "o2",
            "^q",
            r#"{"dead-letter-exchange":"x"}"#,
        ],
    );
    assert_eq!(
        (outcome.status, &*outcome.err),
        (
            69,
            "Error:\nValidation failed\n\n[{<<\"dead-letter-exchange\">>,<<\"x\">>}] are not \
             recognised policy settings\n\n"
        )
    );
    assert_eq!(
        done(&broker, &["clear_operator_policy", "o1"]),
        "Clearing operator policy \"o1\" on vhost \"/\" ...\n"
    );
}

#[test]
fn wrong_policies_are_refused_in_rabbitmqs_words() {
    let broker = builder().start().expect("a broker");
    let refused = |definition: &str, text: &str| {
        let outcome = ctl(&broker, &["-q", "set_policy", "bad", "^q", definition]);
        let expected = format!("Error:\nValidation failed\n\n{text}\n\n");
        assert_eq!(
            (outcome.status, outcome.err),
            (69, expected),
            "{definition}"
        );
    };
    refused(
        r#"{"foo":5}"#,
        r#"[{<<"foo">>,5}] are not recognised policy settings"#,
    );
    refused(r#"{"max-length":-5}"#, "-5 is not a valid maximum length");
    refused("{}", "no policy provided");
    // RabbitMQ shows a stack trace.
    refused("5", "definition should be a JSON object");
    let wrong = |arguments: &[&str], status, text: &str| {
        let mut all = vec!["-q", "set_policy"];
        all.extend(arguments);
        let outcome = ctl(&broker, &all);
        assert_eq!(outcome.status, status, "{arguments:?}");
        assert!(outcome.err.starts_with(text), "{}", outcome.err);
    };
    let definition = r#"{"max-length":5}"#;
    // RabbitMQ's reason is always "badarg", which does not say where to look.
    let unfinished = [r#"bad"#, "^q", r#"{"max-length""#];
    wrong(&unfinished, 69, "Error:\nJSON decoding error. Reason: ");
    wrong(
        &["bad", "(", definition],
        69,
        "Error:\nValidation failed\n\npattern should be regular expression but is invalid: ",
    );
    wrong(
        &["--apply-to", "nothing", "bad", "^q", definition],
        69,
        "Error:\nValidation failed\n\napply-to 'nothing' unrecognised; should be one of: ",
    );
    wrong(
        &["-p", "nope", "bad", "^q", definition],
        65,
        "Virtual host 'nope' does not exist\n",
    );
    wrong(
        &["--priority", "x", "bad", "^q", definition],
        64,
        "Error (argument validation): Invalid options for this command:\n--priority : x\n",
    );
    assert_eq!(rows(&broker, &["list_policies"]), [""; 0]);
}

#[test]
fn policies_apply_to_queues_as_soon_as_they_are_set() {
    within(seconds(30), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "q1").await;
        declare_durable(&mut connection, channel, "other").await;
        let columns = ["list_queues", "name", "policy", "operator_policy"];
        assert_eq!(rows(&broker, &columns), ["other\t\t", "q1\t\t"]);
        done(&broker, &["set_policy", "low", "^q", r#"{"max-length":5}"#]);
        assert_eq!(rows(&broker, &columns), ["other\t\t", "q1\tlow\t"]);
        let high = [
            "set_policy",
            "--priority",
            "1",
            "high",
            "^q",
            r#"{"max-length":9}"#,
        ];
        done(&broker, &high);
        done(
            &broker,
            &["set_operator_policy", "limit", ".*", r#"{"max-length":3}"#],
        );
        assert_eq!(
            rows(&broker, &columns),
            ["other\t\tlimit", "q1\thigh\tlimit"]
        );
        declare_durable(&mut connection, channel, "q2").await;
        connection.close().await.expect("close-ok");
        let effective = ["list_queues", "name", "effective_policy_definition"];
        let expected = [
            "other\t[{\"max-length\",3}]",
            "q1\t[{\"max-length\",3}]",
            "q2\t[{\"max-length\",3}]",
        ];
        assert_eq!(rows(&broker, &effective), expected);
        // What was answered is durable.
        broker.crash_and_restart().expect("a broker");
        assert_eq!(rows(&broker, &effective), expected);
        done(&broker, &["clear_operator_policy", "limit"]);
        assert_eq!(
            rows(&broker, &columns),
            ["other\t\t", "q1\thigh\t", "q2\thigh\t"]
        );
    });
}

#[test]
fn alternate_exchange_of_a_policy_takes_what_matches_no_binding() {
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "q").await;
        let options = routes::durable_exchange();
        routes::declare_exchange(&mut connection, channel, "x", "direct", &options).await;
        durable::bind(&mut connection, channel, "q", "amq.fanout", "").await;
        connection.close().await.expect("close-ok");
        let reached = async || routes::reached(&broker, "x", "k", routes::none(), &["q"]).await;
        assert_eq!(reached().await, [""; 0]);
        let definition = r#"{"alternate-exchange":"amq.fanout"}"#;
        done(&broker, &["set_policy", "ae", "^x$", definition]);
        assert_eq!(reached().await, ["q"]);
        let list = ["list_exchanges", "name", "policy"];
        assert!(rows(&broker, &list).contains(&"x\tae".to_owned()));
        done(&broker, &["clear_policy", "ae"]);
        assert_eq!(reached().await, [""; 0]);
        // Nothing of this is among the exchange's arguments.
        let again = ask(&broker, async |connection, channel| {
            connection
                .declare_exchange(channel, "x", "direct", &routes::durable_exchange())
                .await
        });
        assert_eq!(again.await, Ok(()));
    });
}

/// Nobody has to publish for that.
#[test]
fn policy_shortens_a_stream_that_is_at_rest() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let stream = FieldTable::new().with("x-queue-type", "stream");
        declare_with(&mut connection, channel, "log", stream).await;
        for number in 0..1_000 {
            publish(&mut connection, channel, "log", &numbered(number, 100));
        }
        synchronize(&mut connection, channel).await;
        let count = look_at(&mut connection, channel, "log").await.messages;
        assert_eq!(count, 1_000);
        done(
            &broker,
            &["set_policy", "p", "log", r#"{"max-length-bytes":20000}"#],
        );
        eventually("it is short", seconds(5), async || {
            look_at(&mut connection, channel, "log").await.messages < 300
        })
        .await;
    });
}
