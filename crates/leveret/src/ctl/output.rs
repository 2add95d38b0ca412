//! What commands print: banners, tables, JSON, CSV.

use std::io::{self, Write};

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Failed;
use crate::control::protocol::status;

mod pretty;

/// The forms that lists are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Formatter {
    Table,
    PrettyTable,
    Json,
    Csv,
}

/// How to print.
#[derive(Debug)]
pub(super) struct Output {
    formatter: Formatter,
    banners: bool,
    headers: bool,
}

impl Output {
    pub fn new(arguments: &Arguments) -> Result<Output, Failed> {
        let formatter = match arguments.formatter.as_deref() {
            None | Some("table" | "string") => Formatter::Table,
            Some("pretty_table") => Formatter::PrettyTable,
            Some("json") => Formatter::Json,
            Some("csv") => Formatter::Csv,
            Some(other) => {
                return Err(Failed::usage(format!(
                    "Error: unknown formatter '{other}'; known are table, pretty_table, json and \
                     csv"
                )));
            }
        };
        let programs = matches!(formatter, Formatter::Json | Formatter::Csv);
        Ok(Output {
            formatter,
            banners: !arguments.quiet && !arguments.silent && !programs,
            headers: !arguments.silent && !arguments.no_table_headers,
        })
    }

    /// True if programs read it.
    pub fn is_json(&self) -> bool {
        self.formatter == Formatter::Json
    }

    /// Says what is being done or was done, unless nobody wants to know.
    pub fn say(&self, text: &str) -> Result<(), Failed> {
        match self.banners {
            true => print(&format!("{text}\n")),
            false => Ok(()),
        }
    }

    /// Warns of something, on standard error.
    pub fn warn(&self, text: &str) {
        // A reader that has left has seen enough.
        let _ = writeln!(io::stderr(), "Warning: {text}");
    }

    /// The same without the names of columns in tables.
    pub fn without_headers(&self) -> Output {
        Output {
            headers: false,
            ..*self
        }
    }

    /// Prints rows, of which only these columns.
    pub fn rows(&self, columns: &[&str], rows: &[Value]) -> Result<(), Failed> {
        let text = match self.formatter {
            Formatter::Json => json(columns, rows),
            Formatter::PrettyTable => pretty::table(columns, &cells(columns, rows)),
            Formatter::Table => self.lines(columns, rows, "\t", &|cell| cell),
            Formatter::Csv => {
                let quoted = |cell: String| format!("\"{}\"", cell.replace('"', "\"\""));
                self.lines(columns, rows, ",", &quoted)
            }
        };
        print(&text)
    }

    /// One line a row; none at all, not even the columns' names, where there is no row.
    fn lines(
        &self,
        columns: &[&str],
        rows: &[Value],
        separator: &str,
        dressed: &dyn Fn(String) -> String,
    ) -> String {
        let mut text = String::new();
        let mut line = |cells: Vec<String>| {
            let cells: Vec<String> = cells.into_iter().map(dressed).collect();
            text.push_str(&cells.join(separator));
            text.push('\n');
        };
        if self.headers && !rows.is_empty() {
            line(columns.iter().map(|column| (*column).to_owned()).collect());
        }
        cells(columns, rows).into_iter().for_each(line);
        text
    }
}

/// Prints text as it is.
pub(super) fn print(text: &str) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        // A reader that has left has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| {
            let text = format!("Error: cannot write to standard output: {error}");
            Failed::new(status::SOFTWARE, text)
        }),
    }
}

fn json(columns: &[&str], rows: &[Value]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let entries: Vec<String> = columns
                .iter()
                .map(|column| {
                    let value = row.get(column).cloned();
                    let value = value.unwrap_or_else(|| Value::String(String::new()));
                    format!("{}:{value}", Value::from(*column))
                })
                .collect();
            format!("{{{}}}\n", entries.join(","))
        })
        .collect();
    format!("[\n{}]\n", rows.join(","))
}

fn cells(columns: &[&str], rows: &[Value]) -> Vec<Vec<String>> {
    let row = |row: &Value| {
        let cells = columns.iter().map(|column| cell(column, row.get(column)));
        cells.collect()
    };
    rows.iter().map(row).collect()
}

/// A value as one cell. Arguments come as lists of name, type and value.
fn cell(column: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => escaped(text),
        Some(Value::Array(entries)) if column == "arguments" => {
            let pairs: Vec<String> = entries
                .iter()
                .map(|entry| pair(&entry[0], &entry[2]))
                .collect();
            format!("[{}]", pairs.join(","))
        }
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| cell("", Some(item))).collect();
            format!("[{}]", items.join(", "))
        }
        Some(Value::Object(object)) => {
            let pairs: Vec<String> = object
                .iter()
                .map(|(name, value)| pair(&Value::from(name.as_str()), value))
                .collect();
            format!("[{}]", pairs.join(","))
        }
        Some(other) => other.to_string(),
    }
}

/// Name and value as Erlang shows them, which for plain ones looks like JSON.
fn pair(name: &Value, value: &Value) -> String {
    format!("{{{name},{value}}}")
}

/// One line, whatever is in it: cells and rows must stay apart.
fn escaped(text: &str) -> String {
    if !text.contains(|character: char| character.is_control()) {
        return text.to_owned();
    }
    let escaped = text.chars().map(|character| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_look_like_rabbitmqctls() {
        let cell = |value: Value| cell("arguments", Some(&value));
        assert_eq!(
            cell(json!([["foo", "longstr", "bar"], ["n", "signedint", 5]])),
            r#"[{"foo","bar"},{"n",5}]"#
        );
        assert_eq!(cell(json!([])), "[]");
        assert_eq!(cell(json!(true)), "true");
        assert_eq!(cell(json!("a\tb")), "a\\tb");
        let tags = super::cell("tags", Some(&json!(["a", "b"])));
        assert_eq!(tags, "[a, b]");
    }

    #[test]
    fn json_keeps_the_order_of_the_columns() {
        let rows = [json!({"b": 1, "a": [], "c": 2}), json!({"b": 2})];
        let text = json(&["b", "a"], &rows);
        assert_eq!(text, "[\n{\"b\":1,\"a\":[]}\n,{\"b\":2,\"a\":\"\"}\n]\n");
        assert_eq!(json(&["b"], &[]), "[\n]\n");
    }
}
