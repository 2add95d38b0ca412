//! Declaring queues: options, and what counts as the same queue.

use amqp::FieldTable;
use store::Durability;

use super::Queue;
use super::arguments::{self, KNOWN, QueueKind};
use crate::arguments::{assert_equivalent, assert_same_flag};
use crate::error::{Error, Resource};
use crate::name::ConnectionId;

/// What a declaration asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueOptions {
    /// Survives a restart.
    pub durable: bool,
    /// Goes when its last consumer goes.
    pub auto_delete: bool,
    /// The connection that alone may use it, and with which it goes.
    pub exclusive: Option<ConnectionId>,
    /// `x-…` arguments.
    pub arguments: FieldTable,
}

impl QueueOptions {
    /// What confirms wait for, where the queue says so itself.
    pub(crate) fn durability(&self) -> Option<Durability> {
        arguments::durability(&self.arguments)
    }

    /// How many lanes it has, one a priority.
    pub(crate) fn lanes(&self) -> u64 {
        arguments::lanes(&self.arguments)
    }

    /// Checks the arguments of a new queue.
    pub(crate) fn validate(&self, resource: Resource<'_>, server_named: bool) -> Result<(), Error> {
        let kind = arguments::validate(&self.arguments, resource)?;
        if kind == QueueKind::Classic {
            return Ok(());
        }
        let property = match self {
            _ if server_named => {
                return Err(Error::precondition(format!(
                    "Cannot declare a server-named queue for type {}",
                    kind.module()
                )));
            }
            QueueOptions {
                exclusive: Some(_), ..
            } => "exclusive-owner",
            QueueOptions { durable: false, .. } => "non-durable",
            QueueOptions {
                auto_delete: true, ..
            } => "auto-delete",
            _ => return Ok(()),
        };
        Err(Error::precondition(format!(
            "invalid property '{property}' for {resource}"
        )))
    }
}

impl Queue {
    /// Checks that a declaration asks for what is there.
    pub(crate) fn assert_equivalent(&self, options: &QueueOptions) -> Result<(), Error> {
        let resource = self.resource();
        // Covers a queue of another connection as well.
        if options.exclusive != self.exclusive_owner {
            return Err(Error::locked(resource));
        }
        assert_same_flag("durable", resource, options.durable, self.durable)?;
        assert_same_flag(
            "auto_delete",
            resource,
            options.auto_delete,
            self.auto_delete,
        )?;
        arguments::assert_same_type(resource, &options.arguments, &self.arguments)?;
        KNOWN.iter().try_for_each(|argument| {
            assert_equivalent(argument.name, resource, &options.arguments, &self.arguments)
        })
    }
}
