//! Options of the node itself: its name, its threads.

use std::num::NonZeroUsize;

use super::super::option::{BuiltIn, ConfigOption, store, with_built_in};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Node",
    introduction: "Keys that start with `leveret.` are Leveret's own.",
    options: OPTIONS,
};

const OPTIONS: &[ConfigOption] = &[
    with_built_in(
        "nodename",
        BuiltIn::Described("`rabbit@` and the host's name"),
    )
    .values("a name like rabbit or rabbit@host, of letters, digits, `-`, `_` and `.`")
    .meaning(
        "Name of this node; without an `@` the host's name is added. It is part of the names of \
         shards: where it changes, new ones are made.",
    )
    .variable("RABBITMQ_NODENAME")
    .set(|draft, entry| {
        store(
            &mut draft.node_name,
            value::node_name(entry.value).map(Some),
        )
    }),
    with_built_in("cluster_name", BuiltIn::Described("the node's name"))
        .values("a name")
        .meaning("Name of the cluster, which clients are told.")
        .set(|draft, entry| {
            store(
                &mut draft.cluster_name,
                value::filled(entry.value).map(Some),
            )
        }),
    with_built_in(
        "leveret.worker_threads",
        BuiltIn::Described("one for each core"),
    )
    .values("a number of threads from 1 to 1024")
    .meaning("Threads that serve connections.")
    .set(|draft, entry| {
        let threads: Option<usize> = value::whole(entry.value, 1..=1024);
        store(
            &mut draft.worker_threads,
            threads.and_then(NonZeroUsize::new).map(Some),
        )
    }),
];
