//! Comparing the arguments of a declaration with those of what exists, in RabbitMQ's words.

use std::fmt;

use amqp::{FieldTable, FieldValue};

use crate::error::{Error, Resource};

/// Checks that one argument is the same in both tables: whole numbers by value, whatever their
/// width.
pub(crate) fn assert_equivalent(
    argument: &str,
    resource: Resource<'_>,
    received: &FieldTable,
    current: &FieldTable,
) -> Result<(), Error> {
    let (received, current) = (received.get(argument), current.get(argument));
    let (received, current) = match (received, current) {
        (None, None) => return Ok(()),
        (Some(received), Some(current)) if same(received, current) => return Ok(()),
        (Some(received), Some(current)) => (
            format!("'{}'", Plain(received)),
            format!("'{}'", Plain(current)),
        ),
        (received, current) => (described(received), described(current)),
    };
    Err(Error::inequivalent(argument, resource, &received, &current))
}

/// Checks that a flag is the same.
pub(crate) fn assert_same_flag(
    flag: &str,
    resource: Resource<'_>,
    received: bool,
    current: bool,
) -> Result<(), Error> {
    if received == current {
        return Ok(());
    }
    Err(Error::inequivalent(
        flag,
        resource,
        &format!("'{received}'"),
        &format!("'{current}'"),
    ))
}

fn same(received: &FieldValue, current: &FieldValue) -> bool {
    match (received.as_i64(), current.as_i64()) {
        (Some(received), Some(current)) => received == current,
        _ => received == current,
    }
}

fn described(value: Option<&FieldValue>) -> String {
    match value {
        Some(value) => format!(
            "the value '{}' of type '{}'",
            Plain(value),
            type_name(value)
        ),
        None => "none".to_owned(),
    }
}

/// RabbitMQ's name of a value's type.
pub(crate) fn type_name(value: &FieldValue) -> &'static str {
    match value {
        FieldValue::Bool(_) => "bool",
        FieldValue::I8(_) => "byte",
        FieldValue::U8(_) => "unsignedbyte",
        FieldValue::I16(_) => "short",
        FieldValue::U16(_) => "unsignedshort",
        FieldValue::I32(_) => "signedint",
        FieldValue::U32(_) => "unsignedint",
        FieldValue::I64(_) => "long",
        FieldValue::F32(_) => "float",
        FieldValue::F64(_) => "double",
        FieldValue::Decimal(..) => "decimal",
        FieldValue::LongStr(_) => "longstr",
        FieldValue::Bytes(_) => "binary",
        FieldValue::Timestamp(_) => "timestamp",
        FieldValue::Table(_) => "table",
        FieldValue::Array(_) => "array",
        FieldValue::Void => "void",
    }
}

/// A value as it stands in a reply text.
pub(crate) struct Plain<'a>(pub &'a FieldValue);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FieldValue::Bool(value) => value.fmt(f),
            FieldValue::F32(value) => value.fmt(f),
            FieldValue::F64(value) => value.fmt(f),
            FieldValue::Decimal(scale, digits) => write!(f, "{digits}e-{scale}"),
            FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => {
                f.write_str(&String::from_utf8_lossy(bytes))
            }
            FieldValue::Timestamp(seconds) => seconds.fmt(f),
            FieldValue::Table(table) => write!(f, "table of {} entries", table.len()),
            FieldValue::Array(items) => write!(f, "array of {} items", items.len()),
            FieldValue::Void => f.write_str("undefined"),
            number => number.as_i64().unwrap_or_default().fmt(f),
        }
    }
}
