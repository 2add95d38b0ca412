//! Commands about queues.

use serde_json::Value;

use super::command::{ANY_COLUMNS, Call, Command, Failed, flag};
use crate::control::protocol::Request;

/// All of rabbitmqctl's. Leveret has nothing to show in some: they stay empty.
const COLUMNS: &[&str] = &[
    "name",
    "durable",
    "auto_delete",
    "arguments",
    "policy",
    "operator_policy",
    "effective_policy_definition",
    "pid",
    "owner_pid",
    "exclusive",
    "exclusive_consumer_pid",
    "exclusive_consumer_tag",
    "messages_ready",
    "messages_unacknowledged",
    "messages",
    "messages_ready_ram",
    "messages_unacknowledged_ram",
    "messages_ram",
    "messages_persistent",
    "message_bytes",
    "message_bytes_ready",
    "message_bytes_unacknowledged",
    "message_bytes_ram",
    "message_bytes_persistent",
    "head_message_timestamp",
    "disk_reads",
    "disk_writes",
    "consumers",
    "consumer_utilisation",
    "consumer_capacity",
    "memory",
    "slave_pids",
    "synchronised_slave_pids",
    "mirror_pids",
    "synchronised_mirror_pids",
    "state",
    "type",
    "leader",
    "members",
    "online",
];

pub(super) const LISTS: &[Command] = &[Command {
    name: "list_queues",
    usage: "[--vhost <vhost>] [--online] [--offline] [--local] [--no-table-headers] \
            [<column>, ...]",
    summary: "Lists queues and their properties",
    positional: ANY_COLUMNS,
    options: &[
        flag("--online", ""),
        flag("--offline", ""),
        flag("--local", ""),
    ],
    run: list,
}];

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "delete_queue",
        usage: "[--vhost <vhost>] <queue_name> [--if-empty|-e] [--if-unused|-u]",
        summary: "Deletes a queue",
        positional: 1..=1,
        options: &[flag("--if-empty", "-e"), flag("--if-unused", "-u")],
        run: delete,
    },
    Command {
        name: "purge_queue",
        usage: "[--vhost <vhost>] <queue>",
        summary: "Purges a queue (removes all messages in it)",
        positional: 1..=1,
        options: &[],
        run: purge,
    },
];

fn list(call: &Call) -> Result<(), Failed> {
    let vhost = call.vhost();
    let seconds = call
        .arguments
        .timeout
        .map_or(60.0, |limit| limit.as_secs_f64());
    let banner = format!("Timeout: {seconds:.1} seconds ...\nListing queues for vhost {vhost} ...");
    if call.arguments.has("--offline") {
        // All queues of this node are online as long as it answers.
        call.output.say(&banner)?;
        return call.output.rows(&[], &[]);
    }
    call.list(
        &banner,
        &Request::ListQueues { vhost },
        COLUMNS,
        &["name", "messages"],
    )
}

fn delete(call: &Call) -> Result<(), Failed> {
    let (name, vhost) = (call.positional(0), call.vhost());
    let if_empty = call.arguments.has("--if-empty");
    let if_unused = call.arguments.has("--if-unused");
    let conditions = match (if_empty, if_unused) {
        (false, false) => "",
        (true, false) => " if queue is empty",
        (false, true) => " if queue is unused",
        (true, true) => " if queue is empty and if queue is unused",
    };
    let banner = format!("Deleting queue '{name}' on vhost '{vhost}'{conditions} ...");
    call.output.say(&banner)?;
    let deleted = call.ask(&Request::DeleteQueue {
        vhost,
        name,
        if_empty,
        if_unused,
    })?;
    let messages = deleted.get("messages").and_then(Value::as_u64).unwrap_or(0);
    let closing = format!("Queue was successfully deleted with {messages} ready messages");
    call.output.say(&closing)
}

fn purge(call: &Call) -> Result<(), Failed> {
    let (name, vhost) = (call.positional(0), call.vhost());
    call.tell(
        &format!("Purging queue '{name}' in vhost '{vhost}' ..."),
        &Request::PurgeQueue { vhost, name },
    )
}
