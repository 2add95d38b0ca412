//! Bindings by the thousand.

use client::method::queue;
use client::{Connection, ExchangeOptions, ShortStr};

use super::pipeline;
use crate::error::Error;

/// Bindings under way.
const WINDOW: u64 = 1_000;

/// A queue and the key that it is bound by.
pub type Binding = (String, String);

/// Binds queues to an exchange.
pub async fn bind(
    connection: &mut Connection,
    channel: u16,
    exchange: &str,
    bindings: &[Binding],
) -> Result<(), Error> {
    pipeline(
        connection,
        bindings.len() as u64,
        WINDOW,
        |connection, n| {
            let (queue, key) = &bindings[n as usize];
            let bind = queue::Bind {
                queue: ShortStr::truncated(queue),
                exchange: ShortStr::truncated(exchange),
                routing_key: ShortStr::truncated(key),
                ..Default::default()
            };
            connection.send(channel, bind);
        },
    )
    .await
}

/// Makes an exchange without any binding.
pub async fn make_exchange(
    connection: &mut Connection,
    channel: u16,
    exchange: &str,
    kind: &str,
    durable: bool,
) -> Result<(), Error> {
    let options = ExchangeOptions {
        durable,
        ..ExchangeOptions::default()
    };
    connection.delete_exchange(channel, exchange, false).await?;
    connection
        .declare_exchange(channel, exchange, kind, &options)
        .await?;
    Ok(())
}
