//! How sure is it that a level changed at all: what cumulative sums do in the order in which the
//! values came, against what they do in random orders.
//!
//! If nothing changed, each order of the values is as likely as any other, so that the share of
//! orders that wander less is evenly spread between 0 and 1: a confidence of 95 % is reached by 5 %
//! of stationary series, of any length and any distribution.

use super::random::Random;

/// What the largest distance of a CUSUM from zero exceeds in 5 % of long stationary series, in
/// standard deviations times the square root of the length (Kolmogorov).
const DISTANCE: f64 = 1.358;
/// The same for its range, from the lowest to the highest point (Kuiper).
const RANGE: f64 = 1.747;

/// How far cumulative sums of deviations from the mean wander: their range or their distance from
/// zero, whichever is more unusual.
///
/// Taylor takes the range alone. It does not tell a series from one that begins elsewhere and goes
/// round, so that few values never suffice: of the 70 orders of four low and four high ones, 8 have
/// as wide a range as `llllhhhh`. The distance from zero does tell them apart, but sees only half of
/// a change that is taken back later. Each is worth a look, and both together are one test.
pub(super) fn wander(values: &[f64], mean: f64) -> f64 {
    let (low, high) = extremes(values, mean);
    ((high - low) / RANGE).max(high.max(-low) / DISTANCE)
}

/// The lowest and the highest of the cumulative sums, of which the first is 0.
pub(super) fn extremes(values: &[f64], mean: f64) -> (f64, f64) {
    let (mut sum, mut low, mut high) = (0.0, 0.0_f64, 0.0_f64);
    for value in values {
        sum += value - mean;
        low = low.min(sum);
        high = high.max(sum);
    }
    (low, high)
}

/// The share of `resamples` random orders of `values` for which `statistic`, given the order and the
/// mean, is smaller than for the order that they are in. That order counts as one more, so that the
/// share is never 1. Below `floor` it is not exact: what misses it need not be known better.
pub(super) fn confidence(
    values: &[f64],
    statistic: impl Fn(&[f64], f64) -> f64,
    resamples: usize,
    floor: f64,
    random: &mut Random,
) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    // Sums in another order differ in their last digits.
    let observed = statistic(values, mean) * (1.0 - 1e-9);
    let needed = floor * (resamples + 1) as f64 - 1e-6;
    let mut order = values.to_vec();
    let mut smaller = 0;
    for drawn in 0..resamples {
        if ((smaller + resamples - drawn) as f64) < needed {
            return smaller as f64 / (drawn + 1) as f64;
        }
        random.shuffle(&mut order);
        smaller += usize::from(statistic(&order, mean) < observed);
    }
    smaller as f64 / (resamples + 1) as f64
}
