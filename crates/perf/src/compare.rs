//! Results side by side: each figure of each load, and its ratio to that of the first.

use std::io::Write;
use std::path::PathBuf;

use crate::Error;
use crate::report::{self, Cell, Columns, Figure, NONE, Table, own_figures, record, rows};
use crate::result::Document;

/// Figures that are compared unless others are asked for, besides those that scenarios add.
const USUAL: &[&str] = &[
    "sent",
    "received",
    "p50",
    "p99",
    "confirm-p50",
    "confirm-p99",
    "cpu",
];

/// Compares results: medians over rounds, and ratios to the first.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Results written with --json; each broker of each is a column
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these figures: sent, received, p50, p90, p99, p99.9, max, the same with confirm- before,
    /// cpu, memory, written, or a part of the name of a scenario's own
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub metric: Vec<String>,
    /// Print comma-separated values: a row for each figure of each column
    #[arg(long)]
    pub csv: bool,
}

/// Does it. Ends in the exit code.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<u8, Error> {
    let documents = report::read(&arguments.files)?;
    let columns = Columns::of(&documents);
    if columns.is_single() {
        return Err(Error::Usage(
            "there is nothing to compare: the results are of one broker, and in one file".into(),
        ));
    }
    let loads = loads(&columns, &arguments.metric)?;
    let text = match arguments.csv {
        true => csv(&columns, &loads),
        false => with_legend(&documents, &columns, &loads),
    };
    report::print(out, &text)?;
    Ok(0)
}

/// The comparison of all that these results hold, for a terminal: of several files, or of several
/// brokers in one.
pub fn table(documents: &[(String, Document)]) -> String {
    let columns = Columns::of(documents);
    let loads: Vec<Load> = columns
        .names
        .iter()
        .map(|name| (*name, usual(&columns, name)))
        .collect();
    with_legend(documents, &columns, &loads)
}

/// A load, and which figures of it are compared.
type Load<'a> = (&'a str, Vec<Figure>);

fn usual(columns: &Columns, name: &str) -> Vec<Figure> {
    let mut figures = Figure::choose(USUAL);
    figures.extend(own_figures(columns, name));
    figures
}

/// Loads with the figures asked for; an error if any of these is nowhere.
fn loads<'a>(columns: &Columns<'a>, metrics: &[String]) -> Result<Vec<Load<'a>>, Error> {
    let mut found = vec![metrics.is_empty(); metrics.len()];
    let mut loads = Vec::new();
    for name in &columns.names {
        if metrics.is_empty() {
            loads.push((*name, usual(columns, name)));
            continue;
        }
        let mut figures = Figure::all();
        figures.extend(own_figures(columns, name));
        figures.retain(|figure| {
            let mut wanted = false;
            for (metric, found) in metrics.iter().zip(&mut found) {
                let matches = figure.is(metric);
                *found |= matches;
                wanted |= matches;
            }
            wanted
        });
        loads.push((*name, figures));
    }
    match metrics.iter().zip(&found).find(|(_, found)| !**found) {
        Some((metric, _)) => Err(Error::Usage(format!("no result has a figure '{metric}'"))),
        None => Ok(loads),
    }
}

fn with_legend(documents: &[(String, Document)], columns: &Columns, loads: &[Load]) -> String {
    let mut text = report::legend(documents, columns);
    text.push('\n');
    text.push_str(&comparison(columns, loads).text());
    // What failed half-way has figures, too.
    text.push_str(&report::problems(columns));
    text
}

