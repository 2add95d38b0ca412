//! What administrators do: that it takes effect, that it is refused where it makes no sense, and
//! that it is there again after a restart.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use amqp::{FieldTable, ReplyCode};
use serde_json::{Value, json};
use store::{Budget, Store};
use testkit::FaultyDisk;

use super::*;
use crate::access::Login;
use crate::broker::Settings;
use crate::exchange::{ExchangeKind, ExchangeOptions};
use crate::metadata::VHostMetadata;
use crate::policy::{Applied, Authority};
use crate::queue::QueueOptions;
use crate::session::Session;

/// A broker on a simulated disk, which it can be started on again.
struct Node {
    disk: Arc<FaultyDisk>,
    broker: Arc<Broker>,
}

impl Node {
    fn new() -> Node {
        Node::on(Arc::new(FaultyDisk::new(1)))
    }

    fn on(disk: Arc<FaultyDisk>) -> Node {
        let budget = Budget {
            log_file: 1024 * 1024,
            ..Budget::default()
        };
        let opened = Store::open(disk.clone(), Path::new("/data"), budget, false);
        let (store, recovered) = opened.expect("the disk is sound");
        let broker = Broker::new(Settings::default(), store, recovered).expect("a broker");
        Node { disk, broker }
    }

    fn restart(self) -> Node {
        self.broker.store.close();
        let disk = self.disk.clone();
        drop(self);
        Node::on(disk)
    }

    fn admin(&self) -> Admin<'_> {
        self.broker.admin()
    }

    fn session(&self, vhost: &str) -> Session {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let Login::Accepted(user) = self.broker.login("guest", b"guest", here) else {
            panic!("the first user is not known");
        };
        let connection = self.broker.connections.next_id();
        let session = self.broker.open_session(&user, vhost, connection);
        session.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Registers the connection of a session.
    fn open(&self, session: &Session) {
        let Broker {
            connections, users, ..
        } = &*self.broker;
        connections.open(session, Arc::default(), users);
    }

    fn declare(&self, name: &str) -> Arc<crate::Queue> {
        let options = QueueOptions {
            durable: true,
            ..QueueOptions::default()
        };
        let declared = self.session("/").declare_queue(name, options);
        declared.expect("a queue").queue
    }

    fn set(&self, authority: Authority, name: &str, priority: i64, definition: Value) {
        let definition = crate::json::table_from(definition.as_object().expect("an object"));
        let request = PolicyRequest {
            authority,
            name,
            pattern: "^q",
            apply_to: "all",
            priority,
            definition: definition.expect("a table"),
        };
        self.admin().set_policy("/", &request).expect("a policy");
    }

    fn applied(&self, queue: &str) -> Applied {
        let queue = self.broker.vhost("/").and_then(|vhost| vhost.queue(queue));
        queue.expect("a queue").applied()
    }
}

/// The names of the policy and of the operator policy, `-` where there is none.
fn names(applied: &Applied) -> String {
    let name = |policy: &Option<Arc<crate::policy::Policy>>| match policy {
        Some(policy) => policy.name.to_string(),
        None => "-".to_owned(),
    };
    format!("{} {}", name(&applied.policy), name(&applied.operator))
}

#[test]
fn policies_apply_to_queues_that_are_there_and_that_come() {
    let node = Node::new();
    node.declare("q1");
    let generation = node.broker.vhost("/").expect("it").generation();
    node.set(Authority::User, "low", 0, json!({"max-length": 5}));
    assert_eq!(names(&node.applied("q1")), "low -");
    assert!(node.broker.vhost("/").expect("it").generation() > generation);
    node.declare("q2");
    node.declare("other");
    assert_eq!(names(&node.applied("q2")), "low -");
    assert_eq!(names(&node.applied("other")), "- -");
    node.set(Authority::User, "high", 1, json!({"max-length": 6}));
    node.set(Authority::Operator, "limit", 0, json!({"max-length": 3}));
    assert_eq!(names(&node.applied("q1")), "high limit");
    let cleared = node.admin().clear_policy("/", Authority::User, "high");
    assert_eq!(cleared, Ok(()));
    assert_eq!(names(&node.applied("q1")), "low limit");
    let again = node.admin().clear_policy("/", Authority::User, "high");
    assert_eq!(again, Err(AdminError::NoSuchParameter));
}

#[test]
fn setting_a_policy_again_changes_what_applies() {
    let node = Node::new();
    node.declare("q");
    node.set(Authority::User, "p", 0, json!({"max-length": 5}));
    node.set(Authority::User, "p", 0, json!({"max-length": 6}));
    let length = node.applied("q").get("max-length").and_then(|v| v.as_i64());
    assert_eq!(length, Some(6));
}

