//! Field tables from JSON and back: arguments, policies' definitions and parameters come as JSON.

use amqp::{FieldTable, FieldValue};
use serde_json::{Map, Number, Value};

use crate::arguments::type_name;

/// Less than a field table may nest, so that what came as JSON can always be read back.
const MAX_DEPTH: usize = 32;
/// Bytes of a name in a field table.
const MAX_NAME: usize = 255;

/// A table from an object's entries.
///
/// # Errors
/// It is nested too deep, or a name is too long.
pub fn table_from(object: &Map<String, Value>) -> Result<FieldTable, String> {
    table_at(object, 0)
}

/// A value.
///
/// # Errors
/// It is nested too deep, or a name is too long.
pub fn value_from(value: &Value) -> Result<FieldValue, String> {
    value_at(value, 0)
}

fn table_at(object: &Map<String, Value>, depth: usize) -> Result<FieldTable, String> {
    let entries = object.iter().map(|(name, value)| {
        if name.len() > MAX_NAME {
            return Err(format!("the name {name:?} is longer than {MAX_NAME} bytes"));
        }
        Ok((name.as_str().into(), value_at(value, depth + 1)?))
    });
    entries.collect()
}

fn value_at(value: &Value, depth: usize) -> Result<FieldValue, String> {
    if depth > MAX_DEPTH {
        return Err(format!("values are nested deeper than {MAX_DEPTH} levels"));
    }
    Ok(match value {
        Value::Null => FieldValue::Void,
        Value::Bool(flag) => FieldValue::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => FieldValue::I64(whole),
            None => FieldValue::F64(number.as_f64().unwrap_or(f64::MAX)),
        },
        Value::String(text) => FieldValue::LongStr(text.as_bytes().to_vec()),
        Value::Array(items) => {
            let items = items.iter().map(|item| value_at(item, depth + 1));
            FieldValue::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(object) => FieldValue::Table(table_at(object, depth)?),
    })
}

/// An object with a table's entries.
pub fn table_to(table: &FieldTable) -> Value {
    let entries = table
        .iter()
        .map(|(name, value)| (name.to_owned(), value_to(value)));
    Value::Object(entries.collect())
}

/// Name, type and value of each entry, as `rabbitmqctl` shows arguments.
pub fn entries_to(table: &FieldTable) -> Value {
    let entries = table.iter().map(|(name, value)| {
        let entry = [name.into(), type_name(value).into(), value_to(value)];
        Value::Array(entry.to_vec())
    });
    Value::Array(entries.collect())
}

/// A value as RabbitMQ's definitions show it; bytes that are not UTF-8 get replacement characters.
pub fn value_to(value: &FieldValue) -> Value {
    let float = |number| Number::from_f64(number).map_or(Value::Null, Value::Number);
    match value {
        FieldValue::Bool(flag) => Value::Bool(*flag),
        FieldValue::F32(number) => float(f64::from(*number)),
        FieldValue::F64(number) => float(*number),
        FieldValue::Decimal(scale, digits) => {
            float(f64::from(*digits) / 10f64.powi(i32::from(*scale)))
        }
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => {
            Value::String(String::from_utf8_lossy(bytes).into_owned())
        }
        FieldValue::Timestamp(seconds) => Value::from(*seconds),
        FieldValue::Table(table) => table_to(table),
        FieldValue::Array(items) => Value::Array(items.iter().map(value_to).collect()),
        FieldValue::Void => Value::Null,
        number => Value::from(number.as_i64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_as_they_were() {
        let text = r#"{"a":1,"b":-1.5,"c":"x","d":[true,null],"e":{"f":[]}}"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        let table = table_from(value.as_object().expect("an object")).expect("a table");
        assert_eq!(table.get("a"), Some(&FieldValue::I64(1)));
        assert_eq!(table_to(&table), value);
    }

    #[test]
    fn what_a_restart_could_not_read_is_refused() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        let value: Value = serde_json::from_str(&deep).expect("JSON");
        assert!(value_from(&value).is_err());
        let long = Map::from_iter([("n".repeat(256), Value::Null)]);
        assert!(table_from(&long).is_err());
    }
}
