//! Events of users, permissions, policies and parameters. `by` is who has asked for it: a user, or
//! `rmq-cli`.

use amqp::{FieldTable, FieldValue};

use serde_json::Value;

use super::{Event, Events};
use crate::json::value_from;
use crate::policy::{Authority, Policy};

/// Operator policies are parameters of this component, too.
const OPERATOR_POLICY: &str = "operator_policy";
/// What global parameters have for a component.
const GLOBAL: &str = "global";

impl Events {
    /// A user is new.
    pub fn user_created(&self, by: &str, name: &str) {
        self.emit(by, || Event::new("user.created").with("name", name));
    }

    /// A user has gone.
    pub fn user_deleted(&self, by: &str, name: &str) {
        self.emit(by, || Event::new("user.deleted").with("name", name));
    }

    /// A user has another password.
    pub fn user_password_changed(&self, by: &str, name: &str) {
        self.emit(by, || {
            Event::new("user.password.changed").with("name", name)
        });
    }

    /// A user has these tags.
    pub fn user_tags_set(&self, by: &str, name: &str, tags: &[String]) {
        self.emit(by, || {
            let tags = tags.iter().map(|tag| FieldValue::from(tag.as_str()));
            Event::new("user.tags.set")
                .with("tags", FieldValue::Array(tags.collect()))
                .with("name", name)
        });
    }

    /// A user has these permissions: to configure, to write, to read.
    pub fn permission_created(&self, by: &str, user: &str, vhost: &str, patterns: [&str; 3]) {
        let [configure, write, read] = patterns;
        self.emit(by, || {
            Event::new("permission.created")
                .with("read", read)
                .with("write", write)
                .with("configure", configure)
                .with("vhost", vhost)
                .with("user", user)
        });
    }

    /// A user has no permissions in a vhost any more.
    pub fn permission_deleted(&self, by: &str, user: &str, vhost: &str) {
        self.emit(by, || {
            Event::new("permission.deleted")
                .with("vhost", vhost)
                .with("user", user)
        });
    }

    /// A user has these permissions for the routing keys of an exchange: to write, to read.
    pub fn topic_permission_created(
        &self,
        by: &str,
        [user, vhost, exchange]: [&str; 3],
        [write, read]: [&str; 2],
    ) {
        self.emit(by, || {
            Event::new("topic.permission.created")
                .with("read", read)
                .with("write", write)
                .with("exchange", exchange)
                .with("vhost", vhost)
                .with("user", user)
        });
    }

    /// A user has no permissions for routing keys in a vhost any more. Of those of one exchange alone
    /// RabbitMQ tells `permission.deleted`.
    pub fn topic_permission_deleted(&self, by: &str, user: &str, vhost: &str) {
        self.emit(by, || {
            Event::new("topic.permission.deleted")
                .with("vhost", vhost)
                .with("user", user)
        });
    }

    /// A policy was set, or an operator policy, which has no key of its own for it.
    pub fn policy_set(&self, by: &str, vhost: &str, authority: Authority, policy: &Policy) {
        if authority == Authority::Operator {
            self.emit(by, || {
                let name = (OPERATOR_POLICY, &*policy.name);
                let settings = FieldValue::Table(settings(policy));
                of_parameter(set_to(&settings), Some(vhost), name)
            });
        }
        self.emit(by, || {
            let mut event = Event::new("policy.set");
            for (setting, value) in settings(policy).iter() {
                event = event.with(setting, plain(value));
            }
            // The plugin has it behind what was set.
            said_first(event, by)
                .with("vhost", vhost)
                .with("name", &*policy.name)
        });
    }

    /// A policy has gone.
    pub fn policy_cleared(&self, by: &str, vhost: &str, authority: Authority, name: &str) {
        let key = match authority {
            Authority::User => "policy.cleared",
            Authority::Operator => {
                self.parameter_cleared(by, vhost, (OPERATOR_POLICY, name));
                "operator.policy.cleared"
            }
        };
        self.emit(by, || {
            Event::new(key).with("vhost", vhost).with("name", name)
        });
    }

    /// A parameter was set: that name of that component.
    pub fn parameter_set(&self, by: &str, vhost: &str, name: (&str, &str), value: &Value) {
        self.emit(by, || of_parameter(set_to_json(value), Some(vhost), name));
    }

    /// A parameter has gone.
    pub fn parameter_cleared(&self, by: &str, vhost: &str, name: (&str, &str)) {
        self.emit(by, || {
            of_parameter(Event::new("parameter.cleared"), Some(vhost), name)
        });
    }

    /// A global parameter was set. As in RabbitMQ nothing tells that one has gone.
    pub fn global_parameter_set(&self, by: &str, name: &str, value: &Value) {
        self.emit(by, || {
            of_parameter(set_to_json(value), None, (GLOBAL, name))
        });
    }
}

/// What a policy says, in the plugin's order.
fn settings(policy: &Policy) -> FieldTable {
    FieldTable::new()
        .with("apply-to", &*policy.apply_to.to_string())
        .with("priority", policy.priority)
        .with("definition", FieldValue::Table(policy.definition.clone()))
        .with("pattern", policy.pattern.as_str())
}

fn set_to(value: &FieldValue) -> Event {
    Event::new("parameter.set").with("value", plain(value))
}

fn set_to_json(value: &Value) -> Event {
    // What no field table can hold is told as text.
    let value = value_from(value).unwrap_or_else(|_| value.to_string().as_str().into());
    set_to(&value)
}

fn said_first(event: Event, by: &str) -> Event {
    event.with("user_who_performed_action", by).by_nobody()
}

fn of_parameter(mut event: Event, vhost: Option<&str>, (component, name): (&str, &str)) -> Event {
    event = event.with("name", name).with("component", component);
    match vhost {
        Some(vhost) => event.with("vhost", vhost),
        None => event,
    }
}

/// A value of JSON in the types of the plugin, which has one for all whole numbers, and one for others.
fn plain(value: &FieldValue) -> FieldValue {
    match value {
        FieldValue::Table(table) => {
            let entries = table.iter();
            FieldValue::Table(
                entries
                    .map(|(name, value)| (name.into(), plain(value)))
                    .collect(),
            )
        }
        FieldValue::Array(items) => FieldValue::Array(items.iter().map(plain).collect()),
        FieldValue::F64(number) => FieldValue::F32(*number as f32),
        // An atom there, and told by its name.
        FieldValue::Void => "null".into(),
        other => match other.as_i64() {
            Some(number) => FieldValue::I64(number),
            None => other.clone(),
        },
    }
}
