//! Reports of results: a page that stands alone, a table for a terminal, intervals as CSV.
//!
//! All of them work on [`Document`]s only, whose texts are somebody else's: `html` escapes them, and
//! what goes to a terminal is freed of control characters.

mod changes;
mod chart;
mod columns;
mod comparison;
mod csv;
mod figure;
mod head;
mod html;
mod loads;
mod outcome;
mod published;
#[cfg(test)]
pub(crate) mod sample;
mod summary;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) use crate::number::{NONE, ratio};
pub use changes::changes_page;
pub(crate) use columns::{Columns, broker_name};
pub(crate) use comparison::{own_figures, rows};
pub(crate) use csv::{intervals, record};
pub(crate) use figure::Figure;
pub(crate) use outcome::text as problems;
pub(crate) use table::{Cell, Table};

use crate::Error;
use crate::result::Document;

/// Shows results: as a page, as CSV, or in short on the terminal.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Results written with --json
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write a page with charts and tables, which needs nothing but itself
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a row for each interval of each run
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Title of the page
    #[arg(long, value_name = "TEXT", requires = "html")]
    pub title: Option<String>,
}

/// Does it. Without a file to write, a summary goes to `out`. Ends in the exit code.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<u8, Error> {
    let documents = read(&arguments.files)?;
    if let Some(path) = &arguments.html {
        write(path, &titled_page(&documents, arguments.title.as_deref()))?;
    }
    if let Some(path) = &arguments.csv {
        write(path, &csv::intervals(&documents))?;
    }
    if arguments.html.is_none() && arguments.csv.is_none() {
        print(out, &text(&documents))?;
    }
    Ok(0)
}

/// Reads results, each with the name of its file.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<(String, Document)>, Error> {
    let documents = files.iter().map(|path| {
        let document = Document::read(path)?;
        Ok((path.display().to_string(), document))
    });
    documents.collect()
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::file(path, source))
}

/// Writes text to where output goes.
pub(crate) fn print(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    out.write_all(text.as_bytes())
        .map_err(|source| Error::System {
            what: "cannot print",
            source,
        })
}

/// A page about results, each with the name of its file. It is complete in itself: its style, its
/// drawings and its script are inside.
pub fn page(documents: &[(String, Document)]) -> String {
    titled_page(documents, None)
}

/// The same with a title of one's own.
pub fn titled_page(documents: &[(String, Document)], title: Option<&str>) -> String {
    let columns = Columns::of(documents);
    let title = title.map_or_else(|| head::title(documents, &columns), str::to_owned);
    let mut body = head::head(&title, documents, &columns);
    body.push(outcome::problems(&columns));
    if columns.names.is_empty() {
        body.push(html::element(
            "p",
            &[("class", "notice")],
            "There are no runs.",
        ));
    } else {
        body.push(loads::overview(&columns));
        body.push(summary::summary(&columns));
        body.push(summary::ratios(&columns));
        body.push(published::published(&columns));
        body.push(loads::loads(&columns));
    }
    html::page(&title, body)
}

/// A summary of results for a terminal.
pub fn text(documents: &[(String, Document)]) -> String {
    let columns = Columns::of(documents);
    let mut text = legend(documents, &columns);
    text.push('\n');
    text.push_str(&summary::text(&columns));
    text.push_str(&problems(&columns));
    text
}

/// Letters, and what they stand for.
pub(crate) fn legend(documents: &[(String, Document)], columns: &Columns) -> String {
    let lines = columns.columns.iter().map(|column| {
        let (file, document) = &documents[column.document];
        let date = head::date(&document.started);
        let line = format!("{}  {}  ({file}, {date})", column.letter, column.name);
        table::plain(&line) + "\n"
    });
    lines.collect()
}
