//! What was given, by arguments and environment together, and its values as numbers, switches and
//! lists. Arguments win over the environment.

use std::ops::RangeInclusive;
use std::str::FromStr;

use super::options::{self, Class, Spec, Takes};
use super::parse::Arguments;
use crate::Error;

/// Where PerfTest looks for a prefix of the environment variables that it reads.
const PREFIX_VARIABLE: &str = "RABBITMQ_PERF_TEST_ENV_PREFIX";

/// The options that were given, each once.
#[derive(Debug)]
pub struct Given {
    entries: Vec<Entry>,
    /// What is odd about them: a line each.
    pub warnings: Vec<String>,
}

/// An option with its values.
#[derive(Debug)]
pub struct Entry {
    /// Which.
    pub spec: &'static Spec,
    /// Its values.
    pub values: Vec<String>,
    /// The environment variable that they come from.
    variable: Option<String>,
}

impl Entry {
    fn name(&self) -> String {
        match &self.variable {
            Some(variable) => format!("{variable} in the environment"),
            None => self.spec.name(),
        }
    }
}

impl Given {
    /// Arguments, and the environment for what they do not say.
    ///
    /// # Errors
    /// An option is not supported.
    pub fn new(
        arguments: Arguments,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Given, Error> {
        let mut given = Given {
            entries: Vec::new(),
            warnings: arguments.warnings,
        };
        for occurrence in arguments.occurrences {
            given.add(occurrence.spec, occurrence.values);
        }
        given.read_environment(environment);
        for entry in &given.entries {
            let name = entry.name();
            match entry.spec.class {
                Class::Unsupported(advice) => {
                    return Err(Error::Usage(format!("{name}: {advice}")));
                }
                Class::Ignored(reason) => {
                    given
                        .warnings
                        .push(format!("{name} changes nothing: {reason}"));
                }
                Class::Load | Class::Own | Class::Print => {}
            }
        }
        Ok(given)
    }

    /// One more occurrence. Of an option with one value, the first counts, as in PerfTest.
    fn add(&mut self, spec: &'static Spec, values: Vec<String>) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.spec == spec) else {
            let variable = None;
            self.entries.push(Entry {
                spec,
                values,
                variable,
            });
            return;
        };
        match spec.takes {
            Takes::Many(_) => entry.values.extend(values),
            _ if entry.values.is_empty() => entry.values = values,
            _ if entry.values == values || values.is_empty() => {}
            _ => self.warnings.push(format!(
                "{} is given more than once: the first, {}, counts",
                spec.name(),
                entry.values.join(" ")
            )),
        }
    }

    fn read_environment(&mut self, environment: &dyn Fn(&str) -> Option<String>) {
        let prefix = match environment(PREFIX_VARIABLE).as_deref().map(str::trim) {
            None | Some("") => String::new(),
            Some(prefix) => format!("{}_", prefix.trim_end_matches('_')),
        };
        let mut read = Vec::new();
        for spec in options::all().filter(|spec| !self.has(spec.long)) {
            let Some(mut variable) = spec.variable() else {
                continue;
            };
            if spec.class != Class::Own {
                variable.insert_str(0, &prefix);
            }
            let Some(value) = environment(&variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let values = match spec.takes {
                Takes::Nothing if value.eq_ignore_ascii_case("true") => Vec::new(),
                Takes::Nothing => continue,
                Takes::Many(_) => value.split(',').map(str::to_owned).collect(),
                Takes::Number(_) | Takes::Text(_) | Takes::Maybe(_) => vec![value],
            };
            read.push(Entry {
                spec,
                values,
                variable: Some(variable),
            });
        }
        if !read.is_empty() {
            let names: Vec<_> = read
                .iter()
                .filter_map(|entry| entry.variable.as_deref())
                .collect();
            let names = names.join(", ");
            self.warnings
                .push(format!("options come from the environment: {names}"));
        }
        self.entries.append(&mut read);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    fn entry(&self, long: &str) -> Option<&Entry> {
        debug_assert!(options::by_long(long).is_some(), "no option --{long}");
        self.entries.iter().find(|entry| entry.spec.long == long)
    }

    /// Whether it was given.
    pub fn has(&self, long: &str) -> bool {
        self.entry(long).is_some()
    }

    /// As it was given, for messages.
    pub fn name(&self, long: &str) -> String {
        match (self.entry(long), options::by_long(long)) {
            (Some(entry), _) => entry.name(),
            (None, Some(spec)) => spec.name(),
            (None, None) => format!("--{long}"),
        }
    }

    /// Its value.
    pub fn text(&self, long: &str) -> Option<&str> {
        let entry = self.entry(long)?;
        entry.values.first().map(String::as_str)
    }

    /// All its values.
    pub fn values(&self, long: &str) -> &[String] {
        self.entry(long).map_or(&[], |entry| &entry.values)
    }

    /// An error with its value.
    pub fn wrong(&self, long: &str, value: &str, reason: impl std::fmt::Display) -> Error {
        let plain = !value.is_empty() && !value.contains(char::is_whitespace);
        let quote = if plain { "" } else { "'" };
        Error::Usage(format!(
            "{} {quote}{value}{quote}: {reason}",
            self.name(long)
        ))
    }

    /// Its value as a whole number within these bounds.
    pub fn number<T>(&self, long: &str, range: RangeInclusive<T>) -> Result<Option<T>, Error>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(text) = self.text(long) else {
            return Ok(None);
        };
        let bounds = format!("from {} to {}", range.start(), range.end());
        match text.parse::<T>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            Ok(_) => Err(self.wrong(long, text, format!("not {bounds}"))),
            Err(_) => Err(self.wrong(long, text, format!("not a whole number {bounds}"))),
        }
    }

