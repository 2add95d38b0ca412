//! Tables on the terminal: a row for each case, columns for each broker, and what others published.

use crate::number;
use crate::report::{Cell, Columns, Figure, Table, rows};
use crate::result::Document;

/// Medians over rounds of those figures, by key or by the scenario's own name. With two brokers the
/// ratio is that of the first figure, the second broker's to the first's.
pub fn table(document: &Document, figures: &[&str]) -> String {
    let documents = [(String::new(), document.clone())];
    let columns = Columns::of(&documents);
    let figures: Vec<Figure> = figures
        .iter()
        .map(|key| match Figure::choose(&[key]).pop() {
            Some(figure) => figure,
            None => Figure::named(key),
        })
        .filter(|figure| document.runs.iter().any(|run| figure.value(run).is_some()))
        .collect();
    let published = published(document);
    let mut table = Table::new();
    heads(&mut table, &columns, &figures, &published);
    for name in &columns.names {
        let rows = rows(&columns, name, &figures);
        let mut cells = vec![Cell::new(*name)];
        for (index, _) in columns.columns.iter().enumerate() {
            cells.extend(figures.iter().map(|figure| {
                let row = rows.iter().find(|row| row.figure.key == figure.key);
                let median = row.and_then(|row| row.medians[index]);
                Cell::new(median.map_or_else(
                    || number::NONE.to_owned(),
                    |median| figure.unit.format(median.value),
                ))
            }));
            if index > 0 {
                let first = rows
                    .first()
                    .filter(|row| Some(&row.figure.key) == figures.first().map(|f| &f.key));
                let ratio = first.and_then(|row| row.ratio(index));
                cells.push(Cell::new(
                    ratio.map_or_else(|| number::NONE.into(), number::ratio),
                ));
            }
        }
        cells.extend(published.iter().map(|key| {
            let mut of_case = document.runs.iter().filter(|run| run.name == *name);
            let value = of_case.find_map(|run| run.published.get(key));
            Cell::new(value.map_or_else(|| number::NONE.into(), |value| number::grouped(*value)))
        }));
        table.row(cells, true);
    }
    table.text()
}

fn heads(table: &mut Table, columns: &Columns, figures: &[Figure], published: &[String]) {
    table.group("", 1);
    table.text_column("case");
    for (index, column) in columns.columns.iter().enumerate() {
        let name = match columns.is_single() {
            true => column.name.clone(),
            false => format!("{}  {}", column.letter, column.name),
        };
        table.group(&name, figures.len() + usize::from(index > 0));
        for figure in figures {
            table.number_column(&figure.brief(), "");
        }
        if index > 0 {
            table.number_column(&format!("{}/A", column.letter), "");
        }
    }
    if !published.is_empty() {
        table.group("published", published.len());
        for key in published {
            // The figure is the one that the table is about.
            let who = key.rsplit_once(", ").map_or(key.as_str(), |(who, _)| who);
            table.number_column(who, "");
        }
    }
}

/// What others published, in the order of its first appearance.
fn published(document: &Document) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in document.runs.iter().flat_map(|run| run.published.keys()) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Broker, Run, Totals};

    fn run(address: &str, rate: f64, round: u32) -> Run {
        Run {
            name: "1 queue".into(),
            round,
            broker: Broker {
                address: address.into(),
                product: if address == "a" {
                    "Leveret"
                } else {
                    "RabbitMQ"
                }
                .into(),
                version: "1".into(),
                pid: None,
            },
            totals: Totals {
                received_rate: rate,
                ..Totals::default()
            },
            published: [("3.3.5, received rate".to_owned(), 8_900.0)].into(),
            ..Run::default()
        }
    }

    #[test]
    fn brokers_stand_side_by_side_with_their_ratio() {
        let rates = [(1e5, 2e4), (3e5, 3e4), (2e5, 2.5e4)];
        let rounds = rates.iter().zip(1..);
        let mut document = Document::begin(None, None, Vec::new());
        document.runs = rounds
            .flat_map(|((a, b), round)| [run("a", *a, round), run("b", *b, round)])
            .collect();
        let text = table(&document, &["received", "p99"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "         A  Leveret 1  B  RabbitMQ 1   published",
                "case     received/s  received/s   B/A  3.3.5",
                "1 queue     200,000      25,000  0.12  8,900",
            ]
        );
    }
}
