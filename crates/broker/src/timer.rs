//! What happens at a time: one timer for the whole node, one place in it for each queue that waits
//! for something, and a few threads that call those.
//!
//! A queue says when it wants to be called next; saying it again replaces what it said before. The
//! lock is taken under queues' locks and never the other way round.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ahash::HashMap;
use parking_lot::{Condvar, Mutex};

use crate::clock::{Clock, Millis};

/// Something that waits for a time.
pub(crate) trait Timed: Send + Sync {
    /// It has come.
    fn tick(&self);
}

/// For how long what is due is still done after [`Timer::stop`].
const GRACE: Millis = 5_000;

/// The node's timer.
#[derive(Debug)]
pub struct Timer {
    /// The clock that it goes by.
    pub clock: Clock,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    by_id: HashMap<u64, (Millis, Weak<dyn Timed>)>,
    /// Those that `by_id` no longer says the same of do not count.
    due: BinaryHeap<Reverse<(Millis, u64)>>,
    /// Threads that will look again by themselves.
    watching: usize,
    /// The threads end: at this time at the latest.
    stopped: Option<Millis>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting")
            .field("count", &self.by_id.len())
            .finish_non_exhaustive()
    }
}

impl Waiting {
    /// When the next one is due.
    fn next(&mut self) -> Option<Millis> {
        while let Some(Reverse((at, id))) = self.due.peek().copied() {
            if self.by_id.get(&id).is_some_and(|(wanted, _)| *wanted == at) {
                return Some(at);
            }
            self.due.pop();
        }
        None
    }

    fn take_due(&mut self, now: Millis) -> Option<Weak<dyn Timed>> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, id)) = self.due.pop()?;
        self.by_id.remove(&id).map(|(_, waiting)| waiting)
    }

    fn has_ended(&mut self, now: Millis) -> bool {
        let Some(until) = self.stopped else {
            return false;
        };
        now >= until || self.next().is_none_or(|next| next > now)
    }

    /// True if nobody is there for the next one, should the caller be busy for long.
    fn is_unwatched(&mut self) -> bool {
        self.watching == 0 && self.next().is_some()
    }
}

