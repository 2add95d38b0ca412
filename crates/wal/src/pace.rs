//! How long the log's thread lets a batch grow.
//!
//! A sync costs about as much whatever it syncs, in time and in CPU, and so does waking everybody
//! who waits for it. Left alone, a heavy flow settles at small batches: as much as comes while one
//! is synced. So when batches are large enough to tell a heavy flow, the next one may grow for a
//! while, as long as it does grow. Where nobody sends more before he has his answer that is time
//! lost, so it is tried ever less often.

use std::time::{Duration, Instant};

use crate::pending::Pending;

/// A batch of at least this many bytes tells a heavy flow.
const HEAVY: usize = 24 * 1024;
/// A batch of this many bytes is written at once.
const ENOUGH: usize = 320 * 1024;
/// How long a batch may grow.
const LONGEST: Duration = Duration::from_micros(1_000);
/// How often to look whether it grows.
const STEP: Duration = Duration::from_micros(50);
/// Tries that are left out after useless ones, at most.
const MOST_SKIPPED: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: usize,
    /// How many tries are left out after the next useless one.
    penalty: u32,
    skip: u32,
}

impl Pace {
    /// Waits while the batch grows and should.
    pub fn let_grow(&mut self, pending: &Pending) {
        if self.last < HEAVY {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        let began = Instant::now();
        let (first, _) = pending.waiting();
        let mut before = first;
        while before < ENOUGH && began.elapsed() < LONGEST {
            std::thread::sleep(STEP);
            let (now, open) = pending.waiting();
            if now == before || !open {
                break;
            }
            before = now;
        }
        if before > first {
            self.penalty = 0;
        } else if first < ENOUGH {
            self.penalty = (self.penalty * 2).clamp(1, MOST_SKIPPED);
            self.skip = self.penalty;
        }
    }

    /// A batch of that many bytes is about to be written.
    pub fn took(&mut self, bytes: usize) {
        self.last = bytes;
    }
}
