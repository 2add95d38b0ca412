//! Tables on the terminal: a row for each case, columns for each broker, and what others published.

use crate::output::{short_time, thousands};
use crate::result::{Latency, Run};

use super::broker_name;

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Messages sent per second.
    Sent,
    /// Messages received per second.
    Received,
    /// Median from publish to delivery.
    Median,
    /// 99th percentile of it.
    P99,
    /// Longest of it.
    Max,
    /// Mean of it.
    Mean,
    /// Standard deviation of it.
    Deviation,
    /// Median from publish to confirm, or of commits.
    ConfirmMedian,
    /// 99th percentile of it.
    ConfirmP99,
    /// Longest of it.
    ConfirmMax,
    /// The broker's CPU time for a message.
    Cpu,
    /// A figure of the scenario's own.
    Figure(&'static str),
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Column::Sent => "sent/s",
            Column::Received => "received/s",
            Column::Median => "median",
            Column::P99 => "p99",
            Column::Max => "max",
            Column::Mean => "mean",
            Column::Deviation => "st. dev.",
            Column::ConfirmMedian => "confirm",
            Column::ConfirmP99 => "confirm p99",
            Column::ConfirmMax => "confirm max",
            Column::Cpu => "CPU µs/msg",
            Column::Figure(name) => name,
        }
    }

    fn more_is_better(self) -> bool {
        matches!(self, Column::Sent | Column::Received | Column::Figure(_))
    }

    fn value(self, run: &Run) -> Option<f64> {
        let consumer = |part: fn(&Latency) -> u64| run.consumer_latency.as_ref().map(part);
        let confirm = |part: fn(&Latency) -> u64| run.confirm_latency.as_ref().map(part);
        let nanos = match self {
            Column::Sent => return Some(run.totals.sent_rate).filter(|rate| *rate > 0.0),
            Column::Received => return Some(run.totals.received_rate).filter(|rate| *rate > 0.0),
            Column::Cpu => return run.totals.broker_cpu_us_per_message,
            Column::Figure(name) => return run.figures.get(name).copied(),
            Column::Median => consumer(|l| l.percentiles.p50_ns),
            Column::P99 => consumer(|l| l.percentiles.p99_ns),
            Column::Max => consumer(|l| l.percentiles.max_ns),
            Column::Mean => consumer(|l| l.percentiles.mean_ns),
            Column::Deviation => consumer(|l| l.percentiles.stdev_ns),
            Column::ConfirmMedian => confirm(|l| l.percentiles.p50_ns),
            Column::ConfirmP99 => confirm(|l| l.percentiles.p99_ns),
            Column::ConfirmMax => confirm(|l| l.percentiles.max_ns),
        };
        nanos.map(|nanos| nanos as f64)
    }

    fn text(self, value: f64) -> String {
        match self {
            Column::Sent | Column::Received => thousands(value),
            Column::Cpu => format!("{value:.2}"),
            Column::Figure(_) if value < 100.0 => format!("{value:.2}"),
            Column::Figure(_) => thousands(value),
            _ => short_time(value as u64),
        }
    }
}

/// The median of what is there.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count.is_multiple_of(2) => Some((values[middle - 1] + values[middle]) / 2.0),
        _ => Some(values[middle]),
    }
}

/// In the order of their first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

/// Medians over rounds. The ratio says how many times better the first broker is in the first
/// column.
pub fn table(runs: &[Run], columns: &[Column]) -> String {
    let names = distinct(runs.iter().map(|run| run.name.clone()));
    let brokers = distinct(runs.iter().map(|run| (run.broker.address.clone(), broker_name(run))));
    let published = distinct(runs.iter().flat_map(|run| run.published.keys().cloned()));
    let columns: Vec<Column> = columns
        .iter()
        .copied()
        .filter(|column| runs.iter().any(|run| column.value(run).is_some()))
        .collect();
    let mut head = vec![vec![String::new()], vec!["case".to_owned()]];
    for (at, (_, name)) in brokers.iter().enumerate() {
        for (nth, column) in columns.iter().enumerate() {
            head[0].push(if nth == 0 { name.clone() } else { String::new() });
            head[1].push(column.name().to_owned());
        }
        if at > 0 {
            head[0].push(String::new());
            head[1].push("ratio".to_owned());
        }
    }
    for name in &published {
        head[0].push(if *name == published[0] { "published".into() } else { String::new() });
        // The figure is the one that the table is about.
        let who = name.rsplit_once(", ").map_or(name.as_str(), |(who, _)| who);
        head[1].push(who.to_owned());
    }
    let rows = names.iter().map(|name| {
        let of_case: Vec<&Run> = runs.iter().filter(|run| run.name == *name).collect();
        let mut row = vec![name.clone()];
        let mut first = None;
        for (at, (address, _)) in brokers.iter().enumerate() {
            let of_broker = of_case.iter().filter(|run| run.broker.address == *address);
            let of_broker: Vec<&&Run> = of_broker.filter(|run| run.error.is_none()).collect();
            let value = |column: Column| {
                median(of_broker.iter().filter_map(|run| column.value(run)).collect())
            };
            row.extend(columns.iter().map(|column| {
                value(*column).map_or_else(|| "-".to_owned(), |value| column.text(value))
            }));
            let main = columns.first().and_then(|column| value(*column));
            if at == 0 {
                first = main;
            } else {
                let ratio = first.zip(main).map(|(first, other)| match columns[0].more_is_better() {
                    true => first / other,
                    false => other / first,
                });
                row.push(ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")));
            }
        }
        row.extend(published.iter().map(|name| {
            let value = of_case.iter().find_map(|run| run.published.get(name));
            value.map_or_else(|| "-".to_owned(), |value| thousands(*value))
        }));
        row
    });
    let mut lines = head;
    lines.extend(rows);
    aligned(&lines)
}

/// Columns side by side, the first to the left, the others to the right. A broker's name stands over
/// its columns and may reach over several.
fn aligned(lines: &[Vec<String>]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = lines[1..].iter().filter_map(|line| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let mut row = String::new();
        let mut column_start = 0;
        for (at, cell) in line.iter().enumerate() {
            if number == 0 {
                // To the left edge of the column, where that is still free.
                let gap = column_start.max(row.chars().count()) - row.chars().count();
                if !cell.is_empty() {
                    row.push_str(&" ".repeat(gap));
                    row.push_str(cell);
                }
            } else if at == 0 {
                row.push_str(&format!("{cell:<0$}", widths[0]));
            } else {
                row.push_str(&format!("  {cell:>0$}", widths[at]));
            }
            column_start += widths[at] + 2;
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Broker, Totals};

    fn run(name: &str, address: &str, rate: f64, round: u32) -> Run {
        Run {
            name: name.into(),
            round,
            broker: Broker {
                address: address.into(),
                product: if address == "a" { "Leveret" } else { "RabbitMQ" }.into(),
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
        let runs = [
            run("1 queue", "a", 100_000.0, 1),
            run("1 queue", "b", 20_000.0, 1),
            run("1 queue", "a", 300_000.0, 2),
            run("1 queue", "b", 30_000.0, 2),
            run("1 queue", "a", 200_000.0, 3),
            run("1 queue", "b", 25_000.0, 3),
        ];
        let text = table(&runs, &[Column::Received, Column::P99]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "         Leveret 1   RabbitMQ 1         published",
                "case     received/s  received/s  ratio  3.3.5",
                "1 queue     200,000      25,000   8.00  8,900",
            ]
        );
    }
}
