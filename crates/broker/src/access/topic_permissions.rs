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
        let rule = |pattern: &str| {
            let variables = [
                ("{username}", user),
                ("{vhost}", vhost),
                ("{client_id}", "{client_id}"),
            ];
            let filled = variables
                .into_iter()
                .fold(pattern.to_owned(), |text, (variable, name)| {
                    text.replace(variable, &fancy_regex::escape(name))
                });
            Rule::new(&filled).map_err(|reason| format!("invalid topic permission: {reason}"))
        };
        let [write, read] = patterns;
        Ok(TopicPermission {
            write: rule(write)?,
            read: rule(read)?,
            patterns: patterns.map(str::to_owned),
        })
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

    /// True where the operation is permitted on that topic exchange with that key.
    pub fn permit(&self, operation: Operation, exchange: &str, routing_key: &[u8]) -> bool {
        let permission = self.0.get(exchange);
        permission.is_none_or(|permission| permission.permits(operation, routing_key))
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
        let own = UserTopics::of(&all, "b", "v");
        assert!(own.permit(Operation::Write, "x", b"k"));
        assert!(!own.permit(Operation::Write, "y", b"k"));
        assert!(UserTopics::of(&all, "d", "v").permit(Operation::Write, "x", b"k"));
    }
}
