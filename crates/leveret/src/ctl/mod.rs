//! `leveret ctl`: rabbitmqctl's commands, for the server that uses a data directory.
//!
//! One file for each noun holds its commands; [`arguments`] reads the command line as rabbitmqctl
//! does, [`client`] talks to the server, [`output`] prints. Texts and exit statuses are
//! rabbitmqctl's, so that scripts written for it go on working.

mod arguments;
mod bindings;
mod client;
mod command;
mod consumers;
mod definitions;
mod exchanges;
mod help;
mod node;
mod output;
mod parameters;
mod permissions;
mod policies;
mod queues;
mod topic_permissions;
mod users;
mod vhosts;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Arguments;
use command::{Call, Command, Failed};

/// All commands, in the order of the help.
const GROUPS: &[(&str, &[&[Command]])] = &[
    ("Nodes", &[node::COMMANDS]),
    ("Users", &[users::COMMANDS]),
    (
        "Access Control",
        &[permissions::COMMANDS, topic_permissions::COMMANDS],
    ),
    (
        "Monitoring, observability and health checks",
        &[
            queues::LISTS,
            exchanges::COMMANDS,
            bindings::COMMANDS,
            consumers::COMMANDS,
        ],
    ),
    ("Parameters", &[parameters::COMMANDS]),
    ("Policies", &[policies::COMMANDS]),
    ("Virtual hosts", &[vhosts::COMMANDS]),
    ("Definitions", &[definitions::COMMANDS]),
    ("Queues", &[queues::COMMANDS]),
];

fn all() -> impl Iterator<Item = &'static Command> {
    let groups = GROUPS.iter().flat_map(|(_, lists)| *lists);
    groups.flat_map(|commands| *commands)
}

fn find(name: &str) -> Option<&'static Command> {
    all().find(|command| command.name == name)
}

/// Runs a command to its end.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let failed = match execute(arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failed) => failed,
    };
    // A reader that has left has seen enough.
    let _ = writeln!(io::stderr(), "{}", failed.text);
    ExitCode::from(failed.status)
}

fn execute(arguments: &[OsString]) -> Result<(), Failed> {
    let given: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let Some(name) = Arguments::command_name(&given) else {
        return match Arguments::asks_for_help(&given) {
            true => help::print_all(),
            false => Err(Failed::usage(help::all())),
        };
    };
    if name == "help" {
        return help::print_for(&given);
    }
    let Some(command) = find(name) else {
        return Err(Failed::usage(help::not_found(name)));
    };
    if Arguments::asks_for_help(&given) {
        return help::print_command(command);
    }
    let arguments = Arguments::parse(command, &given)?;
    (command.run)(&Call::new(command, arguments)?)
}
