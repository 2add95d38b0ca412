//! Events of what administrators do: vhosts, users, permissions, policies, parameters, imports.

use broker::VHostMetadata;
use broker::admin::{Admin, AdminError, PolicyRequest};
use broker::policy::Authority;
use client::{ExchangeOptions, FieldTable, FieldValue};
use serde_json::json;

use crate::support::in_process::InProcess;
use crate::support::*;
use crate::{EXCHANGE, Listening, texts};

#[test]
fn other_vhosts_tell_it_in_the_first_one() {
    within(seconds(20), async {
        let server = InProcess::start("events-vhosts");
        let mut events = Listening::to(&server.options, "#").await;
        let admin = server.broker.admin();
        let said = VHostMetadata {
            description: "another one".into(),
            ..VHostMetadata::default()
        };
        admin.add_vhost("other", said).expect("it is new");
        let created = events.all().await;
        let (last, exchanges) = created.split_last().expect("events");
        assert_eq!(exchanges.len(), 7);
        for (key, headers) in exchanges {
            assert_eq!(
                (&**key, headers.get("vhost")),
                ("exchange.created", Some(&"other".into()))
            );
        }
        assert_eq!(
            (&*last.0, last.1.get("name")),
            ("vhost.created", Some(&"other".into()))
        );
        assert_eq!(last.1.get("tracing"), Some(&false.into()));
        // Only the first one has the exchange itself.
        let names = exchanges.iter().map(|(_, headers)| headers.get("name"));
        assert_eq!(
            names.filter(|name| *name == Some(&EXCHANGE.into())).count(),
            0
        );
        let (connection, channel) = (&mut events.connection, events.channel);
        let passive = ExchangeOptions {
            passive: true,
            ..ExchangeOptions::default()
        };
        let declared = connection.declare_exchange(channel, EXCHANGE, "topic", &passive);
        declared.await.expect("it is there");
    });
}

#[test]
fn administration_is_told() {
    within(seconds(20), async {
        let server = InProcess::start("events-admin");
        let mut events = Listening::to(&server.options, "#").await;
        administer(&server.broker.admin()).expect("all makes sense");
        let all = events.all().await;
        let cli = || FieldTable::new().with("user_who_performed_action", "rmq-cli");
        let bob = || cli().with("name", "bob");
        let of_bob = |headers: FieldTable| headers.with("vhost", "/").with("user", "bob");
        let patterns = cli()
            .with("read", "c")
            .with("write", "b")
            .with("configure", "a");
        let of_policy = |headers: FieldTable| headers.with("vhost", "/").with("name", "p");
        let policy = FieldTable::new()
            .with("apply-to", "queues")
            .with("priority", 3_i64)
            .with("definition", FieldTable::new().with("max-length", 3_i64))
            .with("pattern", "^a")
            .with("user_who_performed_action", "rmq-cli");
        let tags = cli().with("tags", texts(&["management", "policymaker"]));
        let of_parameter = cli().with("name", "p").with("component", "operator_policy");
        let of_parameter = of_parameter.with("vhost", "/");
        let expected: [(&str, FieldTable); 11] = [
            ("user.created", bob()),
            ("user.password.changed", bob()),
            ("user.tags.set", tags.with("name", "bob")),
            ("permission.created", of_bob(patterns)),
            ("permission.deleted", of_bob(cli())),
            ("user.deleted", bob()),
            ("policy.set", of_policy(policy.clone())),
            ("policy.cleared", of_policy(cli())),
            ("policy.set", of_policy(policy)),
            ("parameter.cleared", of_parameter),
            ("operator.policy.cleared", of_policy(cli())),
        ];
        let expected = expected.map(|(key, headers)| (key.to_owned(), headers));
        // Of an operator policy it is told as of a parameter, too.
        let (parameter, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(key, _)| key == "parameter.set");
        assert_eq!(others, expected);
        let [(_, set)] = &parameter[..] else {
            panic!("{parameter:?}");
        };
        let Some(FieldValue::Table(value)) = set.get("value") else {
            panic!("{set:?}");
        };
        assert_eq!(value.get("priority"), Some(&FieldValue::I64(3)));
        assert_eq!(set.get("component"), Some(&"operator_policy".into()));
    });
}