fn comparison(columns: &Columns, loads: &[Load]) -> Table {
    let mut table = Table::new();
    table.text_column("load");
    table.text_column("figure");
    for (index, column) in columns.columns.iter().enumerate() {
        table.number_column(&column.letter, "");
        if index > 0 {
            table.number_column(&format!("{}/A", column.letter), "");
        }
    }
    for (name, figures) in loads {
        for (place, row) in rows(columns, name, figures).iter().enumerate() {
            let first = if place == 0 { name } else { "" };
            let mut cells = vec![Cell::new(first), Cell::new(row.figure.heading())];
            for (index, median) in row.medians.iter().enumerate() {
                cells.push(Cell::new(median.map_or_else(
                    || NONE.to_owned(),
                    |median| row.figure.unit.format(median.value),
                )));
                if index > 0 {
                    let ratio = row.ratio(index);
                    cells.push(Cell::new(ratio.map_or_else(|| NONE.into(), report::ratio)));
                }
            }
            table.row(cells, place == 0);
        }
    }
    table
}

/// One row for each load, figure and column, with numbers as they are.
fn csv(columns: &Columns, loads: &[Load]) -> String {
    let mut text = record(&[
        "run", "figure", "column", "rounds", "median", "lowest", "highest", "ratio",
    ]);
    for (name, figures) in loads {
        for row in rows(columns, name, figures) {
            for (index, median) in row.medians.iter().enumerate() {
                let Some(median) = median else { continue };
                let ratio = row.ratio(index).map(|ratio| ratio.to_string());
                text.push_str(&record(&[
                    name,
                    &*row.figure.key_with_unit(),
                    &columns.columns[index].name,
                    &median.rounds.to_string(),
                    &median.value.to_string(),
                    &median.low.to_string(),
                    &median.high.to_string(),
                    &ratio.unwrap_or_default(),
                ]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::report::sample;

    fn arguments(files: Vec<PathBuf>, metric: &[&str], csv: bool) -> Arguments {
        Arguments {
            files,
            metric: metric.iter().map(|metric| (*metric).into()).collect(),
            csv,
        }
    }

    /// Writes results to files, which are there as long as their directory is.
    fn written(documents: &[(String, Document)]) -> (TempDir, Vec<PathBuf>) {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |(index, (_, document)): (usize, &(String, Document))| {
            let path = directory.path().join(format!("{index}.json"));
            document.write(&path).expect("written");
            path
        };
        let files = documents.iter().enumerate().map(write).collect();
        (directory, files)
    }

    #[test]
    fn two_brokers_of_one_result_stand_side_by_side() {
        let (_directory, files) = written(&sample::two_brokers());
        let mut out = Vec::new();
        let code = run(&arguments(files, &["sent", "longest"], false), &mut out).expect("compared");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(code, 0);
        assert!(text.starts_with("A  Leveret 0.3.0"), "{text}");
        assert!(text.contains("B/A"), "{text}");
        assert!(text.contains("sent rate (msg/s)"), "{text}");
        assert!(!text.contains("confirm p50"), "{text}");
        assert!(text.contains("longest commit (ms)"), "{text}");
    }

    #[test]
    fn figures_of_failed_runs_are_said_to_be() {
        let text = table(&sample::suite());
        let said = "B 4 queues, 128 B, transient, round 1: connection 3 was closed by the broker";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("3 missing, 1 doubled"), "{text}");
    }

    #[test]
    fn csv_has_plain_numbers() {
        let (_directory, files) = written(&sample::two_brokers());
        let mut out = Vec::new();
        run(&arguments(files, &["p99"], true), &mut out).expect("compared");
        let text = String::from_utf8(out).expect("text");
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), 8, "{line}");
            assert_eq!(fields[1], "p99 (ns)");
            assert!(
                fields[4..].iter().all(|field| field.parse::<f64>().is_ok()),
                "{line}"
            );
        }
    }

    #[test]
    fn one_broker_and_unknown_figures_are_refused() {
        let (_directory, one) = written(&sample::one_broker());
        let mut out = Vec::new();
        assert!(matches!(
            run(&arguments(one, &[], false), &mut out),
            Err(Error::Usage(_))
        ));
        let (_directory, two) = written(&sample::two_brokers());
        let error = run(&arguments(two, &["speed"], false), &mut out).expect_err("unknown");
        assert_eq!(error.to_string(), "no result has a figure 'speed'");
        assert!(out.is_empty());
    }
}
