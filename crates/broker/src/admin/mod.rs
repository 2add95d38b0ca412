//! What administrators do: calls for `leveret ctl` and a management API, one file for each noun.
//!
//! Every change is one record of the log, and takes effect at once; it is durable when the log
//! reaches [`Broker::definitions_logged`], which whoever answers waits for.

mod bindings;
mod consumers;
pub mod definitions;
mod exchanges;
mod parameters;
mod permissions;
mod policies;
mod queues;
#[cfg(test)]
mod tests;
mod topic_permissions;
mod users;
mod vhosts;

use std::sync::Arc;

pub use bindings::BindingInfo;
pub use consumers::ConsumerInfo;
pub use exchanges::ExchangeInfo;
pub use parameters::ParameterInfo;
pub use permissions::{PermissionInfo, VHostPermissionInfo};
pub use policies::PolicyRequest;
pub use queues::QueueInfo;
pub use topic_permissions::TopicPermissionInfo;
pub use users::UserInfo;
pub use vhosts::VHostInfo;

use crate::broker::Broker;
use crate::events::CLI_USER;
use crate::vhost::VHost;

/// The calls of administrators.
#[derive(Debug, Clone, Copy)]
pub struct Admin<'b> {
    broker: &'b Broker,
    /// Who acts, for events.
    by: &'static str,
}

impl Broker {
    /// For administrators: nobody's permissions are asked for.
    pub fn admin(&self) -> Admin<'_> {
        Admin {
            broker: self,
            by: CLI_USER,
        }
    }
}

/// Why something cannot be done, in `rabbitmqctl`'s words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// There is no such vhost.
    #[error("Virtual host '{0}' does not exist")]
    NoSuchVHost(String),
    /// There is no such user.
    #[error("User \"{0}\" does not exist")]
    NoSuchUser(String),
    /// There is one of that name.
    #[error("User \"{0}\" already exists")]
    UserExists(String),
    /// Not that password, or no such user.
    #[error("user '{0}' - invalid credentials")]
    BadCredentials(String),
    /// There is no such policy or parameter.
    #[error("Parameter does not exist")]
    NoSuchParameter,
    /// What is to be set makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// There is no such queue.
    #[error("Queue not found")]
    NoSuchQueue,
    /// The queue has consumers.
    #[error("Queue is in use")]
    QueueInUse,
    /// The queue has messages.
    #[error("Queue is not empty")]
    QueueNotEmpty,
    /// The queue is a stream, of which nothing can be taken out.
    #[error("not_supported")]
    NotForStreams,
    /// Another connection owns the queue.
    #[error("Queue is exclusive to a connection")]
    QueueLocked,
}

/// Bytes of a name in AMQP.
const MAX_NAME: usize = 255;

/// Refuses a name that no client could say.
fn check_name(what: &str, name: &str) -> Result<(), AdminError> {
    if name.is_empty() {
        return Err(AdminError::Invalid(format!("{what} name cannot be blank")));
    }
    if name.len() > MAX_NAME {
        let text = format!("{what} name is longer than {MAX_NAME} bytes");
        return Err(AdminError::Invalid(text));
    }
    Ok(())
}

impl Admin<'_> {
    fn vhost(&self, name: &str) -> Result<Arc<VHost>, AdminError> {
        let vhost = self.broker.vhost(name);
        vhost.ok_or_else(|| AdminError::NoSuchVHost(name.to_owned()))
    }
}
