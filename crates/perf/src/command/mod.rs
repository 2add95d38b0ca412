//! The command line of a load: PerfTest's options and ours to [`Settings`], and what is to be done
//! with the result.
//!
//! Arguments pass through in one direction: `parse` takes them apart by `table`, `given` adds the
//! environment, `resolve` fills in defaults and checks one against the other. Nothing is connected
//! to and nothing is written; only files that options name are read.
//!
//! [`Settings`]: crate::settings::Settings

mod connection;
mod consumers;
mod dates;
mod given;
mod help;
mod keep;
mod options;
mod parse;
mod payload;
mod producers;
mod resolve;
mod table;
mod topology;
mod validate;
mod values;

pub use connection::without_passwords;
pub use keep::{Keep, Prometheus};
pub use resolve::Load;

use crate::Error;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// To run a load.
    Load(Box<Load>),
    /// To print this text, which ends with a line feed.
    Print(String),
}

/// Reads the arguments after `leveret perf`, and the environment variables that stand for some.
///
/// # Errors
/// [`Error::Usage`], in one line.
pub fn parse(
    arguments: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Invocation, Error> {
    read(arguments, environment).map_err(|mut error| {
        if let Error::Usage(message) = &mut error {
            one_line(message);
        }
        error
    })
}

fn read(
    arguments: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Invocation, Error> {
    let arguments = parse::parse(arguments)?;
    let asked = |long| {
        arguments
            .occurrences
            .iter()
            .any(|one| one.spec.long == long)
    };
    let text = if asked("metrics-help") {
        Some(help::metrics())
    } else if asked("environment-variables") {
        Some(help::environment())
    } else if asked("help") {
        Some(help::usage())
    } else if asked("version") {
        Some(help::version())
    } else {
        None
    };
    if let Some(text) = text {
        return Ok(Invocation::Print(text));
    }
    let given = given::Given::new(arguments, environment)?;
    let mut load = resolve::resolve(&given)?;
    load.warnings.iter_mut().for_each(one_line);
    Ok(Invocation::Load(Box::new(load)))
}

/// Messages quote what was typed, which may hold anything.
fn one_line(message: &mut String) {
    *message = message.replace(char::is_control, " ");
}

#[cfg(test)]
mod tests;