#[test]
fn alternate_exchange_of_a_policy_stands_in_for_the_argument() {
    let node = Node::new();
    let session = node.session("/");
    let plain = ExchangeOptions::durable(ExchangeKind::Direct);
    let own = ExchangeOptions {
        arguments: FieldTable::new().with("alternate-exchange", "amq.topic"),
        ..plain.clone()
    };
    session.declare_exchange("qx", plain, false).expect("it");
    session.declare_exchange("qown", own, false).expect("it");
    let settings = json!({"alternate-exchange": "amq.fanout"});
    node.set(Authority::User, "p", 0, settings);
    let alternate = |name: &str| {
        let vhost = node.broker.vhost("/").expect("it");
        let topology = vhost.read();
        topology.exchanges[name].alternate.clone()
    };
    assert_eq!(alternate("qx").as_deref(), Some("amq.fanout"));
    assert_eq!(alternate("qown").as_deref(), Some("amq.topic"));
    node.admin()
        .clear_policy("/", Authority::User, "p")
        .expect("it is there");
    assert_eq!(alternate("qx"), None);
    assert_eq!(alternate("qown").as_deref(), Some("amq.topic"));
}

#[test]
fn everything_is_there_again_after_a_restart() {
    let node = Node::new();
    let metadata = VHostMetadata {
        description: "mine".into(),
        tags: vec!["a".into(), "b".into()],
        default_queue_type: Some("quorum".into()),
    };
    let admin = node.admin();
    admin.add_vhost("v", metadata).expect("a vhost");
    admin.add_user("bob", "pw").expect("a user");
    admin
        .set_user_tags("bob", vec!["monitoring".into()])
        .expect("tags");
    admin
        .set_permissions("v", "bob", [".*", "^x", ""])
        .expect("permissions");
    node.set(
        Authority::User,
        "p",
        3,
        json!({"max-length": 5, "overflow": "drop-head"}),
    );
    node.set(Authority::Operator, "o", 0, json!({"max-length": 3}));
    node.declare("q1");
    let kept = json!({
        "parameters": [{"vhost": "v", "component": "shovel", "name": "s", "value": {"a": [1]}}],
        "global_parameters": [{"name": "mqtt", "value": {"b": "c"}}],
        "topic_permissions":
            [{"user": "bob", "vhost": "v", "exchange": "amq.topic", "write": "^a", "read": ".*"}],
    });
    admin.import_definitions(&kept).expect("an import");
    let before = admin.export_definitions();
    let node = node.restart();
    assert_eq!(node.admin().export_definitions(), before);
    assert_eq!(names(&node.applied("q1")), "p o");
    assert_eq!(node.admin().authenticate_user("bob", "pw"), Ok(()));
}

#[test]
fn users_are_added_changed_and_deleted() {
    let node = Node::new();
    let admin = node.admin();
    assert_eq!(admin.add_user("bob", "pw"), Ok(()));
    assert_eq!(
        admin.add_user("bob", "pw"),
        Err(AdminError::UserExists("bob".into()))
    );
    assert!(admin.add_user("", "pw").is_err());
    assert!(admin.add_user(&"n".repeat(256), "pw").is_err());
    let wrong = Err(AdminError::BadCredentials("bob".into()));
    assert_eq!(admin.authenticate_user("bob", "pw2"), wrong);
    assert_eq!(admin.change_password("bob", "pw2"), Ok(()));
    assert_eq!(admin.authenticate_user("bob", "pw2"), Ok(()));
    assert_eq!(admin.change_password("bob", ""), Ok(()));
    assert_eq!(admin.authenticate_user("bob", ""), wrong);
    assert_eq!(
        admin.set_permissions("/", "bob", [".*", ".*", ".*"]),
        Ok(())
    );
    assert_eq!(admin.delete_user("bob"), Ok(()));
    let none = AdminError::NoSuchUser("bob".into());
    assert_eq!(admin.delete_user("bob"), Err(none.clone()));
    assert_eq!(admin.set_user_tags("bob", Vec::new()), Err(none.clone()));
    assert_eq!(admin.set_permissions("/", "bob", [""; 3]), Err(none));
    let node = node.restart();
    let users = node.admin().list_users();
    assert_eq!(users.len(), 1);
    let permissions = node.admin().list_permissions("/").expect("it");
    assert_eq!(permissions.len(), 1);
}

