//! The patterns of policies and permissions. Those written for RabbitMQ, which takes Perl's regular
//! expressions, often say what they are not for (`^(?!amq\.)`): so look-around has to work here.

/// More would be a program rather than a pattern.
const MAX_LEN: usize = 4096;
/// Steps back, after which a match is given up: it is tried for every queue, under the vhost's lock.
const MAX_BACKTRACKS: usize = 10_000;

/// A regular expression over names and routing keys; it matches anywhere in them unless anchored.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_may_look_ahead_as_in_perl() {
        let pattern = Pattern::new(r"^(?!amq\.).*").expect("a pattern");
        assert!(pattern.matches("orders") && !pattern.matches("amq.gen-x"));
        let anywhere = Pattern::new("b").expect("a pattern");
        assert!(anywhere.matches("abc"));
    }

    #[test]
    fn pattern_that_takes_too_long_matches_nothing() {
        let endless = Pattern::new(r"^(?=(a+)+$)(?=b)").expect("a pattern");
        let began = std::time::Instant::now();
        let name = "a".repeat(254) + "c";
        assert!(!endless.matches(&name));
        let twice = Pattern::new(r"^(\w+)*\1x$").expect("a pattern");
        assert!(!twice.matches(&name));
        assert!(began.elapsed() < std::time::Duration::from_secs(1));
        assert!(Pattern::new(&"a".repeat(5_000)).is_err());
    }
}
