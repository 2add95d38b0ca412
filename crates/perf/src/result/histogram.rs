//! Latencies as they are kept: percentiles for people, the counts behind them for programs.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Largest latency that is told apart: an hour, in nanoseconds.
const MAX: u64 = 3_600_000_000_000;
/// Decimal digits that a latency keeps.
const DIGITS: u8 = 3;

/// Percentiles in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many latencies.
    pub count: u64,
    /// The smallest.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Standard deviation.
    pub stdev_ns: u64,
    /// Half of them are no longer.
    pub p50_ns: u64,
    /// 75 % are no longer.
    pub p75_ns: u64,
    /// 90 % are no longer.
    pub p90_ns: u64,
    /// 95 % are no longer.
    pub p95_ns: u64,
    /// 99 % are no longer.
    pub p99_ns: u64,
    /// 99.9 % are no longer.
    pub p999_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Percentiles {
    /// Of a histogram of nanoseconds; `None` if it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Percentiles> {
        if histogram.is_empty() {
            return None;
        }
        let quantile = |quantile| histogram.value_at_quantile(quantile).min(histogram.max());
        Some(Percentiles {
            count: histogram.len(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean() as u64,
            stdev_ns: histogram.stdev() as u64,
            p50_ns: quantile(0.5),
            p75_ns: quantile(0.75),
            p90_ns: quantile(0.9),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: histogram.max(),
        })
    }
}

impl Percentiles {
    /// Of two parts of a run: there is no telling what they are together, but no more than this.
    pub fn worse_of(&self, other: &Percentiles) -> Percentiles {
        let count = self.count + other.count;
        let weighted = |a: u64, b: u64| {
            let sum =
                u128::from(a) * u128::from(self.count) + u128::from(b) * u128::from(other.count);
            (sum / u128::from(count.max(1))) as u64
        };
        Percentiles {
            count,
            min_ns: self.min_ns.min(other.min_ns),
            mean_ns: weighted(self.mean_ns, other.mean_ns),
            stdev_ns: self.stdev_ns.max(other.stdev_ns),
            p50_ns: self.p50_ns.max(other.p50_ns),
            p75_ns: self.p75_ns.max(other.p75_ns),
            p90_ns: self.p90_ns.max(other.p90_ns),
            p95_ns: self.p95_ns.max(other.p95_ns),
            p99_ns: self.p99_ns.max(other.p99_ns),
            p999_ns: self.p999_ns.max(other.p999_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

/// A latency distribution.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Its percentiles.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// How many latencies at each value: pairs of nanoseconds, to three digits, and a count.
    pub counts: Vec<(u64, u64)>,
}

impl Latency {
    /// Of a histogram of nanoseconds; `None` if it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
        let percentiles = Percentiles::of(histogram)?;
        let counts = histogram
            .iter_recorded()
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect();
        Some(Latency {
            percentiles,
            counts,
        })
    }

    /// The histogram that it was made of.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = empty();
        for (value, count) in &self.counts {
            histogram.saturating_record_n(*value, *count);
        }
        histogram
    }
}

/// A histogram for latencies in nanoseconds, up to an hour.
pub fn empty() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, MAX, DIGITS) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("the bounds are constant: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_distribution_has_the_same_percentiles() {
        let mut histogram = empty();
        (1..=100_000_u64).for_each(|n| histogram.saturating_record(n * 37));
        let kept = Latency::of(&histogram).expect("not empty");
        let again = Percentiles::of(&kept.histogram()).expect("not empty");
        assert_eq!(again.count, 100_000);
        assert_eq!(again.p50_ns, kept.percentiles.p50_ns);
        assert_eq!(again.p999_ns, kept.percentiles.p999_ns);
        assert!(Latency::of(&empty()).is_none());
    }
}
