//! The log's threads: one writes and syncs, one makes files ready.

use std::sync::Arc;
use std::task::Wake;
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use parking_lot::Mutex;

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
    None(Box<Mutex<(Writer, Batch)>>),
}

#[derive(Debug)]
pub(crate) struct Running {
    writing: JoinHandle<()>,
    preparing: JoinHandle<()>,
}

impl Threads {
    pub fn start(shared: &Arc<Shared>, writer: Writer, threads: bool) -> Threads {
        if !threads {
            return Threads::None(Box::new(Mutex::new((writer, Batch::default()))));
        }
        let writing = {
            let shared = shared.clone();
            spawn("leveret-wal", move || {
                if let Err(Stop::Failed(error)) = write_until_closed(&shared, writer) {
                    shared.fail(error);
                }
            })
        };
        let preparing = {
            let shared = shared.clone();
            spawn("leveret-wal-files", move || {
                if let Err(error) = shared.files.prepare_until_closed() {
                    shared.fail(error);
                }
            })
        };
        Threads::Running(Mutex::new(Some(Running { writing, preparing })))
    }

    pub fn run_once(&self, shared: &Shared) {
        let Threads::None(work) = self else { return };
        let (writer, batch) = &mut *work.lock();
        if shared.failure.get().is_some() {
            return;
        }
        if let Err(error) = shared.files.prepare_wanted() {
            return shared.fail(error);
        }
        if shared.pending.take_now(batch)
            && let Err(Stop::Failed(error)) = writer.write(batch)
        {
            shared.fail(error);
        }
    }

    /// Waits until everything is written. [`crate::pending::Pending::close`] comes before.
    pub fn join(&self, shared: &Shared) {
        let running = match self {
            Threads::Running(running) => running.lock().take(),
            Threads::None(_) => {
                self.run_once(shared);
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

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .expect("the system has room for a thread")
}

fn write_until_closed(shared: &Shared, mut writer: Writer) -> Result<(), Stop> {
    let mut batch = Batch::default();
    while shared.pending.take(&mut batch) {
        writer.write(&mut batch)?;
    }
    writer.sync().map_err(|error: Error| Stop::Failed(error))
}
