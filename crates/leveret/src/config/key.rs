//! Keys of a configuration file, and the patterns that options declare.
//!
//! A key is a list of segments, joined by dots; a dot inside a segment is written `\.`. A pattern
//! is a key in which a segment that starts with `$` stands for any one segment.

use std::fmt;

/// A key as written in a file: at least one segment, none of them empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    segments: Vec<String>,
}

impl Key {
    /// Reads a key, or says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut segments = vec![String::new()];
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '.' => segments.push(String::new()),
                '\\' if characters.as_str().starts_with('.') => {
                    characters.next();
                    push(&mut segments, '.');
                }
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => push(&mut segments, character),
                other => return Err(format!("a key cannot contain {other:?}")),
            }
        }
        if segments.iter().any(String::is_empty) {
            return Err("a key is a list of names joined by dots".to_owned());
        }
        Ok(Self { segments })
    }

    /// Whether the pattern covers this key. The segment that a `$name` stands for, if any, is the
    /// inner value; the last one where there are several.
    pub(super) fn matches(&self, pattern: &str) -> Option<Option<&str>> {
        let mut name = None;
        let mut expected = pattern.split('.');
        for segment in &self.segments {
            match expected.next()? {
                wildcard if wildcard.starts_with('$') => name = Some(segment.as_str()),
                literal if literal == segment => {}
                _ => return None,
            }
        }
        expected.next().is_none().then_some(name)
    }

    /// The pattern with this key's own segments in place of `$name`s: what the user might have
    /// meant. `None` where the lengths differ too much for the names to be carried over.
    pub(super) fn fill(&self, pattern: &str) -> Option<String> {
        if !pattern.contains('$') {
            return Some(pattern.to_owned());
        }
        let expected: Vec<&str> = pattern.split('.').collect();
        if expected.len() != self.segments.len() {
            return None;
        }
        let filled = Self {
            segments: expected
                .iter()
                .zip(&self.segments)
                .map(|(part, own)| {
                    if part.starts_with('$') {
                        own.clone()
                    } else {
                        (*part).into()
                    }
                })
                .collect(),
        };
        Some(filled.to_string())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            let dot = if position == 0 { "" } else { "." };
            write!(formatter, "{dot}{}", segment.replace('.', "\\."))?;
        }
        Ok(())
    }
}

fn push(segments: &mut [String], character: char) {
    if let Some(last) = segments.last_mut() {
        last.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn a_dollar_segment_stands_for_any_one_segment() {
        assert_eq!(
            key("listeners.tcp.1").matches("listeners.tcp.$name"),
            Some(Some("1"))
        );
        assert_eq!(key("listeners.tcp").matches("listeners.tcp.$name"), None);
        assert_eq!(
            key("listeners.tcp.a.b").matches("listeners.tcp.$name"),
            None
        );
        assert_eq!(key("heartbeat").matches("heartbeat"), Some(None));
        assert_eq!(key("heartbeat").matches("heart"), None);
    }

    #[test]
    fn an_escaped_dot_belongs_to_its_segment() {
        let user = key("loopback_users.jane\\.doe");
        assert_eq!(user.matches("loopback_users.$user"), Some(Some("jane.doe")));
        assert_eq!(user.to_string(), "loopback_users.jane\\.doe");
    }

    #[test]
    fn malformed_keys_are_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a\\b", "a=b", "ключ"] {
            assert!(Key::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn fill_carries_the_users_own_names_over() {
        let typo = key("listenrs.tcp.internal");
        assert_eq!(
            typo.fill("listeners.tcp.$name").as_deref(),
            Some("listeners.tcp.internal")
        );
        assert_eq!(typo.fill("auth_backends.$num"), None);
    }
}
