//! Topic permissions: with which routing keys a user may publish to a topic exchange and bind to it.
//! Where an exchange has none for a user, all keys are permitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Operation, Rule};

/// Topic permissions, by user, vhost and exchange.
pub(crate) type TopicPermissions = BTreeMap<[Arc<str>; 3], Arc<TopicPermission>>;

/// What one user may do with one exchange.
#[derive(Debug)]
pub(crate) struct TopicPermission {
    /// For write and read, as they were given.
    patterns: [String; 2],
    /// The same with names in the place of variables.
    write: Rule,
    read: Rule,
}

impl TopicPermission {
    /// From the patterns for write and read. In these `{username}` and `{vhost}` stand for the names
    /// themselves; `{client_id}` stands for nothing in AMQP 0-9-1.
    ///
    /// # Errors
    /// Which pattern makes no sense, and why.
    pub fn new(user: &str, vhost: &str, patterns: [&str; 2]) -> Result<TopicPermission, String> {
        let rule = |pattern| {
            Rule::filled(pattern, &fill(pattern, user, vhost))
                .map_err(|reason| format!("invalid topic permission: {reason}"))
        };
        let [write, read] = patterns;
        Ok(TopicPermission {
            write: rule(write)?,
            read: rule(read)?,
            patterns: patterns.map(str::to_owned),
        })
    }

    /// From patterns that were checked before.
    pub fn restored(user: &str, vhost: &str, patterns: [&str; 2]) -> TopicPermission {
        let [write, read] = patterns.map(|text| Rule::unchecked(&fill(text, user, vhost)));
        TopicPermission {
            patterns: patterns.map(str::to_owned),
            write,
            read,
        }
    }

    /// For write and read, as they were given.
    pub fn patterns(&self) -> [&str; 2] {
        self.patterns.each_ref().map(String::as_str)
    }

    fn permits(&self, operation: Operation, routing_key: &[u8]) -> bool {
        let rule = match operation {
            Operation::Write => &self.write,
            Operation::Read => &self.read,
            Operation::Configure => return true,
        };
        rule.permits(&String::from_utf8_lossy(routing_key))
    }
}

/// A pattern with names in the place of variables.
fn fill(pattern: &str, user: &str, vhost: &str) -> String {
    let variables = [
        ("{username}", user),
        ("{vhost}", vhost),
        // Only for MQTT.
        ("{client_id}", "{client_id}"),
    ];
    variables
        .into_iter()
        .fold(pattern.to_owned(), |text, (variable, name)| {
            text.replace(variable, &fancy_regex::escape(name))
        })
}

/// The topic permissions of one user in one vhost, by exchange.
#[derive(Debug, Default)]
pub(crate) struct UserTopics(BTreeMap<Arc<str>, Arc<TopicPermission>>);

impl UserTopics {
    /// Picks them from all.
    pub fn of(all: &TopicPermissions, user: &str, vhost: &str) -> UserTopics {
        let first: [Arc<str>; 3] = [user.into(), vhost.into(), "".into()];
        let own = all
            .range(first..)
            .take_while(|([of, place, _], _)| **of == *user && **place == *vhost);
        UserTopics(
            own.map(|([.., exchange], permission)| (exchange.clone(), permission.clone()))
                .collect(),
        )
    }

    /// The first of these keys with which the operation is not permitted on that exchange, should it
    /// be a topic exchange.
    pub fn refused<'k>(
        &self,
        operation: Operation,
        exchange: &str,
        routing_keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Option<&'k [u8]> {
        let permission = self.0.get(exchange)?;
        let mut keys = routing_keys.into_iter();
        keys.find(|key| !permission.permits(operation, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(write: &str, read: &str) -> TopicPermission {
        TopicPermission::new("a.b", "/", [write, read]).expect("patterns")
    }

    #[test]
    fn empty_pattern_is_for_the_empty_key() {
        let none = granted("", ".*");
        assert!(none.permits(Operation::Write, b"") && !none.permits(Operation::Write, b"a"));
        assert!(none.permits(Operation::Read, b"") && none.permits(Operation::Read, b"\xff"));
        assert_eq!(none.patterns(), ["", ".*"]);
    }

    #[test]
    fn variables_are_the_names_and_no_patterns() {
        let odd = TopicPermission::new("{vhost}", "v", ["^{username}$", ""]).expect("patterns");
        assert!(odd.permits(Operation::Write, b"{vhost}"));
        let own = granted("^{username}\\.", "^{vhost}{client_id}$");
        assert!(own.permits(Operation::Write, b"a.b.c"));
        assert!(!own.permits(Operation::Write, b"axb.c"));
        assert!(own.permits(Operation::Read, b"/{client_id}"));
        assert_eq!(own.patterns(), ["^{username}\\.", "^{vhost}{client_id}$"]);
    }

    #[test]
    fn each_has_those_of_one_user_in_one_vhost() {
        let mut all = TopicPermissions::new();
        for (user, vhost, exchange) in [
            ("a", "v", "x"),
            ("b", "u", "x"),
            ("b", "v", "y"),
            ("c", "v", "x"),
        ] {
            let nothing = TopicPermission::new(user, vhost, ["", ""]).expect("patterns");
            let key = [user, vhost, exchange].map(Arc::from);
            all.insert(key, Arc::new(nothing));
        }
        let refused = |user, exchange| {
            let own = UserTopics::of(&all, user, "v");
            own.refused(Operation::Write, exchange, [&b""[..], b"k"])
        };
        assert_eq!(refused("b", "x"), None);
        assert_eq!(refused("b", "y"), Some(&b"k"[..]));
        assert_eq!(refused("d", "x"), None);
    }
}
