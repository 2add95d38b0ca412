//! Arguments to options with their values, by the rules of Apache Commons CLI's default parser,
//! which PerfTest reads its command line with:
//!
//! - `-x 1`, `-x1`, `-x=1`, `--producers 1`, `--producers=1`, `-producers 1`;
//! - a long name may be cut short where that leaves one option, after one dash or two;
//! - short names of one letter may share a dash: `-pK`, `-aKx1`;
//! - a value may begin with a dash if it is a number, or if no option begins like it;
//! - options with many values take all that follow, up to the next option.
//!
//! Where those rules only lead to a failure, more is understood (`-qpf=1`), or the message says
//! what may have been meant.

use super::options::{self, Class, Spec, Takes};
use crate::Error;

/// An option as it was given once.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// Which.
    pub spec: &'static Spec,
    /// Its values; none for a flag, and for `-e` alone.
    pub values: Vec<String>,
}

/// What the arguments say, in their order, and what is odd about it.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The options.
    pub occurrences: Vec<Occurrence>,
    /// A line each.
    pub warnings: Vec<String>,
}

/// Takes arguments apart.
///
/// # Errors
/// An option is unknown or ambiguous, a value is missing or too many.
pub fn parse(arguments: &[String]) -> Result<Arguments, Error> {
    let mut parser = Parser::default();
    let mut arguments = arguments.iter();
    for token in arguments.by_ref().take_while(|token| *token != "--") {
        parser.token(token)?;
    }
    parser.finish_option()?;
    match arguments.next() {
        Some(stray) => Err(stray_argument(stray)),
        None => Ok(parser.found),
    }
}

#[derive(Default)]
struct Parser {
    found: Arguments,
    /// The last option may take a value yet.
    open: bool,
}

impl Parser {
    fn token(&mut self, token: &str) -> Result<(), Error> {
        if self.open && (!looks_like_option(token) || is_number(token)) {
            self.value(unquoted(token));
            return Ok(());
        }
        self.finish_option()?;
        match token.strip_prefix("--") {
            Some(long) => self.long(token, long),
            None => match token.strip_prefix('-') {
                None | Some("") => Err(stray_argument(token)),
                Some(name) => self.single_dash(token, name),
            },
        }
    }

    /// An option begins.
    fn option(&mut self, spec: &'static Spec) {
        let values = Vec::new();
        self.found.occurrences.push(Occurrence { spec, values });
        self.open = spec.takes_value();
    }

    /// An option that carries its value with it.
    fn option_with(&mut self, spec: &'static Spec, value: &str) {
        self.option(spec);
        self.value(value);
        self.open = false;
    }

    fn value(&mut self, value: &str) {
        if let Some(last) = self.found.occurrences.last_mut() {
            last.values.push(value.to_owned());
            self.open = matches!(last.spec.takes, Takes::Many(_));
        }
    }

    /// Complains if the last option still lacks its value.
    fn finish_option(&mut self) -> Result<(), Error> {
        self.open = false;
        match self.found.occurrences.last() {
            Some(last) if last.spec.needs_value() && last.values.is_empty() => {
                let name = last.spec.name();
                let hint = match last.spec.long {
                    "uri" => " (for help, ask with -?)",
                    _ => "",
                };
                Err(Error::Usage(format!("{name} needs a value{hint}")))
            }
            _ => Ok(()),
        }
    }

    /// `--producers`, `--producers=1`, without the dashes in `rest`.
    fn long(&mut self, token: &str, rest: &str) -> Result<(), Error> {
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        let spec = only(token, &options::by_prefix(name))?;
        match value {
            None => self.option(spec),
            Some(value) if spec.takes_value() => self.option_with(spec, value),
            Some(_) => return Err(Error::Usage(format!("{} takes no value", spec.name()))),
        }
        Ok(())
    }

    /// What follows one dash: a short name, a long one, or several short ones.
    fn single_dash(&mut self, token: &str, rest: &str) -> Result<(), Error> {
        if let Some(spec) = options::by_short(rest) {
            self.option(spec);
            return Ok(());
        }
        if let Some((name, value)) = rest.split_once('=') {
            return match options::by_short(name) {
                Some(spec) if spec.takes_value() => {
                    self.option_with(spec, value);
                    Ok(())
                }
                Some(spec) => Err(Error::Usage(format!("{} takes no value", spec.name()))),
                None => self.long(token, rest),
            };
        }
        if !options::by_prefix(rest).is_empty() {
            return self.long(token, rest);
        }
        match long_name_with_value(rest) {
            Some((spec, value)) => {
                self.option_with(spec, value);
                Ok(())
            }
            None => self.letters(token, rest),
        }
    }