#[test]
fn deleted_vhost_takes_everything_with_it() {
    let node = Node::new();
    let admin = node.admin();
    admin.add_vhost("v", VHostMetadata::default()).expect("it");
    admin
        .set_permissions("v", "guest", [".*"; 3])
        .expect("it is there");
    let session = node.session("v");
    node.open(&session);
    let options = QueueOptions {
        durable: true,
        ..QueueOptions::default()
    };
    let queue = session
        .declare_queue("q", options.clone())
        .expect("it")
        .queue;
    session
        .bind_queue("q", "amq.topic", b"k", FieldTable::new())
        .expect("it");
    assert_eq!(node.broker.connections.must_end(session.connection), None);
    admin.delete_vhost("v").expect("it is there");
    assert!(queue.is_deleted());
    let reason = node.broker.connections.must_end(session.connection);
    assert_eq!(reason.as_deref(), Some("vhost 'v' is deleted"));
    // Its connection has not closed yet.
    session
        .declare_queue("late", options)
        .expect("nobody minds");
    assert_eq!(
        admin.delete_vhost("v"),
        Err(AdminError::NoSuchVHost("v".into()))
    );
    node.broker.connections.close(session.connection);
    admin.add_vhost("v", VHostMetadata::default()).expect("it");
    let node = node.restart();
    assert!(node.admin().list_queues("v").expect("it").is_empty());
    assert!(node.admin().list_permissions("v").expect("it").is_empty());
    let bindings = node.admin().list_bindings("v").expect("it");
    assert!(bindings.is_empty());
}

#[test]
fn connection_that_comes_to_a_vhost_as_it_goes_is_told() {
    let node = Node::new();
    let admin = node.admin();
    admin.add_vhost("v", VHostMetadata::default()).expect("it");
    admin.set_permissions("v", "guest", [""; 3]).expect("it");
    let session = node.session("v");
    admin.delete_vhost("v").expect("it");
    node.open(&session);
    let reason = node.broker.connections.must_end(session.connection);
    assert_eq!(reason.as_deref(), Some("vhost 'v' is deleted"));
}

#[test]
fn connections_of_a_deleted_user_end() {
    let node = Node::new();
    let session = node.session("/");
    node.open(&session);
    node.admin().delete_user("guest").expect("it is there");
    let reason = node.broker.connections.must_end(session.connection);
    assert_eq!(reason.as_deref(), Some("user 'guest' is deleted"));
}

#[test]
fn connection_of_a_user_that_goes_as_it_comes_is_told() {
    let node = Node::new();
    let session = node.session("/");
    node.admin().delete_user("guest").expect("it is there");
    node.open(&session);
    let reason = node.broker.connections.must_end(session.connection);
    assert_eq!(reason.as_deref(), Some("user 'guest' is deleted"));
}

/// Between the login and the opening of a vhost a client may take its time.
#[test]
fn what_a_user_may_do_is_asked_when_it_opens_a_vhost() {
    let node = Node::new();
    let admin = node.admin();
    let user = node.broker.users.get("guest").expect("it is there");
    let open = || {
        let connection = node.broker.connections.next_id();
        node.broker.open_session(&user, "/", connection)
    };
    admin
        .set_permissions("/", "guest", ["^a", "", ""])
        .expect("it");
    let session = open().expect("it may come");
    assert!(session.declare_queue("b", QueueOptions::default()).is_err());
    admin.clear_permissions("/", "guest").expect("it is there");
    let refused = open().expect_err("it may not");
    let text = "access to vhost '/' refused for user 'guest'";
    assert_eq!(
        (refused.code, &*refused.text),
        (ReplyCode::NotAllowed, text)
    );
    admin.delete_user("guest").expect("it is there");
    assert!(open().is_err());
}

#[test]
fn default_queue_type_is_added_where_such_a_queue_can_be() {
    let node = Node::new();
    let quorum = VHostMetadata {
        default_queue_type: Some("quorum".into()),
        ..VHostMetadata::default()
    };
    node.admin().put_vhost("/", quorum).expect("it");
    let session = node.session("/");
    let durable = QueueOptions {
        durable: true,
        ..QueueOptions::default()
    };
    let declared = |name: &str, options: QueueOptions| {
        let queue = session.declare_queue(name, options).expect("a queue").queue;
        queue.arguments.get("x-queue-type").cloned()
    };
    assert_eq!(declared("q", durable.clone()), Some("quorum".into()));
    // The same without and with the type.
    declared("q", durable.clone());
    let explicit = QueueOptions {
        arguments: FieldTable::new().with("x-queue-type", "quorum"),
        ..durable.clone()
    };
    declared("q", explicit);
    assert_eq!(declared("transient", QueueOptions::default()), None);
    let exclusive = QueueOptions {
        exclusive: Some(session.connection),
        ..durable
    };
    assert_eq!(declared("exclusive", exclusive), None);
    let wrong = VHostMetadata {
        default_queue_type: Some("fast".into()),
        ..VHostMetadata::default()
    };
    let refused = AdminError::Invalid("invalid_queue_type".into());
    assert_eq!(node.admin().put_vhost("/", wrong), Err(refused));
}

