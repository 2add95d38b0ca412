//! Headers exchange: a message goes where its headers match the binding's arguments.
//!
//! `x-match` is `all` (default), `any`, `all-with-x` or `any-with-x`; only the latter two look at
//! arguments whose names start with `x-`. A void argument asks only for the header's presence.

use std::sync::Arc;

use amqp::{FieldTable, FieldValue, ShortStr, Table, Value};

use super::{Head, Router, Visit};
use crate::arguments::{Plain, type_name};
use crate::binding::Binding;
use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    All,
    Any,
    AllWithX,
    AnyWithX,
}

impl Match {
    fn from_arguments(arguments: &FieldTable) -> Result<Match, Error> {
        let Some(value) = arguments.get("x-match") else {
            return Ok(Match::All);
        };
        match value {
            FieldValue::LongStr(text) => match text.as_slice() {
                b"all" => Ok(Match::All),
                b"any" => Ok(Match::Any),
                b"all-with-x" => Ok(Match::AllWithX),
                b"any-with-x" => Ok(Match::AnyWithX),
                other => Err(Error::precondition(format!(
                    "Invalid x-match field value <<\"{}\">>; expected all, any, all-with-x, or \
                     any-with-x",
                    String::from_utf8_lossy(other)
                ))),
            },
            other => Err(Error::precondition(format!(
                "Invalid x-match field type {} (value {}); expected longstr",
                type_name(other),
                Plain(other)
            ))),
        }
    }
}

/// Checks a binding's arguments before it is made.
pub(super) fn validate(arguments: &FieldTable) -> Result<(), Error> {
    Match::from_arguments(arguments).map(drop)
}

#[derive(Default)]
pub(super) struct Headers {
    bindings: Vec<(Match, Arc<Binding>)>,
}

/// A message's headers by name, looked up once for each argument of each binding.
struct Sorted<'m>(Vec<(ShortStr<'m>, Value<'m>)>);

impl<'m> Sorted<'m> {
    fn new(headers: Option<Table<'m>>) -> Self {
        let mut entries: Vec<_> = headers
            .into_iter()
            .flat_map(|table| table.iter().map_while(Result::ok))
            .collect();
        // Stable: of several with one name, the first counts.
        entries.sort_by_key(|(name, _)| *name);
        Sorted(entries)
    }

    fn get(&self, name: &str) -> Option<Value<'m>> {
        let at = self
            .0
            .partition_point(|(other, _)| other.as_bytes() < name.as_bytes());
        let (found, value) = self.0.get(at)?;
        (found.as_bytes() == name.as_bytes()).then_some(*value)
    }
}

fn accepts(mode: Match, wanted: &FieldTable, headers: &Sorted<'_>) -> bool {
    let mut wanted = wanted.iter().filter(|(name, _)| match mode {
        Match::All | Match::Any => !name.starts_with("x-"),
        Match::AllWithX | Match::AnyWithX => *name != "x-match",
    });
    let has = |(name, value): (&str, &FieldValue)| {
        let found = headers.get(name);
        found.is_some_and(|found| *value == FieldValue::Void || equal(value, found))
    };
    match mode {
        Match::All | Match::AllWithX => wanted.all(has),
        Match::Any | Match::AnyWithX => wanted.any(has),
    }
}

/// Numbers compare by value, whatever their width.
fn equal(wanted: &FieldValue, found: Value<'_>) -> bool {
    if let (Some(wanted), Some(found)) = (wanted.as_i64(), found.as_i64()) {
        return wanted == found;
    }
    match (wanted, found) {
        (FieldValue::LongStr(wanted), Value::LongStr(found)) => wanted == found,
        (FieldValue::Bytes(wanted), Value::Bytes(found)) => wanted == found,
        (FieldValue::Bool(wanted), Value::Bool(found)) => *wanted == found,
        (FieldValue::Timestamp(wanted), Value::Timestamp(found)) => *wanted == found,
        (FieldValue::F64(wanted), Value::F64(found)) => *wanted == found,
        (FieldValue::F32(wanted), Value::F32(found)) => *wanted == found,
        (FieldValue::Decimal(scale, digits), Value::Decimal(other_scale, other_digits)) => {
            (*scale, *digits) == (other_scale, other_digits)
        }
        (FieldValue::Table(wanted), Value::Table(found)) => found
            .to_owned()
            .is_ok_and(|found| found == *wanted || found.same_entries(wanted)),
        _ => false,
    }
}

impl Router for Headers {
    fn add(&mut self, binding: &Arc<Binding>) {
        let mode = Match::from_arguments(&binding.arguments).unwrap_or(Match::All);
        self.bindings.push((mode, binding.clone()));
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        self.bindings
            .retain(|(_, other)| !Arc::ptr_eq(other, binding));
    }

    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        let headers = Sorted::new(message.headers);
        for (mode, binding) in &self.bindings {
            if accepts(*mode, &binding.arguments, &headers) {
                visit(&binding.destination);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(wanted: &FieldTable, headers: &FieldTable) -> bool {
        let mode = Match::from_arguments(wanted).expect("valid x-match");
        accepts(
            mode,
            wanted,
            &Sorted::new(Some(Table::from_wire(&headers.encode()))),
        )
    }

    #[test]
    fn all_needs_every_header_and_any_needs_one() {
        let all = FieldTable::new().with("a", 1).with("b", "two");
        let any = all.clone().with("x-match", "any");
        let both = FieldTable::new().with("b", "two").with("a", 1i64);
        let one = FieldTable::new().with("b", "two");
        assert!(matches(&all, &both) && matches(&any, &both));
        assert!(!matches(&all, &one) && matches(&any, &one));
        assert!(!matches(&any, &FieldTable::new().with("a", 2)));
    }

    #[test]
    fn x_arguments_count_only_with_x() {
        let wanted = FieldTable::new().with("x-kind", "k").with("a", 1);
        let headers = FieldTable::new().with("a", 1);
        assert!(matches(&wanted, &headers));
        assert!(!matches(
            &wanted.clone().with("x-match", "all-with-x"),
            &headers
        ));
        let only_x = FieldTable::new().with("x-kind", "k");
        assert!(!matches(&wanted.clone().with("x-match", "any"), &only_x));
        assert!(matches(&wanted.with("x-match", "any-with-x"), &only_x));
    }

    #[test]
    fn void_asks_for_presence() {
        let wanted = FieldTable::new().with("a", FieldValue::Void);
        assert!(matches(&wanted, &FieldTable::new().with("a", "anything")));
        assert!(!matches(&wanted, &FieldTable::new().with("b", "anything")));
    }

    #[test]
    fn no_arguments_match_everything_with_all_and_nothing_with_any() {
        let headers = FieldTable::new().with("a", 1);
        assert!(matches(&FieldTable::new(), &headers));
        assert!(!matches(
            &FieldTable::new().with("x-match", "any"),
            &headers
        ));
    }
}
