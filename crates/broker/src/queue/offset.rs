//! What a consumer of a stream says: where it begins to read (`x-stream-offset`), and what it wants
//! of that (`x-stream-filter`).

use std::sync::Arc;

use amqp::{FieldTable, FieldValue, Properties};
use store::Message;

use crate::clock::Millis;
use crate::error::{Error, Resource};

const OFFSET: &str = "x-stream-offset";
const FILTER: &str = "x-stream-filter";
const MATCH_UNFILTERED: &str = "x-stream-match-unfiltered";
/// The header that filters look at.
const FILTER_VALUE: &str = "x-stream-filter-value";

/// Where a consumer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// With the oldest message that is left.
    First,
    /// With the newest message.
    Last,
    /// With the next one that comes.
    #[default]
    Next,
    /// With the message of that offset, or the first behind it.
    Offset(u64),
    /// With the first message that came at that time or later; milliseconds of the Unix epoch.
    Time(Millis),
}

/// Which messages a consumer wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Any of these; none = everything.
    values: Arc<[Vec<u8>]>,
    /// Those without a value as well.
    unfiltered: bool,
}

/// What a consumer of a stream says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamOptions {
    /// Where it begins.
    pub start: Start,
    /// What it wants.
    pub filter: Filter,
}

impl Filter {
    /// True if the consumer wants that message.
    #[inline]
    pub fn wants(&self, message: &Message) -> bool {
        if self.values.is_empty() {
            return true;
        }
        let headers = Properties::from_wire(message.properties()).headers();
        let value = headers.and_then(|headers| headers.get(FILTER_VALUE));
        match value.and_then(|value| value.as_long_str()) {
            Some(value) => self.values.iter().any(|wanted| wanted == value),
            None => self.unfiltered,
        }
    }
}

impl StreamOptions {
    /// Reads the arguments of basic.consume.
    pub(crate) fn from_arguments(
        arguments: &FieldTable,
        now: Millis,
        resource: Resource<'_>,
    ) -> Result<StreamOptions, Error> {
        Ok(StreamOptions {
            start: start(arguments, now, resource)?,
            filter: filter(arguments, resource)?,
        })
    }
}

fn start(arguments: &FieldTable, now: Millis, resource: Resource<'_>) -> Result<Start, Error> {
    let Some(value) = arguments.get(OFFSET) else {
        return Ok(Start::default());
    };
    let wrong = |why: &str| {
        Err(Error::precondition(format!(
            "{OFFSET} for {resource}: {why}; expected first, last, next, an offset, a timestamp, or \
             an interval like 1h"
        )))
    };
    match value {
        FieldValue::Timestamp(seconds) => Ok(Start::Time(seconds.saturating_mul(1_000))),
        FieldValue::LongStr(text) => match text.as_slice() {
            b"first" => Ok(Start::First),
            b"last" => Ok(Start::Last),
            b"next" => Ok(Start::Next),
            other => match interval(other) {
                Some(interval) => Ok(Start::Time(now.saturating_sub(interval))),
                None => wrong(&format!("invalid '{}'", String::from_utf8_lossy(other))),
            },
        },
        number => match number.as_i64() {
            Some(offset) => Ok(Start::Offset(u64::try_from(offset).unwrap_or(0))),
            None => wrong("invalid type"),
        },
    }
}

fn filter(arguments: &FieldTable, resource: Resource<'_>) -> Result<Filter, Error> {
    let values = match arguments.get(FILTER) {
        None => Vec::new(),
        Some(FieldValue::LongStr(value)) => vec![value.clone()],
        Some(FieldValue::Array(values)) => values
            .iter()
            .map(|value| match value {
                FieldValue::LongStr(value) => Ok(value.clone()),
                _ => Err(()),
            })
            .collect::<Result<_, ()>>()
            .map_err(|()| invalid_filter(resource))?,
        Some(_) => return Err(invalid_filter(resource)),
    };
    Ok(Filter {
        values: values.into(),
        unfiltered: arguments.get(MATCH_UNFILTERED) == Some(&FieldValue::Bool(true)),
    })
}

fn invalid_filter(resource: Resource<'_>) -> Error {
    Error::precondition(format!(
        "{FILTER} for {resource} must be a string or an array of strings"
    ))
}

/// A number and a unit: `Y`, `M`, `D`, `h`, `m` or `s`; in milliseconds. RabbitMQ's years have 365
/// days and its months 30.
pub(crate) fn interval(text: &[u8]) -> Option<Millis> {
    let text = std::str::from_utf8(text).ok()?;
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    const DAY: u64 = 24 * 3_600;
    let seconds = match unit {
        'Y' => 365 * DAY,
        'M' => 30 * DAY,
        'D' => DAY,
        'h' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    number.checked_mul(seconds)?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units() {
        assert_eq!(interval(b"2h"), Some(7_200_000));
        assert_eq!(interval(b"1Y"), Some(365 * 86_400_000));
        for wrong in [
            &b"1"[..],
            b"h",
            b"1x",
            b"-1h",
            b"",
            b"1.5h",
            b"99999999999999999Y",
        ] {
            assert_eq!(interval(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn offsets_are_words_numbers_and_times() {
        let resource = Resource::queue("q", "/");
        let start = |value: FieldValue| {
            let arguments = FieldTable::new().with(OFFSET, value);
            super::start(&arguments, 10_000_000, resource)
        };
        assert_eq!(start("first".into()), Ok(Start::First));
        assert_eq!(start(FieldValue::I64(7)), Ok(Start::Offset(7)));
        assert_eq!(start(FieldValue::Timestamp(3)), Ok(Start::Time(3_000)));
        assert_eq!(start("1h".into()), Ok(Start::Time(6_400_000)));
        assert!(start("sometime".into()).is_err());
        assert!(start(FieldValue::Bool(true)).is_err());
    }
}
