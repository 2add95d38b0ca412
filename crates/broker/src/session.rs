//! A session: one user in one vhost, on one connection. Checks permissions and names, then acts.
//!
//! Every protocol server goes through here; the errors and their order are RabbitMQ's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use amqp::{FieldTable, FieldValue, ReplyCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::access::{Operation, Permissions, User, UserTopics};
use crate::binding::{Binding, BindingKey, Destination};
use crate::client_info::ClientInfo;
use crate::consumers::ConsumerInfo;
use crate::error::{Error, Resource};
use crate::exchange::{Exchange, ExchangeKind, ExchangeOptions};
use crate::name::ConnectionId;
use crate::outbox::{ConsumerHandle, Outbox};
use crate::queue::{
    ConsumerId, ConsumerOptions, Got, LeaseId, Queue, QueueKind, QueueOptions, StreamOptions,
    consumer_priority, consumer_timeout, refuse_arguments_of_others,
};
use crate::sharding::{ShardHandle, ShardMember};
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

/// What queue.declare answers.
#[derive(Debug)]
pub struct Declared {
    /// The queue.
    pub queue: Arc<Queue>,
    /// Messages ready.
    pub messages: usize,
    /// Consumers.
    pub consumers: usize,
}

impl Declared {
    fn new(queue: Arc<Queue>) -> Self {
        let counts = queue.counts();
        Declared {
            queue,
            messages: counts.ready,
            consumers: counts.consumers,
        }
    }
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

    /// The shards that the name of an exchange stands for where a queue is meant.
    fn shards(&self, name: &str) -> Option<Vec<Arc<Queue>>> {
        self.vhost.read().shards(name, &self.vhost.node)
    }

    /// Fails with 406 where the name stands for shards: that cannot be done to all of them.
    fn refuse_shards(&self, operation: &str, name: &str) -> Result<(), Error> {
        match self.shards(name) {
            Some(_) => Err(Error::precondition(format!(
                "Can't {operation} sharded queue: <<\"{name}\">>"
            ))),
            None => Ok(()),
        }
    }

    /// basic.consume on the name of an exchange with shards: the consumer's part of them. `None`
    /// where the name is that of a queue; fails with 406 where there are no shards.
    pub fn join_shards(
        &self,
        name: &str,
        outbox: &Arc<Outbox>,
        handle: ShardHandle,
    ) -> Result<Option<ShardMember>, Error> {
        match self.shards(name) {
            None => Ok(None),
            Some(shards) if shards.is_empty() => Err(Error::precondition(format!(
                "Error finding sharded queue for: <<\"{name}\">>"
            ))),
            Some(_) => {
                let outbox = outbox.clone();
                let member = ShardMember::join(&self.vhost, &name.into(), outbox, handle);
                Ok(Some(member))
            }
        }
    }

    /// The shard that basic.get takes from: of those with messages the one with the fewest
    /// consumers.
    fn shard_to_get_from(&self, name: &str) -> Option<Arc<Queue>> {
        let shards = self.shards(name)?.into_iter();
        let counted = shards.map(|queue| (queue.counts(), queue));
        let best = counted.min_by_key(|(counts, _)| (counts.ready == 0, counts.consumers));
        best.map(|(_, queue)| queue)
    }

    /// The queue of that name, unless it is another connection's.
    pub fn queue(&self, name: &str) -> Result<Arc<Queue>, Error> {
        let queue = self.vhost.queue(name);
        let queue = queue.ok_or_else(|| Error::not_found(self.queue_resource(name)))?;
        queue.check_owner(self.connection)?;
        Ok(queue)
    }

    /// exchange.declare with `passive`.
    pub fn check_exchange(&self, name: &str) -> Result<(), Error> {
        refuse_default_exchange(name)?;
        match self.vhost.read().exchanges.contains_key(name) {
            true => Ok(()),
            false => Err(Error::not_found(self.exchange_resource(name))),
        }
    }

    /// exchange.declare. `only_type`: redeclaring compares the type alone (AMQP 0-8).
    pub fn declare_exchange(
        &self,
        name: &str,
        options: ExchangeOptions,
        only_type: bool,
    ) -> Result<(), Error> {
        refuse_default_exchange(name)?;
        let resource = self.exchange_resource(name);
        self.permit(Operation::Configure, resource)?;
        let vhost = &self.vhost.name;
        if let Some(exchange) = self.vhost.read().exchanges.get(name) {
            return exchange.assert_equivalent(&options, only_type, vhost);
        }
        refuse_reserved_name("exchange", name)?;
        options.validate(resource)?;
        self.permit_forwarding(resource, &options.arguments, "alternate-exchange")?;
        self.change(|topology| match topology.exchanges.get(name) {
            Some(exchange) => exchange.assert_equivalent(&options, only_type, vhost),
            None => {
                let exchange = self.vhost.make_exchange(name.into(), options);
                topology.insert_exchange(exchange);
                Ok(())
            }
        })
    }

