//! Definitions as JSON: what RabbitMQ 3.13 exports and imports.
//!
//! An import is checked as a whole first ([`Plan`]), against what is there and what it brings
//! itself, and only then changes anything; what is there already stays or takes the new values, so
//! that importing twice does no harm.

mod apply;
mod entry;
mod export;
mod plan;

use serde_json::Value;

use super::{Admin, AdminError};
use crate::events::INTERNAL_USER;
use plan::Plan;

/// The release whose definitions these are.
pub const RABBITMQ_VERSION: &str = "3.13.7";

/// How an import went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// How many entries there were.
    pub entries: usize,
    /// What was left out, or has no effect.
    pub warnings: Vec<String>,
}

impl Admin<'_> {
    /// All definitions, in the form of RabbitMQ's files.
    pub fn export_definitions(&self) -> Value {
        export::all(self)
    }

    /// Adds all that a file of definitions says.
    ///
    /// # Errors
    /// Something in it makes no sense, and which entry it is; nothing was changed then.
    pub fn import_definitions(&self, definitions: &Value) -> Result<Imported, AdminError> {
        let plan = Plan::new(self, definitions).map_err(AdminError::Invalid)?;
        // As in RabbitMQ it is the broker that does what a file says.
        plan.apply(&Admin {
            by: INTERNAL_USER,
            ..*self
        })
    }
}
