//! The command line: help, mistakes, exit statuses. No server is needed for them.

use crate::running::*;

fn without_server(arguments: &[&str]) -> Outcome {
    let mut command = program();
    command.args(arguments);
    run(command, "")
}

#[test]
fn wrong_arguments_are_refused_with_status_64_and_the_usage() {
    let outcome = without_server(&["set_policy", "bad"]);
    assert_eq!((outcome.status, &*outcome.out), (64, ""));
    assert_eq!(
        outcome.err,
        "Error (argument validation): not enough arguments.\nArguments given:\n\tset_policy \
         bad\n\nUsage\n\nleveret ctl set_policy [--vhost <vhost>] [--priority <priority>] \
         [--apply-to <apply-to>] <name> <pattern> <definition>\n"
    );
    for arguments in [
        &["list_users", "extra"][..],
        &["delete_queue"],
        &["add_vhost"],
        &["add_user"],
        &["set_permissions", "bob", ".*", "^x"],
        &["export_definitions"],
        &["list_users", "--foo"],
        &["list_users", "--timeout", "soon"],
        &["list_users", "--timeout"],
    ] {
        let outcome = without_server(arguments);
        assert_eq!((outcome.status, &*outcome.out), (64, ""), "{arguments:?}");
        assert!(
            outcome.err.contains("Usage\n\nleveret ctl "),
            "{}",
            outcome.err
        );
    }
}

#[test]
fn unknown_commands_are_refused_with_status_64_and_a_suggestion() {
    let outcome = without_server(&["list_quues"]);
    assert_eq!(outcome.status, 64);
    assert_eq!(
        outcome.err,
        "\nCommand 'list_quues' not found. \nDid you mean 'list_queues'? \n\n"
    );
    for arguments in [&["entirely_unknown"][..], &[], &["-q"]] {
        let outcome = without_server(arguments);
        assert_eq!((outcome.status, &*outcome.out), (64, ""), "{arguments:?}");
        assert!(
            outcome.err.contains("Available commands:"),
            "{}",
            outcome.err
        );
    }
}

#[test]
fn help_names_every_command() {
    for arguments in [&["help"][..], &["--help"]] {
        let outcome = without_server(arguments);
        assert_eq!((outcome.status, &*outcome.err), (0, ""));
        let commands = "set_policy clear_policy list_policies set_operator_policy \
            clear_operator_policy list_operator_policies add_vhost delete_vhost list_vhosts trace_on trace_off \
            add_user delete_user list_users change_password set_user_tags authenticate_user \
            set_permissions clear_permissions list_permissions list_user_permissions list_queues \
            set_topic_permissions clear_topic_permissions list_topic_permissions \
            list_user_topic_permissions set_parameter clear_parameter list_parameters \
            set_global_parameter clear_global_parameter list_global_parameters \
            list_exchanges list_bindings list_consumers delete_queue purge_queue \
            export_definitions import_definitions status stop ping version";
        for command in commands.split_whitespace() {
            let line = format!("\n   {command} ");
            assert!(outcome.out.contains(&line), "{command}");
            let help = without_server(&["help", command]);
            assert_eq!(help.status, 0);
            assert!(
                help.out.contains(&format!("leveret ctl {command}")),
                "{}",
                help.out
            );
        }
    }
    let outcome = without_server(&["list_queues", "--help"]);
    assert_eq!(outcome.status, 0);
    assert!(
        outcome.out.contains("leveret ctl list_queues"),
        "{}",
        outcome.out
    );
}

#[test]
fn version_is_the_programs_own() {
    let outcome = without_server(&["version"]);
    let version = concat!(env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((outcome.status, &*outcome.out), (0, version));
}

#[test]
fn server_that_is_not_there_is_told_with_status_69() {
    let outcome = without_server(&["--data-dir", "/nowhere", "list_users"]);
    assert_eq!((outcome.status, &*outcome.out), (69, "Listing users ...\n"));
    assert!(
        outcome.err.contains("/nowhere/control.sock"),
        "{}",
        outcome.err
    );
    assert!(outcome.err.contains("--data-dir"), "{}", outcome.err);
}
