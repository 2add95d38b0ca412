//! Commands about vhosts.

use super::command::{ANY_COLUMNS, Call, Command, Failed, value};
use crate::control::protocol::Request;

const COLUMNS: &[&str] = &[
    "name",
    "tracing",
    "description",
    "tags",
    "default_queue_type",
];

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "add_vhost",
        usage: "<vhost> [--description <description> --tags \"<tag1>,<tag2>,<...>\" \
                --default-queue-type <quorum|classic|stream>]",
        summary: "Creates a virtual host",
        positional: 1..=1,
        options: &[
            value("--description"),
            value("--tags"),
            value("--default-queue-type"),
        ],
        run: add,
    },
    Command {
        name: "delete_vhost",
        usage: "<vhost>",
        summary: "Deletes a virtual host with all that is in it, and closes the connections to it",
        positional: 1..=1,
        options: &[],
        run: |call| {
            let name = call.positional(0);
            call.tell(
                &format!("Deleting vhost \"{name}\" ..."),
                &Request::DeleteVhost { name },
            )
        },
    },
    Command {
        name: "list_vhosts",
        usage: "[--no-table-headers] [<column> ...]",
        summary: "Lists virtual hosts",
        positional: ANY_COLUMNS,
        options: &[],
        run: |call| {
            call.list(
                "Listing vhosts ...",
                &Request::ListVhosts,
                COLUMNS,
                &["name"],
            )
        },
    },
];

fn add(call: &Call) -> Result<(), Failed> {
    let name = call.positional(0);
    let own = |option| call.arguments.own(option);
    let tags = own("--tags").unwrap_or_default().split(',').map(str::trim);
    call.tell(
        &format!("Adding vhost \"{name}\" ..."),
        &Request::AddVhost {
            name,
            description: own("--description").unwrap_or_default().to_owned(),
            tags: tags
                .filter(|tag| !tag.is_empty())
                .map(str::to_owned)
                .collect(),
            default_queue_type: own("--default-queue-type").map(str::to_owned),
        },
    )
}
