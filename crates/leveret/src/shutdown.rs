//! The end: signals, and closing connections in good order.

use std::io;
use std::time::Duration;

use broker::Broker;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long clients may take to answer connection.close.
const GRACE: Duration = Duration::from_secs(10);
/// How often to look whether they have.
const POLL: Duration = Duration::from_millis(5);

/// The signals that stop the node.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over from the default action.
    pub fn register() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one; returns its name. A further one ends the process at once.
    pub async fn wait(mut self) -> &'static str {
        let name = self.next().await;
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!(signal = name, "told to stop again: not waiting for clients");
            std::process::exit(1);
        });
        name
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Sends connection.close 320 to every client and waits for their answers.
pub async fn close_connections(broker: &Broker) {
    broker.connections.stop();
    let closed = async {
        while broker.connections.count() > 0 {
            tokio::time::sleep(POLL).await;
        }
    };
    if tokio::time::timeout(GRACE, closed).await.is_err() {
        let count = broker.connections.count();
        tracing::warn!(
            connections = count,
            "clients did not answer connection.close in time"
        );
    }
}
