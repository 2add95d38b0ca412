//! Field values as RabbitMQ shows them in texts: as terms of Erlang.

use std::fmt;

use amqp::{FieldTable, FieldValue};

use crate::arguments::type_name;

/// A value as a term.
pub(crate) struct Term<'a>(pub &'a FieldValue);

/// An entry of a table: `{<<"name">>,type,value}`.
pub(crate) struct Entry<'a>(pub &'a str, pub &'a FieldValue);

/// Bytes as a binary: `<<"text">>`, or their numbers where they are no text.
struct Binary<'a>(&'a [u8]);

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FieldValue::Bool(value) => value.fmt(f),
            FieldValue::F32(value) => write!(f, "{value:?}"),
            FieldValue::F64(value) => write!(f, "{value:?}"),
            FieldValue::Decimal(scale, digits) => write!(f, "{{{scale},{digits}}}"),
            FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => Binary(bytes).fmt(f),
            FieldValue::Timestamp(seconds) => seconds.fmt(f),
            FieldValue::Table(table) => {
                list(f, table.iter().map(|(name, value)| Entry(name, value)))
            }
            FieldValue::Array(items) => list(f, items.iter().map(Typed)),
            FieldValue::Void => f.write_str("undefined"),
            number => number.as_i64().unwrap_or_default().fmt(f),
        }
    }
}

/// An item of an array: `{type,value}`.
struct Typed<'a>(&'a FieldValue);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{},{}}}", type_name(self.0), Term(self.0))
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry(name, value) = self;
        let name = Binary(name.as_bytes());
        write!(f, "{{{name},{},{}}}", type_name(value), Term(value))
    }
}

impl fmt::Display for Binary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        match self.0 {
            [] => f.write_str("<<>>"),
            bytes if bytes.iter().all(is_text) => {
                write!(
                    f,
                    "<<\"{}\">>",
                    bytes.escape_ascii().to_string().replace("\\'", "'")
                )
            }
            bytes => {
                f.write_str("<<")?;
                comma_separated(f, bytes.iter())?;
                f.write_str(">>")
            }
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item: fmt::Display>) -> fmt::Result {
    f.write_str("[")?;
    comma_separated(f, items)?;
    f.write_str("]")
}

fn comma_separated(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item: fmt::Display>,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}

/// The entries of a table, each as a text: how the event exchange shows arguments.
pub(crate) fn entries(table: &FieldTable) -> FieldValue {
    let entries = table
        .iter()
        .map(|(name, value)| Entry(name, value).to_string());
    FieldValue::Array(entries.map(|entry| entry.as_str().into()).collect())
}

/// A map of texts, by atoms: `#{name => <<"text">>}`.
pub(crate) fn map(entries: &[(&str, Option<&str>)]) -> String {
    let entries = entries.iter().filter_map(|(name, text)| {
        let text = Binary(text.as_ref()?.as_bytes());
        Some(format!("{name} => {text}"))
    });
    format!("#{{{}}}", entries.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As RabbitMQ 3.10.8 writes them.
    #[test]
    fn values_look_as_erlang_writes_them() {
        let table = FieldTable::new().with("a", 1);
        let array = FieldValue::Array(vec![1.into()]);
        for (value, text) in [
            (FieldValue::I64(-1), "-1"),
            (FieldValue::from("a"), r#"<<"a">>"#),
            (FieldValue::from("it's \"so\""), r#"<<"it's \"so\"">>"#),
            (FieldValue::from(""), "<<>>"),
            (FieldValue::LongStr(vec![1, 200]), "<<1,200>>"),
            (FieldValue::Bool(true), "true"),
            (FieldValue::F64(3.5), "3.5"),
            (FieldValue::Void, "undefined"),
            (array, "[{signedint,1}]"),
            (table.into(), r#"[{<<"a">>,signedint,1}]"#),
        ] {
            assert_eq!(Term(&value).to_string(), text);
        }
        let described = map(&[("a", None), ("b", Some("")), ("c", Some("x"))]);
        assert_eq!(described, r#"#{b => <<>>,c => <<"x">>}"#);
        let length = FieldValue::I32(5);
        let entry = Entry("x-max-length", &length);
        assert_eq!(entry.to_string(), r#"{<<"x-max-length">>,signedint,5}"#);
    }
}
