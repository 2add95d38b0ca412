//! Commands about bindings.

use super::command::{ANY_COLUMNS, Command};
use crate::control::protocol::Request;

const COLUMNS: &[&str] = &[
    "source_name",
    "source_kind",
    "destination_name",
    "destination_kind",
    "routing_key",
    "arguments",
];

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "list_bindings",
    usage: "[--vhost <vhost>] [--no-table-headers] [<column> ...]",
    summary: "Lists all bindings on a vhost",
    positional: ANY_COLUMNS,
    options: &[],
    run: |call| {
        let vhost = call.vhost();
        call.list(
            &format!("Listing bindings for vhost {vhost}..."),
            &Request::ListBindings { vhost },
            COLUMNS,
            COLUMNS,
        )
    },
}];
