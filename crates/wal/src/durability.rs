//! What a confirm promises.

/// When something counts as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// Once the operating system has it: survives the end of the process, not of the machine.
    Os,
    /// Once the disk has it: survives a power failure.
    #[default]
    Fsync,
}

impl Durability {
    /// By its name in configuration files and arguments: `fsync` or `os`.
    pub fn from_name(name: &str) -> Option<Durability> {
        match name {
            "fsync" => Some(Durability::Fsync),
            "os" => Some(Durability::Os),
            _ => None,
        }
    }

    /// Its name in configuration files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Fsync => "fsync",
            Durability::Os => "os",
        }
    }
}

/// How much a record matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Losing it in a crash does no harm: nothing is synced for its sake.
    Lazy,
    /// It is synced if the durability says so. It is written at once when somebody waits for it,
    /// else within some milliseconds.
    Prompt(Durability),
}
