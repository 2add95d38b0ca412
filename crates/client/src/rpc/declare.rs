//! Exchanges, queues, bindings.

use amqp::method::{exchange, queue};
use amqp::{FieldTable, Method, Table};

use super::{name, unexpected};
use crate::topology::{ExchangeOptions, QueueInfo, QueueOptions};
use crate::{Connection, Error};

impl Connection {
    /// Declares an exchange of type `kind`: `direct`, `fanout`, `topic`, `headers`, ….
    pub async fn declare_exchange(
        &mut self,
        channel: u16,
        exchange: &str,
        kind: &str,
        options: &ExchangeOptions,
    ) -> Result<(), Error> {
        let arguments = options.arguments.encode();
        let declare = exchange::Declare {
            exchange: name("exchange", exchange)?,
            kind: name("exchange type", kind)?,
            passive: options.passive,
            durable: options.durable,
            auto_delete: options.auto_delete,
            internal: options.internal,
            arguments: Table::from_wire(&arguments),
            ..Default::default()
        };
        self.call::<exchange::DeclareOk>(channel, declare)
            .await
            .map(drop)
    }

    /// Deletes an exchange, with `if_unused` only if nothing is bound to it.
    pub async fn delete_exchange(
        &mut self,
        channel: u16,
        exchange: &str,
        if_unused: bool,
    ) -> Result<(), Error> {
        let exchange = name("exchange", exchange)?;
        let delete = exchange::Delete {
            exchange,
            if_unused,
            ..Default::default()
        };
        self.call::<exchange::DeleteOk>(channel, delete)
            .await
            .map(drop)
    }

    /// Binds exchange `destination` to exchange `source`. Not on 0-8.
    pub async fn bind_exchange(
        &mut self,
        channel: u16,
        destination: &str,
        source: &str,
        routing_key: &str,
        arguments: &FieldTable,
    ) -> Result<(), Error> {
        let arguments = arguments.encode();
        let bind = exchange::Bind {
            destination: name("destination", destination)?,
            source: name("source", source)?,
            routing_key: name("routing key", routing_key)?,
            arguments: Table::from_wire(&arguments),
            ..Default::default()
        };
        self.call::<exchange::BindOk>(channel, bind).await.map(drop)
    }

    /// Declares a queue; an empty name lets the broker choose one.
    pub async fn declare_queue(
        &mut self,
        channel: u16,
        queue: &str,
        options: &QueueOptions,
    ) -> Result<QueueInfo, Error> {
        let arguments = options.arguments.encode();
        let declare = queue::Declare {
            queue: name("queue", queue)?,
            passive: options.passive,
            durable: options.durable,
            exclusive: options.exclusive,
            auto_delete: options.auto_delete,
            arguments: Table::from_wire(&arguments),
            ..Default::default()
        };
        match self
            .call::<queue::DeclareOk<'static>>(channel, declare)
            .await?
        {
            Method::QueueDeclareOk(ok) => Ok(QueueInfo {
                name: ok.queue.utf8("queue")?.to_owned(),
                messages: ok.message_count,
                consumers: ok.consumer_count,
            }),
            other => Err(unexpected(other)),
        }
    }

    /// Binds a queue to an exchange.
    pub async fn bind(
        &mut self,
        channel: u16,
        queue: &str,
        exchange: &str,
        routing_key: &str,
        arguments: &FieldTable,
    ) -> Result<(), Error> {
        let arguments = arguments.encode();
        let bind = queue::Bind {
            queue: name("queue", queue)?,
            exchange: name("exchange", exchange)?,
            routing_key: name("routing key", routing_key)?,
            arguments: Table::from_wire(&arguments),
            ..Default::default()
        };
        self.call::<queue::BindOk>(channel, bind).await.map(drop)
    }

    /// Undoes a binding of the same arguments.
    pub async fn unbind(
        &mut self,
        channel: u16,
        queue: &str,
        exchange: &str,
        routing_key: &str,
        arguments: &FieldTable,
    ) -> Result<(), Error> {
        let arguments = arguments.encode();
        let unbind = queue::Unbind {
            queue: name("queue", queue)?,
            exchange: name("exchange", exchange)?,
            routing_key: name("routing key", routing_key)?,
            arguments: Table::from_wire(&arguments),
            ..Default::default()
        };
        self.call::<queue::UnbindOk>(channel, unbind)
            .await
            .map(drop)
    }

    /// Drops the ready messages of a queue; returns how many.
    pub async fn purge(&mut self, channel: u16, queue: &str) -> Result<u32, Error> {
        let purge = queue::Purge {
            queue: name("queue", queue)?,
            ..Default::default()
        };
        match self.call::<queue::PurgeOk>(channel, purge).await? {
            Method::QueuePurgeOk(ok) => Ok(ok.message_count),
            other => Err(unexpected(other)),
        }
    }

    /// Deletes a queue; returns how many messages it held.
    pub async fn delete_queue(&mut self, channel: u16, queue: &str) -> Result<u32, Error> {
        let delete = queue::Delete {
            queue: name("queue", queue)?,
            ..Default::default()
        };
        match self.call::<queue::DeleteOk>(channel, delete).await? {
            Method::QueueDeleteOk(ok) => Ok(ok.message_count),
            other => Err(unexpected(other)),
        }
    }
}
