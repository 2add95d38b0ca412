//! Ctrl-C and SIGTERM, which end a load but not before its queues are deleted.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Error;

/// From its creation on, these signals no longer end the process.
pub(super) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    pub(super) fn listen() -> Result<Interrupt, Error> {
        let listen = |kind| {
            let what = "signals cannot be caught";
            signal(kind).map_err(|source| Error::System { what, source })
        };
        Ok(Interrupt {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
