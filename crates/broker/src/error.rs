//! What goes wrong, in RabbitMQ's words: reply code and text.

use std::fmt;

use amqp::ReplyCode;

/// A failure that a client is told about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} - {text}", code.name())]
pub struct Error {
    /// Decides whether the channel or the connection is closed.
    pub code: ReplyCode,
    /// The text after `NAME - `.
    pub text: String,
}

/// Names an entity as RabbitMQ's texts do: `queue 'q' in vhost '/'`.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// `queue` or `exchange`.
    pub kind: &'static str,
    /// Its name.
    pub name: &'a str,
    /// The vhost it is in.
    pub vhost: &'a str,
}

impl<'a> Resource<'a> {
    /// A queue.
    pub fn queue(name: &'a str, vhost: &'a str) -> Self {
        Resource {
            kind: "queue",
            name,
            vhost,
        }
    }

    /// An exchange.
    pub fn exchange(name: &'a str, vhost: &'a str) -> Self {
        Resource {
            kind: "exchange",
            name,
            vhost,
        }
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}' in vhost '{}'", self.kind, self.name, self.vhost)
    }
}

impl Error {
    /// Any code and text.
    pub fn new(code: ReplyCode, text: impl Into<String>) -> Self {
        Error {
            code,
            text: text.into(),
        }
    }

    /// 404: the entity does not exist.
    pub fn not_found(resource: Resource<'_>) -> Self {
        Error::new(ReplyCode::NotFound, format!("no {resource}"))
    }

    /// 406 with that text.
    pub fn precondition(text: impl Into<String>) -> Self {
        Error::new(ReplyCode::PreconditionFailed, text)
    }

    /// 403 with that text.
    pub fn refused(text: impl Into<String>) -> Self {
        Error::new(ReplyCode::AccessRefused, text)
    }

    /// 405: an exclusive queue of another connection.
    pub fn locked(resource: Resource<'_>) -> Self {
        Error::new(
            ReplyCode::ResourceLocked,
            format!(
                "cannot obtain exclusive access to locked {resource}. It could be originally \
                 declared on another connection or the exclusive property value does not match \
                 that of the original declaration."
            ),
        )
    }

    /// 406: declared again with another value of a flag or argument.
    pub fn inequivalent(
        argument: &str,
        resource: Resource<'_>,
        received: &str,
        current: &str,
    ) -> Self {
        Error::precondition(format!(
            "inequivalent arg '{argument}' for {resource}: received {received} but current is \
             {current}"
        ))
    }
}

impl From<amqp::DecodeError> for Error {
    fn from(error: amqp::DecodeError) -> Self {
        Error::new(error.reply_code(), error.to_string())
    }
}
