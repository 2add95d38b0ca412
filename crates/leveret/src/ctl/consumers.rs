//! Commands about consumers.

use super::command::{ANY_COLUMNS, Command};
use crate::control::protocol::Request;

const COLUMNS: &[&str] = &[
    "queue_name",
    "channel_pid",
    "consumer_tag",
    "ack_required",
    "prefetch_count",
    "active",
    "activity_status",
    "arguments",
];
const DEFAULT: &[&str] = &[
    "queue_name",
    "channel_pid",
    "consumer_tag",
    "ack_required",
    "prefetch_count",
    "active",
    "arguments",
];

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "list_consumers",
    usage: "[--vhost <vhost>] [--no-table-headers] [<column> ...]",
    summary: "Lists all consumers for a vhost",
    positional: ANY_COLUMNS,
    options: &[],
    run: |call| {
        let vhost = call.vhost();
        call.list(
            &format!("Listing consumers in vhost {vhost} ..."),
            &Request::ListConsumers { vhost },
            COLUMNS,
            DEFAULT,
        )
    },
}];
