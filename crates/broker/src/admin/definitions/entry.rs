//! One entry of a file of definitions: reading its parts, with errors that say which entry it is.

use std::fmt;

use amqp::FieldTable;
use serde_json::{Map, Value};

use crate::json::table_from;

/// Bytes of a name in AMQP, and in a key of the store.
const MAX_NAME: usize = 255;
/// Bytes of a pattern.
const MAX_TEXT: usize = 16 * 1024;

/// An entry.
pub(super) struct Entry<'v> {
    /// The key of the list that it is in.
    list: &'static str,
    /// Its place in the list, from 1.
    place: usize,
    object: &'v Map<String, Value>,
}

/// The entries of a list, which may be missing.
///
/// # Errors
/// It is no list of objects.
pub(super) fn entries<'v>(all: &'v Value, list: &'static str) -> Result<Vec<Entry<'v>>, String> {
    let items = match all.get(list) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(format!("{list}: a list was expected")),
    };
    let entries = items.iter().enumerate().map(|(index, item)| {
        let place = index + 1;
        let object = item
            .as_object()
            .ok_or_else(|| format!("{list}, entry {place}: an object was expected"))?;
        Ok(Entry {
            list,
            place,
            object,
        })
    });
    entries.collect()
}

impl<'v> Entry<'v> {
    /// An error about this entry.
    pub fn error(&self, text: impl fmt::Display) -> String {
        let of = |key| {
            let value = self.object.get(key)?.as_str()?;
            Some(format!(" '{value}'"))
        };
        let name = of("name").or_else(|| of("user")).or_else(|| of("source"));
        let vhost = match of("vhost") {
            Some(vhost) => format!(" in vhost{vhost}"),
            None => String::new(),
        };
        let (list, place) = (self.list, self.place);
        let name = name.unwrap_or_default();
        format!("{list}, entry {place}{name}{vhost}: {text}")
    }

    /// Whatever is under a key.
    pub fn value(&self, key: &str) -> Option<&'v Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// A name, which has to be there.
    pub fn name(&self, key: &str) -> Result<&'v str, String> {
        let name = self.text(key)?;
        if name.len() > MAX_NAME {
            return Err(self.error(format!("{key} is longer than {MAX_NAME} bytes")));
        }
        Ok(name)
    }

    /// Text that has to be there.
    pub fn text(&self, key: &str) -> Result<&'v str, String> {
        let text = self.optional_text(key)?;
        text.ok_or_else(|| self.error(format!("{key} is missing")))
    }

    pub fn optional_text(&self, key: &str) -> Result<Option<&'v str>, String> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= MAX_TEXT => Ok(Some(text)),
            Some(Value::String(_)) => {
                Err(self.error(format!("{key} is longer than {MAX_TEXT} bytes")))
            }
            Some(_) => Err(self.error(format!("{key} has to be text"))),
        }
    }

    /// A flag, false where it is missing.
    pub fn flag(&self, key: &str) -> Result<bool, String> {
        match self.value(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.error(format!("{key} has to be true or false"))),
        }
    }

    /// A whole number, 0 where it is missing.
    pub fn number(&self, key: &str) -> Result<i64, String> {
        match self.value(key) {
            None => Ok(0),
            Some(value) => value
                .as_i64()
                .ok_or_else(|| self.error(format!("{key} has to be a whole number"))),
        }
    }

    /// A table, empty where it is missing; RabbitMQ writes an empty one as a list at times.
    pub fn table(&self, key: &str) -> Result<FieldTable, String> {
        match self.value(key) {
            None => Ok(FieldTable::new()),
            Some(Value::Array(items)) if items.is_empty() => Ok(FieldTable::new()),
            Some(Value::Object(object)) => table_from(object).map_err(|text| self.error(text)),
            Some(_) => Err(self.error(format!("{key} has to be an object"))),
        }
    }

    /// Tags: a list, or text with commas.
    pub fn tags(&self, key: &str) -> Result<Vec<String>, String> {
        match self.value(key) {
            Some(value) => tags(value).ok_or_else(|| self.error(format!("{key} has to be a list"))),
            None => Ok(Vec::new()),
        }
    }

    /// True if something is there that is not empty.
    pub fn has(&self, key: &str) -> bool {
        match self.value(key) {
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(object)) => !object.is_empty(),
            other => other.is_some(),
        }
    }
}

/// Tags: a list, or text with commas.
pub(super) fn tags(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Some(tags.map(str::to_owned).collect())
        }
        Value::Array(items) => {
            let tags = items.iter().map(|item| item.as_str().map(str::to_owned));
            tags.collect()
        }
        _ => None,
    }
}
