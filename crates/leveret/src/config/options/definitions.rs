//! Options of definitions that are imported when the node starts.

use std::path::PathBuf;

use super::super::option::{BuiltIn, ConfigOption, option, store, with_built_in};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Definitions",
    introduction: "Users, vhosts, permissions, policies, exchanges, queues and bindings from files \
                   that RabbitMQ, or `leveret ctl export_definitions`, has written. They are \
                   imported at every start, before clients can come; what is wrong with them stops \
                   the start. A new node with such a file gets no default user and no default \
                   virtual host: the file says who may come. In place of a file there may be a \
                   directory, whose files are imported in the order of their names.",
    options: OPTIONS,
};

const OPTIONS: &[ConfigOption] = &[
    with_built_in("load_definitions", BuiltIn::Described("not set"))
        .values("a path")
        .meaning("The file or directory to import.")
        .set(|draft, entry| {
            let path = value::filled(entry.value).map(PathBuf::from);
            store(&mut draft.load_definitions, path.map(Some))
        }),
    with_built_in("management.load_definitions", BuiltIn::Described("not set"))
        .values("a path")
        .meaning("The same, under its old name; imported after it, where both are set.")
        .set(|draft, entry| {
            let path = value::filled(entry.value).map(PathBuf::from);
            store(&mut draft.management_load_definitions, path.map(Some))
        }),
    option("definitions.import_backend", "local_filesystem")
        .values("`local_filesystem`")
        .meaning("Where definitions come from: from files.")
        .set(|_, entry| (entry.value == "local_filesystem").then_some(())),
    with_built_in("definitions.local.path", BuiltIn::Described("not set"))
        .values("a path")
        .meaning("A file or directory to import, after `load_definitions`.")
        .set(|draft, entry| {
            let path = value::filled(entry.value).map(PathBuf::from);
            store(&mut draft.definitions_local_path, path.map(Some))
        }),
];
