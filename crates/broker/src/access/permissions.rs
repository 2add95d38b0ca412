//! Permissions: three regular expressions over names, for configure, write and read.

use regex::Regex;

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
    configure: Pattern,
    write: Pattern,
    read: Pattern,
}

/// The default exchange is matched under this name.
const DEFAULT_EXCHANGE: &str = "amq.default";

#[derive(Debug, Clone)]
enum Pattern {
    /// `.*`: spares the match.
    Everything,
    /// The empty pattern: only the empty name, which nothing has.
    Nothing,
    Matching(Regex),
}

impl Pattern {
    fn new(pattern: &str) -> Result<Pattern, Error> {
        match pattern {
            ".*" => Ok(Pattern::Everything),
            "" => Ok(Pattern::Nothing),
            _ => Regex::new(pattern)
                .map(Pattern::Matching)
                .map_err(|error| Error::precondition(format!("invalid permission: {error}"))),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Pattern::Everything => ".*",
            Pattern::Nothing => "",
            Pattern::Matching(regex) => regex.as_str(),
        }
    }

    fn permits(&self, name: &str) -> bool {
        match self {
            Pattern::Everything => true,
            Pattern::Nothing => false,
            Pattern::Matching(regex) => regex.is_match(name),
        }
    }
}

impl Permissions {
    /// From the three patterns. As in RabbitMQ they match anywhere in a name unless anchored, and
    /// an empty one matches nothing.
    pub fn new(configure: &str, write: &str, read: &str) -> Result<Self, Error> {
        Ok(Permissions {
            configure: Pattern::new(configure)?,
            write: Pattern::new(write)?,
            read: Pattern::new(read)?,
        })
    }

    /// The patterns for configure, write and read.
    pub fn patterns(&self) -> [&str; 3] {
        [&self.configure, &self.write, &self.read].map(Pattern::as_str)
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
}
