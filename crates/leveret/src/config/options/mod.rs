//! The table of options: every key that Leveret reads, with its default, environment variable,
//! flag, allowed values and meaning, in this one place. The parser, `docs/configuration.md` and
//! the command's help are made from it.
//!
//! To add an option: write its row in the section it belongs to, a field in `Draft` and in
//! `Config`, take its key out of `rabbitmq_keys.txt` if it is there, and run the tests with
//! `UPDATE_DOCS=1`.

mod access;
mod definitions;
mod logging;
mod network;
mod node;
mod protocol;
mod resources;
mod storage;

use super::option::ConfigOption;

/// A group of options with a title, as the reference page shows it.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) introduction: &'static str,
    pub(super) options: &'static [ConfigOption],
}

/// All sections, in the order of the reference page.
pub(super) const SECTIONS: &[Section] = &[
    network::SECTION,
    access::SECTION,
    definitions::SECTION,
    protocol::SECTION,
    resources::SECTION,
    storage::SECTION,
    node::SECTION,
    logging::SECTION,
];

/// The options of all sections.
pub(super) fn all() -> impl Iterator<Item = &'static ConfigOption> {
    SECTIONS.iter().flat_map(|section| section.options)
}

/// An environment variable that stands for no single key.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
}

/// Names the configuration file.
pub(super) const CONFIG_FILE_VARIABLE: &str = "RABBITMQ_CONFIG_FILE";
/// The port of the default listener.
pub(super) const PORT_VARIABLE: &str = "RABBITMQ_NODE_PORT";
/// The address of the default listener.
pub(super) const ADDRESS_VARIABLE: &str = "RABBITMQ_NODE_IP_ADDRESS";
/// A filter for the log.
pub(super) const LOG_VARIABLE: &str = "LEVERET_LOG";

/// The environment variables that stand for no single key.
pub(super) const VARIABLES: &[Variable] = &[
    Variable {
        name: CONFIG_FILE_VARIABLE,
        meaning: "The configuration file, with or without its `.conf`.",
    },
    Variable {
        name: PORT_VARIABLE,
        meaning: "Port to listen on where the file has no `listeners.tcp` key.",
    },
    Variable {
        name: ADDRESS_VARIABLE,
        meaning: "Address to listen on where the file has no `listeners.tcp` key; `auto` is all \
                  interfaces.",
    },
    Variable {
        name: LOG_VARIABLE,
        meaning: "What to log, in place of `log.*.level`: a level, or several for parts of the \
                  program, as in `info,leveret=debug`.",
    },
];