#[test]
fn queues_are_deleted_under_conditions() {
    let node = Node::new();
    node.declare("q");
    let admin = node.admin();
    assert_eq!(admin.purge_queue("/", "q"), Ok(0));
    assert_eq!(admin.purge_queue("/", "none"), Err(AdminError::NoSuchQueue));
    let stream = QueueOptions {
        durable: true,
        arguments: FieldTable::new().with("x-queue-type", "stream"),
        ..QueueOptions::default()
    };
    node.session("/")
        .declare_queue("s", stream)
        .expect("a stream");
    assert_eq!(admin.purge_queue("/", "s"), Err(AdminError::NotForStreams));
    assert_eq!(admin.delete_queue("/", "q", true, true), Ok(0));
    assert_eq!(
        admin.delete_queue("/", "q", false, false),
        Err(AdminError::NoSuchQueue)
    );
    let none = AdminError::NoSuchVHost("none".into());
    assert_eq!(admin.delete_queue("none", "q", false, false), Err(none));
}

/// What RabbitMQ 3.10.8 wrote with `rabbitmqctl export_definitions`.
const EXPORTED: &str = include_str!("definitions/rabbitmq-3.10.json");

fn exported() -> Value {
    serde_json::from_str(EXPORTED).expect("JSON")
}

#[test]
fn export_of_rabbitmq_is_imported_and_exported_again() {
    let node = Node::new();
    let file = exported();
    let imported = node.admin().import_definitions(&file).expect("an import");
    assert_eq!(imported.warnings, Vec::<String>::new());
    let once = node.admin().export_definitions();
    for list in [
        "users",
        "vhosts",
        "permissions",
        "policies",
        "queues",
        "exchanges",
        "bindings",
    ] {
        let sorted = |all: &Value| {
            let mut all = all[list].as_array().expect(list).clone();
            all.sort_by_key(Value::to_string);
            all
        };
        assert_eq!(sorted(&once), sorted(&file), "{list}");
    }
    // A second time changes nothing, not even the log, and another broker takes it as it is.
    let logged = node.broker.definitions_logged();
    node.admin().import_definitions(&file).expect("an import");
    assert_eq!(node.broker.definitions_logged(), logged);
    assert_eq!(node.admin().export_definitions(), once);
    let other = Node::new();
    other.admin().import_definitions(&once).expect("an import");
    assert_eq!(other.admin().export_definitions(), once);
    let other = other.restart();
    assert_eq!(other.admin().list_queues("/").expect("it").len(), 2);
    // The transient queue is gone until it is imported again.
    other.admin().import_definitions(&once).expect("an import");
    assert_eq!(other.admin().export_definitions(), once);
}

#[test]
fn operator_policies_travel_as_parameters() {
    let node = Node::new();
    node.set(Authority::Operator, "limit", 2, json!({"max-length": 3}));
    let exported = node.admin().export_definitions();
    assert_eq!(
        exported["parameters"],
        json!([{
            "vhost": "/",
            "component": "operator_policy",
            "name": "limit",
            "value": {
                "pattern": "^q",
                "apply-to": "all",
                "priority": 2,
                "definition": {"max-length": 3},
            },
        }])
    );
    let other = Node::new();
    other.admin().import_definitions(&exported).expect("it");
    assert_eq!(
        other.admin().export_definitions()["parameters"],
        exported["parameters"]
    );
    other.declare("q");
    assert_eq!(names(&other.applied("q")), "- limit");
}