    /// exchange.delete; deleting what is not there is fine.
    pub fn delete_exchange(&self, name: &str, if_unused: bool) -> Result<(), Error> {
        refuse_default_exchange(name)?;
        let resource = self.exchange_resource(name);
        if name.starts_with("amq.") {
            return Err(Error::refused(format!(
                "deletion of system {resource} not allowed"
            )));
        }
        self.permit(Operation::Configure, resource)?;
        self.change(|topology| {
            let Some(exchange) = topology.exchanges.get(name) else {
                return Ok(());
            };
            if if_unused && exchange.has_bindings() {
                return Err(Error::precondition(format!("{resource} in use")));
            }
            let name = exchange.name.clone();
            topology.remove_exchange(&name);
            Ok(())
        })
    }

    /// queue.declare with `passive`.
    pub fn check_queue(&self, name: &str) -> Result<Declared, Error> {
        if let Some(shards) = self.shards(name) {
            let first = shards.first().map(|first| Declared::new(first.clone()));
            return first.ok_or_else(|| Error::not_found(self.queue_resource(name)));
        }
        if name.starts_with(REPLY_TO) && name.len() > REPLY_TO.len() {
            // Whoever was given the address of replies may ask whether somebody waits for them.
            let queue = self.vhost.queue(name);
            return queue
                .map(Declared::new)
                .ok_or_else(|| Error::not_found(self.queue_resource(name)));
        }
        let queue = self.queue(name)?;
        queue.touch();
        Ok(Declared::new(queue))
    }

    /// queue.declare; an empty name gets one made up.
    pub fn declare_queue(&self, name: &str, mut options: QueueOptions) -> Result<Declared, Error> {
        let first_shard = self.vhost.first_shard(name);
        let name = first_shard.as_deref().unwrap_or(name);
        // An exclusive queue ends with its connection, so it cannot survive a restart.
        options.durable &= options.exclusive.is_none();
        self.vhost.add_queue_type(&mut options);
        let generated;
        let server_named = name.is_empty();
        let name = if server_named {
            generated = generated_name("amq.gen-");
            &generated
        } else {
            refuse_reserved_name("queue", name)?;
            name
        };
        let resource = self.queue_resource(name);
        self.permit(Operation::Configure, resource)?;
        if let Some(queue) = self.vhost.queue(name) {
            queue.assert_equivalent(&options)?;
            queue.touch();
            return Ok(Declared::new(queue));
        }
        options.validate(resource, server_named)?;
        self.permit_forwarding(resource, &options.arguments, "x-dead-letter-exchange")?;
        let queue = self.change(|topology| match topology.queues.get(name) {
            Some(queue) => {
                queue.assert_equivalent(&options)?;
                Ok::<_, Error>(queue.clone())
            }
            None => {
                let queue = self.vhost.make_queue(name.into(), options);
                topology.insert_queue(queue.clone());
                Ok(queue)
            }
        })?;
        Ok(Declared::new(queue))
    }

    /// queue.delete; returns the messages that went with it. Deleting what is not there is fine.
    pub fn delete_queue(
        &self,
        name: &str,
        if_unused: bool,
        if_empty: bool,
    ) -> Result<usize, Error> {
        self.refuse_shards("delete", name)?;
        self.permit(Operation::Configure, self.queue_resource(name))?;
        let Some(queue) = self.vhost.queue(name) else {
            return Ok(0);
        };
        queue.check_owner(self.connection)?;
        // Closed under the topology's lock: nobody may find a queue that is closed already. Its
        // messages are freed after the lock is released.
        let remains = self.change(|topology| {
            let remains = queue.close(if_unused, if_empty)?;
            topology.remove_queue(&queue);
            Ok::<_, Error>(remains)
        })?;
        queue.release_store();
        Ok(remains.ready())
    }

    /// queue.purge; returns how many messages went.
    pub fn purge_queue(&self, name: &str) -> Result<usize, Error> {
        self.refuse_shards("purge", name)?;
        self.permit(Operation::Read, self.queue_resource(name))?;
        let queue = self.queue(name)?;
        if queue.kind == QueueKind::Stream {
            return Err(not_for_streams("queue.purge", queue.resource()));
        }
        Ok(queue.purge())
    }

