//! A command, and one call of it.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::arguments::Arguments;
use super::client::Client;
use super::output::Output;
use crate::control::protocol::{Request, status};

/// A command.
pub(super) struct Command {
    /// As it is called.
    pub name: &'static str,
    /// What follows the name, for the help.
    pub usage: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// How many arguments it takes besides options.
    pub positional: RangeInclusive<usize>,
    /// Options of its own.
    pub options: &'static [CommandOption],
    /// Does it.
    pub run: fn(&Call) -> Result<(), Failed>,
}

/// An option of a command.
pub(super) struct CommandOption {
    /// With its two hyphens.
    pub long: &'static str,
    /// One hyphen and a letter, or nothing.
    pub short: &'static str,
    /// A value follows.
    pub takes_value: bool,
}

/// An option with a value.
pub(super) const fn value(long: &'static str) -> CommandOption {
    CommandOption {
        long,
        short: "",
        takes_value: true,
    }
}

/// An option without.
pub(super) const fn flag(long: &'static str, short: &'static str) -> CommandOption {
    CommandOption {
        long,
        short,
        takes_value: false,
    }
}

/// As many arguments as there are columns, and more.
pub(super) const ANY_COLUMNS: RangeInclusive<usize> = 0..=100;

/// Why a command fails: what is printed to standard error, and the exit status.
#[derive(Debug)]
pub(super) struct Failed {
    pub status: u8,
    pub text: String,
}

impl Failed {
    /// The command line is wrong.
    pub fn usage(text: impl Into<String>) -> Failed {
        Failed {
            status: status::USAGE,
            text: text.into(),
        }
    }

    /// The arguments of a command are wrong: what was given, and what would be right.
    pub fn arguments(command: &Command, given: &[String], text: &str) -> Failed {
        let given = given.join(" ");
        Failed::usage(format!(
            "Error (argument validation): {text}\nArguments given:\n\t{given}\n\nUsage\n\n{}",
            super::help::usage(command)
        ))
    }

    /// Something else, with that status.
    pub fn new(status: u8, text: impl Into<String>) -> Failed {
        Failed {
            status,
            text: text.into(),
        }
    }
}

/// One call of a command.
pub(super) struct Call {
    pub command: &'static Command,
    pub arguments: Arguments,
    pub output: Output,
}

impl Call {
    pub fn new(command: &'static Command, arguments: Arguments) -> Result<Call, Failed> {
        let output = Output::new(&arguments)?;
        Ok(Call {
            command,
            arguments,
            output,
        })
    }

    /// An argument that the command requires.
    pub fn positional(&self, index: usize) -> String {
        let given = self.arguments.positional.get(index);
        given.cloned().unwrap_or_default()
    }

    /// The vhost in question.
    pub fn vhost(&self) -> String {
        self.arguments.vhost.clone()
    }

    /// The arguments make no sense together.
    pub fn refuse(&self, text: &str) -> Failed {
        Failed::arguments(self.command, &self.arguments.given, text)
    }

    /// Asks the server; its answer, or its refusal.
    pub fn ask(&self, request: &Request) -> Result<Value, Failed> {
        Client::connect(&self.arguments)?.ask(request)
    }

    /// Says what is about to be done, does it, and says nothing more.
    pub fn tell(&self, banner: &str, request: &Request) -> Result<(), Failed> {
        self.output.say(banner)?;
        self.ask(request).map(drop)
    }

    /// Prints a list with all its columns.
    pub fn all_columns(
        &self,
        banner: &str,
        request: &Request,
        columns: &[&str],
    ) -> Result<(), Failed> {
        self.output.say(banner)?;
        let rows = self.ask(request)?;
        let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
        self.output.rows(columns, rows)
    }

    /// Prints a list with the columns that were asked for, or else with these.
    pub fn list(
        &self,
        banner: &str,
        request: &Request,
        known: &[&str],
        default: &[&str],
    ) -> Result<(), Failed> {
        let asked: Vec<&str> = self.arguments.columns();
        let mut unknown: Vec<&str> = asked
            .iter()
            .copied()
            .filter(|column| !known.contains(column))
            .collect();
        if !unknown.is_empty() {
            unknown.sort_unstable();
            let text = format!("Info key(s) {} are not supported", unknown.join(","));
            return Err(self.refuse(&text));
        }
        let columns = if asked.is_empty() { default } else { &asked };
        self.all_columns(banner, request, columns)
    }
}
