//! The log's threads: one writes and syncs, one makes files ready.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Wake;
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use parking_lot::Mutex;

use crate::pace::Pace;
use crate::{Batch, Error, Shared, Stop, Writer};

/// How often to look whether the writer has ended.
const POLL: Duration = Duration::from_millis(1);

/// How often somebody who waits for the disk looks whether the log has failed.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// Wakes a thread that is parked.
pub(crate) struct Unpark(Thread);

impl Unpark {
    pub fn current() -> Self {
        Unpark(std::thread::current())
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Who does the work.
#[derive(Debug)]
pub(crate) enum Threads {
    Running(Mutex<Option<Running>>),
    /// The caller, whenever it likes.
    None(Box<Mutex<Alone>>),
}

#[derive(Debug)]
pub(crate) struct Alone {
    writer: Writer,
    batch: Batch,
    /// The batch waits for room on the disk.
    held: bool,
}

#[derive(Debug)]
pub(crate) struct Running {
    writing: JoinHandle<()>,
    preparing: JoinHandle<()>,
}

impl Threads {
    pub fn start(shared: &Arc<Shared>, writer: Writer, threads: bool) -> Threads {
        if !threads {
            return Threads::None(Box::new(Mutex::new(Alone {
                writer,
                batch: Batch::default(),
                held: false,
            })));
        }
        let writing = spawn("leveret-wal", shared, |shared| {
            write_until_closed(shared, writer)
        });
        let preparing = spawn("leveret-wal-files", shared, |shared| {
            shared.files.prepare_until_closed()
        });
        Threads::Running(Mutex::new(Some(Running { writing, preparing })))
    }

    pub fn run_once(&self, shared: &Shared) {
        let Threads::None(work) = self else { return };
        let Alone {
            writer,
            batch,
            held,
        } = &mut *work.lock();
        if shared.failure.get().is_some() {
            return;
        }
        if let Err(error) = shared.files.prepare_wanted() {
            return shared.fail(error);
        }
        while *held || shared.pending.take_now(batch) {
            match writer.write(batch) {
                Ok(()) => *held = false,
                Err(Stop::Full) => {
                    *held = true;
                    return;
                }
                Err(Stop::Failed(error)) => return shared.fail(error),
            }
        }
    }

    /// Waits until everything is written. [`crate::pending::Pending::close`] comes before.
    pub fn join(&self, shared: &Shared) {
        let running = match self {
            Threads::Running(running) => running.lock().take(),
            Threads::None(alone) => {
                self.run_once(shared);
                if shared.failure.get().is_none()
                    && let Err(error) = alone.lock().writer.finish()
                {
                    shared.fail(error);
                }
                None
            }
        };
        let Some(Running { writing, preparing }) = running else {
            return;
        };
        // The writer may need a file, so it ends first; unless there is no room for one.
        while !writing.is_finished() && !shared.files.full() {
            std::thread::sleep(POLL);
        }
        shared.files.close();
        let _ = writing.join();
        let _ = preparing.join();
    }
}

/// A thread whose error or panic is the log's failure: nobody must wait for it in vain.
fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> Result<(), Error> + Send + 'static,
) -> JoinHandle<()> {
    let shared = shared.clone();
    let work = move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&shared)));
        let done = done.unwrap_or_else(|_| Err(shared.files.panicked()));
        if let Err(error) = done {
            shared.fail(error);
        }
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .expect("the system has room for a thread")
}

fn write_until_closed(shared: &Shared, mut writer: Writer) -> Result<(), Error> {
    let (mut pace, mut batch) = (Pace::default(), Batch::default());
    while shared.pending.wait_for_records() {
        pace.let_grow(&shared.pending);
        if !shared.pending.take_now(&mut batch) {
            continue;
        }
        if shared.failure.get().is_some() {
            break;
        }
        pace.took(batch.bytes.len());
        match writer.write(&mut batch) {
            Ok(()) => {}
            Err(Stop::Full) => {
                tracing::warn!("closed while the disk was full: the last records are lost");
                return Ok(());
            }
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    // The other thread may have failed.
    match shared.failure.get() {
        Some(_) => Ok(()),
        None => writer.finish(),
    }
}
