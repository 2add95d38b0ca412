//! The threads that carry the connections: a runtime each, and no work that moves between them.

use std::thread::{self, JoinHandle};

use super::control::{Control, Report};
use super::{consumer, producer};
use crate::Error;

/// What one thread carries.
#[derive(Default)]
pub struct Load {
    pub producers: Vec<producer::Task>,
    pub consumers: Vec<consumer::Task>,
}

/// Starts a thread. It ends when all its tasks have.
pub fn start(number: usize, load: Load, control: &Control) -> Result<JoinHandle<()>, Error> {
    let control = control.clone();
    let name = format!("perf-{number}");
    let started = thread::Builder::new().name(name).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => {
                tokio::task::LocalSet::new().block_on(&runtime, carry(load));
            }
            Err(source) => {
                let what = "cannot start a runtime";
                let error = Error::System { what, source };
                control.report(Report::Failed(error));
            }
        }
    });
    started.map_err(|source| Error::System {
        what: "cannot start a thread",
        source,
    })
}

async fn carry(load: Load) {
    let tasks: Vec<_> = load
        .consumers
        .into_iter()
        .map(|task| tokio::task::spawn_local(consumer::run(task)))
        .chain(
            load.producers
                .into_iter()
                .map(|task| tokio::task::spawn_local(producer::run(task))),
        )
        .collect();
    for task in tasks {
        // A task that panicked has said so itself.
        let _ = task.await;
    }
}

/// Spreads tasks over threads: each side by itself, so that producers and consumers do not wait
/// for each other.
pub fn spread(
    producers: Vec<producer::Task>,
    consumers: Vec<consumer::Task>,
    threads: usize,
) -> Vec<Load> {
    let mut loads: Vec<Load> = (0..threads.max(1)).map(|_| Load::default()).collect();
    let count = loads.len();
    for (at, task) in consumers.into_iter().enumerate() {
        loads[at % count].consumers.push(task);
    }
    for (at, task) in producers.into_iter().enumerate() {
        // From the other end: one producer and one consumer have a thread each.
        loads[count - 1 - at % count].producers.push(task);
    }
    loads.retain(|load| !load.producers.is_empty() || !load.consumers.is_empty());
    loads
}

/// How many threads, if the settings do not say.
pub fn threads(asked: usize, connections: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let wanted = if asked == 0 { cores } else { asked };
    wanted.min(connections).max(1)
}
