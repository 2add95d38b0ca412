//! Definitions that are imported when the node starts: files, or directories of files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use broker::Broker;

/// A larger file is no file of definitions.
pub const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Imports everything, in order.
///
/// # Errors
/// A file cannot be read, or something in it makes no sense: what came before it stays.
pub fn load(broker: &Broker, paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        let files = match path.is_dir() {
            true => files_in(path)?,
            false => vec![path.clone()],
        };
        for file in files {
            load_file(broker, &file)?;
        }
    }
    Ok(())
}

/// By name; without hidden ones, among which container platforms keep what they mount.
fn files_in(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("cannot read the directory of definitions {}", dir.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn load_file(broker: &Broker, path: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot import definitions from {}", path.display());
    let text = read(path).with_context(failed)?;
    let definitions = serde_json::from_slice(&text).with_context(failed)?;
    let imported = broker.admin().import_definitions(&definitions);
    let imported = imported.map_err(|error| {
        // RabbitMQ's texts have lines of their own for some errors.
        let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
        let said: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        let said: Vec<&str> = said.into_iter().filter(|line| !line.is_empty()).collect();
        anyhow::anyhow!("{}: {}", failed(), said.join(": "))
    })?;
    for warning in &imported.warnings {
        tracing::warn!(file = %path.display(), "{warning}");
    }
    tracing::info!(file = %path.display(), entries = imported.entries, "definitions imported");
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_FILE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        bail!("larger than {MAX_FILE} bytes");
    }
    Ok(text)
}
