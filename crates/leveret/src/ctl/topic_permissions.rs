//! Commands about topic permissions.

use super::command::{Call, Command, Failed};
use crate::control::protocol::Request;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "clear_topic_permissions",
        usage: "[--vhost <vhost>] <username> [<exchange>]",
        summary: "Clears user topic permissions for a vhost or exchange",
        positional: 1..=2,
        options: &[],
        run: clear,
    },
    Command {
        name: "list_topic_permissions",
        usage: "[--vhost <vhost>] [--no-table-headers]",
        summary: "Lists topic permissions in a virtual host",
        positional: 0..=0,
        options: &[],
        run: list,
    },
    Command {
        name: "list_user_topic_permissions",
        usage: "[--no-table-headers] <username>",
        summary: "Lists user topic permissions",
        positional: 1..=1,
        options: &[],
        run: list_of_user,
    },
    Command {
        name: "set_topic_permissions",
        usage: "[--vhost <vhost>] <username> <exchange> <write> <read>",
        summary: "Sets user topic permissions for an exchange",
        positional: 4..=4,
        options: &[],
        run: set,
    },
];

fn set(call: &Call) -> Result<(), Failed> {
    let (user, exchange, vhost) = (call.positional(0), call.positional(1), call.vhost());
    call.tell(
        &format!(
            "Setting topic permissions on \"{exchange}\" for user \"{user}\" in vhost \
             \"{vhost}\" ..."
        ),
        &Request::SetTopicPermissions {
            vhost,
            user,
            exchange,
            write: call.positional(2),
            read: call.positional(3),
        },
    )
}

fn clear(call: &Call) -> Result<(), Failed> {
    let (user, vhost) = (call.positional(0), call.vhost());
    let exchange = call.arguments.positional.get(1).cloned();
    let on = exchange.as_ref();
    let on = on.map_or_else(String::new, |exchange| format!("on \"{exchange}\" "));
    call.tell(
        &format!("Clearing topic permissions {on}for user \"{user}\" in vhost \"{vhost}\" ..."),
        &Request::ClearTopicPermissions {
            vhost,
            user,
            exchange,
        },
    )
}

fn list(call: &Call) -> Result<(), Failed> {
    let vhost = call.vhost();
    call.all_columns(
        &format!("Listing topic permissions for vhost \"{vhost}\" ..."),
        &Request::ListTopicPermissions { vhost },
        &["user", "exchange", "write", "read"],
    )
}

fn list_of_user(call: &Call) -> Result<(), Failed> {
    let user = call.positional(0);
    let banner = format!("Listing topic permissions for user \"{user}\" ...");
    call.output.say(&banner)?;
    let rows = call.ask(&Request::ListUserTopicPermissions { user })?;
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    // The only list of rabbitmqctl's that is without.
    let output = call.output.without_headers();
    output.rows(&["vhost", "exchange", "write", "read"], rows)
}
