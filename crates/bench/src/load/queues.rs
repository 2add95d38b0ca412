//! The queues of a case, made before its load starts and removed after it.

use client::{Connection, Options, QueueOptions};

use crate::error::Error;
use crate::measure::run_local;

/// The queue of a case with one.
pub const QUEUE: &str = "leveret-bench";

/// Names for several.
pub fn names(count: usize) -> Vec<String> {
    match count {
        1 => vec![QUEUE.into()],
        _ => (1..=count).map(|n| format!("{QUEUE}-{n}")).collect(),
    }
}

/// Makes them, empty.
pub fn make(options: &Options, names: &[String], durable: bool) -> Result<(), Error> {
    run_local(async {
        let mut connection = Connection::connect(options).await?;
        let channel = connection.open_channel().await?;
        let queue = QueueOptions {
            durable,
            ..QueueOptions::default()
        };
        for name in names {
            // One of an earlier run may differ in durability.
            connection.delete_queue(channel, name).await?;
            connection.declare_queue(channel, name, &queue).await?;
        }
        Ok(connection.close().await?)
    })
}

pub fn remove(options: &Options, names: &[String]) -> Result<(), Error> {
    run_local(async {
        let mut connection = Connection::connect(options).await?;
        let channel = connection.open_channel().await?;
        for name in names {
            connection.delete_queue(channel, name).await?;
        }
        Ok(connection.close().await?)
    })
}

/// Messages ready in a queue.
pub async fn count(connection: &mut Connection, channel: u16, queue: &str) -> Result<u64, Error> {
    let passive = QueueOptions {
        passive: true,
        ..QueueOptions::default()
    };
    let info = connection.declare_queue(channel, queue, &passive).await?;
    Ok(u64::from(info.messages))
}
