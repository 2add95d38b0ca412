//! What one pattern of a permission permits.

use std::sync::OnceLock;

use crate::pattern::Pattern;

/// A pattern over names, or over routing keys. As in RabbitMQ it matches anywhere in them unless
/// anchored, and an empty one matches only what is empty.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// `.*`: spares the match.
    Everything,
    Empty,
    Matching {
        text: Box<str>,
        /// Read when it is first asked: most users of a large installation are not there, and a
        /// pattern takes kilobytes. `None` where it makes no sense.
        pattern: OnceLock<Option<Pattern>>,
    },
}

impl Rule {
    /// # Errors
    /// What is wrong with the pattern.
    pub fn new(text: &str) -> Result<Rule, String> {
        Rule::filled(text, text)
    }

    /// The same, where names were filled into what was given: these do not count for its length.
    pub fn filled(given: &str, text: &str) -> Result<Rule, String> {
        Pattern::check_len(given)?;
        let rule = Rule::unchecked(text);
        if let Rule::Matching { text, .. } = &rule {
            Pattern::compile(text)?;
        }
        Ok(rule)
    }

    /// One that was checked before, if not by this version: what makes no sense permits nothing.
    pub fn unchecked(text: &str) -> Rule {
        match text {
            ".*" => Rule::Everything,
            "" => Rule::Empty,
            _ => Rule::Matching {
                text: text.into(),
                pattern: OnceLock::new(),
            },
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Rule::Everything => ".*",
            Rule::Empty => "",
            Rule::Matching { text, .. } => text,
        }
    }

    pub fn permits(&self, name: &str) -> bool {
        match self {
            Rule::Everything => true,
            Rule::Empty => name.is_empty(),
            Rule::Matching { text, pattern } => {
                let pattern = pattern.get_or_init(|| {
                    let log = |reason: &String| {
                        tracing::error!(pattern = %text, %reason, "a permission cannot be read, and permits nothing");
                    };
                    Pattern::compile(text).inspect_err(log).ok()
                });
                pattern
                    .as_ref()
                    .is_some_and(|pattern| pattern.matches(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_permits_nothing() {
        assert!(Rule::new("(").is_err() && Rule::filled("(", "(").is_err());
        let rule = Rule::unchecked("(");
        assert!(!rule.permits("") && !rule.permits("("));
        assert_eq!(rule.as_str(), "(");
    }

    #[test]
    fn filled_in_names_do_not_count() {
        let long = "a".repeat(20_000);
        assert!(
            Rule::filled("{username}", &long)
                .expect("it")
                .permits(&long)
        );
        assert!(Rule::new(&long).is_err() && Rule::filled(&long, "a").is_err());
    }
}
