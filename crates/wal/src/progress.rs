//! How far the log is written and durable, and who waits for it.
//!
//! The log's thread advances the positions after each batch and wakes whoever they have passed,
//! each once. A waiter is registered under the lock under which passed waiters are taken out, and
//! looks at the position there once more, so no advance is missed.

use std::task::Waker;

use crate::durability::Durability;
use crate::lsn::Lsn;
use crate::sync::{AtomicU64, Mutex, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Progress {
    written: AtomicU64,
    durable: AtomicU64,
    waiting: Mutex<Vec<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    lsn: Lsn,
    durability: Durability,
    waker: Waker,
}

impl Progress {
    pub fn starting_at(lsn: Lsn) -> Self {
        Progress {
            written: AtomicU64::new(lsn.0),
            durable: AtomicU64::new(lsn.0),
            waiting: Mutex::default(),
        }
    }

    /// How far the log satisfies that durability.
    #[inline]
    pub fn reached(&self, durability: Durability) -> Lsn {
        Lsn(match durability {
            Durability::Fsync => self.durable.load(Ordering::Acquire),
            Durability::Os => self.written.load(Ordering::Acquire),
        })
    }

    /// True if the position is reached; otherwise the waker is called once it is.
    pub fn wait(&self, lsn: Lsn, durability: Durability, waker: &Waker) -> bool {
        let mut waiting = self.waiting.lock();
        if self.reached(durability) >= lsn {
            return true;
        }
        waiting.push(Waiting {
            lsn,
            durability,
            waker: waker.clone(),
        });
        false
    }

    /// Everything up to there has been given to the operating system.
    pub fn written(&self, lsn: Lsn) {
        self.written.store(lsn.0, Ordering::Release);
        self.wake_passed();
    }

    /// Everything up to there is on the disk.
    pub fn durable(&self, lsn: Lsn) {
        self.written.store(lsn.0, Ordering::Release);
        self.durable.store(lsn.0, Ordering::Release);
        self.wake_passed();
    }

    fn wake_passed(&self) {
        let mut passed = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            let mut index = 0;
            while let Some(one) = waiting.get(index) {
                if self.reached(one.durability) >= one.lsn {
                    passed.push(waiting.swap_remove(index).waker);
                } else {
                    index += 1;
                }
            }
        }
        passed.into_iter().for_each(Waker::wake);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use loom::sync::Notify;

    use super::*;

    struct Sleeper(Notify);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.notify();
        }
    }

    #[test]
    fn loom_no_waiter_misses_the_position_it_waits_for() {
        let mut model = loom::model::Builder::new();
        // More do not find more, and take minutes.
        model.preemption_bound = Some(3);
        model.check(|| {
            let progress = Arc::new(Progress::default());
            let waiters: Vec<_> = [(1, Durability::Fsync), (2, Durability::Os)]
                .into_iter()
                .map(|(lsn, durability)| {
                    let progress = progress.clone();
                    loom::thread::spawn(move || {
                        let sleeper = Arc::new(Sleeper(Notify::new()));
                        let waker = sleeper.clone().into();
                        // Sleeping for ever is a deadlock, which loom reports.
                        while !progress.wait(Lsn(lsn), durability, &waker) {
                            sleeper.0.wait();
                        }
                    })
                })
                .collect();
            progress.durable(Lsn(1));
            progress.written(Lsn(2));
            for waiter in waiters {
                waiter.join().expect("the waiter ends");
            }
        });
    }
}
