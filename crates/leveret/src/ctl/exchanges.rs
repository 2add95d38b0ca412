//! Commands about exchanges.

use super::command::{ANY_COLUMNS, Command};
use crate::control::protocol::Request;

const COLUMNS: &[&str] = &[
    "name",
    "type",
    "durable",
    "auto_delete",
    "internal",
    "arguments",
    "policy",
    "messages_delayed",
];

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "list_exchanges",
    usage: "[--vhost <vhost>] [--no-table-headers] [<column> ...]",
    summary: "Lists exchanges",
    positional: ANY_COLUMNS,
    options: &[],
    run: |call| {
        let vhost = call.vhost();
        call.list(
            &format!("Listing exchanges for vhost {vhost} ..."),
            &Request::ListExchanges { vhost },
            COLUMNS,
            &["name", "type"],
        )
    },
}];
