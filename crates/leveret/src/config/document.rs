//! The reference page and the list of environment variables, both made from the table of options.

use std::fmt::Write;

use super::DEFAULT_CONFIG_FILE;
use super::option::{BuiltIn, ConfigOption};
use super::options;

/// The text of `docs/configuration.md` and of `leveret config`, in Markdown.
pub fn reference_page() -> String {
    let mut page = introduction();
    for section in options::SECTIONS {
        let rows = section.options.iter().map(option_row);
        let title = format!("## {}\n\n{}", section.title, section.introduction);
        page.push_str(&table(&title, ["Key", "Value", "Default", "Meaning"], rows));
    }
    let rows = variables().map(|(name, meaning)| [format!("`{name}`"), meaning]);
    page.push_str(&table(
        VARIABLES_INTRODUCTION,
        ["Variable", "Meaning"],
        rows,
    ));
    page
}

/// Every environment variable that the server reads, with its meaning in Markdown.
pub fn variables() -> impl Iterator<Item = (&'static str, String)> {
    let alone = options::VARIABLES
        .iter()
        .map(|variable| (variable.name, variable.meaning.into()));
    let of_options = options::all().filter_map(|option| {
        let meaning = format!("{} Takes precedence over `{}`.", option.meaning, option.key);
        Some((option.variable?, meaning))
    });
    alone.chain(of_options)
}

fn introduction() -> String {
    format!(
        "# Configuration

Leveret reads the syntax and the keys of `rabbitmq.conf`. With no file at all it starts with the
defaults below: AMQP on port 5672, the user `guest` from this machine only, data in
`./leveret-data`.

The file is the one named by `--config`, else by the environment variable
`{file}`, else `{DEFAULT_CONFIG_FILE}` if that exists. What is set in more than
one place is taken from the flag, else from the environment, else from the file, else from the
defaults.

## The file

```ini
# A comment, on its own line or after a value.
listeners.tcp.default = 5672
log.console.level = info
# Quotes keep a `#` and spaces at the ends of a value.
default_pass = 'p#ssword'
# $(NAME) stands for an environment variable, which has to be set.
default_user = $(BROKER_USER)
```

- One `key = value` a line. Of several lines with one key the last counts; the others are warned
  about.
- A name of your own in a key, such as a listener's, may have letters, digits, `-` and `_`; a dot in
  it is written `\\.`.
- A key of RabbitMQ 3.13 or 4.3 that Leveret does not use is ignored with a warning. Any other
  unknown key is an error that names its line and the key that looks most like it.
- All errors are reported together, before anything is started. The exit status is then 2.

`leveret config` prints this page; it is generated from the table of options in the program.
",
        file = options::CONFIG_FILE_VARIABLE,
    )
}

const VARIABLES_INTRODUCTION: &str = "## Environment variables

Those that the official RabbitMQ image reads have the same names here. An empty one counts as not
set.";

fn option_row(option: &ConfigOption) -> [String; 4] {
    let mut meaning = option.meaning.to_owned();
    let others = [
        option.flag.map(|flag| ("Flag", flag)),
        option.variable.map(|v| ("Variable", v)),
    ];
    for (kind, name) in others.into_iter().flatten() {
        meaning.push_str(&format!(" {kind}: `{name}`."));
    }
    let key = option
        .key
        .replace("$name", "NAME")
        .replace("$tag", "TAG")
        .replace("$user", "USER");
    let default = match option.built_in {
        BuiltIn::Value(value) => format!("`{value}`"),
        BuiltIn::Member(name, value) => format!("`{name}`: `{value}`"),
        BuiltIn::Described(text) => text.to_owned(),
    };
    [
        format!("`{key}`"),
        option.values.to_owned(),
        default,
        meaning,
    ]
}

/// A text and a Markdown table under it.
fn table<const N: usize>(
    text: &str,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = format!(
        "\n{text}\n\n| {} |\n|{}\n",
        head.join(" | "),
        "---|".repeat(N)
    );
    for row in rows {
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

    #[test]
    fn the_reference_page_is_up_to_date() {
        let page = reference_page();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(PAGE, &page).unwrap();
        }
        let stored = std::fs::read_to_string(PAGE).unwrap_or_default();
        assert!(
            stored == page,
            "docs/configuration.md is stale: run the tests with UPDATE_DOCS=1"
        );
    }

    #[test]
    fn every_option_says_what_it_does_and_what_it_takes() {
        for option in options::all() {
            assert!(
                option.meaning.ends_with('.'),
                "{}: a meaning is a sentence",
                option.key
            );
            assert!(!option.values.is_empty(), "{}: no values", option.key);
        }
    }
}
