//! Permissions: three regular expressions over names, for configure, write and read.

use super::Rule;
use crate::error::Error;

/// What a client wants to do to an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Declare or delete.
    Configure,
    /// Publish to, or bind to.
    Write,
    /// Consume, or bind from.
    Read,
}

impl Operation {
    /// As reply texts call it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Configure => "configure",
            Operation::Write => "write",
            Operation::Read => "read",
        }
    }
}

/// What a user may do in a vhost.
#[derive(Debug, Clone)]
pub struct Permissions {
    configure: Rule,
    write: Rule,
    read: Rule,
}

/// The default exchange is matched under this name.
const DEFAULT_EXCHANGE: &str = "amq.default";

impl Permissions {
    /// From the three patterns. As in RabbitMQ they match anywhere in a name unless anchored, and
    /// an empty one matches nothing.
    pub fn new(configure: &str, write: &str, read: &str) -> Result<Self, Error> {
        let rule = |pattern| {
            Rule::new(pattern)
                .map_err(|reason| Error::precondition(format!("invalid permission: {reason}")))
        };
        Ok(Permissions {
            configure: rule(configure)?,
            write: rule(write)?,
            read: rule(read)?,
        })
    }

    /// From patterns that were checked before.
    pub(crate) fn restored(configure: &str, write: &str, read: &str) -> Self {
        Permissions {
            configure: Rule::unchecked(configure),
            write: Rule::unchecked(write),
            read: Rule::unchecked(read),
        }
    }

    /// The patterns for configure, write and read.
    pub fn patterns(&self) -> [&str; 3] {
        [&self.configure, &self.write, &self.read].map(Rule::as_str)
    }

    /// True where the operation on the entity of that name is permitted.
    pub fn permit(&self, operation: Operation, name: &str) -> bool {
        let name = if name.is_empty() {
            DEFAULT_EXCHANGE
        } else {
            name
        };
        match operation {
            Operation::Configure => self.configure.permits(name),
            Operation::Write => self.write.permits(name),
            Operation::Read => self.read.permits(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_rabbitmq() {
        let permissions = Permissions::new("^my-", "", "queue$").expect("valid patterns");
        assert!(permissions.permit(Operation::Configure, "my-queue"));
        assert!(!permissions.permit(Operation::Configure, "not-my-queue"));
        assert!(!permissions.permit(Operation::Write, "my-queue"));
        assert!(permissions.permit(Operation::Read, "any queue"));
    }

    #[test]
    fn default_exchange_is_called_amq_default() {
        let permissions = Permissions::new("", "^amq\\.default$", "").expect("valid patterns");
        assert!(permissions.permit(Operation::Write, ""));
    }

    #[test]
    fn bad_pattern_is_an_error() {
        assert!(Permissions::new("(", ".*", ".*").is_err());
    }

    #[test]
    fn patterns_may_look_ahead_as_in_perl() {
        let permissions = Permissions::new("^(?!amq\\.)", "", "").expect("valid patterns");
        assert!(permissions.permit(Operation::Configure, "orders"));
        assert!(!permissions.permit(Operation::Configure, "amq.topic"));
    }
}
