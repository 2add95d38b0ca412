//! Commands about permissions.

use super::command::{Call, Command, Failed};
use crate::control::protocol::Request;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "clear_permissions",
        usage: "[--vhost <vhost>] <username>",
        summary: "Revokes user permissions for a vhost",
        positional: 1..=1,
        options: &[],
        run: clear,
    },
    Command {
        name: "list_permissions",
        usage: "[--vhost <vhost>] [--no-table-headers]",
        summary: "Lists user permissions in a virtual host",
        positional: 0..=0,
        options: &[],
        run: list,
    },
    Command {
        name: "list_user_permissions",
        usage: "[--no-table-headers] <username>",
        summary: "Lists permissions of a user across all virtual hosts",
        positional: 1..=1,
        options: &[],
        run: list_of_user,
    },
    Command {
        name: "set_permissions",
        usage: "[--vhost <vhost>] <username> <conf> <write> <read>",
        summary: "Sets user permissions for a vhost",
        positional: 4..=4,
        options: &[],
        run: set,
    },
];

fn set(call: &Call) -> Result<(), Failed> {
    let (user, vhost) = (call.positional(0), call.vhost());
    call.tell(
        &format!("Setting permissions for user \"{user}\" in vhost \"{vhost}\" ..."),
        &Request::SetPermissions {
            vhost,
            user,
            configure: call.positional(1),
            write: call.positional(2),
            read: call.positional(3),
        },
    )
}

fn clear(call: &Call) -> Result<(), Failed> {
    let (user, vhost) = (call.positional(0), call.vhost());
    call.tell(
        &format!("Clearing permissions for user \"{user}\" in vhost \"{vhost}\" ..."),
        &Request::ClearPermissions { vhost, user },
    )
}

fn list(call: &Call) -> Result<(), Failed> {
    let vhost = call.vhost();
    let columns = ["user", "configure", "write", "read"];
    call.list(
        &format!("Listing permissions for vhost \"{vhost}\" ..."),
        &Request::ListPermissions { vhost },
        &columns,
        &columns,
    )
}

fn list_of_user(call: &Call) -> Result<(), Failed> {
    let user = call.positional(0);
    let columns = ["vhost", "configure", "write", "read"];
    call.all_columns(
        &format!("Listing permissions for user \"{user}\" ..."),
        &Request::ListUserPermissions { user },
        &columns,
    )
}
