//! A session: one user in one vhost, on one connection. Checks permissions and names, then acts.
//!
//! Every protocol server goes through here; the errors and their order are RabbitMQ's.

mod bindings;
mod consumers;
mod exchanges;
mod queues;
mod shards;

use std::sync::Arc;

use amqp::{FieldTable, FieldValue, ReplyCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) use bindings::check_topic;
pub use queues::Declared;

use crate::access::{Operation, Permissions, User, UserTopics};
use crate::client_info::ClientInfo;
use crate::error::{Error, Resource};
use crate::name::ConnectionId;
use crate::queue::Queue;
use crate::topology::Topology;
use crate::vhost::VHost;

/// The queue name that stands for direct reply-to.
pub const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// One user in one vhost, on one connection.
#[derive(Debug, Clone)]
pub struct Session {
    /// Who it is.
    pub user: Arc<User>,
    /// Where it works.
    pub vhost: Arc<VHost>,
    /// The connection that exclusive queues belong to.
    pub connection: ConnectionId,
    /// Whose connection it is, if it is a client's.
    pub client: Option<Arc<ClientInfo>>,
    permissions: Arc<Permissions>,
    topics: Arc<UserTopics>,
}

impl Session {
    pub(crate) fn new(
        user: Arc<User>,
        vhost: Arc<VHost>,
        permissions: Arc<Permissions>,
        topics: UserTopics,
        connection: ConnectionId,
    ) -> Self {
        Session {
            user,
            vhost,
            connection,
            client: None,
            permissions,
            topics: Arc::new(topics),
        }
    }

    /// The same, for that client.
    pub fn of_client(self, client: Arc<ClientInfo>) -> Session {
        Session {
            client: Some(client),
            ..self
        }
    }

    /// What its connection is called.
    pub(crate) fn client_name(&self) -> String {
        let client = self.client.as_ref();
        client.map_or_else(String::new, |client| client.name())
    }

    /// Changes the vhost's topology in the user's name.
    fn change<R>(&self, change: impl FnOnce(&mut Topology) -> R) -> R {
        self.vhost.change_by(&self.user.name, change)
    }

    /// Fails with 403 unless the user may do that.
    pub(crate) fn permit(&self, operation: Operation, resource: Resource<'_>) -> Result<(), Error> {
        if self.permissions.permit(operation, resource.name) {
            return Ok(());
        }
        let (operation, user) = (operation.name(), &self.user.name);
        Err(Error::refused(format!(
            "{operation} access to {resource} refused for user '{user}'"
        )))
    }

    /// What the user is told if the exchange is a topic exchange, and may not do that with all of
    /// these routing keys. Asked before the topology is locked, for it takes the time of a pattern;
    /// the type of the exchange is known only then.
    pub(crate) fn topic_refusal<'k>(
        &self,
        operation: Operation,
        exchange: &str,
        routing_keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Option<Error> {
        let key = self.topics.refused(operation, exchange, routing_keys)?;
        let resource = self.exchange_resource(exchange);
        let key = String::from_utf8_lossy(key);
        let (operation, user) = (operation.name(), &self.user.name);
        Some(Error::refused(format!(
            "{operation} access to topic '{key}' in {resource} refused for user '{user}'"
        )))
    }

    fn queue_resource<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource::queue(name, &self.vhost.name)
    }

    fn exchange_resource<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource::exchange(name, &self.vhost.name)
    }

    /// The queue of that name, unless it is another connection's.
    pub fn queue(&self, name: &str) -> Result<Arc<Queue>, Error> {
        let queue = self.vhost.queue(name);
        let queue = queue.ok_or_else(|| Error::not_found(self.queue_resource(name)))?;
        queue.check_owner(self.connection)?;
        Ok(queue)
    }

    /// What a new entity passes on to an exchange, its user must be able to read from the one and
    /// write to the other.
    fn permit_forwarding(
        &self,
        from: Resource<'_>,
        arguments: &FieldTable,
        argument: &str,
    ) -> Result<(), Error> {
        let Some(to) = arguments.get(argument).and_then(FieldValue::as_str) else {
            return Ok(());
        };
        self.permit(Operation::Read, from)?;
        self.permit(Operation::Write, self.exchange_resource(to))
    }
}

fn not_for_streams(what: &str, resource: Resource<'_>) -> Error {
    let text = format!("{what} not supported by stream queues {resource}");
    Error::new(ReplyCode::NotImplemented, text)
}

/// A name that nobody can guess: the prefix and 22 characters.
pub fn generated_name(prefix: &str) -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system has randomness");
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random))
}

fn refuse_default_exchange(name: &str) -> Result<(), Error> {
    match name {
        "" => Err(Error::refused(
            "operation not permitted on the default exchange",
        )),
        _ => Ok(()),
    }
}

fn refuse_reserved_name(kind: &str, name: &str) -> Result<(), Error> {
    match name.starts_with("amq.") {
        true => Err(Error::refused(format!(
            "{kind} name '{name}' contains reserved prefix 'amq.*'"
        ))),
        false => Ok(()),
    }
}
