//! Events of users, permissions, policies and parameters. `by` is who has asked for it: a user, or
//! `rmq-cli`.

use amqp::{FieldTable, FieldValue};

use super::{Event, Events};

/// A policy that was set.
#[derive(Debug, Clone, Copy)]
pub struct PolicyEvent<'a> {
    /// The vhost that it is in.
    pub vhost: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What names it applies to.
    pub pattern: &'a str,
    /// What it applies to: `all`, `queues`, …
    pub apply_to: &'a str,
    /// Which of several counts.
    pub priority: i64,
    /// What it says.
    pub definition: &'a FieldTable,
}

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

    /// A user has no permissions for routing keys in a vhost any more.
    pub fn topic_permission_deleted(&self, by: &str, user: &str, vhost: &str) {
        self.emit(by, || {
            Event::new("topic.permission.deleted")
                .with("vhost", vhost)
                .with("user", user)
        });
    }

    /// A policy was set.
    pub fn policy_set(&self, by: &str, policy: &PolicyEvent<'_>) {
        self.emit(by, || {
            let event = Event::new("policy.set")
                .with("apply-to", policy.apply_to)
                .with_number("priority", policy.priority)
                .with(
                    "definition",
                    plain(&FieldValue::Table(policy.definition.clone())),
                )
                .with("pattern", policy.pattern);
            // The plugin has it behind what was set.
            said_first(event, by)
                .with("vhost", policy.vhost)
                .with("name", policy.name)
        });
    }

    /// A policy has gone.
    pub fn policy_cleared(&self, by: &str, vhost: &str, name: &str) {
        self.emit(by, || of_policy("policy.cleared", vhost, name));
    }

    /// An operator policy has gone.
    pub fn operator_policy_cleared(&self, by: &str, vhost: &str, name: &str) {
        self.emit(by, || of_policy("operator.policy.cleared", vhost, name));
    }

    /// A parameter was set; without a vhost it is a global one.
    pub fn parameter_set(
        &self,
        by: &str,
        vhost: Option<&str>,
        (component, name): (&str, &str),
        value: &FieldValue,
    ) {
        self.emit(by, || {
            let event = Event::new("parameter.set").with("value", plain(value));
            of_parameter(event, vhost, component, name)
        });
    }

    /// A parameter has gone.
    pub fn parameter_cleared(
        &self,
        by: &str,
        vhost: Option<&str>,
        (component, name): (&str, &str),
    ) {
        self.emit(by, || {
            of_parameter(Event::new("parameter.cleared"), vhost, component, name)
        });
    }
}

fn said_first(event: Event, by: &str) -> Event {
    event.with("user_who_performed_action", by).by_nobody()
}

fn of_policy(key: &'static str, vhost: &str, name: &str) -> Event {
    Event::new(key).with("vhost", vhost).with("name", name)
}

fn of_parameter(mut event: Event, vhost: Option<&str>, component: &str, name: &str) -> Event {
    event = event.with("name", name).with("component", component);
    match vhost {
        Some(vhost) => event.with("vhost", vhost),
        None => event,
    }
}

/// A value of JSON in the types of the plugin, which has one for all whole numbers.
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
        other => match other.as_i64() {
            Some(number) => FieldValue::I64(number),
            None => other.clone(),
        },
    }
}
