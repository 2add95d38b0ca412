//! Options of what is kept: where, how safely, how much of it in memory.

use std::path::PathBuf;

use super::super::option::{ConfigOption, option, store};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Storage",
    introduction: "Persistent messages of durable queues, and definitions, survive a restart: they \
                   are written to one log, from which what stays moves to files of its queue. \
                   Sizes may carry the units that are named under Memory and disk.",
    options: OPTIONS,
};

/// Less would be nothing but waiting for the disk.
const LEAST: u64 = 1024 * 1024;

const OPTIONS: &[ConfigOption] = &[
    option("leveret.data_dir", "./leveret-data")
        .values("a path")
        .meaning("Where messages and definitions are kept.")
        .variable("LEVERET_DATA_DIR")
        .flag("--data-dir")
        .set(|draft, entry| {
            store(
                &mut draft.data_dir,
                value::filled(entry.value).map(PathBuf::from),
            )
        }),
    option("leveret.durability", "fsync")
        .values("`fsync` or `os`")
        .meaning(
            "When a persistent message is confirmed: `fsync`, once the disk has it, so that it \
             survives a power failure; `os`, once the operating system has it, so that it survives \
             the end of the process. A queue's argument `x-leveret-durability` says so for that \
             queue.",
        )
        .set(|draft, entry| store(&mut draft.durability, value::durability(entry.value))),
    option("leveret.queue_memory", "48MiB")
        .values("a size in bytes of at least 1MiB like 48MiB")
        .meaning(
            "Memory for the waiting messages of one queue; more of them are kept on disk alone. \
             All queues together use half of `vm_memory_high_watermark` at most.",
        )
        .set(|draft, entry| store(&mut draft.queue_memory, at_least(LEAST, entry.value))),
    option("leveret.log_size", "1GiB")
        .values("a size in bytes of at least 1MiB like 1GiB")
        .meaning(
            "Size of the log above which messages that only it holds are moved to files of their \
             queues.",
        )
        .set(|draft, entry| store(&mut draft.log_size, at_least(LEAST, entry.value))),
    option("leveret.log_file_size", "64MiB")
        .values("a size in bytes of at least 1MiB like 64MiB")
        .meaning("Size of one file of the log. The log needs room for three of them at least.")
        .set(|draft, entry| store(&mut draft.log_file_size, at_least(LEAST, entry.value))),
];

fn at_least(least: u64, text: &str) -> Option<u64> {
    value::information_unit(text).filter(|size| *size >= least)
}
