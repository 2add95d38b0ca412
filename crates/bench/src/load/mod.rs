//! What puts load on a broker: threads of their own that publish and consume until told to stop.
//!
//! Each connection has a thread and a runtime to itself. They tell how far they have come through
//! [`Progress`], once per batch.

pub mod bindings;
mod confirms;
mod consumer;
mod pace;
mod pipeline;
mod producer;
mod progress;
pub mod queues;
pub mod season;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use client::Event;

pub use consumer::{Acks, Consumer};
pub use pace::Pace;
pub use pipeline::pipeline;
pub use producer::{Message, Producer};
pub use progress::Progress;

use crate::error::Error;
use crate::measure::run_local;
use progress::StopOnDrop;

/// How long a broker may take for what is under way when a round ends.
pub const DRAIN: Duration = Duration::from_secs(20);

/// A running load thread.
pub struct Load<T>(JoinHandle<Result<T, Error>>);

impl<T: Send + 'static> Load<T> {
    /// Starts it. When it ends, however it does, the others are told to stop: nobody waits in vain.
    pub fn start(
        role: &'static str,
        progress: &Arc<Progress>,
        limit: Duration,
        load: impl AsyncFnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<Load<T>, Error> {
        let progress = progress.clone();
        let thread = thread::Builder::new().name(role.into()).spawn(move || {
            let _stop = StopOnDrop(&progress);
            run_local(async {
                tokio::time::timeout(limit, load())
                    .await
                    .unwrap_or(Err(Error::Stuck { role, limit }))
            })
        });
        thread.map(Load).map_err(Error::Runtime)
    }

    /// Waits for its end.
    pub fn join(self) -> Result<T, Error> {
        self.0.join().map_err(|_| Error::Panicked)?
    }
}

/// For events that a load does not expect.
pub fn unexpected(role: &'static str, event: &Event<'_>) -> Error {
    Error::Unexpected {
        role,
        event: format!("{event:?}"),
    }
}
