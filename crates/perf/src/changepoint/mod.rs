//! Since when: finds the places where the level of a series changed, after Wayne A. Taylor
//! ("Change-Point Analysis: A Powerful New Tool For Detecting Changes", 2000).
//!
//! The cumulative sum of the deviations from the mean runs straight as long as the level stays, and
//! bends where it changes. [`detect`] asks whether it wanders further than in random orders of the
//! same values, splits the series where two levels describe it best, and goes on in both parts.
//! What this finds and what it does not is in `tests.rs` and in `docs/perf.md`.

mod bootstrap;
mod detect;
mod random;
mod ranks;
mod steady;
#[cfg(test)]
mod tests;

pub use detect::{cusum, detect, detect_at};
pub use steady::steady_from;

/// How to look for changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Bootstrap resamples of each segment.
    pub resamples: usize,
    /// Confidence from which on a change counts, 0 to 1.
    pub confidence: f64,
    /// Work on ranks instead of values: outliers lose their weight.
    pub ranks: bool,
    /// Of the bootstrap's random numbers: the same series and seed give the same changes.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            resamples: 1_000,
            confidence: 0.95,
            ranks: false,
            seed: 1,
        }
    }
}

/// A place where the level changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first value of the new level.
    pub index: usize,
    /// Share of resamples that looked less like a change, 0 to 1.
    pub confidence: f64,
    /// Mean from the previous change, or the beginning, up to here.
    pub before: f64,
    /// Mean from here up to the next change, or the end.
    pub after: f64,
    /// How deep in the recursion it was found, from 1: how much it stands out.
    pub depth: u32,
}

/// A series with its changes: what is printed and drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// What was measured: `w3, 4 queues: received rate`.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// What each value belongs to: a release, a commit, a second.
    pub positions: Vec<String>,
    /// The values.
    pub values: Vec<f64>,
    /// Cumulative sums of the deviations from the mean: one more than values, from 0 to 0.
    pub cusum: Vec<f64>,
    /// By index.
    pub changes: Vec<Change>,
}