    /// `-pK`, `-aKx1`: flags, and at the end perhaps an option with its value.
    fn letters(&mut self, token: &str, rest: &str) -> Result<(), Error> {
        let mut found = Vec::new();
        let mut last = None;
        for (at, letter) in rest.char_indices() {
            let spec = options::by_short(&rest[at..at + letter.len_utf8()]);
            let spec = spec.ok_or_else(|| unknown(token))?;
            let value = &rest[at + letter.len_utf8()..];
            if spec.takes_value() {
                last = Some((spec, value));
                break;
            }
            found.push(spec);
        }
        if let Some(last) = last {
            self.doubt(token, &found, last)?;
        }
        found.into_iter().for_each(|spec| self.option(spec));
        match last {
            Some((spec, "")) => self.option(spec),
            Some((spec, value)) => self.option_with(spec, value),
            None => {}
        }
        Ok(())
    }

    /// Letters that can be read, but hardly as they were meant.
    fn doubt(&mut self, token: &str, flags: &[&Spec], last: (&Spec, &str)) -> Result<(), Error> {
        let (spec, value) = last;
        if value.is_empty() {
            return Ok(());
        }
        let rest = token.trim_start_matches('-');
        let number_missing = matches!(spec.takes, Takes::Number(_)) && !is_number(value);
        // -vr5 would print the version.
        if number_missing || flags.iter().any(|flag| flag.class == Class::Print) {
            if let Some((meant, value)) = glued_short_name(rest) {
                return Err(Error::Usage(format!(
                    "{token}: a name of several letters stands apart from its value: \
                     -{meant} {value}"
                )));
            }
            if rest.len() > 4 && options::nearest(token).is_some() {
                return Err(unknown(token));
            }
        }
        let near = |one: &&Spec| one.long.len() > 4 && options::distance(one.long, rest) <= 2;
        if let Some(meant) = options::all().find(near) {
            self.found.warnings.push(format!(
                "{token} is understood as -{} {value}, not as --{}",
                spec.short, meant.long
            ));
        }
        Ok(())
    }
}

/// `-consumers12`: a long name with its value, which has two characters at least; a shorter one
/// leaves the token to [`Parser::letters`].
fn long_name_with_value(rest: &str) -> Option<(&'static Spec, &str)> {
    let ends = rest.char_indices().map(|(at, _)| at).rev();
    ends.skip(1).filter(|at| *at > 1).find_map(|at| {
        let spec = options::by_long(&rest[..at]).filter(|spec| spec.takes_value())?;
        Some((spec, &rest[at..]))
    })
}

/// `qpf1`: the longest short name of several letters at its beginning, and the rest.
fn glued_short_name(rest: &str) -> Option<(&str, &str)> {
    let ends = rest.char_indices().map(|(at, _)| at).rev();
    ends.filter(|at| *at > 1).find_map(|at| {
        options::by_short(&rest[..at]).filter(|spec| spec.takes_value())?;
        Some(rest.split_at(at))
    })
}

/// Whether this would begin an option, right or wrong, where a value may stand.
fn looks_like_option(token: &str) -> bool {
    let Some(rest) = token.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
        return false;
    };
    if token == "--" {
        return true;
    }
    let name = rest.split_once('=').map_or(rest, |(name, _)| name);
    if let Some(long) = name.strip_prefix('-') {
        return !options::by_prefix(long).is_empty() || options::by_short(long).is_some();
    }
    let letter = name.chars().next().map(String::from);
    !options::by_prefix(name).is_empty()
        || letter.is_some_and(|letter| options::by_short(&letter).is_some())
        || options::by_short(name).is_some()
        || long_name_with_value(rest).is_some()
}

/// A number, as `-1` and `1e3` are, and not `inf`, which Rust would take.
fn is_number(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// Without the double quotes around it, which some shells leave.
fn unquoted(text: &str) -> &str {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).unwrap_or(text)
}

/// The one option that was meant.
fn only(token: &str, candidates: &[&'static Spec]) -> Result<&'static Spec, Error> {
    match candidates {
        [] => Err(unknown(token)),
        [spec] => Ok(spec),
        several => {
            let names: Vec<_> = several
                .iter()
                .map(|spec| format!("--{}", spec.long))
                .collect();
            let names = names.join(", ");
            Err(Error::Usage(format!(
                "option {token} could be any of {names}"
            )))
        }
    }
}

fn unknown(token: &str) -> Error {
    Error::Usage(match options::nearest(token) {
        Some(meant) => format!("unknown option {token}; did you mean {meant}?"),
        None => format!("unknown option {token}; -? lists all"),
    })
}

fn stray_argument(token: &str) -> Error {
    Error::Usage(format!(
        "'{token}' belongs to no option; what follows a command are options and their values"
    ))
}

#[cfg(test)]
mod tests;
