//! The pattern of a policy. Those written for RabbitMQ, which takes Perl's regular expressions,
//! often say what they are not for (`^(?!amq\.)`): so look-around has to work here.

/// More would be a program rather than a pattern.
const MAX_LEN: usize = 4096;
/// Steps back, after which a match is given up: it is tried for every queue, under the vhost's lock.
const MAX_BACKTRACKS: usize = 10_000;

/// A regular expression over names; it matches anywhere in them unless anchored.
#[derive(Debug, Clone)]
pub struct Pattern(fancy_regex::Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Pattern, String> {
        if text.len() > MAX_LEN {
            return Err(format!("longer than {MAX_LEN} bytes"));
        }
        fancy_regex::RegexBuilder::new(text)
            .backtrack_limit(MAX_BACKTRACKS)
            .build()
            .map(Pattern)
            .map_err(|error| error.to_string())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// True for a name that it is for. One that takes too long to tell is none.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name).unwrap_or(false)
    }
}
