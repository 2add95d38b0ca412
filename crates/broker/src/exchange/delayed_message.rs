//! `x-delayed-message`: a message whose header `x-delay` says so waits for that many milliseconds,
//! and then goes where the type in `x-delayed-type` leads.
//!
//! Those that wait are in a queue of the exchange's own, which clients do not see (`queue/delay.rs`);
//! it lasts as long as the exchange, and is kept over restarts where that is.

use std::sync::Arc;

use amqp::{FieldTable, FieldValue};

use super::{ExchangeKind, Head, Router, Visit};
use crate::binding::{Binding, Destination};
use crate::error::Error;
use crate::queue::{Queue, delay};

const DELAYED_TYPE: &str = "x-delayed-type";
/// Delays messages of an exchange of any type, in LavinMQ's words.
pub(super) const DELAYED_EXCHANGE: &str = "x-delayed-exchange";

/// Routes as another router does, but for what has to wait.
pub(super) struct DelayedMessage {
    pub inner: Box<dyn Router>,
    waiting: Destination,
}

impl DelayedMessage {
    pub fn new(inner: Box<dyn Router>, waiting: Arc<Queue>) -> Self {
        DelayedMessage {
            inner,
            waiting: Destination::Queue(waiting),
        }
    }
}

impl Router for DelayedMessage {
    fn add(&mut self, binding: &Arc<Binding>) {
        self.inner.add(binding);
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        self.inner.remove(binding);
    }

    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        match delay(message.properties) {
            Some(_) => visit(&self.waiting),
            None => self.inner.route(message, visit),
        }
    }
}

/// True if an exchange with these arguments holds messages back.
pub(super) fn delays(kind: ExchangeKind, arguments: &FieldTable) -> bool {
    kind == ExchangeKind::DelayedMessage
        || arguments.get(DELAYED_EXCHANGE) == Some(&FieldValue::Bool(true))
}

/// How the exchange routes what has waited.
pub(super) fn routed_as(kind: ExchangeKind, arguments: &FieldTable) -> ExchangeKind {
    match kind {
        ExchangeKind::DelayedMessage => delayed_type(arguments).unwrap_or(ExchangeKind::Direct),
        kind => kind,
    }
}

fn delayed_type(arguments: &FieldTable) -> Option<ExchangeKind> {
    let name = arguments.get(DELAYED_TYPE)?.as_str()?;
    ExchangeKind::from_name(name).filter(|kind| *kind != ExchangeKind::DelayedMessage)
}

/// Checks the arguments of a new exchange; the text is the plugin's.
pub(super) fn validate(arguments: &FieldTable) -> Result<(), Error> {
    match delayed_type(arguments) {
        Some(_) => Ok(()),
        None => Err(Error::precondition(format!(
            "Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"
        ))),
    }
}
