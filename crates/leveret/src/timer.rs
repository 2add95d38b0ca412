//! The threads that call queues when something of theirs is due: a few, so that one queue with much
//! to do, such as reading thousands of messages that have expired, does not make others wait.

use std::sync::Arc;
use std::thread::JoinHandle;

use broker::{Broker, Timer};

const THREADS: usize = 4;

/// The running threads.
pub struct Running {
    timer: Arc<Timer>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts them.
pub fn start(broker: &Broker) -> std::io::Result<Running> {
    let timer = broker.timer.clone();
    let threads = (0..THREADS).map(|_| {
        let timer = timer.clone();
        let named = std::thread::Builder::new().name("leveret-timer".into());
        named.spawn(move || timer.run())
    });
    let threads = threads.collect::<Result<_, _>>()?;
    Ok(Running { timer, threads })
}

impl Running {
    /// Ends them. What is due then waits for the next start.
    pub fn stop(self) {
        self.timer.stop();
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a timer's thread has panicked");
            }
        }
    }
}
