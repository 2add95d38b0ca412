//! The log's threads: one writes and syncs, one makes files ready.
//!
//! Where one client at a time waits for one small record, waking a thread and being woken by it
//! takes as long as the disk does. So whoever is about to wait for little, while the thread sleeps
//! and nobody else waits, writes and syncs it himself ([`Threads::write_inline`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Wake;
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::disk::BLOCK;
use crate::pace::Pace;
use crate::{Batch, Error, Shared, Stop, Writer};

/// How often to look whether the writer has ended.
const POLL: Duration = Duration::from_millis(1);

/// How often somebody who waits for the disk looks whether the log has failed.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// Bytes that somebody may write who is about to wait for them.
const LITTLE: usize = 16 * 1024;
/// A disk that takes longer is left to the log's thread,
const SLOW: Duration = Duration::from_millis(1);
/// for so many writes, and for twice as many each time that it still does, up to a limit: a disk
/// that is always slow is hardly ever tried.
const LEFT: u32 = 64;
const MOST_LEFT: u32 = 1 << 16;

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
    Running {
        work: Arc<Mutex<Work>>,
        handles: Mutex<Option<Running>>,
    },
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

/// What writing needs.
#[derive(Debug)]
pub(crate) struct Work {
    writer: Writer,
    batch: Batch,
    pace: Pace,
    /// One at a time waited of late.
    lone: bool,
    /// So many small records are left to the thread: the disk was slow.
    leave: u32,
    /// How many will be left when it is slow again.
    leave_next: u32,
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
        let work = Arc::new(Mutex::new(Work {
            writer,
            batch: Batch::default(),
            pace: Pace::default(),
            lone: true,
            leave: 0,
            leave_next: LEFT,
        }));
        let writing = {
            let work = work.clone();
            spawn("leveret-wal", shared, move |shared| {
                write_until_closed(shared, &work)
            })
        };
        let preparing = spawn("leveret-wal-files", shared, |shared| {
            shared.files.prepare_until_closed()
        });
        let handles = Mutex::new(Some(Running { writing, preparing }));
        Threads::Running { work, handles }
    }

    /// Writes what is there in the calling thread, if it is little, the log's thread sleeps, and
    /// nobody else waits: otherwise the thread does it better, for all at once.
    pub fn write_inline(&self, shared: &Shared) {
        let Threads::Running { work, .. } = self else {
            return;
        };
        let Some(mut work) = work.try_lock() else {
            return;
        };
        let work = &mut *work;
        if work.leave > 0 || !work.lone || shared.failure.get().is_some() {
            work.leave = work.leave.saturating_sub(1);
            return;
        }
        // Rolling over may have to wait for a file.
        let most = LITTLE.min(work.writer.room().saturating_sub(BLOCK));
        if !shared.pending.take_little(&mut work.batch, most) {
            return;
        }
        let began = Instant::now();
        match work.writer.write(&mut work.batch) {
            Ok(waited) => work.lone = waited == 0,
            Err(Stop::Full) => {}
            Err(Stop::Failed(error)) => shared.fail(error),
        }
        if began.elapsed() > SLOW {
            work.leave = work.leave_next;
            work.leave_next = (work.leave_next * 2).min(MOST_LEFT);
        } else {
            work.leave_next = LEFT;
        }
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
                Ok(_) => *held = false,
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
            Threads::Running { handles, .. } => handles.lock().take(),
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

fn write_until_closed(shared: &Shared, work: &Mutex<Work>) -> Result<(), Error> {
    while shared.pending.wait_for_records() {
        let mut work = work.lock();
        let work = &mut *work;
        work.pace.let_grow(&shared.pending);
        // Somebody may have written it meanwhile.
        if !shared.pending.take_now(&mut work.batch) {
            continue;
        }
        if shared.failure.get().is_some() {
            break;
        }
        work.pace.took(work.batch.bytes.len());
        match work.writer.write(&mut work.batch) {
            Ok(waited) => work.lone = waited <= 1,
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
        None => work.lock().writer.finish(),
    }
}
