//! Declares exchanges, queues and bindings, or makes sure that they are there.

use client::{Connection, ExchangeOptions, FieldTable, QueueOptions};

use crate::Error;
use crate::settings::{Queues, Topology};

/// Declares the exchange, unless it is one that every broker has.
pub async fn declare_exchange(
    connection: &mut Connection,
    topology: &Topology,
) -> Result<(), Error> {
    let exchange = &topology.exchange;
    if exchange.is_empty() || exchange.starts_with("amq.") {
        return Ok(());
    }
    let channel = connection.open_channel().await?;
    let options = ExchangeOptions {
        durable: !topology.predeclared,
        passive: topology.predeclared,
        ..ExchangeOptions::default()
    };
    let declared = connection
        .declare_exchange(channel, exchange, &topology.exchange_type, &options)
        .await;
    match declared {
        Ok(()) => Ok(connection.close_channel(channel).await?),
        Err(error) if missing(&error) && topology.predeclared => Err(Error::Load(format!(
            "exchange '{exchange}' does not exist; leave -p (--predeclared) out to have it declared"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Declares and binds a queue, which the broker names if `name` is empty; returns its name. With
/// predeclared objects it must exist, and is bound as well, as PerfTest does.
pub async fn declare_queue(
    connection: &mut Connection,
    channel: u16,
    topology: &Topology,
    name: &str,
    routing_key: &str,
) -> Result<String, Error> {
    let options = match topology.predeclared {
        true => QueueOptions {
            passive: true,
            ..QueueOptions::default()
        },
        false => QueueOptions {
            durable: topology.durable || !may_be_transient(connection, topology),
            exclusive: topology.exclusive,
            auto_delete: topology.auto_delete,
            arguments: topology.arguments.clone(),
            passive: false,
        },
    };
    let declared = connection.declare_queue(channel, name, &options).await;
    let queue = match declared {
        Ok(info) => info.name,
        Err(error) if missing(&error) && topology.predeclared => {
            return Err(Error::Load(format!(
                "queue '{name}' does not exist; leave -p (--predeclared) out to have it declared"
            )));
        }
        Err(error) => return Err(error.into()),
    };
    if !topology.exchange.is_empty() && !topology.skip_binding {
        let none = FieldTable::new();
        connection
            .bind(channel, &queue, &topology.exchange, routing_key, &none)
            .await?;
    }
    Ok(queue)
}

/// Deletes named queues, and the exchange if nothing else is bound to it. What cannot be deleted stays.
pub async fn clean_up(
    mut connection: Connection,
    topology: &Topology,
) -> Result<(), client::Error> {
    let names = match &topology.queues {
        Queues::ServerNamed => &[][..],
        Queues::Shared(names) | Queues::InTurn(names) => names,
    };
    let exchange = &topology.exchange;
    for name in names {
        let channel = connection.open_channel().await?;
        match connection.delete_queue(channel, name).await {
            Ok(_) => connection.close_channel(channel).await?,
            Err(client::Error::ChannelClosed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if !exchange.is_empty() && !exchange.starts_with("amq.") && !topology.predeclared {
        let channel = connection.open_channel().await?;
        match connection.delete_exchange(channel, exchange, true).await {
            // Somebody else uses it.
            Ok(()) | Err(client::Error::ChannelClosed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    connection.close().await
}

fn missing(error: &client::Error) -> bool {
    error.reply_code() == Some(404)
}

/// RabbitMQ from 4.3 on refuses queues that are neither durable nor exclusive.
fn may_be_transient(connection: &Connection, topology: &Topology) -> bool {
    let (_, version) = product_and_version(connection);
    let mut parts = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let release = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    topology.exclusive || release < (4, 3)
}

/// What the broker calls itself.
pub fn product_and_version(connection: &Connection) -> (String, String) {
    let properties = connection.server_properties().unwrap_or_default();
    let text = |name| {
        let value = properties.get(name).and_then(|value| value.as_str());
        value.unwrap_or_default().to_owned()
    };
    let version = match text("leveret_version") {
        own if own.is_empty() => text("version"),
        own => own,
    };
    (text("product"), version)
}
