//! Declaring exchanges: options, their checks, and what counts as the same exchange.

use std::sync::Arc;

use amqp::{FieldTable, FieldValue};

use super::delayed_message::DELAYED_EXCHANGE;
use super::{Exchange, ExchangeKind, consistent_hash, delayed_message, headers, recent_history};
use crate::arguments::{assert_equivalent, assert_same_flag, type_name};
use crate::deduplication::{self, Deduplication};
use crate::error::{Error, Resource};
use crate::queue::validate_arguments;

pub(super) const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// What a declaration asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ExchangeOptions {
    /// The exchange's type.
    pub kind: ExchangeKind,
    /// Survives a restart.
    pub durable: bool,
    /// Goes when its last binding goes.
    pub auto_delete: bool,
    /// Takes messages from other exchanges only.
    pub internal: bool,
    /// `alternate-exchange`, and whatever else the client sent.
    pub arguments: FieldTable,
}

impl ExchangeOptions {
    /// A durable exchange of that type.
    pub fn durable(kind: ExchangeKind) -> Self {
        ExchangeOptions {
            kind,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: FieldTable::new(),
        }
    }

    /// The type that it routes as.
    pub(crate) fn routed_as(&self) -> ExchangeKind {
        delayed_message::routed_as(self.kind, &self.arguments)
    }

    /// True if the exchange needs a queue for messages that wait.
    pub(crate) fn delays(&self) -> bool {
        delayed_message::delays(self.kind, &self.arguments)
    }

    /// True if the exchange needs to know what has been published to it lately.
    pub(crate) fn deduplicates(&self) -> bool {
        Deduplication::of(&self.arguments).is_some()
    }

    /// Checks the arguments of a new exchange.
    pub(crate) fn validate(&self, resource: Resource<'_>) -> Result<(), Error> {
        match self.kind {
            ExchangeKind::ConsistentHash => consistent_hash::validate(&self.arguments)?,
            ExchangeKind::DelayedMessage => delayed_message::validate(&self.arguments)?,
            ExchangeKind::RecentHistory => recent_history::validate(&self.arguments)?,
            _ => {}
        }
        validate_arguments(deduplication::ARGUMENTS, &self.arguments, resource)?;
        refuse_unless(DELAYED_EXCHANGE, &self.arguments, resource, |value| {
            matches!(value, FieldValue::Bool(_))
        })?;
        refuse_unless(ALTERNATE_EXCHANGE, &self.arguments, resource, |value| {
            matches!(value, FieldValue::LongStr(_))
        })
    }
}

/// Fails with 406 where an argument is of another type than it should.
fn refuse_unless(
    argument: &str,
    arguments: &FieldTable,
    resource: Resource<'_>,
    right: impl Fn(&FieldValue) -> bool,
) -> Result<(), Error> {
    match arguments.get(argument) {
        Some(other) if !right(other) => Err(Error::precondition(format!(
            "invalid type '{}' for arg '{argument}' in {resource}",
            type_name(other)
        ))),
        _ => Ok(()),
    }
}

/// Where an exchange with these arguments sends what matches no binding.
pub(super) fn alternate(arguments: &FieldTable) -> Option<Arc<str>> {
    arguments.get(ALTERNATE_EXCHANGE)?.as_str().map(Arc::from)
}

impl Exchange {
    /// Checks that a declaration asks for what is there. On AMQP 0-8 only the type counts
    /// (`only_type`), as it did when those clients were written.
    pub fn assert_equivalent(
        &self,
        options: &ExchangeOptions,
        only_type: bool,
        vhost: &str,
    ) -> Result<(), Error> {
        let resource = Resource::exchange(&self.name, vhost);
        if self.kind != options.kind {
            let (received, current) = (options.kind, self.kind);
            return Err(Error::inequivalent(
                "type",
                resource,
                &format!("'{received}'"),
                &format!("'{current}'"),
            ));
        }
        if only_type {
            return Ok(());
        }
        assert_same_flag("durable", resource, options.durable, self.durable)?;
        assert_same_flag(
            "auto_delete",
            resource,
            options.auto_delete,
            self.auto_delete,
        )?;
        assert_same_flag("internal", resource, options.internal, self.internal)?;
        let compared = [ALTERNATE_EXCHANGE, "x-delayed-type", DELAYED_EXCHANGE];
        let compared = compared.into_iter().chain(deduplication::ARGUMENTS);
        compared.into_iter().try_for_each(|argument| {
            assert_equivalent(argument, resource, &options.arguments, &self.arguments)
        })
    }

    /// Checks a new binding's key and arguments.
    pub fn validate_binding(&self, key: &[u8], arguments: &FieldTable) -> Result<(), Error> {
        self.routed_as().validate_binding(key, arguments)
    }

    /// The type that it routes as.
    pub fn routed_as(&self) -> ExchangeKind {
        delayed_message::routed_as(self.kind, &self.arguments)
    }
}

impl ExchangeKind {
    /// Checks the key and the arguments of a new binding from an exchange that routes as this type.
    pub(crate) fn validate_binding(self, key: &[u8], arguments: &FieldTable) -> Result<(), Error> {
        match self {
            ExchangeKind::Headers => headers::validate(arguments),
            ExchangeKind::ConsistentHash => consistent_hash::validate_key(key),
            _ => Ok(()),
        }
    }
}
