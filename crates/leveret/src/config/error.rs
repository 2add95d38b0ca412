//! What can be wrong with a configuration, and how it is told.
//!
//! A run collects every problem before it fails, so that a file is mended in one go.

use std::fmt;
use std::path::PathBuf;

/// Why no configuration could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named by `--config` or by the environment is not there.
    #[error("the configuration file {} does not exist (named by {named_by})", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
        /// The flag or environment variable that named it.
        named_by: &'static str,
    },
    /// The file is there but cannot be read.
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The path that was opened.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Something in the file or in the environment is wrong.
    #[error("{}", several(.0))]
    Invalid(Vec<Problem>),
}

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of a configuration file, counted from 1.
    Line {
        /// The file's path as given.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {kind}")]
pub struct Problem {
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// The kinds of [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// The line is not a setting, a comment or blank.
    #[error("{0}")]
    Syntax(String),
    /// Neither Leveret nor RabbitMQ has this key.
    #[error("unknown key `{key}`{}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The key that looks most like it, if one is near.
        nearest: Option<String>,
    },
    /// The key is known, its value is not allowed.
    #[error("{name}: {given} is not allowed; expected {allowed}")]
    BadValue {
        /// The key, or the environment variable.
        name: String,
        /// The value as written, in quotes; a password is not shown.
        given: String,
        /// What would be allowed.
        allowed: String,
    },
    /// A `$(NAME)` names an environment variable that is not set.
    #[error("{key}: the environment variable {variable} is not set")]
    UnsetVariable {
        /// The key as written.
        key: String,
        /// The variable's name.
        variable: String,
    },
}

/// Something that does not stop the node but that its user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it was written.
    pub origin: Origin,
    /// What to know.
    pub text: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(formatter, "{}:{line}", file.display()),
            Self::Variable(name) => write!(formatter, "environment variable {name}"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.origin, self.text)
    }
}

/// The problems and warnings found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
}

impl Report {
    pub(super) fn problem(&mut self, origin: Origin, kind: ProblemKind) {
        self.problems.push(Problem { origin, kind });
    }

    /// In the order of the file, then of the environment.
    pub(super) fn sort(&mut self) {
        self.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        self.warnings.sort_by(|a, b| a.origin.cmp(&b.origin));
    }

    pub(super) fn warn(&mut self, origin: Origin, text: impl Into<String>) {
        self.warnings.push(Warning {
            origin,
            text: text.into(),
        });
    }
}

fn several(problems: &[Problem]) -> String {
    match problems {
        [only] => only.to_string(),
        _ => {
            let lines: Vec<String> = problems
                .iter()
                .map(|problem| format!("\n  {problem}"))
                .collect();
            format!(
                "{} problems in the configuration:{}",
                problems.len(),
                lines.concat()
            )
        }
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!("; did you mean `{key}`?"))
}
