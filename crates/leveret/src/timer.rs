//! The thread that calls queues when something of theirs is due.

use std::sync::Arc;
use std::thread::JoinHandle;

use broker::{Broker, Timer};

/// The running thread.
pub struct Running {
    timer: Arc<Timer>,
    thread: JoinHandle<()>,
}

/// Starts it.
pub fn start(broker: &Broker) -> std::io::Result<Running> {
    let timer = broker.timer.clone();
    let thread = {
        let timer = timer.clone();
        std::thread::Builder::new()
            .name("leveret-timer".into())
            .spawn(move || timer.run())?
    };
    Ok(Running { timer, thread })
}

impl Running {
    /// Ends it. What is due then waits for the next start.
    pub fn stop(self) {
        self.timer.stop();
        if self.thread.join().is_err() {
            tracing::error!("the timer's thread has panicked");
        }
    }
}
