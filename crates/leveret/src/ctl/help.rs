//! What can be called, and how.

use super::command::{Command, Failed};
use super::output::print;
use super::{GROUPS, all as commands, find};

/// Options that every command takes.
const OPTIONS: &str = "\
Options of every command:

   --data-dir DIR                the data directory of the server that is meant
   --config FILE, -c FILE        or its configuration file
   --socket PATH                 or its control socket
   --vhost VHOST, -p VHOST       the virtual host that is meant; / where none is given
   --formatter FORMATTER         table, pretty_table, json or csv
   --quiet, -q                   print no banners
   --silent, -s                  print neither banners nor the names of columns
   --no-table-headers            print no names of columns
   --timeout SECONDS, -t SECONDS how long to wait for the server
   --node NODE, -n NODE          accepted: the data directory says which server is meant";

/// The command line of a command.
pub(super) fn usage(command: &Command) -> String {
    format!("leveret ctl {} {}", command.name, command.usage)
        .trim_end()
        .to_owned()
}

/// All commands.
pub(super) fn all() -> String {
    let mut text = String::from(
        "\nUsage\n\nleveret ctl [options] <command> [<command options>]\n\nAvailable commands:\n",
    );
    for (title, lists) in GROUPS {
        text.push_str(&format!("\n{title}:\n\n"));
        for command in lists.iter().flat_map(|commands| *commands) {
            text.push_str(&format!("   {:<29} {}\n", command.name, command.summary));
        }
    }
    text.push_str(&format!(
        "\n{OPTIONS}\n\nUse 'leveret ctl help <command>' to learn more about a specific command"
    ));
    text
}

pub(super) fn print_all() -> Result<(), Failed> {
    print(&format!("{}\n", all()))
}

pub(super) fn print_command(command: &Command) -> Result<(), Failed> {
    let (usage, summary) = (usage(command), command.summary);
    print(&format!("\nUsage\n\n{usage}\n\n{summary}\n\n{OPTIONS}\n"))
}

/// `help`, and `help COMMAND`.
pub(super) fn print_for(given: &[String]) -> Result<(), Failed> {
    let after = given.iter().skip_while(|word| *word != "help").skip(1);
    let name = after.into_iter().find(|word| !word.starts_with('-'));
    match name {
        None => print_all(),
        Some(name) => match find(name) {
            Some(command) => print_command(command),
            None => Err(Failed::usage(not_found(name))),
        },
    }
}

/// No such command, and which one may be meant.
pub(super) fn not_found(name: &str) -> String {
    let farthest = (name.len() / 3).max(2);
    let nearest = commands()
        .map(|command| (strsim::damerau_levenshtein(name, command.name), command))
        .filter(|(distance, _)| *distance <= farthest)
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, command)) => format!(
            "\nCommand '{name}' not found. \nDid you mean '{}'? \n",
            command.name
        ),
        None => format!("\nCommand '{name}' not found. \n{}", all()),
    }
}
