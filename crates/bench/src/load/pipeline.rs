//! Requests that do not wait for the reply to the one before.

use client::{Connection, Event};

use super::unexpected;
use crate::error::Error;

/// Sends that many requests, of which at most `window` await their reply; `send` appends the request
/// of a number from 0. Whatever is refused is an error.
pub async fn pipeline(
    connection: &mut Connection,
    count: u64,
    window: u64,
    mut send: impl FnMut(&mut Connection, u64),
) -> Result<(), Error> {
    let (mut sent, mut answered) = (0, 0);
    while answered < count {
        while sent < count && sent - answered < window {
            send(connection, sent);
            sent += 1;
        }
        connection.ready().await?;
        while let Some(event) = connection.try_next()? {
            match event {
                Event::Reply { .. } => answered += 1,
                event => return Err(unexpected("client", &event)),
            }
        }
    }
    Ok(())
}
