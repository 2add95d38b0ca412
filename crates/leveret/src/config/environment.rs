//! What the process was started in: environment variables, host name, cores. Read once, so that
//! the rest of the configuration is a pure function of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;

/// The surroundings that a configuration depends on.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The environment variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// This machine's name.
    pub host_name: String,
    /// Cores that this process may use.
    pub cores: NonZeroUsize,
}

impl Environment {
    /// The surroundings of this process.
    pub fn of_process() -> Self {
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        Self {
            host_name: host_name().unwrap_or_else(|| "localhost".to_owned()),
            cores: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            variables,
        }
    }

    /// A variable's value; an empty one counts as not set, as for RabbitMQ.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables
            .get(std::ffi::OsStr::new(name))
            .filter(|value| !value.is_empty())
    }
}

fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
impl Environment {
    /// Surroundings for tests: the host `burrow`, two cores.
    pub(super) fn for_tests(variables: &[(&str, &str)]) -> Self {
        Self {
            variables: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            host_name: "burrow".to_owned(),
            cores: NonZeroUsize::MIN.saturating_add(1),
        }
    }
}
