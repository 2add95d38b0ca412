//! Which policy applies to what, what it may set, and what an operator's makes of it.

use amqp::FieldValue;
use proptest::prelude::*;

use super::*;

fn table(json: &str) -> FieldTable {
    let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
    crate::json::table_from(value.as_object().expect("an object")).expect("a table")
}

fn check(authority: Authority, json: &str) -> Result<(), String> {
    Policy::new(authority, "p", "^q", "all", 0, table(json)).map(drop)
}

fn policy(name: &str, pattern: &str, apply_to: &str, priority: i64, json: &str) -> Arc<Policy> {
    let policy = Policy::new(
        Authority::User,
        name,
        pattern,
        apply_to,
        priority,
        table(json),
    );
    Arc::new(policy.expect("a policy"))
}

/// The texts are those that rabbitmqctl 3.10.8 prints, but for `apply-to`, which is 3.13's.
#[test]
fn wrong_definitions_are_refused_in_rabbitmqs_words() {
    let wrong = [
        (r#"{}"#, "no policy provided"),
        (
            r#"{"foo":5}"#,
            r#"[{<<"foo">>,5}] are not recognised policy settings"#,
        ),
        (
            r#"{"foo":5,"bar":"x","max-length":1}"#,
            r#"[{<<"bar">>,<<"x">>},{<<"foo">>,5}] are not recognised policy settings"#,
        ),
        (r#"{"max-length":-5}"#, "-5 is not a valid maximum length"),
        (
            r#"{"max-length":"x"}"#,
            r#"<<"x">> is not a valid maximum length"#,
        ),
        (
            r#"{"max-length-bytes":1.5}"#,
            "1.5 is not a valid maximum length in bytes",
        ),
        (
            r#"{"overflow":"x"}"#,
            r#"<<"x">> is not a valid overflow value"#,
        ),
        (r#"{"message-ttl":-1}"#, "-1 is not a valid message TTL"),
        (r#"{"expires":0}"#, "0 is not a valid queue expiry"),
        (
            r#"{"queue-mode":"x"}"#,
            r#"<<"x">> is not a valid queue-mode value"#,
        ),
        (
            r#"{"queue-version":3}"#,
            "3 is not a valid queue-version value",
        ),
        (
            r#"{"dead-letter-exchange":5}"#,
            "5 is not a valid dead letter exchange name",
        ),
        (
            r#"{"dead-letter-routing-key":5}"#,
            "5 is not a valid dead letter routing key",
        ),
        (
            r#"{"dead-letter-strategy":"x"}"#,
            r#"<<"x">> is not a valid dead letter strategy"#,
        ),
        (
            r#"{"alternate-exchange":5}"#,
            "5 is not a valid alternate exchange name",
        ),
        (
            r#"{"delivery-limit":-5}"#,
            "-5 is not a valid delivery limit",
        ),
        (r#"{"max-age":"x"}"#, r#"<<"x">> is not a valid max age"#),
        (
            r#"{"ha-mode":"x"}"#,
            r#"<<"x">> is not a valid ha-mode value"#,
        ),
        (
            r#"{"ha-sync-mode":"automatic"}"#,
            "ha-mode must be specified to specify ha-params, ha-sync-mode or \
             ha-promote-on-shutdown",
        ),
        (
            r#"{"queue-master-locator":"x"}"#,
            r#"<<"x">> invalid queue-master-locator value"#,
        ),
        (
            r#"{"queue-leader-locator":"x"}"#,
            r#"<<"x">> is not a valid queue leader locator value"#,
        ),
        (
            r#"{"stream-max-segment-size-bytes":-3}"#,
            "-3 is not a valid segment size",
        ),
        (
            r#"{"shards-per-node":-3}"#,
            "shards-per-node should be greater than 0, actually was -3",
        ),
        (
            r#"{"shards-per-node":"x"}"#,
            r#"shards-per-node should be a number, actually was <<"x">>"#,
        ),
    ];
    for (definition, text) in wrong {
        assert_eq!(
            check(Authority::User, definition),
            Err(text.to_owned()),
            "{definition}"
        );
    }
}

#[test]
fn every_key_of_rabbitmq_is_taken() {
    let all = r#"{"alternate-exchange":"x","expires":1,"message-ttl":0,"max-length":0,
        "max-length-bytes":0,"max-in-memory-length":1,"max-in-memory-bytes":1,
        "overflow":"reject-publish-dlx","dead-letter-exchange":"x","dead-letter-routing-key":"k",
        "dead-letter-strategy":"at-least-once","delivery-limit":3,"consumer-timeout":1000,
        "max-age":"7D","stream-max-segment-size-bytes":1,"queue-mode":"lazy","queue-version":2,
        "queue-master-locator":"min-masters","queue-leader-locator":"balanced",
        "target-group-size":3,"ha-mode":"exactly","ha-params":2,"ha-sync-mode":"automatic",
        "ha-promote-on-shutdown":"always","federation-upstream-set":"all","shards-per-node":2,
        "routing-key":"k"}"#;
    assert_eq!(check(Authority::User, all), Ok(()));
}

#[test]
fn operators_set_limits_only() {
    let limits = r#"{"expires":1,"message-ttl":0,"max-length":0,"max-length-bytes":0,
        "max-in-memory-length":1,"max-in-memory-bytes":1,"delivery-limit":3,"overflow":"drop-head",
        "queue-version":2,"target-group-size":3}"#;
    assert_eq!(check(Authority::Operator, limits), Ok(()));
    let text = r#"[{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings"#;
    let other = check(Authority::Operator, r#"{"dead-letter-exchange":"x"}"#);
    assert_eq!(other, Err(text.to_owned()));
}

#[test]
fn wrong_patterns_and_targets_are_refused() {
    let with = |pattern, apply_to| {
        let definition = table(r#"{"max-length":1}"#);
        Policy::new(Authority::User, "p", pattern, apply_to, 0, definition).map(drop)
    };
    let text = with("(", "all").expect_err("no pattern");
    let beginning = "pattern should be regular expression but is invalid: ";
    assert!(text.starts_with(beginning), "{text}");
    assert_eq!(
        with("^q", "nothing"),
        Err(
            "apply-to 'nothing' unrecognised; should be one of: 'queues', 'classic_queues', \
             'quorum_queues', 'streams', 'exchanges', or 'all'"
                .to_owned()
        )
    );
}

#[test]
fn apply_to_tells_types_apart() {
    let all = [
        Target::Exchange,
        Target::ClassicQueue,
        Target::QuorumQueue,
        Target::Stream,
    ];
    let for_whom = |apply_to: &str| {
        let policy = policy(
            "p",
            "^q",
            apply_to,
            0,
            r#"{"queue-leader-locator":"balanced"}"#,
        );
        all.map(|target| policy.is_for(target, "q1"))
    };
    assert_eq!(for_whom("all"), [true, true, true, true]);
    assert_eq!(for_whom("queues"), [false, true, true, true]);
    assert_eq!(for_whom("classic_queues"), [false, true, false, false]);
    assert_eq!(for_whom("quorum_queues"), [false, false, true, false]);
    assert_eq!(for_whom("streams"), [false, false, false, true]);
    assert_eq!(for_whom("exchanges"), [true, false, false, false]);
}

#[test]
fn policy_with_a_key_of_another_type_is_for_no_such_queue() {
    let limit = policy(
        "p",
        "^q",
        "queues",
        0,
        r#"{"delivery-limit":3,"max-length":1}"#,
    );
    assert!(limit.is_for(Target::QuorumQueue, "q"));
    assert!(!limit.is_for(Target::ClassicQueue, "q"));
    assert!(!limit.is_for(Target::Stream, "q"));
}

#[test]
fn highest_priority_applies_alone_then_the_first_name() {
    let mut policies = Policies::default();
    for (name, pattern, priority) in [
        ("b", "^q", 1),
        ("a", "^q", 1),
        ("z", "^x", 9),
        ("c", "^q", 0),
    ] {
        let policy = policy(name, pattern, "all", priority, r#"{"max-length":1}"#);
        policies.set(Authority::User, policy);
    }
    let applied = |policies: &Policies, name| {
        let applied = policies.applied(Target::ClassicQueue, name);
        applied.policy.map(|policy| policy.name.to_string())
    };
    assert_eq!(applied(&policies, "q").as_deref(), Some("a"));
    assert_eq!(applied(&policies, "x").as_deref(), Some("z"));
    assert_eq!(applied(&policies, "other"), None);
    assert!(policies.clear(Authority::User, "a") && !policies.clear(Authority::User, "a"));
    assert_eq!(applied(&policies, "q").as_deref(), Some("b"));
}

#[test]
fn of_limits_the_lower_one_holds_of_the_rest_the_operators() {
    let applied = Applied {
        policy: Some(policy(
            "p",
            "^q",
            "queues",
            0,
            r#"{"max-length":10,"message-ttl":5,"overflow":"drop-head","dead-letter-exchange":"x"}"#,
        )),
        operator: Some(policy(
            "o",
            "^q",
            "queues",
            0,
            r#"{"max-length":7,"message-ttl":9,"overflow":"reject-publish","expires":1000}"#,
        )),
    };
    let expected = table(
        r#"{"dead-letter-exchange":"x","expires":1000,"max-length":7,"message-ttl":5,
            "overflow":"reject-publish"}"#,
    );
    assert_eq!(applied.definition(), expected);
    for (key, value) in expected.iter() {
        assert_eq!(applied.get(key), Some(value), "{key}");
    }
    assert_eq!(applied.get("max-length-bytes"), None);
}

#[test]
fn argument_comes_before_a_policy_unless_it_is_a_higher_limit() {
    let settings = r#"{"max-length":10,"dead-letter-exchange":"of the policy"}"#;
    let applied = Applied {
        policy: Some(policy("p", "^q", "queues", 0, settings)),
        operator: None,
    };
    let number = |arguments: &FieldTable| applied.get_with("max-length", arguments).cloned();
    let of = |length: i64| FieldTable::new().with("x-max-length", length);
    assert_eq!(number(&of(20)), Some(FieldValue::I64(10)));
    assert_eq!(number(&of(5)), Some(FieldValue::I64(5)));
    assert_eq!(number(&FieldTable::new()), Some(FieldValue::I64(10)));
    let own = FieldTable::new().with("x-dead-letter-exchange", "own");
    let exchange = applied.get_with("dead-letter-exchange", &own);
    assert_eq!(exchange.and_then(FieldValue::as_str), Some("own"));
}

proptest! {
    /// Whatever is set, the one that applies matches, and no other one that does is higher.
    #[test]
    fn nothing_that_matches_is_higher(
        all in prop::collection::vec(("[a-c]{1,2}", "[ab]{0,2}", -3_i64..3), 0..8),
        name in "[ab]{1,3}",
    ) {
        let mut policies = Policies::default();
        for (policy_name, pattern, priority) in &all {
            let policy = policy(policy_name, pattern, "all", *priority, r#"{"max-length":1}"#);
            policies.set(Authority::User, policy);
        }
        let applied = policies.applied(Target::ClassicQueue, &name).policy;
        let matching = policies.list(Authority::User).filter(|policy| policy.pattern.matches(&name));
        let highest = matching.map(|policy| policy.priority).max();
        prop_assert_eq!(applied.map(|policy| policy.priority), highest);
    }
}
