//! Binding queues and exchanges to exchanges.

use std::sync::Arc;

use amqp::FieldTable;

use super::{Session, refuse_default_exchange};
use crate::access::Operation;
use crate::binding::{Binding, Destination};
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
        let resource = self.queue_resource(queue);
        self.bind(resource, exchange, routing_key, arguments, |topology| {
            let found = self.queue_to_bind(topology, queue)?;
            found.ok_or_else(|| Error::not_found(resource))
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
        let resource = self.queue_resource(queue);
        self.unbind(resource, exchange, routing_key, arguments, |topology| {
            self.queue_to_bind(topology, queue)
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
        let resource = self.exchange_resource(destination);
        self.bind(
            resource,
            source,
            routing_key,
            arguments,
            |topology| match topology.exchanges.get(destination) {
                Some(found) => Ok(Destination::Exchange(found.name.clone())),
                None => Err(Error::not_found(resource)),
            },
        )
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
        let resource = self.exchange_resource(destination);
        self.unbind(resource, source, routing_key, arguments, |_| {
            Ok(Some(Destination::Exchange(destination.into())))
        })
    }

    /// `find` looks for the destination once the source was found.
    fn bind(
        &self,
        destination: Resource<'_>,
        source: &str,
        routing_key: &[u8],
        arguments: FieldTable,
        find: impl FnOnce(&Topology) -> Result<Destination, Error>,
    ) -> Result<(), Error> {
        let refusal = self.permit_binding(destination, source, routing_key)?;
        self.change(|topology| {
            let source = self.source(topology, source, routing_key, &arguments, refusal)?;
            let destination = find(topology)?;
            topology.bind(Binding {
                source,
                destination,
                routing_key: routing_key.into(),
                arguments,
            });
            Ok(())
        })
    }

    /// As [`Session::bind`]; there is nothing to do where `find` finds nothing.
    fn unbind(
        &self,
        destination: Resource<'_>,
        source: &str,
        routing_key: &[u8],
        arguments: FieldTable,
        find: impl FnOnce(&Topology) -> Result<Option<Destination>, Error>,
    ) -> Result<(), Error> {
        let refusal = self.permit_binding(destination, source, routing_key)?;
        self.change(|topology| {
            check_topic(topology.exchanges.get(source), refusal)?;
            if let Some(destination) = find(topology)? {
                let binding = Binding {
                    source: source.into(),
                    destination,
                    routing_key: routing_key.into(),
                    arguments,
                };
                topology.unbind(&binding.key());
            }
            Ok(())
        })
    }

    fn queue_to_bind(&self, topology: &Topology, name: &str) -> Result<Option<Destination>, Error> {
        let Some(queue) = topology.queues.get(name).cloned() else {
            return Ok(None);
        };
        queue.check_owner(self.connection)?;
        Ok(Some(Destination::Queue(queue)))
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