impl Timer {
    /// A timer of which [`Timer::run`] or [`Timer::run_once`] calls those that are due.
    pub fn new(clock: Clock) -> Arc<Timer> {
        Arc::new(Timer {
            clock,
            waiting: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Has `waiting` called at that time, instead of whenever it said before.
    pub(crate) fn schedule(&self, id: u64, at: Millis, waiting: Weak<dyn Timed>) {
        let mut state = self.waiting.lock();
        let first = state.next().is_none_or(|next| at < next);
        state.by_id.insert(id, (at, waiting));
        state.due.push(Reverse((at, id)));
        // Those that count no more must not outnumber the others for long.
        if state.due.len() > 64 + 4 * state.by_id.len() {
            let Waiting { by_id, due, .. } = &mut *state;
            due.clear();
            due.extend(by_id.iter().map(|(id, (at, _))| Reverse((*at, *id))));
        }
        if first {
            self.changed.notify_one();
        }
    }

    /// It is gone.
    pub(crate) fn forget(&self, id: u64) {
        self.waiting.lock().by_id.remove(&id);
    }

    /// Calls those that are due now.
    pub fn run_once(&self) {
        let now = self.clock.now();
        loop {
            let due = {
                let mut state = self.waiting.lock();
                let Some(due) = state.take_due(now) else {
                    return;
                };
                if state.is_unwatched() {
                    self.changed.notify_one();
                }
                due
            };
            if let Some(due) = due.upgrade() {
                due.tick();
            }
        }
    }

    /// Calls those that are due, until [`Timer::stop`].
    pub fn run(&self) {
        loop {
            self.run_once();
            let mut state = self.waiting.lock();
            if state.has_ended(self.clock.now()) {
                return;
            }
            match state.next() {
                None => self.changed.wait(&mut state),
                Some(at) => {
                    let wait = at.saturating_sub(self.clock.now());
                    if wait > 0 {
                        state.watching += 1;
                        self.changed
                            .wait_for(&mut state, Duration::from_millis(wait));
                        state.watching -= 1;
                    }
                }
            }
        }
    }

    /// Ends [`Timer::run`], once what is due has been done.
    pub fn stop(&self) {
        self.waiting.lock().stopped = Some(self.clock.now() + GRACE);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Timed for Count {
        fn tick(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waiting(counts: &[Arc<Count>; 2], index: usize) -> Weak<dyn Timed> {
        let weak: Weak<dyn Timed> = Arc::<Count>::downgrade(&counts[index]);
        weak
    }

    #[test]
    fn the_last_word_counts() {
        let timer = Timer::new(Clock::manual(0));
        let counts = [Arc::<Count>::default(), Arc::default()];
        timer.schedule(1, 10, waiting(&counts, 0));
        timer.schedule(2, 20, waiting(&counts, 1));
        timer.schedule(1, 30, waiting(&counts, 0));
        let called = || [0, 1].map(|index: usize| counts[index].0.load(Ordering::Relaxed));
        timer.clock.advance(Duration::from_millis(20));
        timer.run_once();
        assert_eq!(called(), [0, 1]);
        timer.clock.advance(Duration::from_millis(10));
        timer.run_once();
        timer.run_once();
        assert_eq!(called(), [1, 1]);
    }

    struct Blocked(Mutex<std::sync::mpsc::Receiver<()>>);

    impl Timed for Blocked {
        fn tick(&self) {
            let _ = self.0.lock().recv();
        }
    }

    /// What was scheduled behind it, when all other threads had gone to sleep for good.
    #[test]
    fn who_takes_long_does_not_make_the_next_one_wait() {
        let timer = Timer::new(Clock::system());
        let threads = [(); 3].map(|()| {
            let timer = timer.clone();
            std::thread::spawn(move || timer.run())
        });
        // So that they wait for nothing in particular.
        std::thread::sleep(Duration::from_millis(50));
        let (release, gate) = std::sync::mpsc::channel();
        let blocked: Arc<Blocked> = Arc::new(Blocked(Mutex::new(gate)));
        let count = Arc::<Count>::default();
        let soon = timer.clock.now() + 100;
        let weak: Weak<dyn Timed> = Arc::<Blocked>::downgrade(&blocked);
        timer.schedule(1, soon, weak);
        let weak: Weak<dyn Timed> = Arc::<Count>::downgrade(&count);
        timer.schedule(2, soon + 1, weak);
        let called = || count.0.load(Ordering::Relaxed) == 1;
        let began = std::time::Instant::now();
        while !called() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let in_time = called();
        drop(release);
        timer.stop();
        for thread in threads {
            thread.join().expect("it ends");
        }
        assert!(in_time);
    }

    /// Has work for a hundred calls.
    struct Busy {
        timer: Arc<Timer>,
        me: Weak<Busy>,
        calls: AtomicUsize,
    }

    impl Busy {
        fn call_soon(&self) {
            let me: Weak<dyn Timed> = self.me.clone();
            self.timer.schedule(1, self.timer.clock.now(), me);
        }
    }

    impl Timed for Busy {
        fn tick(&self) {
            if self.calls.fetch_add(1, Ordering::Relaxed) < 99 {
                std::thread::sleep(Duration::from_millis(2));
                self.call_soon();
            }
        }
    }

    #[test]
    fn what_is_due_is_done_before_the_end() {
        let timer = Timer::new(Clock::system());
        let busy = Arc::new_cyclic(|me| Busy {
            timer: timer.clone(),
            me: me.clone(),
            calls: AtomicUsize::default(),
        });
        busy.call_soon();
        timer.stop();
        timer.run();
        assert_eq!(busy.calls.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn who_keeps_changing_his_mind_takes_no_room() {
        let timer = Timer::new(Clock::manual(0));
        let counts = [Arc::<Count>::default(), Arc::default()];
        for at in 0..10_000 {
            timer.schedule(1, 1 + at, waiting(&counts, 0));
        }
        assert!(timer.waiting.lock().due.len() < 200);
        timer.forget(1);
        timer.clock.advance(Duration::from_secs(60));
        timer.run_once();
        assert_eq!(counts[0].0.load(Ordering::Relaxed), 0);
    }
}
