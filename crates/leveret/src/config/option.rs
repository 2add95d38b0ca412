//! The shape of a row in the table of options: everything there is to say about one key.

use super::draft::Draft;
use super::error::Origin;

/// One key of the configuration file, with its other names, its default and its meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfigOption {
    /// The key; a segment `$name` stands for a name of the user's choice.
    pub(super) key: &'static str,
    /// What holds where the user says nothing.
    pub(super) built_in: BuiltIn,
    /// The values that are allowed, as a phrase that follows "expected".
    pub(super) values: &'static str,
    /// What the option does, in Markdown.
    pub(super) meaning: &'static str,
    /// The environment variable that takes precedence over the file.
    pub(super) variable: Option<&'static str>,
    /// The flag that takes precedence over both.
    pub(super) flag: Option<&'static str>,
    /// Whether the value must not be shown.
    pub(super) secret: bool,
    /// Checks the value and stores it; `None` where it is not allowed.
    pub(super) set: Setter,
}

/// See [`ConfigOption::set`].
pub(super) type Setter = fn(&mut Draft, &Entry<'_>) -> Option<()>;

/// The default of an option.
#[derive(Debug, Clone, Copy)]
pub(super) enum BuiltIn {
    /// As it would be written in the file.
    Value(&'static str),
    /// A `$name` key with this name and value; any member that the user writes replaces it.
    Member(&'static str, &'static str),
    /// Worked out from other things, described in a phrase; the option is not set.
    Described(&'static str),
}

/// One value on its way into a [`Draft`].
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// What the key's `$name` stands for; empty for a key without one.
    pub(super) name: &'a str,
    /// The value as written.
    pub(super) value: &'a str,
    /// Where it was written; `None` for a default.
    pub(super) origin: Option<&'a Origin>,
}

/// An option with a default that could stand in the file.
pub(super) const fn option(key: &'static str, default: &'static str) -> ConfigOption {
    with_built_in(key, BuiltIn::Value(default))
}

/// An option whose default is more than a value.
pub(super) const fn with_built_in(key: &'static str, built_in: BuiltIn) -> ConfigOption {
    ConfigOption {
        key,
        built_in,
        values: "",
        meaning: "",
        variable: None,
        flag: None,
        secret: false,
        set: |_, _| None,
    }
}

impl ConfigOption {
    pub(super) const fn values(self, values: &'static str) -> Self {
        Self { values, ..self }
    }

    pub(super) const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    pub(super) const fn variable(self, variable: &'static str) -> Self {
        Self {
            variable: Some(variable),
            ..self
        }
    }

    pub(super) const fn flag(self, flag: &'static str) -> Self {
        Self {
            flag: Some(flag),
            ..self
        }
    }

    pub(super) const fn secret(self) -> Self {
        Self {
            secret: true,
            ..self
        }
    }

    pub(super) const fn set(self, set: Setter) -> Self {
        Self { set, ..self }
    }
}

/// Puts a checked value into its place.
pub(super) fn store<T>(place: &mut T, checked: Option<T>) -> Option<()> {
    *place = checked?;
    Some(())
}
