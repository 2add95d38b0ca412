//! All runs at a glance: a line for each load and broker, medians over rounds.

use super::columns::Columns;
use super::comparison::{of_column, rows};
use super::figure::{Figure, Verdict};
use super::html::{Markup, element};
use super::outcome;
use super::table::{Cell, Table};
use crate::number;

type Group = (&'static str, &'static [&'static str]);

/// What a page shows.
const PAGE: &[Group] = &[
    ("Messages per second", &["sent", "received"]),
    ("Latency to delivery", &["p50", "p99", "p99.9", "max"]),
    (
        "Latency to confirm",
        &["confirm-p50", "confirm-p99", "confirm-p99.9", "confirm-max"],
    ),
    ("Broker", &["cpu", "memory", "written"]),
];

/// What a terminal has room for.
const TERMINAL: &[Group] = &[
    ("", &["sent", "received"]),
    ("", &["p50", "p99", "max"]),
    ("", &["confirm-p50", "confirm-p99"]),
    ("", &["cpu"]),
];

/// What is compared at a glance.
const RATIOS: &[&str] = &[
    "sent",
    "received",
    "p50",
    "p99",
    "confirm-p50",
    "confirm-p99",
    "cpu",
    "memory",
    "written",
];

/// The id of a load's part of the page.
pub fn id(columns: &Columns, name: &str) -> String {
    let index = columns.names.iter().position(|other| *other == name);
    format!("run-{}", index.unwrap_or(0) + 1)
}

/// The table for a page, with a heading.
pub fn summary(columns: &Columns) -> Markup {
    let table = table(columns, PAGE, true);
    let mut content = element("h2", &[], "Summary");
    let over = match same_rounds(columns) {
        Some(1) => String::new(),
        Some(rounds) => format!("Medians over {rounds} rounds, which are further down."),
        None => "Medians over rounds, which are further down.".into(),
    };
    if !over.is_empty() {
        content.push(element("p", &[("class", "note")], over));
    }
    content.push(table.html("Summary"));
    element("section", &[], content)
}

/// How many rounds each load has on each broker; none if they differ.
fn same_rounds(columns: &Columns) -> Option<usize> {
    let rounds = columns.columns.iter().flat_map(|column| {
        let names = columns.names.iter();
        names.map(|name| column.rounds(name).count())
    });
    let mut rounds = rounds.filter(|rounds| *rounds > 0);
    let first = rounds.next()?;
    rounds.all(|rounds| rounds == first).then_some(first)
}

/// The table for a terminal.
pub fn text(columns: &Columns) -> String {
    table(columns, TERMINAL, false).text()
}

fn table(columns: &Columns, groups: &[Group], page: bool) -> Table {
    let has = |figure: &Figure| {
        let runs = columns.columns.iter().flat_map(|column| &column.runs);
        runs.into_iter()
            .any(|run| figure.value(run).is_some_and(|value| value > 0.0))
    };
    let single = columns.is_single();
    let several = same_rounds(columns).is_none();
    let mut table = Table::new();
    let before = 2 + usize::from(!single) + usize::from(several);
    table.text_column("load");
    if !single {
        table.text_column("broker");
    }
    if several {
        table.number_column("rounds", "");
    }
    // Before the figures, so that it is seen where a table is wider than the screen.
    table.text_column("checks");
    let mut figures = Vec::new();
    if page {
        table.group("", before);
    }
    for (title, keys) in groups {
        let mut group = Figure::choose(keys);
        group.retain(has);
        if page && !group.is_empty() {
            table.group(title, group.len());
        }
        for figure in &group {
            match page {
                true if figure.unit.name() == "msg/s" => table.number_column(figure.short(), ""),
                true => table.number_column(figure.short(), figure.unit.name()),
                false => table.number_column(&figure.brief(), ""),
            }
        }
        figures.append(&mut group);
    }
    fill(&mut table, columns, &figures, several);
    table
}

fn fill(table: &mut Table, columns: &Columns, figures: &[Figure], several: bool) {
    for name in &columns.names {
        let mut first = true;
        for (index, column) in columns.columns.iter().enumerate() {
            let rounds = column.rounds(name).count();
            if rounds == 0 {
                continue;
            }
            let mut cells = vec![match first {
                true => Cell::new(*name).target(id(columns, name)),
                false => Cell::new(""),
            }];
            if !columns.is_single() {
                cells.push(Cell::new(&column.letter).column(index));
            }
            if several {
                cells.push(Cell::new(rounds.to_string()));
            }
            let outcome = outcome::of(column.rounds(name));
            let class = if outcome.bad { "bad" } else { "muted" };
            cells.push(Cell::new(outcome.text).class(class));
            for figure in figures {
                let median = of_column(column, name, figure);
                cells.push(Cell::new(median.map_or_else(
                    || number::NONE.to_owned(),
                    |median| figure.unit.format(median.value),
                )));
            }
            table.row(cells, first);
            first = false;
        }
    }
}

/// Ratios of all loads to the first column, a table for each other one; nothing if there is only one
/// load, whose own table has them.
pub fn ratios(columns: &Columns) -> Markup {
    if columns.is_single() || columns.names.len() < 2 {
        return Markup::new();
    }
    let mut content = element("h2", &[], "Ratios");
    let note = "Each figure divided by that of A, medians over rounds. ▲ is better than A, ▼ worse; \
                a difference of up to 3 % has no mark.";
    content.push(element("p", &[("class", "note")], note));
    let first = &columns.columns[0];
    for (index, column) in columns.columns.iter().enumerate().skip(1) {
        let table = ratio_table(columns, index);
        if table.is_empty() {
            continue;
        }
        let heading = super::table::key(index, &column.letter)
            .with(format!(" {} to ", column.name))
            .with(super::table::key(0, &first.letter))
            .with(format!(" {}", first.name));
        content.push(element("h3", &[], heading));
        content.push(table.html(&format!("Ratios of {} to {}", column.name, first.name)));
    }
    element("section", &[("class", "ratios")], content)
}

fn ratio_table(columns: &Columns, index: usize) -> Table {
    let figures = Figure::choose(RATIOS);
    let all: Vec<_> = columns
        .names
        .iter()
        .map(|name| (*name, rows(columns, name, &figures)))
        .collect();
    let has = |figure: &Figure| {
        let mut rows = all.iter().flat_map(|(_, rows)| rows);
        rows.any(|row| row.figure.key == figure.key && row.ratio(index).is_some())
    };
    let figures: Vec<&Figure> = figures.iter().filter(|figure| has(figure)).collect();
    let mut table = Table::new();
    table.text_column("load");
    for figure in &figures {
        table.number_column(&figure.title, "");
    }
    for (name, rows) in &all {
        let mut cells = vec![Cell::new(*name).target(id(columns, name))];
        for figure in &figures {
            let row = rows.iter().find(|row| row.figure.key == figure.key);
            cells.push(ratio_cell(row.and_then(|row| row.ratio(index)), figure));
        }
        if cells.len() > 1 {
            table.row(cells, false);
        }
    }
    if all.len() > 2 && !table.is_empty() {
        let mut cells = vec![Cell::new("geometric mean")];
        for figure in &figures {
            let rows = all.iter().flat_map(|(_, rows)| rows);
            let rows = rows.filter(|row| row.figure.key == figure.key);
            let ratios = rows.filter_map(|row| row.ratio(index)).collect();
            cells.push(ratio_cell(geometric_mean(ratios), figure));
        }
        table.row(cells, true);
    }
    table
}

/// What ratios are together; none of no ratios, or if one of them is 0.
fn geometric_mean(ratios: Vec<f64>) -> Option<f64> {
    let logarithms = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
    let mean = (logarithms / ratios.len() as f64).exp();
    (mean.is_finite() && mean > 0.0).then_some(mean)
}

/// A ratio, and whether that is good.
pub fn ratio_cell(ratio: Option<f64>, figure: &Figure) -> Cell {
    let Some(ratio) = ratio else {
        return Cell::new(number::NONE).note(NO_MARK).class("muted same");
    };
    let (mark, class) = match figure.verdict(ratio) {
        Verdict::Better => ("▲", "better"),
        Verdict::Worse => ("▼", "worse"),
        Verdict::Neither => (NO_MARK, "same"),
    };
    Cell::new(number::ratio(ratio)).note(mark).class(class)
}

/// As wide as a mark.
const NO_MARK: &str = "\u{2003}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_together_are_their_geometric_mean() {
        let mean = geometric_mean(vec![0.5, 2.0, 8.0]).expect("ratios");
        assert!((mean - 2.0).abs() < 1e-9);
        assert_eq!(geometric_mean(Vec::new()), None);
        assert_eq!(geometric_mean(vec![0.0, 1.0]), None);
    }
}
