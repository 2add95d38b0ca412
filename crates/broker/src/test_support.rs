//! For unit tests: a store on a simulated disk, and queues in it.

use std::path::Path;
use std::sync::{Arc, Weak};

use store::{Budget, Durability, Resident, Store};
use testkit::FaultyDisk;

use crate::queue::{Queue, QueueOptions};

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
    let kept = store.new_queue(true, Durability::Fsync);
    let stream = kept.stream();
    let options = QueueOptions::default();
    let queue = Arc::new(Queue::new(name.into(), "/".into(), options, kept));
    let resident: Weak<dyn Resident> = Arc::<Queue>::downgrade(&queue);
    store.register(stream, queue.logged, resident);
    queue
}
