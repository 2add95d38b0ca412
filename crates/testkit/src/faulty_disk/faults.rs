//! Which operation is the next, and whether it is to go wrong.

use std::collections::BTreeMap;
use std::io;

/// The count of operations, and what was asked for.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Operations so far, those that failed included; none after the crash.
    pub(super) operations: u64,
    pub(super) crash_at: Option<u64>,
    /// Errors by the operation that they are meant for.
    pub(super) failures: BTreeMap<u64, io::ErrorKind>,
    pub(super) crashed: bool,
}

impl Faults {
    /// Fails if the machine has crashed.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.crashed {
            return Err(io::Error::other("the simulated machine has crashed"));
        }
        Ok(())
    }

    /// Counts an operation; an error if it is not to succeed.
    pub(super) fn operation(&mut self) -> io::Result<()> {
        self.check()?;
        self.operations += 1;
        let operation = self.operations;
        // At or after: a fault that is set while others use the disk may come late.
        if self.crash_at.is_some_and(|at| at <= operation) {
            self.crashed = true;
            return self.check();
        }
        match self.failures.first_entry() {
            Some(failure) if *failure.key() <= operation => {
                let text = format!("operation {operation} on the simulated disk was told to fail");
                Err(io::Error::new(failure.remove(), text))
            }
            _ => Ok(()),
        }
    }
}
