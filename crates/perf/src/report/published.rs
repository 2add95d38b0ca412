//! What somebody published for a load, beside what was measured here: context, not a bar.

use super::columns::Columns;
use super::comparison::of_column;
use super::figure::{Figure, Unit};
use super::html::{Markup, element};
use super::summary::id;
use super::table::{Cell, Table};
use crate::number;

/// A table of all published figures; nothing if there are none.
pub fn published(columns: &Columns) -> Markup {
    let mut table = Table::new();
    table.text_column("load");
    table.text_column("figure");
    table.number_column("published", "");
    for column in &columns.columns {
        let head = match columns.is_single() {
            true => "measured",
            false => &column.letter,
        };
        table.number_column(head, "");
    }
    for name in &columns.names {
        let mut first = true;
        for (figure, value) in of(columns, name) {
            let measured = counterpart(&figure);
            let unit = measured.unit;
            let mut cells = vec![
                match first {
                    true => Cell::new(*name).target(id(columns, name)),
                    false => Cell::new(""),
                },
                Cell::new(figure),
                Cell::new(match unit {
                    Unit::Own => number::grouped(value),
                    unit => unit.format(value),
                }),
            ];
            for column in &columns.columns {
                let median = of_column(column, name, &measured);
                cells.push(Cell::new(median.map_or_else(
                    || number::NONE.to_owned(),
                    |median| unit.format(median.value),
                )));
            }
            table.row(cells, first);
            first = false;
        }
    }
    if table.is_empty() {
        return Markup::new();
    }
    let note = "What others published for the same load, on their machines, in their year: context, \
                not a bar.";
    let content = element("h2", &[], "Published figures")
        .with(element("p", &[("class", "note")], note))
        .with(table.html("Published figures"));
    element("section", &[], content)
}

/// Those of a load, each once.
fn of(columns: &Columns, name: &str) -> Vec<(String, f64)> {
    let runs = columns
        .columns
        .iter()
        .flat_map(|column| column.rounds(name));
    let mut published: Vec<(String, f64)> = Vec::new();
    for (figure, value) in runs.flat_map(|run| &run.published) {
        if !published.iter().any(|(known, _)| known == figure) {
            published.push((figure.clone(), *value));
        }
    }
    published
}

/// What to measure it by: a figure of the same name, with or without its unit; or what the scenario
/// itself calls so. Who published it may stand before: `RabbitMQ 3.3.5, received rate`.
fn counterpart(published: &str) -> Figure {
    let bare = published.rsplit(", ").next().unwrap_or(published);
    let bare = bare.split_once(" (").map_or(bare, |(bare, _)| bare);
    let mut known = Figure::all().into_iter();
    let found = known
        .find(|figure| figure.unit == Unit::Rate && [&*figure.key, &*figure.title].contains(&bare));
    found.unwrap_or_else(|| Figure::named(published))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_rate_stands_beside_the_measured_one() {
        assert_eq!(counterpart("received rate (msg/s)").key, "received");
        assert_eq!(counterpart("sent rate").key, "sent");
        assert_eq!(counterpart("RabbitMQ 3.3.5, sent rate").key, "sent");
        assert_eq!(counterpart("longest commit (ms)").unit, Unit::Own);
    }
}