fn administer(admin: &Admin<'_>) -> Result<(), AdminError> {
    admin.add_user("bob", "secret")?;
    admin.change_password("bob", "other")?;
    admin.set_user_tags("bob", vec!["management".into(), "policymaker".into()])?;
    admin.set_permissions("/", "bob", ["a", "b", "c"])?;
    admin.clear_permissions("/", "bob")?;
    admin.delete_user("bob")?;
    for authority in [Authority::User, Authority::Operator] {
        let policy = PolicyRequest {
            authority,
            name: "p",
            pattern: "^a",
            apply_to: "queues",
            priority: 3,
            definition: FieldTable::new().with("max-length", 3),
        };
        // What is so already is not told.
        admin.set_policy("/", &policy)?;
        admin.set_policy("/", &policy)?;
        admin.clear_policy("/", authority, "p")?;
    }
    Ok(())
}

#[test]
fn topic_permissions_are_told() {
    within(seconds(20), async {
        let server = InProcess::start("events-topic-permissions");
        let mut events = Listening::to(&server.options, "#").await;
        let admin = server.broker.admin();
        let set = || admin.set_topic_permissions("/", "guest", "amq.topic", ["^w", "^r"]);
        set().expect("all makes sense");
        set().expect("all makes sense");
        for exchange in [Some("amq.topic"), None] {
            let cleared = admin.clear_topic_permissions("/", "guest", exchange);
            cleared.expect("the user is there");
        }
        let cli = || FieldTable::new().with("user_who_performed_action", "rmq-cli");
        let guest = |headers: FieldTable| headers.with("vhost", "/").with("user", "guest");
        let created = cli()
            .with("read", "^r")
            .with("write", "^w")
            .with("exchange", "amq.topic");
        let expected = [
            ("topic.permission.created", guest(created.clone())),
            ("topic.permission.created", guest(created)),
            // RabbitMQ's key where it is one exchange's.
            ("permission.deleted", guest(cli())),
            ("topic.permission.deleted", guest(cli())),
        ];
        let expected = expected.map(|(key, headers)| (key.to_owned(), headers));
        assert_eq!(events.all().await, expected);
    });
}

#[test]
fn parameters_are_told_with_their_values() {
    within(seconds(20), async {
        let server = InProcess::start("events-parameters");
        let mut events = Listening::to(&server.options, "#").await;
        let admin = server.broker.admin();
        let value = json!({"n": 5, "l": [1.5, null, true]});
        for _ in 0..2 {
            let set = admin.set_parameter("/", "shovel", "s", value.clone());
            set.expect("all makes sense");
        }
        let cleared = admin.clear_parameter("/", "shovel", "s");
        cleared.expect("it is there");
        let set = admin.set_global_parameter("g", value);
        set.expect("all makes sense");
        admin.clear_global_parameter("g").expect("it is there");
        let list = [FieldValue::F32(1.5), "null".into(), true.into()];
        let told = FieldTable::new()
            .with("l", FieldValue::Array(list.to_vec()))
            .with("n", FieldValue::I64(5));
        let cli = || FieldTable::new().with("user_who_performed_action", "rmq-cli");
        let shovel = |headers: FieldTable| {
            let headers = headers.with("name", "s").with("component", "shovel");
            headers.with("vhost", "/")
        };
        let global = cli().with("value", FieldValue::Table(told.clone()));
        let expected = [
            (
                "parameter.set",
                shovel(cli().with("value", FieldValue::Table(told))),
            ),
            ("parameter.cleared", shovel(cli())),
            (
                "parameter.set",
                global.with("name", "g").with("component", "global"),
            ),
        ];
        let expected = expected.map(|(key, headers)| (key.to_owned(), headers));
        assert_eq!(events.all().await, expected);
    });
}

