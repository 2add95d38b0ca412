//! Ctrl-C and SIGTERM: the first asks whatever runs to end, a second one ends the process.
//!
//! One thread listens, from the first question on, so that no signal is lost between two waits. Who
//! waits later than the signal came does not wait.

use std::sync::{OnceLock, mpsc};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Exit status of a process that was interrupted and did not wait for its end.
const STATUS: i32 = 130;

static COUNT: OnceLock<watch::Sender<u32>> = OnceLock::new();

/// From here on these signals ask for an end, and do not end the process at once.
pub fn heed() {
    drop(counts());
}

/// Waits until the process has been interrupted. Cancel safe.
pub async fn interrupted() {
    // An error means that the sender is gone, and it never goes.
    let _ = counts().wait_for(|count| *count > 0).await;
}

/// True once the process has been interrupted.
pub fn is_interrupted() -> bool {
    *counts().borrow() > 0
}

fn counts() -> watch::Receiver<u32> {
    let sender = COUNT.get_or_init(|| {
        let (sender, _) = watch::channel(0);
        let (listening, wait) = mpsc::channel();
        // Where no thread can be started, signals end the process as they do by default.
        let started = std::thread::Builder::new()
            .name("perf-signals".into())
            .spawn(move || listen(&listening));
        if started.is_ok() {
            let _ = wait.recv();
        }
        sender
    });
    sender.subscribe()
}

/// Says when it listens, or that it cannot, by dropping the sender.
fn listen(listening: &mpsc::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let streams = signal(SignalKind::interrupt())
            .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
        let Ok((mut interrupt, mut terminate)) = streams else {
            return;
        };
        let _ = listening.send(());
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // Set by the one who started this thread, once this has said that it listens.
            let count = COUNT.wait();
            if *count.borrow() > 0 {
                std::process::exit(STATUS);
            }
            count.send_replace(1);
        }
    });
}
