//! What stands side by side: each broker of each result is a column, with a letter for tables, charts
//! and legends.

use std::collections::HashSet;
use std::path::Path;

use crate::result::{Broker, Document, Run};

/// One broker of one result.
#[derive(Debug, Clone)]
pub struct Column<'a> {
    /// `A`, `B`, …
    pub letter: String,
    /// What sets it apart: `v0.3.0 · Leveret 0.3.0`.
    pub name: String,
    /// Index of its document.
    pub document: usize,
    /// Its broker, as the first of its runs saw it.
    pub broker: &'a Broker,
    /// Its runs, in the order in which they ran.
    pub runs: Vec<&'a Run>,
}

/// All columns, and the names of runs that they have.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    /// In the order of documents, and in those by first run.
    pub columns: Vec<Column<'a>>,
    /// In the order of their first run.
    pub names: Vec<&'a str>,
}

impl<'a> Column<'a> {
    /// Its rounds of that name.
    pub fn rounds(&self, name: &str) -> impl Iterator<Item = &'a Run> {
        self.runs
            .iter()
            .copied()
            .filter(move |run| run.name == name)
    }
}

impl<'a> Columns<'a> {
    /// Of results with the names of their files.
    pub fn of(documents: &'a [(String, Document)]) -> Columns<'a> {
        let mut columns = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for (index, (_, document)) in documents.iter().enumerate() {
            add(&mut columns, index, document);
            for run in &document.runs {
                if !names.contains(&run.name.as_str()) {
                    names.push(&run.name);
                }
            }
        }
        set_apart(&mut columns, documents);
        Columns { columns, names }
    }

    /// Whether there is nothing to tell apart.
    pub fn is_single(&self) -> bool {
        self.columns.len() < 2
    }

    /// Rounds of a name that the column with most of them has.
    pub fn rounds(&self, name: &str) -> usize {
        let rounds = self
            .columns
            .iter()
            .map(|column| column.rounds(name).count());
        rounds.max().unwrap_or(0)
    }
}

/// Sorts a document's runs by broker.
fn add<'a>(columns: &mut Vec<Column<'a>>, index: usize, document: &'a Document) {
    let start = columns.len();
    let by_address = same_kind_twice(document);
    for run in &document.runs {
        let broker = known(document, &run.broker);
        let found = columns[start..].iter_mut().find(|column| {
            let same = (&column.broker.product, &column.broker.version)
                == (&broker.product, &broker.version);
            same && (!by_address || column.broker.address == broker.address)
        });
        match found {
            Some(column) => column.runs.push(run),
            None => columns.push(Column {
                letter: letter(columns.len()),
                name: String::new(),
                document: index,
                broker,
                runs: vec![run],
            }),
        }
    }
}

/// A broker that did not answer has no name in its run; another run at the same address may know it.
fn known<'a>(document: &'a Document, broker: &'a Broker) -> &'a Broker {
    let answered = |other: &&Broker| !other.product.is_empty() && other.address == broker.address;
    match broker.product.is_empty() {
        true => {
            let mut brokers = document.runs.iter().map(|run| &run.broker);
            brokers.find(answered).unwrap_or(broker)
        }
        false => broker,
    }
}

/// Whether two brokers of one product and version took part: then addresses tell them apart. Otherwise
/// they do not, since a scenario may start its broker anew on another port for each run.
fn same_kind_twice(document: &Document) -> bool {
    let mut seen = HashSet::new();
    let mut addresses = HashSet::new();
    let mut twice = false;
    for run in &document.runs {
        let broker = known(document, &run.broker);
        let kind = (&run.name, run.round, &broker.product, &broker.version);
        let new_address = addresses.insert((kind, &broker.address));
        twice |= !seen.insert(kind) && new_address;
    }
    twice
}

/// Gives each column a name that no other has.
fn set_apart(columns: &mut [Column], documents: &[(String, Document)]) {
    for column in columns.iter_mut() {
        let broker = broker_name(column.broker);
        column.name = match documents.len() {
            0 | 1 => broker,
            _ => format!("{} · {broker}", source(&documents[column.document])),
        };
    }
    for column in twice(columns) {
        columns[column].name += &format!(" at {}", columns[column].broker.address);
    }
    for column in twice(columns) {
        columns[column].name += &format!(" ({})", columns[column].letter);
    }
}

/// Those whose name another one has, too.
fn twice(columns: &[Column]) -> Vec<usize> {
    let same = |name: &str| columns.iter().filter(|column| column.name == name).count();
    let all = 0..columns.len();
    all.filter(|index| same(&columns[*index].name) > 1)
        .collect()
}

/// A result's label, or else its file's name.
pub fn source((file, document): &(String, Document)) -> String {
    match &document.label {
        Some(label) => label.clone(),
        None => Path::new(file)
            .file_stem()
            .map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned()),
    }
}

/// Product and version, or where it should have been.
pub fn broker_name(broker: &Broker) -> String {
    match broker.product.is_empty() {
        true if broker.address.is_empty() => "unknown broker".into(),
        true => broker.address.clone(),
        false => format!("{} {}", broker.product, broker.version)
            .trim_end()
            .into(),
    }
}

/// `A` to `Z`, then `AA`, `AB`, …
fn letter(index: usize) -> String {
    let last = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => last.to_string(),
        more => letter(more - 1) + &last.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(runs: &[(&str, u32, &str, &str)]) -> (String, Document) {
        let mut document = Document::begin(None, None, Vec::new());
        document.runs = runs
            .iter()
            .map(|(name, round, product, address)| Run {
                name: (*name).into(),
                round: *round,
                broker: Broker {
                    product: (*product).into(),
                    address: (*address).into(),
                    ..Broker::default()
                },
                ..Run::default()
            })
            .collect();
        ("results/first.json".into(), document)
    }

    #[test]
    fn brokers_of_one_document_are_columns_and_their_rounds_come_together() {
        let documents = [document(&[
            ("T=500", 1, "Leveret", "a"),
            ("T=500", 1, "RabbitMQ", "b"),
            ("T=500", 2, "Leveret", "a"),
            ("T=500", 2, "", "b"),
        ])];
        let columns = Columns::of(&documents);
        let names: Vec<_> = columns.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["Leveret", "RabbitMQ"]);
        assert_eq!(columns.columns[1].rounds("T=500").count(), 2);
        assert_eq!(columns.names, ["T=500"]);
        assert_eq!(columns.rounds("T=500"), 2);
    }

    #[test]
    fn addresses_count_only_for_two_brokers_of_one_kind() {
        let moved = [document(&[
            ("1", 1, "Leveret", "a"),
            ("2", 1, "Leveret", "b"),
        ])];
        assert!(Columns::of(&moved).is_single());
        let two = [document(&[
            ("1", 1, "Leveret", "a"),
            ("1", 1, "Leveret", "b"),
        ])];
        let columns = Columns::of(&two).columns;
        let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["Leveret at a", "Leveret at b"]);
    }

    #[test]
    fn one_file_twice_still_has_two_names() {
        let one = document(&[("1", 1, "Leveret", "a")]);
        let documents = [one.clone(), one];
        let columns = Columns::of(&documents).columns;
        assert_eq!(columns[0].name, "first · Leveret at a (A)");
        assert_eq!(columns[1].name, "first · Leveret at a (B)");
    }

    #[test]
    fn letters_go_on_after_z() {
        assert_eq!(letter(0), "A");
        assert_eq!(letter(25), "Z");
        assert_eq!(letter(26), "AA");
        assert_eq!(letter(52), "BA");
    }
}
