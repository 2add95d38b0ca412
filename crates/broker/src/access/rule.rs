//! What one pattern of a permission permits.

use crate::pattern::Pattern;

/// A pattern over names, or over routing keys. As in RabbitMQ it matches anywhere in them unless
/// anchored, and an empty one matches only what is empty.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// `.*`: spares the match.
    Everything,
    Empty,
    Matching(Pattern),
}

impl Rule {
    /// # Errors
    /// What is wrong with the pattern.
    pub fn new(pattern: &str) -> Result<Rule, String> {
        match pattern {
            ".*" => Ok(Rule::Everything),
            "" => Ok(Rule::Empty),
            _ => Pattern::new(pattern).map(Rule::Matching),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Rule::Everything => ".*",
            Rule::Empty => "",
            Rule::Matching(pattern) => pattern.as_str(),
        }
    }

    pub fn permits(&self, name: &str) -> bool {
        match self {
            Rule::Everything => true,
            Rule::Empty => name.is_empty(),
            Rule::Matching(pattern) => pattern.matches(name),
        }
    }
}
