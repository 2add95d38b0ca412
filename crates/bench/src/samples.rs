//! Times that were measured one by one.

use std::time::Duration;

/// Kept whole: a round has some ten thousand.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Puts them in order.
    pub fn sorted(mut self) -> Sorted {
        self.0.sort_unstable();
        Sorted(self.0)
    }
}

impl Extend<Samples> for Samples {
    fn extend<T: IntoIterator<Item = Samples>>(&mut self, others: T) {
        others.into_iter().for_each(|other| self.0.extend(other.0));
    }
}

/// Times in order.
#[derive(Debug)]
pub struct Sorted(Vec<Duration>);

impl Sorted {
    /// The time in milliseconds that this share of all does not exceed; 0 if there are none.
    pub fn millis(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let index = (self.0.len() as f64 * share) as usize;
        let time = self.0.get(index.min(last)).copied().unwrap_or_default();
        time.as_secs_f64() * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_from_the_sorted_times() {
        let mut samples = Samples::default();
        (1..=100)
            .rev()
            .for_each(|n| samples.push(Duration::from_millis(n)));
        let sorted = samples.sorted();
        assert_eq!(
            [0.5, 0.99, 1.0].map(|share| sorted.millis(share)),
            [51.0, 100.0, 100.0]
        );
        assert_eq!(Samples::default().sorted().millis(0.5), 0.0);
    }
}
