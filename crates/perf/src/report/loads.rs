//! The part of a page that is about single loads: an overview if there are many, then for each its
//! charts, its figures side by side, and its rounds.

use super::chart::{self, Chart};
use super::columns::{Columns, broker_name};
use super::comparison::{Median, Row, own_figures, rows};
use super::figure::Figure;
use super::html::{Markup, element};
use super::outcome;
use super::summary::{id, ratio_cell};
use super::table::{Cell, Table};
use crate::number;

/// More loads than this are folded away, under an overview.
const FEW: usize = 4;

/// All loads, in the order in which they ran first.
pub fn loads(columns: &Columns) -> Markup {
    let mut content = element("h2", &[], "Loads");
    for name in &columns.names {
        content.push(load(columns, name, columns.names.len() <= FEW));
    }
    element("section", &[], content)
}

/// If there are many loads, a small chart of each, which leads to its part of the page.
pub fn overview(columns: &Columns) -> Markup {
    if columns.names.len() <= FEW {
        return Markup::new();
    }
    let charts = columns.names.iter().filter_map(|name| {
        let chart = chart::overview(columns, name)?.html();
        let target = format!("#{}", id(columns, name));
        Some(element("a", &[("href", &target)], chart))
    });
    let charts = Markup::from_iter(charts);
    if charts.is_empty() {
        return Markup::new();
    }
    let note = "Messages per second received (sent where none are) over time, each from 0 to its own \
                highest.";
    let content = element("h2", &[], "Throughput at a glance")
        .with(element("p", &[("class", "note")], note))
        .with(chart::legend(columns))
        .with(element("div", &[("class", "overview")], charts));
    element("section", &[], content)
}

