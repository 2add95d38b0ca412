//! For unit tests: a store on a simulated disk, and queues in it.

use std::path::Path;
use std::sync::{Arc, Weak};

use store::{Budget, Durability, Store};
use testkit::FaultyDisk;

use crate::clock::Clock;
use crate::queue::{Queue, QueueOptions, Surroundings};
use crate::timer::Timer;

/// A store without threads.
pub(crate) fn store() -> Arc<Store> {
    store_with_memory(Budget::default().queue)
}

/// A store whose queues keep at most that many bytes in memory.
pub(crate) fn store_with_memory(queue: usize) -> Arc<Store> {
    let disk = Arc::new(FaultyDisk::new(1));
    let budget = Budget {
        queue,
        log_file: 1024 * 1024,
        ..Budget::default()
    };
    let (store, recovered) =
        Store::open(disk, Path::new("/data"), budget, false).expect("the disk is sound");
    recovered.finish(&store);
    store
}

/// A queue whose persistent messages would survive, that the store knows.
pub(crate) fn queue(store: &Store, name: &str) -> Arc<Queue> {
    queue_with(
        store,
        name,
        QueueOptions::default(),
        Timer::new(Clock::manual(0)),
    )
}

/// One with arguments, that goes by that timer.
pub(crate) fn queue_with(
    store: &Store,
    name: &str,
    options: QueueOptions,
    timer: Arc<Timer>,
) -> Arc<Queue> {
    let stores = store.new_queues(options.lanes(), true, Durability::Fsync);
    let surroundings = Surroundings {
        vhost: "/".into(),
        vhost_ref: Weak::new(),
        timer,
        delays_for: None,
        consumer_timeout: None,
    };
    let queue = Queue::new(name.into(), surroundings, options, stores);
    queue.register(store);
    queue
}
