//! Commands about policies and operator policies.

use super::command::{Call, Command, CommandOption, Failed, value};
use crate::control::protocol::Request;

const OPTIONS: &[CommandOption] = &[value("--priority"), value("--apply-to")];
const SET: &str = "[--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] <name> \
                   <pattern> <definition>";

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "clear_operator_policy",
        usage: "[--vhost <vhost>] <name>",
        summary: "Clears an operator policy",
        positional: 1..=1,
        options: &[],
        run: |call| clear(call, true),
    },
    Command {
        name: "clear_policy",
        usage: "[--vhost <vhost>] <name>",
        summary: "Clears (removes) a policy",
        positional: 1..=1,
        options: &[],
        run: |call| clear(call, false),
    },
    Command {
        name: "list_operator_policies",
        usage: "[--vhost <vhost>] [--no-table-headers]",
        summary: "Lists operator policy overrides for a virtual host",
        positional: 0..=0,
        options: &[],
        run: |call| list(call, true),
    },
    Command {
        name: "list_policies",
        usage: "[--vhost <vhost>] [--no-table-headers]",
        summary: "Lists all policies in a virtual host",
        positional: 0..=0,
        options: &[],
        run: |call| list(call, false),
    },
    Command {
        name: "set_operator_policy",
        usage: SET,
        summary: "Sets an operator policy that overrides a subset of arguments in user policies",
        positional: 3..=3,
        options: OPTIONS,
        run: |call| set(call, true),
    },
    Command {
        name: "set_policy",
        usage: SET,
        summary: "Sets or updates a policy",
        positional: 3..=3,
        options: OPTIONS,
        run: |call| set(call, false),
    },
];

fn set(call: &Call, operator: bool) -> Result<(), Failed> {
    let (name, pattern, definition) = (call.positional(0), call.positional(1), call.positional(2));
    let priority = call.arguments.own("--priority").unwrap_or("0");
    let Ok(number) = priority.parse() else {
        let text = format!("Invalid options for this command:\n--priority : {priority}");
        return Err(call.refuse(&text));
    };
    let vhost = call.vhost();
    let kind = match operator {
        true => "operator policy override",
        false => "policy",
    };
    let banner = format!(
        "Setting {kind} \"{name}\" for pattern \"{pattern}\" to \"{definition}\" with priority \
         \"{priority}\" for vhost \"{vhost}\" ..."
    );
    let apply_to = call.arguments.own("--apply-to").unwrap_or("all").to_owned();
    call.tell(
        &banner,
        &Request::SetPolicy {
            operator,
            vhost,
            name,
            pattern,
            apply_to,
            priority: number,
            definition,
        },
    )
}

fn clear(call: &Call, operator: bool) -> Result<(), Failed> {
    let (name, vhost) = (call.positional(0), call.vhost());
    let kind = match operator {
        true => "operator policy",
        false => "policy",
    };
    call.tell(
        &format!("Clearing {kind} \"{name}\" on vhost \"{vhost}\" ..."),
        &Request::ClearPolicy {
            operator,
            vhost,
            name,
        },
    )
}

fn list(call: &Call, operator: bool) -> Result<(), Failed> {
    let vhost = call.vhost();
    let kind = match operator {
        true => "operator policy overrides",
        false => "policies",
    };
    let columns = [
        "vhost",
        "name",
        "pattern",
        "apply-to",
        "definition",
        "priority",
    ];
    call.all_columns(
        &format!("Listing {kind} for vhost \"{vhost}\" ..."),
        &Request::ListPolicies { operator, vhost },
        &columns,
    )
}
