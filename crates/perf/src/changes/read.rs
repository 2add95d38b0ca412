//! Gets documents from files: a history has one a line, a result is one.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::result::{Document, read_text};

/// What the files hold.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// In the order of the files and their lines.
    pub documents: Vec<Document>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Reads all files.
pub(super) fn files(paths: &[PathBuf]) -> Result<Input, Error> {
    let mut input = Input::default();
    for path in paths {
        let text = read_text(path).map_err(|source| Error::file(path, source))?;
        parse(path, &text, &mut input)?;
    }
    input.note_hosts();
    Ok(input)
}

/// Adds what one file holds. A last line without an end that cannot be read is what a crash leaves:
/// it is passed over.
fn parse(path: &Path, text: &str, input: &mut Input) -> Result<(), Error> {
    let not_a_result = |reason: String| Error::NotAResult {
        path: path.to_owned(),
        reason,
    };
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .collect();
    let Some((last, _)) = lines.last() else {
        return Err(not_a_result("it is empty".into()));
    };
    // A result that somebody laid out over several lines.
    if lines.len() > 1 && lines[0].1.trim() == "{" {
        input
            .documents
            .push(Document::parse(text).map_err(not_a_result)?);
        return Ok(());
    }
    for (number, line) in &lines {
        match Document::parse(line) {
            Ok(document) => input.documents.push(document),
            Err(_) if number == last && lines.len() > 1 && !text.ends_with('\n') => {
                input.notes.push(format!(
                    "{}, line {}: cut off, passed over",
                    path.display(),
                    number + 1
                ));
            }
            Err(reason) => return Err(not_a_result(format!("line {}: {reason}", number + 1))),
        }
    }
    Ok(())
}

impl Input {
    /// A change that is one of the machine looks like any other.
    fn note_hosts(&mut self) {
        let mut hosts: Vec<(&str, &str, usize)> = Vec::new();
        for document in &self.documents {
            let host = &document.host;
            let host = (host.name.as_str(), host.cpu.as_str(), host.cores);
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        if hosts.len() > 1 {
            let count = hosts.len();
            self.notes.push(format!(
                "results of {count} machines: a change may be one of the machine"
            ));
        }
    }
}
