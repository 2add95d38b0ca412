//! The syntax of a configuration file, as RabbitMQ's: one `key = value` a line, `#` starts a
//! comment, a value may stand in single quotes, in which `#` and spaces at its ends are kept.
//!
//! Knows no option: it turns bytes into settings and says which lines are neither a setting, a
//! comment nor blank.

use std::path::Path;

use super::error::{Origin, ProblemKind, Report};
use super::key::Key;

/// One `key = value` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) key: Key,
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// Reads a whole file; lines that cannot be read are reported and left out.
pub(super) fn parse(file: &Path, text: &[u8], report: &mut Report) -> Vec<Setting> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut settings = Vec::new();
    for (position, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let origin = Origin::Line {
            file: file.to_owned(),
            line: position + 1,
        };
        let Ok(line) = std::str::from_utf8(line) else {
            report.problem(
                origin,
                ProblemKind::Syntax("the line is not UTF-8 text".to_owned()),
            );
            continue;
        };
        match parse_line(line.strip_suffix('\r').unwrap_or(line)) {
            Ok(Line::Blank) => {}
            Ok(Line::Setting { key, value, cut }) => {
                if cut {
                    let text = format!(
                        "{key}: the value ends at `#`, where a comment starts; put the value in \
                         single quotes if the `#` belongs to it"
                    );
                    report.warn(origin.clone(), text);
                }
                settings.push(Setting { key, value, origin });
            }
            Err(text) => report.problem(origin, ProblemKind::Syntax(text)),
        }
    }
    settings
}

enum Line {
    Blank,
    /// `cut`: a comment starts right after the value, without a space between.
    Setting {
        key: Key,
        value: String,
        cut: bool,
    },
}

fn parse_line(line: &str) -> Result<Line, String> {
    let line = line.trim_matches(SPACES);
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Blank);
    }
    let Some((key, rest)) = line.split_once('=') else {
        return Err("expected `key = value`, a comment or a blank line".to_owned());
    };
    let key = Key::parse(key.trim_end_matches(SPACES))?;
    let rest = rest.trim_start_matches(SPACES);
    let (value, cut) = match rest.strip_prefix('\'') {
        Some(quoted) => (parse_quoted(&key, quoted)?, false),
        None => parse_bare(&key, rest)?,
    };
    Ok(Line::Setting {
        key,
        value: value.to_owned(),
        cut,
    })
}

/// The value up to the closing quote; only a comment may follow.
fn parse_quoted<'a>(key: &Key, quoted: &'a str) -> Result<&'a str, String> {
    let Some((value, rest)) = quoted.split_once('\'') else {
        return Err(format!("{key}: the closing single quote is missing"));
    };
    let rest = rest.trim_start_matches(SPACES);
    if rest.is_empty() || rest.starts_with('#') {
        Ok(value)
    } else {
        Err(format!(
            "{key}: there is text after the closing single quote"
        ))
    }
}

/// The value up to a comment, and whether that comment touches it.
fn parse_bare<'a>(key: &Key, rest: &'a str) -> Result<(&'a str, bool), String> {
    let before_comment = rest.split_once('#').map_or(rest, |(value, _)| value);
    let value = before_comment.trim_end_matches(SPACES);
    if value.is_empty() {
        return Err(format!(
            "{key}: the value is missing; an empty value is written ''"
        ));
    }
    let has_comment = before_comment.len() < rest.len();
    Ok((value, has_comment && value.len() == before_comment.len()))
}

const SPACES: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::{Report, parse};

    fn pairs(text: &str) -> Vec<(String, String)> {
        let mut report = Report::default();
        let settings = parse("t.conf".as_ref(), text.as_bytes(), &mut report);
        assert_eq!(report.problems, []);
        settings
            .into_iter()
            .map(|setting| (setting.key.to_string(), setting.value))
            .collect()
    }

    fn problem(text: &str) -> String {
        let mut report = Report::default();
        parse("t.conf".as_ref(), text.as_bytes(), &mut report);
        let [problem] = &report.problems[..] else {
            panic!("{text:?}: {:?}", report.problems)
        };
        problem.to_string()
    }

    #[test]
    fn comments_blank_lines_and_spaces_do_not_matter() {
        let text = "\u{feff}# one\n## two\n\n \t\r\n a.b=1\r\n\tc\t=\t2 3 # four\n";
        let expected = [("a.b", "1"), ("c", "2 3")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn quotes_keep_what_a_bare_value_loses() {
        assert_eq!(
            pairs("p = ' a#b ' # c"),
            [("p".to_owned(), " a#b ".to_owned())]
        );
        assert_eq!(pairs("p = ''"), [("p".to_owned(), String::new())]);
        assert_eq!(pairs("p = it's"), [("p".to_owned(), "it's".to_owned())]);
        assert_eq!(pairs("p = a = b"), [("p".to_owned(), "a = b".to_owned())]);
    }

    #[test]
    fn a_comment_that_touches_its_value_is_warned_about() {
        let mut report = Report::default();
        let settings = parse("t.conf".as_ref(), b"p = pass#word", &mut report);
        assert_eq!(settings[0].value, "pass");
        assert!(
            report.warnings[0]
                .to_string()
                .starts_with("t.conf:1: p: the value ends at `#`")
        );
    }

    #[test]
    fn a_line_that_is_no_setting_is_named() {
        assert_eq!(
            problem("\nnonsense"),
            "t.conf:2: expected `key = value`, a comment or a blank line"
        );
        assert_eq!(problem("a b = 1"), "t.conf:1: a key cannot contain ' '");
        assert_eq!(
            problem("a ="),
            "t.conf:1: a: the value is missing; an empty value is written ''"
        );
        assert_eq!(
            problem("a = 'b"),
            "t.conf:1: a: the closing single quote is missing"
        );
        assert_eq!(
            problem("a = 'b'c"),
            "t.conf:1: a: there is text after the closing single quote"
        );
    }

    #[test]
    fn a_line_that_is_not_utf8_is_named() {
        let mut report = Report::default();
        let settings = parse("t.conf".as_ref(), b"a = 1\nb = \xff\nc = 3", &mut report);
        assert_eq!(settings.len(), 2);
        assert_eq!(
            report.problems[0].to_string(),
            "t.conf:2: the line is not UTF-8 text"
        );
    }
}