/// What a file brings is told like what is set by hand, but nobody has asked for it.
#[test]
fn an_import_is_told() {
    within(seconds(20), async {
        let server = InProcess::start("events-import");
        let mut events = Listening::to(&server.options, "#").await;
        let policy = json!({"pattern": "^a", "priority": 1, "definition": {"max-length": 5}});
        let mut of_user = policy.clone();
        of_user["vhost"] = "v".into();
        of_user["name"] = "p".into();
        let definitions = json!({
            "vhosts": [{"name": "v"}],
            "users": [{"name": "bob", "password_hash": "", "tags": "monitoring"}],
            "permissions":
                [{"user": "bob", "vhost": "v", "configure": "c", "write": "w", "read": "r"}],
            "topic_permissions":
                [{"user": "bob", "vhost": "v", "exchange": "amq.topic", "write": "w", "read": "r"}],
            "global_parameters": [{"name": "g", "value": 1}],
            "parameters": [
                {"vhost": "v", "component": "shovel", "name": "s", "value": {}},
                {"vhost": "v", "component": "operator_policy", "name": "o", "value": policy},
            ],
            "policies": [of_user],
        });
        let admin = server.broker.admin();
        let told = async |events: &mut Listening| {
            let all = events.all().await.into_iter();
            let all = all.filter(|(key, _)| !key.starts_with("exchange."));
            let (keys, by): (Vec<_>, Vec<_>) = all
                .map(|(key, headers)| (key, headers.get("user_who_performed_action").cloned()))
                .unzip();
            assert!(
                by.iter()
                    .all(|by| by.as_ref() == Some(&"rmq-internal".into())),
                "{keys:?} {by:?}"
            );
            keys
        };
        admin.import_definitions(&definitions).expect("it is right");
        let expected = [
            "vhost.created",
            "user.created",
            "user.tags.set",
            "permission.created",
            "topic.permission.created",
            "parameter.set",
            "parameter.set",
            "policy.set",
            "parameter.set",
            "policy.set",
        ];
        assert_eq!(told(&mut events).await, expected);
        // Of these RabbitMQ tells again although nothing has changed.
        admin.import_definitions(&definitions).expect("it is right");
        let again = [
            "permission.created",
            "topic.permission.created",
            "parameter.set",
        ];
        assert_eq!(told(&mut events).await, again);
        admin.delete_vhost("v").expect("it is there");
        let keys = events.keys().await.into_iter();
        let keys: Vec<_> = keys.filter(|key| !key.starts_with("exchange.")).collect();
        let gone = [
            "permission.deleted",
            "topic.permission.deleted",
            "vhost.deleted",
            "parameter.cleared",
            "parameter.cleared",
            "operator.policy.cleared",
            "policy.cleared",
        ];
        assert_eq!(keys, gone);
    });
}

/// What goes with a vhost is told like what goes by itself.
#[test]
fn a_vhost_is_told_with_what_is_in_it() {
    within(seconds(20), async {
        let server = InProcess::start("events-vhost-end");
        let admin = server.broker.admin();
        let added = admin.add_vhost("other", VHostMetadata::default());
        added.expect("it is new");
        let mut events = Listening::to(&server.options, "#").await;
        admin.delete_vhost("other").expect("it is there");
        let keys = events.keys().await;
        let (last, exchanges) = keys.split_last().expect("events");
        assert_eq!(last, "vhost.deleted");
        assert_eq!(exchanges, ["exchange.deleted"; 7]);
        // The one where they are told: nobody is left to hear of it.
        admin.delete_vhost("/").expect("it is there");
        assert!(!server.broker.events.wanted());
        let added = admin.add_vhost("/", VHostMetadata::default());
        added.expect("it is new again");
        let vhost = server.broker.vhost("/").expect("it is there");
        assert_eq!(vhost.queue_count(), 0);
    });
}
