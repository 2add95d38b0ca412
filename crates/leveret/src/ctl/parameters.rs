//! Commands about runtime parameters. Those of vhosts have no effect yet, but for operator policies.

use super::command::{Call, Command, Failed};
use crate::control::protocol::Request;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "clear_global_parameter",
        usage: "<name>",
        summary: "Clears a global runtime parameter",
        positional: 1..=1,
        options: &[],
        run: clear_global,
    },
    Command {
        name: "clear_parameter",
        usage: "[--vhost <vhost>] <component_name> <name>",
        summary: "Clears a runtime parameter",
        positional: 2..=2,
        options: &[],
        run: clear,
    },
    Command {
        name: "list_global_parameters",
        usage: "[--no-table-headers]",
        summary: "Lists global runtime parameters",
        positional: 0..=0,
        options: &[],
        run: list_global,
    },
    Command {
        name: "list_parameters",
        usage: "[--vhost <vhost>] [--no-table-headers]",
        summary: "Lists runtime parameters for a virtual host",
        positional: 0..=0,
        options: &[],
        run: list,
    },
    Command {
        name: "set_global_parameter",
        usage: "<name> <value>",
        summary: "Sets a global runtime parameter",
        positional: 2..=2,
        options: &[],
        run: set_global,
    },
    Command {
        name: "set_parameter",
        usage: "[--vhost <vhost>] <component_name> <name> <value>",
        summary: "Sets a runtime parameter",
        positional: 3..=3,
        options: &[],
        run: set,
    },
];

fn set(call: &Call) -> Result<(), Failed> {
    let (component, name, value) = (call.positional(0), call.positional(1), call.positional(2));
    let vhost = call.vhost();
    let warning = format!("parameters of component '{component}' are kept, but have no effect yet");
    let has_effect = component == "operator_policy";
    call.tell(
        &format!(
            "Setting runtime parameter \"{name}\" for component \"{component}\" to \"{value}\" \
             in vhost \"{vhost}\" ..."
        ),
        &Request::SetParameter {
            vhost,
            component,
            name,
            value,
        },
    )?;
    if !has_effect {
        call.output.warn(&warning);
    }
    Ok(())
}

fn clear(call: &Call) -> Result<(), Failed> {
    let (component, name, vhost) = (call.positional(0), call.positional(1), call.vhost());
    call.tell(
        &format!(
            "Clearing runtime parameter \"{name}\" for component \"{component}\" on vhost \
             \"{vhost}\" ..."
        ),
        &Request::ClearParameter {
            vhost,
            component,
            name,
        },
    )
}

fn list(call: &Call) -> Result<(), Failed> {
    let vhost = call.vhost();
    call.all_columns(
        &format!("Listing runtime parameters for vhost \"{vhost}\" ..."),
        &Request::ListParameters { vhost },
        &["component", "name", "value"],
    )
}

fn set_global(call: &Call) -> Result<(), Failed> {
    let (name, value) = (call.positional(0), call.positional(1));
    call.tell(
        &format!("Setting global runtime parameter \"{name}\" to \"{value}\" ..."),
        &Request::SetGlobalParameter { name, value },
    )
}

fn clear_global(call: &Call) -> Result<(), Failed> {
    let name = call.positional(0);
    call.tell(
        &format!("Clearing global runtime parameter \"{name}\" ..."),
        &Request::ClearGlobalParameter { name },
    )
}

fn list_global(call: &Call) -> Result<(), Failed> {
    call.all_columns(
        "Listing global runtime parameters ...",
        &Request::ListGlobalParameters,
        &["name", "value"],
    )
}
