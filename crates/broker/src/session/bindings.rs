//! Binding queues and exchanges to exchanges.

use std::sync::Arc;

use amqp::FieldTable;

use super::{Session, refuse_default_exchange};
use crate::access::Operation;
use crate::binding::{Binding, BindingKey, Destination};
use crate::error::{Error, Resource};
use crate::exchange::{Exchange, ExchangeKind};
use crate::topology::Topology;

impl Session {
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
