//! The head of a page: what was measured, when, where, and how to do it again.

use super::chart::swatch;
use super::columns::{Columns, source};
use super::html::{Markup, element};
use super::table::key;
use crate::number;
use crate::result::{Document, Host};

/// A title for a page that was given none.
pub fn title(documents: &[(String, Document)], columns: &Columns) -> String {
    let mut scenarios: Vec<&str> = documents
        .iter()
        .map(|(_, document)| document.scenario.as_deref().unwrap_or("Load test"))
        .collect();
    scenarios.dedup();
    let single = documents.len() == 1;
    // Where each result is of one broker, what they are called says enough.
    let names: Vec<String> = match !single && documents.len() == columns.columns.len() {
        true => documents.iter().map(source).collect(),
        false => columns
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect(),
    };
    match (scenarios.as_slice(), names.len()) {
        ([], _) => "No results".into(),
        ([one], 1..=3) => format!("{one}: {}", names.join(" and ")),
        ([one], _) => format!("{one}: {} results", names.len()),
        (_, count) => format!("{count} results"),
    }
}

/// Title, what is compared, and for each result where it comes from.
pub fn head(title: &str, documents: &[(String, Document)], columns: &Columns) -> Markup {
    let heading = element("p", &[("class", "kicker")], "leveret perf")
        .with(element("h1", &[], title))
        .with(element("p", &[("class", "lede")], lede(documents, columns)));
    let sources = documents
        .iter()
        .enumerate()
        .map(|(index, (file, document))| {
            let mut source = keys(index, columns);
            source.push(element("p", &[], origin(file, document)));
            if !document.command.is_empty() {
                source.push(element(
                    "pre",
                    &[("tabindex", "0")],
                    command(&document.command),
                ));
            }
            element("li", &[], source)
        });
    let mut head = element("header", &[], heading);
    head.push(element(
        "ul",
        &[("class", "sources")],
        Markup::from_iter(sources),
    ));
    if different_hosts(documents) {
        let warning = "These results come from different machines: their figures say as much about \
                       those as about the brokers.";
        head.push(element("p", &[("class", "notice")], warning));
    }
    head
}

fn lede(documents: &[(String, Document)], columns: &Columns) -> String {
    let runs: usize = documents
        .iter()
        .map(|(_, document)| document.runs.len())
        .sum();
    let plural = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{} {more}", number::count(count as u64)),
    };
    let mut parts = vec![
        plural(documents.len(), "result", "results"),
        plural(columns.names.len(), "load", "loads"),
        plural(runs, "run", "runs"),
    ];
    let seconds: f64 = documents
        .iter()
        .flat_map(|(_, document)| &document.runs)
        .map(|run| run.totals.seconds)
        .sum();
    if seconds >= 1.0 {
        parts.push(format!("{} s measured", number::count(seconds as u64)));
    }
    parts.join(" · ")
}

/// The columns that a document gives, as they are drawn.
fn keys(document: usize, columns: &Columns) -> Markup {
    let of = columns.columns.iter().enumerate();
    let of = of.filter(|(_, column)| column.document == document);
    let keys = of.map(|(index, column)| {
        let name = element("b", &[], &column.name);
        match columns.is_single() {
            true => name,
            false => {
                let letter = swatch(index).with(key(index, &column.letter));
                element("span", &[("class", "entry")], letter.with(" ").with(name))
            }
        }
    });
    element("p", &[("class", "keys")], Markup::from_iter(keys))
}

fn origin(file: &str, document: &Document) -> String {
    let mut parts = vec![file.to_owned()];
    parts.extend(
        document
            .label
            .as_ref()
            .map(|label| format!("labelled {label}")),
    );
    parts.push(date(&document.started));
    parts.push(host(&document.host));
    parts.push(format!("load tester {}", document.leveret));
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// `2026-03-01 12:00 UTC` of RFC 3339; whatever else it is as it is.
pub fn date(started: &str) -> String {
    match (
        started.get(..10),
        started.get(11..16),
        started.ends_with('Z'),
    ) {
        (Some(day), Some(time), true) => format!("{day} {time} UTC"),
        _ => started.into(),
    }
}

fn host(host: &Host) -> String {
    let mut parts = vec![host.name.clone(), host.cpu.clone()];
    if host.cores > 0 {
        parts.push(format!("{} cores", host.cores));
    }
    if host.memory_bytes > 0 {
        parts.push(number::bytes(host.memory_bytes as f64));
    }
    parts.push(host.system.clone());
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn different_hosts(documents: &[(String, Document)]) -> bool {
    let machine = |host: &Host| (host.name.clone(), host.cpu.clone(), host.cores);
    let mut machines = documents
        .iter()
        .map(|(_, document)| machine(&document.host));
    let first = machines.next();
    machines.any(|machine| Some(machine) != first)
}

/// A command line that a shell takes as it was.
fn command(arguments: &[String]) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_=./:,@%+".contains(character);
    let quoted = arguments.iter().map(|argument| {
        match !argument.is_empty() && argument.chars().all(plain) {
            true => argument.clone(),
            false => format!("'{}'", argument.replace('\'', "'\\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let arguments = [
            "leveret",
            "perf",
            "-h",
            "amqp://a:5672/%2f",
            "-qa",
            "x=it's,y",
        ];
        let arguments = arguments.map(str::to_owned);
        assert_eq!(
            command(&arguments),
            "leveret perf -h amqp://a:5672/%2f -qa 'x=it'\\''s,y'"
        );
    }

    #[test]
    fn dates_lose_their_seconds() {
        assert_eq!(date("2026-03-01T12:34:56Z"), "2026-03-01 12:34 UTC");
        assert_eq!(date("yesterday"), "yesterday");
        assert_eq!(date("äääääääääääZ"), "äääääääääääZ");
    }
}