    /// queue.bind.
    pub fn bind_queue(
        &self,
        queue: &str,
        exchange: &str,
        routing_key: &[u8],
        arguments: FieldTable,
    ) -> Result<(), Error> {
        self.refuse_shards("bind", queue)?;
        let refusal = self.permit_binding(self.queue_resource(queue), exchange, routing_key)?;
        self.change(|topology| {
            let source = self.source(topology, exchange, routing_key, &arguments, refusal)?;
            let found = topology.queues.get(queue).cloned();
            let queue = found.ok_or_else(|| Error::not_found(self.queue_resource(queue)))?;
            queue.check_owner(self.connection)?;
            let destination = Destination::Queue(queue);
            let routing_key = routing_key.into();
            topology.bind(Binding {
                source,
                destination,
                routing_key,
                arguments,
            });
            Ok(())
        })
    }

    /// queue.unbind; unbinding what is not bound is fine.
    pub fn unbind_queue(
        &self,
        queue: &str,
        exchange: &str,
        routing_key: &[u8],
        arguments: FieldTable,
    ) -> Result<(), Error> {
        self.refuse_shards("unbind", queue)?;
        let refusal = self.permit_binding(self.queue_resource(queue), exchange, routing_key)?;
        self.change(|topology| {
            check_topic(topology.exchanges.get(exchange), refusal)?;
            let Some(queue) = topology.queues.get(queue).cloned() else {
                return Ok(());
            };
            queue.check_owner(self.connection)?;
            let key = binding_key(exchange, Destination::Queue(queue), routing_key, arguments);
            topology.unbind(&key);
            Ok(())
        })
    }

    /// exchange.bind.
    pub fn bind_exchange(
        &self,
        destination: &str,
        source: &str,
        routing_key: &[u8],
        arguments: FieldTable,
    ) -> Result<(), Error> {
        refuse_default_exchange(destination)?;
        let refusal =
            self.permit_binding(self.exchange_resource(destination), source, routing_key)?;
        self.change(|topology| {
            let source = self.source(topology, source, routing_key, &arguments, refusal)?;
            let Some(destination) = topology.exchanges.get(destination) else {
                return Err(Error::not_found(self.exchange_resource(destination)));
            };
            let destination = Destination::Exchange(destination.name.clone());
            let routing_key = routing_key.into();
            topology.bind(Binding {
                source,
                destination,
                routing_key,
                arguments,
            });
            Ok(())
        })
    }

    /// exchange.unbind; unbinding what is not bound is fine.
    pub fn unbind_exchange(
        &self,
        destination: &str,
        source: &str,
        routing_key: &[u8],
        arguments: FieldTable,
    ) -> Result<(), Error> {
        refuse_default_exchange(destination)?;
        let refusal =
            self.permit_binding(self.exchange_resource(destination), source, routing_key)?;
        let destination = Destination::Exchange(destination.into());
        let key = binding_key(source, destination, routing_key, arguments);
        self.change(|topology| {
            check_topic(topology.exchanges.get(source), refusal)?;
            topology.unbind(&key);
            Ok(())
        })
    }

    /// basic.get.
    pub fn get(&self, name: &str, no_ack: bool) -> Result<(Arc<Queue>, Option<Got>), Error> {
        let shard = self.shard_to_get_from(name);
        let name = shard.as_ref().map_or(name, |shard| &*shard.name);
        self.permit(Operation::Read, self.queue_resource(name))?;
        let queue = self.queue(name)?;
        if queue.kind == QueueKind::Stream {
            return Err(not_for_streams("basic.get", queue.resource()));
        }
        match queue.get(&self.vhost.store, no_ack) {
            Ok(got) => Ok((queue, got)),
            Err(error) => {
                tracing::error!(queue = %queue.name, %error, "cannot read messages");
                let text = format!("cannot read messages of {}", queue.resource());
                Err(Error::new(ReplyCode::InternalError, text))
            }
        }
    }

    /// basic.consume. The consumer may get messages at once, from whoever publishes; what is
    /// ready now it gets with the first [`Queue::resume`].
    pub fn consume(
        &self,
        name: &str,
        mut options: ConsumerOptions,
        arguments: &FieldTable,
    ) -> Result<(Arc<Queue>, ConsumerId), Error> {
        let resource = self.queue_resource(name);
        self.permit(Operation::Read, resource)?;
        let queue = self.queue(name)?;
        refuse_arguments_of_others(arguments, queue.kind, resource)?;
        options.priority = consumer_priority(arguments, resource)?;
        options.timeout = consumer_timeout(arguments, resource)?;
        if queue.kind == QueueKind::Stream {
            check_reader(&options, resource)?;
            let reads = StreamOptions::from_arguments(arguments, queue.now(), resource)?;
            options.stream = Some(reads);
        }
        let id = queue.add_consumer(options)?;
        if queue.auto_delete && queue.logged && !queue.consumed.swap(true, Ordering::Relaxed) {
            self.change(|topology| topology.note_consumed(&queue));
        }
        Ok((queue, id))
    }