fn load(columns: &Columns, name: &str, open: bool) -> Markup {
    let mut summary = element("h3", &[], name).with(element("span", &[], glance(columns, name)));
    for column in &columns.columns {
        let outcome = outcome::of(column.rounds(name));
        if outcome.bad {
            let text = match columns.is_single() {
                true => outcome.text,
                false => format!("{} {}", column.letter, outcome.text),
            };
            summary.push(element("span", &[("class", "bad")], text));
        }
    }
    let charts: Vec<Chart> = [
        chart::throughput(columns, name),
        chart::latency(columns, name),
        chart::latency_over_time(columns, name),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut body = element("p", &[("class", "note")], parameters(columns, name));
    if !charts.is_empty() {
        body.push(chart::legend(columns));
        let charts = Markup::from_iter(charts.iter().map(Chart::html));
        body.push(element("div", &[("class", "charts")], charts));
    }
    let side_by_side = side_by_side(columns, name);
    if !side_by_side.is_empty() {
        body.push(side_by_side.html(&format!("Figures of {name}")));
    }
    let rounds = rounds(columns, name);
    if !rounds.is_empty() {
        body.push(element("h4", &[], "Rounds"));
        body.push(rounds.html(&format!("Rounds of {name}")));
    }
    // The id is inside: browsers open a folded part to show what an address leads to.
    let id = id(columns, name);
    let body = element("div", &[("class", "body"), ("id", &id)], body);
    let content = element("summary", &[], summary).with(body);
    let open: &[_] = if open { &[("open", "open")] } else { &[] };
    element("details", open, content)
}

/// The rates of a load while it is folded.
fn glance(columns: &Columns, name: &str) -> String {
    let figures = Figure::choose(&["received", "sent"]);
    let rows = rows(columns, name, &figures);
    let row = rows
        .iter()
        .rev()
        .find(|row| row.figure.key == "received")
        .or(rows.first());
    let Some(row) = row else {
        return "nothing measured".into();
    };
    let rates = columns.columns.iter().zip(&row.medians);
    let rates = rates.filter_map(|(column, median)| {
        let rate = format!("{} msg/s", number::grouped((*median)?.value));
        Some(match columns.is_single() {
            true => rate,
            false => format!("{} {rate}", column.letter),
        })
    });
    rates.collect::<Vec<_>>().join(" · ")
}

/// What was asked for, and why it ended.
fn parameters(columns: &Columns, name: &str) -> String {
    let runs = columns
        .columns
        .iter()
        .flat_map(|column| column.rounds(name));
    let Some(run) = runs.into_iter().next() else {
        return String::new();
    };
    let mut parts: Vec<String> = run
        .parameters
        .iter()
        .map(|(key, value)| match value {
            serde_json::Value::String(text) => format!("{key} {text}"),
            serde_json::Value::Bool(true) => key.clone(),
            value => format!("{key} {value}"),
        })
        .collect();
    let stopped = run
        .stopped
        .iter()
        .map(|(why, count)| format!("{why} ({count})"));
    let stopped: Vec<String> = stopped.collect();
    if !stopped.is_empty() {
        parts.push(format!("ended by {}", stopped.join(", ")));
    }
    parts.join(" · ")
}

/// Figures as rows, columns as columns, each with its ratio to the first.
fn side_by_side(columns: &Columns, name: &str) -> Table {
    let mut figures = Figure::all();
    figures.extend(own_figures(columns, name));
    let rows = rows(columns, name, &figures);
    let several = columns.rounds(name) > 1;
    let mut table = Table::new();
    table.text_column("");
    for (index, column) in columns.columns.iter().enumerate() {
        match columns.is_single() {
            true => table.number_column("", ""),
            false => table.number_column(&column.letter, ""),
        }
        if several {
            table.number_column("", "rounds");
        }
        if index > 0 {
            table.number_column(&format!("{} / A", column.letter), "");
        }
    }
    for row in &rows {
        table.row(cells(row, several), false);
    }
    table
}

fn cells(row: &Row, several: bool) -> Vec<Cell> {
    let mut cells = vec![Cell::new(row.figure.heading())];
    for (index, median) in row.medians.iter().enumerate() {
        let format = |value| row.figure.unit.format(value);
        cells.push(match median {
            Some(median) => Cell::new(format(median.value)),
            None => Cell::new(number::NONE).class("muted"),
        });
        if several {
            cells.push(Cell::new(range(row, median.as_ref())).class("range"));
        }
        if index > 0 {
            cells.push(ratio_cell(row.ratio(index), &row.figure));
        }
    }
    cells
}

/// From the lowest to the highest round.
fn range(row: &Row, median: Option<&Median>) -> String {
    let Some(median) = median.filter(|median| median.rounds > 1) else {
        return String::new();
    };
    let low = row.figure.unit.format(median.low);
    let high = row.figure.unit.format(median.high);
    match low == high {
        true => String::new(),
        false => format!("{low} – {high}"),
    }
}

/// Each round on a line of its own; empty if there is but one.
fn rounds(columns: &Columns, name: &str) -> Table {
    let mut table = Table::new();
    if columns.rounds(name) < 2 {
        return table;
    }
    let keys = [
        "sent",
        "received",
        "p50",
        "p99",
        "max",
        "confirm-p50",
        "confirm-p99",
        "cpu",
    ];
    let figures: Vec<Figure> = rows(columns, name, &Figure::choose(&keys))
        .into_iter()
        .map(|row| row.figure)
        .collect();
    table.number_column("round", "");
    table.text_column("broker");
    for figure in &figures {
        table.number_column(&figure.title, figure.unit.name());
    }
    table.text_column("checks");
    let mut runs: Vec<_> = columns
        .columns
        .iter()
        .enumerate()
        .flat_map(|(index, column)| column.rounds(name).map(move |run| (index, column, run)))
        .collect();
    runs.sort_by_key(|(index, _, run)| (run.round, *index));
    let mut last = 0;
    for (index, column, run) in runs {
        let new = run.round != last;
        last = run.round;
        let round = if new {
            run.round.to_string()
        } else {
            String::new()
        };
        let broker = match columns.is_single() {
            true => Cell::new(broker_name(&run.broker)),
            false => Cell::new(&column.letter).column(index),
        };
        let mut cells = vec![Cell::new(round), broker];
        for figure in &figures {
            let value = figure.value(run);
            let text = value.map_or_else(|| number::NONE.into(), |value| figure.unit.format(value));
            cells.push(Cell::new(text));
        }
        let outcome = outcome::of([run].into_iter());
        let class = if outcome.bad { "bad" } else { "muted" };
        cells.push(Cell::new(outcome.text).class(class));
        table.row(cells, new);
    }
    table
}
