//! Options of the log.

use super::super::option::{BuiltIn, ConfigOption, option, store, with_built_in};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Log",
    introduction: "Leveret logs to standard error. RabbitMQ's level `notice` counts as `info`; \
                   `critical`, `alert` and `emergency` count as `error`. Keys for log files, \
                   syslog and the like are accepted with a warning.",
    options: OPTIONS,
};

const LEVELS: &str = "one of debug, info, notice, warning, error, critical, alert, emergency, none";

const OPTIONS: &[ConfigOption] = &[
    option("log.console", "true")
        .values("true or false")
        .meaning("Whether to log at all.")
        .set(|draft, entry| store(&mut draft.log_console, value::truth(entry.value))),
    option("log.default.level", "info")
        .values(LEVELS)
        .meaning("The least severe level to log.")
        .set(|draft, entry| store(&mut draft.log_default_level, value::log_level(entry.value))),
    with_built_in(
        "log.console.level",
        BuiltIn::Described("`log.default.level`"),
    )
    .values(LEVELS)
    .meaning("The same; takes precedence over `log.default.level`.")
    .set(|draft, entry| {
        store(
            &mut draft.log_console_level,
            value::log_level(entry.value).map(Some),
        )
    }),
    option("log.console.formatter", "plaintext")
        .values("plaintext or json")
        .meaning("Text for people, in colour on a terminal, or one JSON object a line.")
        .set(|draft, entry| store(&mut draft.log_format, value::log_format(entry.value))),
    with_built_in("log.file", BuiltIn::Described("`false`"))
        .values("false, or a path")
        .meaning(
            "Leveret writes no log file: `false` is accepted, a path is ignored with a warning.",
        )
        .set(|draft, entry| {
            let ignored = (entry.value != "false")
                .then(|| entry.origin.cloned())
                .flatten();
            store(&mut draft.log_file, Some(ignored))
        }),
];