    /// basic.consume on [`REPLY_TO`]: makes the transient queue that replies come to.
    pub fn consume_replies(
        &self,
        options: ConsumerOptions,
    ) -> Result<(Arc<Queue>, ConsumerId), Error> {
        let name: Arc<str> = generated_name(&format!("{REPLY_TO}.")).into();
        let owned = QueueOptions {
            auto_delete: true,
            exclusive: Some(self.connection),
            ..QueueOptions::default()
        };
        let queue = self.vhost.make_queue(name, owned);
        let id = queue.add_consumer(options)?;
        self.change(|topology| topology.insert_queue(queue.clone()));
        Ok((queue, id))
    }

    /// Says more about a consumer that has just come, for those who list consumers; until it is
    /// cancelled.
    pub fn describe_consumer(
        &self,
        queue: &Queue,
        id: ConsumerId,
        describe: impl FnOnce(ConnectionId) -> ConsumerInfo,
    ) {
        let info = describe(self.connection);
        self.vhost.events.consumer_created(self, queue, &info);
        self.vhost.consumers.add(queue, id, info);
    }

    /// The same consumer has ended with its queue.
    pub fn forget_consumer(&self, queue: &Queue, id: ConsumerId) {
        if let Some(info) = self.vhost.consumers.remove(queue, id) {
            self.vhost.events.consumer_deleted(self, queue, &info);
        }
    }

    /// Ends consumers of one queue and outbox, and the auto-delete queue that they were the last of.
    /// What was on its way to them, and these leases, return to their places. Returns how many
    /// messages on their way were to be acknowledged.
    pub fn end_consumers(
        &self,
        queue: &Arc<Queue>,
        consumers: &[(ConsumerId, ConsumerHandle)],
        outbox: &Outbox,
        unacked: &[LeaseId],
    ) -> u32 {
        for (id, _) in consumers {
            self.forget_consumer(queue, *id);
        }
        let removed = queue.remove_consumers(consumers, outbox, unacked);
        if removed.last && queue.auto_delete {
            self.vhost.delete_queue(queue);
        }
        removed.unsent
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

    /// Fails with 403 unless the user may bind and unbind these. What it returns goes to
    /// [`Session::source`], or to [`check_topic`].
    fn permit_binding(
        &self,
        destination: Resource<'_>,
        source: &str,
        routing_key: &[u8],
    ) -> Result<Option<Error>, Error> {
        refuse_default_exchange(source)?;
        self.permit(Operation::Write, destination)?;
        self.permit(Operation::Read, self.exchange_resource(source))?;
        Ok(self.topic_refusal(Operation::Read, source, [routing_key]))
    }

    fn source(
        &self,
        topology: &Topology,
        exchange: &str,
        routing_key: &[u8],
        arguments: &FieldTable,
        refusal: Option<Error>,
    ) -> Result<Arc<str>, Error> {
        let found = topology.exchanges.get(exchange);
        check_topic(found, refusal)?;
        let exchange = found.ok_or_else(|| Error::not_found(self.exchange_resource(exchange)))?;
        exchange.validate_binding(routing_key, arguments)?;
        Ok(exchange.name.clone())
    }
}

/// Fails with what [`Session::topic_refusal`] has said, if the exchange is a topic exchange.
pub(crate) fn check_topic(
    exchange: Option<&Exchange>,
    refusal: Option<Error>,
) -> Result<(), Error> {
    match refusal {
        Some(refusal) if exchange.is_some_and(|found| found.kind == ExchangeKind::Topic) => {
            Err(refusal)
        }
        _ => Ok(()),
    }
}

/// A consumer of a stream gets as much as it acknowledges, and no more.
fn check_reader(options: &ConsumerOptions, resource: Resource<'_>) -> Result<(), Error> {
    if options.no_ack {
        return Err(not_for_streams("automatic acknowledgement", resource));
    }
    if options.prefetch == 0 {
        return Err(Error::precondition(format!(
            "consumer prefetch count is not set for '{resource}'"
        )));
    }
    Ok(())
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

fn binding_key(
    source: &str,
    destination: Destination,
    routing_key: &[u8],
    arguments: FieldTable,
) -> BindingKey {
    let routing_key = routing_key.into();
    Binding {
        source: source.into(),
        destination,
        routing_key,
        arguments,
    }
    .key()
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
