//! The patterns of policies and permissions. Those written for RabbitMQ, which takes Perl's regular
//! expressions, often say what they are not for (`^(?!amq\.)`): so look-around has to work here.

/// More would be a program rather than a pattern.
const MAX_LEN: usize = 16 * 1024;
/// Steps back, after which a match is given up: that of a policy is tried for every queue, under the
/// vhost's lock.
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
        Pattern::check_len(text)?;
        Pattern::compile(text)
    }

    pub(crate) fn check_len(text: &str) -> Result<(), String> {
        match text.len() {
            ..=MAX_LEN => Ok(()),
            _ => Err(format!("longer than {MAX_LEN} bytes")),
        }
    }

    /// Reads a pattern of any length.
    pub(crate) fn compile(text: &str) -> Result<Pattern, String> {
        if has_flags_in_group(text) {
            return Err("flags within a group; write (?i:…) instead of (?i)".to_owned());
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

/// True where flags are set within a group (`(a(?i)b)c`). They end with it in Perl; fancy-regex
/// would keep them to the end of the pattern, which may then match more than was meant.
fn has_flags_in_group(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut groups, mut classes, mut at) = (0usize, 0usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'[' => {
                classes += 1;
                at += usize::from(bytes.get(at) == Some(&b'^'));
                // The first of a class stands for itself.
                at += usize::from(bytes.get(at) == Some(&b']'));
            }
            b']' => classes = classes.saturating_sub(1),
            b'(' if classes == 0 => {
                if groups > 0 && sets_flags(&bytes[at..]) {
                    return true;
                }
                groups += 1;
            }
            b')' if classes == 0 => groups = groups.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// True for what follows the parenthesis of `(?i)` or `(?-s)`.
fn sets_flags(rest: &[u8]) -> bool {
    let Some(flags) = rest.strip_prefix(b"?") else {
        return false;
    };
    let end = flags
        .iter()
        .position(|b| !b.is_ascii_alphabetic() && *b != b'-');
    end.is_some_and(|end| end > 0 && flags[end] == b')')
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
        assert!(Pattern::new(&"a".repeat(17_000)).is_err());
    }

    #[test]
    fn flags_hold_for_what_they_are_set_for() {
        let all = Pattern::new("(?i)^(a)b$").expect("a pattern");
        assert!(all.matches("AB"));
        let one = Pattern::new("^(?!(?i:amq))orders$").expect("a pattern");
        assert!(one.matches("orders") && !one.matches("ORDERS"));
        for lasting in [
            "^(?!(?i)amq)orders",
            "((?i)a)b",
            "([)](?-s)a)b",
            "(\\((?i)a)b",
            "(a[]](?s).).",
        ] {
            assert!(Pattern::new(lasting).is_err(), "{lasting}");
        }
        for plain in [
            r"(a\(?i)b",
            "([(?i)]a)",
            "(?<name>a)(?i)b",
            "(a)(?i)b",
            "(?P<i>a)",
            "(a(?=b))",
        ] {
            assert!(Pattern::new(plain).is_ok(), "{plain}");
        }
    }
}
