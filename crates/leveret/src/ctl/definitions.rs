//! Commands about definitions.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;

use super::command::{Call, Command, Failed, flag, value};
use super::output::print;
use crate::control::protocol::{Request, status};
use crate::definitions::MAX_FILE;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "export_definitions",
        usage: "<file_path | \"-\"> [--format <json>]",
        summary: "Exports definitions in JSON",
        positional: 1..=1,
        options: &[value("--format")],
        run: export,
    },
    Command {
        name: "import_definitions",
        usage: "[<file_path | \"-\">] [--format <json>]",
        summary: "Imports definitions in JSON; standard input where there is no file",
        positional: 0..=1,
        options: &[value("--format"), flag("--skip-if-unchanged", "")],
        run: import,
    },
];

fn check_format(call: &Call) -> Result<(), Failed> {
    match call.arguments.own("--format") {
        None | Some("json") => Ok(()),
        Some(other) => Err(call.refuse(&format!("format {other} is not supported: only json"))),
    }
}

fn export(call: &Call) -> Result<(), Failed> {
    check_format(call)?;
    let target = call.positional(0);
    if target == "-" {
        let exported = call.ask(&Request::ExportDefinitions)?;
        return print(&format!("{exported}\n"));
    }
    let path = Path::new(&target);
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    if let Some(dir) = dir.filter(|dir| !dir.is_dir()) {
        let text = format!("Bad argument: Directory {} does not exist", dir.display());
        let refused = call.refuse(&text);
        return Err(Failed::new(status::DATA, refused.text));
    }
    let banner = format!("Exporting definitions in JSON to a file at \"{target}\" ...");
    call.output.say(&banner)?;
    let exported = call.ask(&Request::ExportDefinitions)?;
    write(path, &exported).map_err(|error| {
        Failed::new(
            status::DATA,
            format!("Error: cannot write {target}: {error}"),
        )
    })
}

/// For its owner alone, where it is new: password hashes are in it.
fn write(path: &Path, exported: &Value) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    serde_json::to_writer_pretty(&mut file, exported)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn import(call: &Call) -> Result<(), Failed> {
    check_format(call)?;
    let source = call
        .arguments
        .positional
        .first()
        .map_or("-", String::as_str);
    let text = match source {
        "-" => {
            call.output
                .say("Importing definitions in JSON from standard input ...")?;
            read(io::stdin().lock())
        }
        path if fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            let refused = call.refuse(&format!("Bad argument: File {path} does not exist"));
            return Err(Failed::new(status::DATA, refused.text));
        }
        path => {
            let banner = format!("Importing definitions in JSON from a file at \"{path}\" ...");
            call.output.say(&banner)?;
            File::open(path).and_then(read)
        }
    };
    let text = text.map_err(|error| {
        Failed::new(
            status::DATA,
            format!("Error: cannot read definitions: {error}"),
        )
    })?;
    let definitions = serde_json::from_slice(&text).map_err(|error| {
        let text = format!("Error:\nFailed to deserialise input (format: JSON) (error: {error})");
        Failed::new(status::DATA, text)
    })?;
    let imported = call.ask(&Request::ImportDefinitions { definitions })?;
    let warnings = imported.get("warnings").and_then(Value::as_array);
    for warning in warnings.into_iter().flatten().filter_map(Value::as_str) {
        call.output.warn(warning);
    }
    let entries = imported.get("entries").and_then(Value::as_u64).unwrap_or(0);
    let closing = format!("Successfully imported {entries} definitions.");
    call.output.say(&closing)
}

fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    source.take(MAX_FILE + 1).read_to_end(&mut text)?;
    match text.len() as u64 > MAX_FILE {
        true => Err(io::Error::other(format!("more than {MAX_FILE} bytes"))),
        false => Ok(text),
    }
}
