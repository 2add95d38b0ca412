//! Options of the memory and disk alarms.

use super::super::option::{BuiltIn, ConfigOption, option, with_built_in};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Memory and disk",
    introduction: "Past these limits the node stops reading from publishers until there is room \
                   again; consumers go on. Sizes may carry the units kB, MB, GB, TB (powers of \
                   1000) and KiB, MiB, GiB, TiB (powers of 1024). Where both an absolute and a \
                   relative limit are set, the absolute one counts.",
    options: OPTIONS,
};

/// More memory than that is no limit at all.
const MOST_DISK_SHARE: f64 = 1000.0;

const OPTIONS: &[ConfigOption] = &[
    option("vm_memory_high_watermark.relative", "0.4")
        .values("a number from 0 to 1 like 0.4")
        .meaning("Memory the node may use, as a share of the machine's.")
        .set(|draft, entry| {
            draft
                .memory
                .set_relative(entry, value::share(entry.value, 1.0))
        }),
    with_built_in(
        "vm_memory_high_watermark.absolute",
        BuiltIn::Described("not set"),
    )
    .values("a size in bytes like 2000000000, 2GB or 1900MiB")
    .meaning("Memory the node may use.")
    .set(|draft, entry| {
        draft
            .memory
            .set_absolute(entry, value::information_unit(entry.value))
    }),
    option("disk_free_limit.absolute", "50MB")
        .values("a size in bytes like 50000000, 50MB or 2GiB")
        .meaning("Space to keep free on the disk of the data directory.")
        .set(|draft, entry| {
            draft
                .disk
                .set_absolute(entry, value::information_unit(entry.value))
        }),
    with_built_in("disk_free_limit.relative", BuiltIn::Described("not set"))
        .values("a number from 0 to 1000 like 1.0")
        .meaning("Space to keep free on that disk, as a multiple of the machine's memory.")
        .set(|draft, entry| {
            draft
                .disk
                .set_relative(entry, value::share(entry.value, MOST_DISK_SHARE))
        }),
];
