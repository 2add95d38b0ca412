//! Values as RabbitMQ's error texts show them: as terms of Erlang.

use std::fmt;

use amqp::{FieldTable, FieldValue};

/// A value as a term.
pub(super) struct Term<'a>(pub &'a FieldValue);

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FieldValue::Bool(value) => value.fmt(f),
            FieldValue::F32(value) => write!(f, "{value:?}"),
            FieldValue::F64(value) => write!(f, "{value:?}"),
            FieldValue::LongStr(text) => write!(f, "<<\"{}\">>", String::from_utf8_lossy(text)),
            FieldValue::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{}", Term(item))?;
                }
                f.write_str("]")
            }
            FieldValue::Table(table) => {
                f.write_str("#{")?;
                for (index, (name, value)) in table.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}<<\"{name}\">> => {}", Term(value))?;
                }
                f.write_str("}")
            }
            FieldValue::Void => f.write_str("null"),
            number => number.as_i64().unwrap_or_default().fmt(f),
        }
    }
}

/// Entries as a list of pairs.
pub(super) fn pairs(table: &FieldTable) -> String {
    let pairs: Vec<String> = table
        .iter()
        .map(|(name, value)| format!("{{<<\"{name}\">>,{}}}", Term(value)))
        .collect();
    format!("[{}]", pairs.join(","))
}
