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
    Command {
        name: "trace_on",
        usage: "[-p <vhost>]",
        summary: "Copies messages of a virtual host to its exchange amq.rabbitmq.trace, until the server \
                  ends",
        positional: 0..=0,
        options: &[],
        run: |call| trace(call, true),
    },
    Command {
        name: "trace_off",
        usage: "[-p <vhost>]",
        summary: "Stops copying messages to amq.rabbitmq.trace",
        positional: 0..=0,
        options: &[],
        run: |call| trace(call, false),
    },
];

fn trace(call: &Call, traced: bool) -> Result<(), Failed> {
    let vhost = call.vhost();
    let (doing, done) = match traced {
        true => ("Starting", "enabled"),
        false => ("Stopping", "disabled"),
    };
    let said = format!("Trace {done} for vhost {vhost}");
    call.tell(
        &format!("{doing} tracing for vhost \"{vhost}\" ..."),
        &Request::SetTracing { vhost, traced },
    )?;
    call.output.say(&said)
}

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
