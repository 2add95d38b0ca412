//! Options of the user and virtual host that a new node starts with, and of who may connect.

use super::super::Password;
use super::super::option::{BuiltIn, ConfigOption, option, store, with_built_in};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Users and access",
    introduction: "The `default_*` keys take effect once, when the node starts with an empty data \
                   directory. A value like `$(BROKER_PASSWORD)` is taken from the environment.",
    options: OPTIONS,
};

const OPTIONS: &[ConfigOption] = &[
    option("default_user", "guest")
        .values("a name")
        .meaning("Name of the first user.")
        .variable("RABBITMQ_DEFAULT_USER")
        .set(|draft, entry| store(&mut draft.default_user, value::filled(entry.value))),
    option("default_pass", "guest")
        .values("a password in clear text (values encrypted for RabbitMQ cannot be read)")
        .meaning("Password of the first user.")
        .variable("RABBITMQ_DEFAULT_PASS")
        .secret()
        .set(|draft, entry| {
            store(
                &mut draft.default_pass,
                value::password(entry.value).map(Password::new),
            )
        }),
    option("default_vhost", "/")
        .values("a name")
        .meaning("Name of the first virtual host.")
        .variable("RABBITMQ_DEFAULT_VHOST")
        .set(|draft, entry| store(&mut draft.default_vhost, value::filled(entry.value))),
    option("default_permissions.configure", ".*")
        .values("a regular expression")
        .meaning("Resources of the first virtual host that the first user may declare and delete.")
        .set(|draft, entry| {
            store(
                &mut draft.default_permissions.configure,
                Some(entry.value.to_owned()),
            )
        }),
    option("default_permissions.write", ".*")
        .values("a regular expression")
        .meaning("Resources that the first user may publish to.")
        .set(|draft, entry| {
            store(
                &mut draft.default_permissions.write,
                Some(entry.value.to_owned()),
            )
        }),
    option("default_permissions.read", ".*")
        .values("a regular expression")
        .meaning("Resources that the first user may consume from.")
        .set(|draft, entry| {
            store(
                &mut draft.default_permissions.read,
                Some(entry.value.to_owned()),
            )
        }),
    with_built_in(
        "default_user_tags.$tag",
        BuiltIn::Member("administrator", "true"),
    )
    .values("true or false")
    .meaning("Whether the first user has this tag. The first tag in the file replaces the default.")
    .set(|draft, entry| {
        draft
            .default_user_tags
            .set(entry, value::truth(entry.value))
    }),
    with_built_in("loopback_users.$user", BuiltIn::Member("guest", "true"))
        .values("true or false")
        .meaning(
            "Whether this user may connect from this machine only. The first user in the file \
             replaces the default.",
        )
        .set(|draft, entry| draft.loopback_users.set(entry, value::truth(entry.value))),
    with_built_in("loopback_users", BuiltIn::Described("not set"))
        .values("none")
        .meaning("`none` lets all users connect from anywhere.")
        .set(|draft, entry| {
            store(
                &mut draft.loopback_users_off,
                (entry.value == "none").then_some(true),
            )
        }),
];