#[test]
fn wrong_import_names_the_entry_and_changes_nothing() {
    let wrong = [
        (json!([]), "definitions have to be a JSON object"),
        (json!({"users": 5}), "users: a list was expected"),
        (
            json!({"users": [5]}),
            "users, entry 1: an object was expected",
        ),
        (
            json!({"users": [{"name": 5}]}),
            "users, entry 1: name has to be text",
        ),
        (
            json!({"users": [{"name": "u", "hashing_algorithm": "rabbit_password_hashing_md5",
                "password_hash": "x"}]}),
            "users, entry 1 'u': passwords hashed with rabbit_password_hashing_md5 are not \
             supported, only rabbit_password_hashing_sha256: set the password anew",
        ),
        (
            json!({"queues": [{"name": "x", "vhost": "nope"}]}),
            "queues, entry 1 'x' in vhost 'nope': Virtual host 'nope' does not exist",
        ),
        (
            json!({"queues": [{"name": "x"}]}),
            "queues, entry 1 'x': vhost is missing",
        ),
        (
            json!({"permissions": [{"user": "u", "vhost": "/", "configure": "", "write": "",
                "read": ""}]}),
            "permissions, entry 1 'u' in vhost '/': User \"u\" does not exist",
        ),
        (
            json!({"exchanges": [{"name": "x", "vhost": "/", "type": "x-jms-topic"}]}),
            "exchanges, entry 1 'x' in vhost '/': invalid exchange type 'x-jms-topic'",
        ),
        (
            json!({"bindings": [{"source": "amq.topic", "vhost": "/", "destination": "q",
                "destination_type": "queue", "routing_key": ""}]}),
            "bindings, entry 1 'amq.topic' in vhost '/': no queue 'q' in vhost '/'",
        ),
        (
            json!({"policies": [{"name": "p", "vhost": "/", "pattern": "^q",
                "definition": {"foo": 1}}]}),
            "policies, entry 1 'p' in vhost '/': Validation failed\n\n[{<<\"foo\">>,1}] are not \
             recognised policy settings\n",
        ),
    ];
    let node = Node::new();
    let before = node.admin().export_definitions();
    for (mut definitions, text) in wrong {
        if let Some(object) = definitions.as_object_mut() {
            // Read before, and right.
            object.insert("vhosts".into(), json!([{"name": "new"}]));
        }
        let refused = node.admin().import_definitions(&definitions);
        assert_eq!(refused, Err(AdminError::Invalid(text.into())));
        assert_eq!(node.admin().export_definitions(), before, "{text}");
    }
}

#[test]
fn what_has_no_effect_is_warned_of_and_kept() {
    let node = Node::new();
    node.declare("q");
    let definitions = json!({
        "parameters": [
            {"vhost": "/", "component": "shovel", "name": "s", "value": {"src-uri": "amqp://"}},
        ],
        "vhosts": [{"name": "/", "limits": [{"max-queues": 5}]}],
        "queues": [
            {"name": "amq.gen-x", "vhost": "/", "durable": true},
            {"name": "q", "vhost": "/", "durable": false},
        ],
        "exchanges": [{"name": "amq.topic", "vhost": "/", "type": "topic", "durable": true}],
    });
    let imported = node.admin().import_definitions(&definitions).expect("it");
    assert_eq!(imported.entries, 5);
    let warnings = imported.warnings.join("\n");
    for part in [
        "'shovel'",
        "limits",
        "'amq.gen-x'",
        "'amq.topic'",
        "kept as it is",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let exported = node.admin().export_definitions();
    assert_eq!(exported["parameters"], definitions["parameters"]);
    assert_eq!(exported["queues"].as_array().expect("a list").len(), 1);
}

#[test]
fn exchange_that_delays_is_imported_with_its_bindings() {
    let definitions = json!({
        "exchanges": [{"name": "late", "vhost": "/", "type": "x-delayed-message", "durable": true,
            "auto_delete": false, "arguments": {"x-delayed-type": "headers"}}],
        "queues": [{"name": "q", "vhost": "/", "type": "classic", "durable": true,
            "auto_delete": false, "arguments": {}}],
        "bindings": [{"source": "late", "vhost": "/", "destination": "q",
            "destination_type": "queue", "routing_key": "", "arguments": {"x-match": "any"}}],
    });
    let node = Node::new();
    node.admin().import_definitions(&definitions).expect("it");
    let node = node.restart();
    let exported = node.admin().export_definitions();
    for list in ["exchanges", "queues", "bindings"] {
        assert_eq!(exported[list], definitions[list], "{list}");
    }
    // The queue that what is late waits in is nobody's business.
    assert_eq!(node.admin().list_queues("/").expect("it").len(), 1);
    // A binding is checked as those of the type that it routes as.
    let mut wrong = definitions;
    wrong["bindings"][0]["arguments"]["x-match"] = json!("perhaps");
    assert!(node.admin().import_definitions(&wrong).is_err());
}
