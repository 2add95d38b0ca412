//! Commands about users.

use std::io::{self, BufRead};
use std::os::fd::AsFd;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::command::{Call, Command, Failed};
use crate::control::protocol::{Request, status};

/// Bytes of a password that is typed or piped.
const MAX_PASSWORD: u64 = 4096;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "add_user",
        usage: "<username> [<password>]",
        summary: "Creates a new user, who has no permissions in any virtual host yet",
        positional: 1..=2,
        options: &[],
        run: add,
    },
    Command {
        name: "authenticate_user",
        usage: "<username> [<password>]",
        summary: "Attempts to authenticate a user. Exits with a non-zero code if authentication fails",
        positional: 1..=2,
        options: &[],
        run: authenticate,
    },
    Command {
        name: "change_password",
        usage: "<username> [<password>]",
        summary: "Changes the user password",
        positional: 1..=2,
        options: &[],
        run: change_password,
    },
    Command {
        name: "delete_user",
        usage: "<username>",
        summary: "Removes a user with all permissions, and closes the user's connections",
        positional: 1..=1,
        options: &[],
        run: |call| {
            let name = call.positional(0);
            call.tell(
                &format!("Deleting user \"{name}\" ..."),
                &Request::DeleteUser { name },
            )
        },
    },
    Command {
        name: "list_users",
        usage: "[--no-table-headers]",
        summary: "List user names and tags",
        positional: 0..=0,
        options: &[],
        run: |call| {
            let columns = ["user", "tags"];
            call.list("Listing users ...", &Request::ListUsers, &columns, &columns)
        },
    },
    Command {
        name: "set_user_tags",
        usage: "<username> <tag> [...]",
        summary: "Sets user tags",
        positional: 1..=101,
        options: &[],
        run: set_tags,
    },
];

fn add(call: &Call) -> Result<(), Failed> {
    let name = call.positional(0);
    call.output.say(&format!("Adding user \"{name}\" ..."))?;
    let password = password(call)?;
    call.ask(&Request::AddUser { name, password })?;
    call.output.say(
        "Done. Don't forget to grant the user permissions to some virtual hosts! See 'leveret ctl \
         help set_permissions' to learn more.",
    )
}

fn change_password(call: &Call) -> Result<(), Failed> {
    let name = call.positional(0);
    let banner = format!("Changing password for user \"{name}\" ...");
    call.output.say(&banner)?;
    let password = password(call)?;
    call.ask(&Request::ChangePassword { name, password })
        .map(drop)
}

fn authenticate(call: &Call) -> Result<(), Failed> {
    let name = call.positional(0);
    call.output
        .say(&format!("Authenticating user \"{name}\" ..."))?;
    let password = password(call)?;
    call.ask(&Request::AuthenticateUser { name, password })?;
    call.output.say("Success")
}

fn set_tags(call: &Call) -> Result<(), Failed> {
    let name = call.positional(0);
    let tags = call.arguments.positional[1..].to_vec();
    let list = tags.join(", ");
    call.tell(
        &format!("Setting tags for user \"{name}\" to [{list}] ..."),
        &Request::SetUserTags { name, tags },
    )
}

/// The second argument; without one it is asked for, so that it need not stand where other users of
/// the machine see it.
fn password(call: &Call) -> Result<String, Failed> {
    if let Some(password) = call.arguments.positional.get(1) {
        return Ok(password.clone());
    }
    call.output.say("Password: ")?;
    let typed = without_echo(|| {
        let mut line = String::new();
        let stdin = io::stdin().lock();
        io::Read::take(stdin, MAX_PASSWORD).read_line(&mut line)?;
        Ok(line)
    });
    let line = typed.map_err(|error: io::Error| {
        Failed::new(
            status::DATA,
            format!("Error: cannot read the password: {error}"),
        )
    })?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Where somebody types, what is typed is not shown meanwhile.
fn without_echo<R>(read: impl FnOnce() -> R) -> R {
    let stdin = io::stdin();
    let Ok(before) = tcgetattr(stdin.as_fd()) else {
        return read();
    };
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    let _ = tcsetattr(stdin.as_fd(), OptionalActions::Flush, &hidden);
    let result = read();
    let _ = tcsetattr(stdin.as_fd(), OptionalActions::Flush, &before);
    result
}