    /// Its value as a number that may have a fraction.
    pub fn decimal(&self, long: &str) -> Result<Option<f64>, Error> {
        let Some(text) = self.text(long) else {
            return Ok(None);
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.wrong(long, text, "not a number")),
        }
    }

    /// Its value as `true` or `false`.
    pub fn switch(&self, long: &str) -> Result<Option<bool>, Error> {
        match self.text(long) {
            None => Ok(None),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(text) => Err(self.wrong(long, text, "neither true nor false")),
        }
    }

    /// Its value as one of several words.
    pub fn choice<T: Copy>(&self, long: &str, words: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(text) = self.text(long) else {
            return Ok(None);
        };
        let found = words.iter().find(|(word, _)| *word == text);
        let names = || {
            words
                .iter()
                .map(|(word, _)| *word)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match found {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(self.wrong(long, text, format!("none of {}", names()))),
        }
    }

    /// Its value, which travels as a short string: an exchange, a queue, a key.
    pub fn short_string(&self, long: &str) -> Result<Option<&str>, Error> {
        let text = self.text(long);
        text.map_or(Ok(()), |text| self.check_short(long, text))?;
        Ok(text)
    }

    /// Complains of a text that is too long for a short string.
    pub fn check_short(&self, long: &str, text: &str) -> Result<(), Error> {
        match text.len() {
            0..=255 => Ok(()),
            bytes => Err(Error::Usage(format!(
                "{}: {bytes} bytes where AMQP allows 255",
                self.name(long)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn given(line: &str, environment: &[(&str, &str)]) -> Given {
        let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let arguments = parse::parse(&arguments).expect("valid arguments");
        let look = |name: &str| {
            let found = environment.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Given::new(arguments, &look).expect("supported options")
    }

    #[test]
    fn environment_says_what_arguments_do_not() {
        let given = given(
            "-x 2",
            &[
                ("PRODUCERS", "7"),
                ("CONFIRM_TIMEOUT", "9"),
                ("VARIABLE_RATE", "100:60,1000:10"),
                ("NACK", "TRUE"),
                ("AUTOACK", "yes"),
                ("QUEUE", ""),
                ("VERSION", "12"),
            ],
        );
        assert_eq!(given.text("producers"), Some("2"));
        assert_eq!(
            given
                .number("confirm-timeout", 0..=10u32)
                .expect("a number"),
            Some(9)
        );
        assert_eq!(given.values("variable-rate"), ["100:60", "1000:10"]);
        assert!(given.has("nack") && !given.has("autoack") && !given.has("queue"));
        assert!(!given.has("version"));
        let [warning] = &given.warnings[..] else {
            panic!("one warning")
        };
        assert!(
            warning.ends_with("VARIABLE_RATE, CONFIRM_TIMEOUT, NACK"),
            "{warning}"
        );
    }

    #[test]
    fn environment_may_be_prefixed() {
        let environment = [
            ("RABBITMQ_PERF_TEST_ENV_PREFIX", "PERF"),
            ("PERF_SIZE", "x"),
            ("SIZE", "12"),
            ("LEVERET_PERF_LABEL", "1.0"),
        ];
        let given = given("", &environment);
        assert_eq!(given.text("label"), Some("1.0"));
        let error = given.number("size", 0..=100u32).expect_err("no number");
        assert_eq!(
            error.to_string(),
            "PERF_SIZE in the environment x: not a whole number from 0 to 100"
        );
    }

    #[test]
    fn first_of_two_values_counts_and_lists_grow() {
        let given = given("-x 1 -x 2 -y 3 -y 3 -f persistent -f mandatory", &[]);
        assert_eq!(given.text("producers"), Some("1"));
        assert_eq!(given.values("flag"), ["persistent", "mandatory"]);
        assert_eq!(
            given.warnings,
            ["-x/--producers is given more than once: the first, 1, counts"]
        );
    }

    #[test]
    fn options_of_java_are_accepted_and_pointed_out() {
        let given = given("-niot 4 -nty -mjm", &[]);
        assert_eq!(given.warnings.len(), 3);
        assert!(given.warnings[0].starts_with("-niot/--nio-threads changes nothing: "));
    }

    #[test]
    fn values_out_of_range_are_named_with_the_range() {
        let given = given("-q 65536 -r x -ad maybe -ew soon", &[]);
        let said = |error: Error| error.to_string();
        assert_eq!(
            given.number("qos", 0..=u16::MAX).map_err(said),
            Err("-q/--qos 65536: not a whole number from 0 to 65535".into())
        );
        assert!(given.decimal("rate").is_err());
        assert!(given.switch("auto-delete").is_err());
        let error = given
            .choice("exit-when", &[("empty", 1), ("idle", 2)])
            .expect_err("neither");
        assert_eq!(
            error.to_string(),
            "-ew/--exit-when soon: none of empty, idle"
        );
    }
}
