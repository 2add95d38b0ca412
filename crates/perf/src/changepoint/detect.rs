//! The search: split where the level changed most, again in both parts, then look at each place
//! anew with its neighbours known, and drop what does not hold (Taylor's backward elimination).
//!
//! A neighbour that is a value off blurs what is beside it, so segments are split from a lower
//! confidence on than counts in the end. But nothing counts unless the series as a whole has changed,
//! and the deeper a place lies, the more certain it must be: many segments are looked at, and all
//! their changes together are to be as certain as was asked for.

use super::bootstrap::{confidence, wander};
use super::random::Random;
use super::ranks::ranks;
use super::{Change, Options};

/// Fewer values are not searched.
const SHORTEST: usize = 5;
/// Values that make a level: one is an outlier.
const LEVEL: usize = 2;

/// Finds the places where the level of a series changed, by index. Values that are not finite are
/// passed over.
pub fn detect(values: &[f64], options: &Options) -> Vec<Change> {
    detect_at(values, |_| true, options)
}

/// The same with `allowed` saying at which indices a new level may begin: several values of one
/// release are not to be split.
pub fn detect_at(
    values: &[f64],
    allowed: impl Fn(usize) -> bool,
    options: &Options,
) -> Vec<Change> {
    let finite: Vec<usize> = (0..values.len())
        .filter(|index| values[*index].is_finite())
        .collect();
    let kept: Vec<f64> = finite.iter().map(|index| values[*index]).collect();
    let search = Search {
        values: match options.ranks {
            true => ranks(&kept),
            false => kept.clone(),
        },
        allowed: finite.iter().map(|index| allowed(*index)).collect(),
        options,
    };
    let places = search.run();
    let begins = |number: usize| places.get(number).map_or(kept.len(), |place| place.index);
    let mut level = mean(&kept[..begins(0)]);
    let mut changes = Vec::with_capacity(places.len());
    for (number, place) in places.iter().enumerate() {
        let before = level;
        level = mean(&kept[place.index..begins(number + 1)]);
        changes.push(Change {
            index: finite[place.index],
            confidence: place.confidence,
            before,
            after: level,
            depth: place.depth,
        });
    }
    changes
}

/// Cumulative sums of the deviations from the mean: one more than values, from 0 to 0. A value that
/// is not finite adds nothing.
pub fn cusum(values: &[f64]) -> Vec<f64> {
    let finite = values.iter().filter(|value| value.is_finite());
    let mean = finite.clone().sum::<f64>() / finite.count().max(1) as f64;
    let mut sums = Vec::with_capacity(values.len() + 1);
    let mut sum = 0.0;
    sums.push(sum);
    for value in values {
        if value.is_finite() {
            sum += value - mean;
        }
        sums.push(sum);
    }
    // Rounding leaves a rest that a chart would show as a level of its own.
    if let Some(last) = sums.last_mut() {
        *last = 0.0;
    }
    sums
}

/// The arithmetic mean; 0 of nothing.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A place that may be a change.
#[derive(Debug, Clone, Copy)]
struct Place {
    index: usize,
    confidence: f64,
    depth: u32,
    /// The values that the confidence is about.
    segment: (usize, usize),
}

struct Search<'a> {
    values: Vec<f64>,
    allowed: Vec<bool>,
    options: &'a Options,
}

impl Search<'_> {
    fn run(&self) -> Vec<Place> {
        let whole = (0, self.values.len());
        if self.examine(whole, self.required(1), 1).is_none() {
            return Vec::new();
        }
        let mut places = self.candidates();
        self.eliminate(&mut places);
        places
    }

    /// The confidence that a change needs: at first what was asked for; each of the two parts of a
    /// segment may err half as often as the segment. Two standard errors of a share of so many
    /// resamples are added, so that a change does not hang on the seed.
    fn required(&self, depth: u32) -> f64 {
        let resamples = self.options.resamples as f64;
        let error = (1.0 - self.options.confidence) / f64::powi(2.0, depth as i32 - 1);
        let wanted = 1.0 - error;
        let uncertain = 2.0 * (wanted * error / resamples).sqrt();
        (wanted + uncertain).min(resamples / (resamples + 1.0))
    }

    /// Confidence from which on a segment is split: it may err twice as often.
    fn candidate(&self) -> f64 {
        1.0 - 2.0 * (1.0 - self.options.confidence)
    }

    /// The change that a segment would have, if it has one with a confidence of at least `floor`.
    fn examine(&self, segment: (usize, usize), floor: f64, depth: u32) -> Option<Place> {
        let index = self.locate(segment)?;
        let confidence = self.confidence(segment, floor);
        (confidence >= floor).then_some(Place {
            index,
            confidence,
            depth,
            segment,
        })
    }

    fn confidence(&self, (from, to): (usize, usize), floor: f64) -> f64 {
        let mut random = Random::for_segment(self.options.seed, from, to);
        let values = &self.values[from..to];
        confidence(values, wander, self.options.resamples, floor, &mut random)
    }

    /// Where two levels describe a segment best: the least sum of squares around their means, which
    /// is the most likely place if the noise is normal. `None` if the segment cannot be split.
    fn locate(&self, (from, to): (usize, usize)) -> Option<usize> {
        let values = &self.values[from..to];
        if values.len() < SHORTEST {
            return None;
        }
        let (mean, length) = (mean(values), values.len() as f64);
        let (mut sum, mut best, mut place) = (0.0, 0.0, None);
        for (offset, value) in values.iter().enumerate() {
            let (before, after) = (offset as f64, length - offset as f64);
            // What the sum of squares loses by the split.
            let gain = sum * sum / (before * after);
            let levels = offset >= LEVEL && offset + LEVEL <= values.len();
            if levels && self.allowed[from + offset] && gain > best {
                (best, place) = (gain, Some(from + offset));
            }
            sum += value - mean;
        }
        place
    }

    /// Splits as long as there may be something to split; by index.
    fn candidates(&self) -> Vec<Place> {
        let mut places = Vec::new();
        let mut segments = vec![((0, self.values.len()), 1)];
        while let Some((segment, depth)) = segments.pop() {
            let Some(place) = self.examine(segment, self.candidate(), depth) else {
                continue;
            };
            segments.push(((segment.0, place.index), depth + 1));
            segments.push(((place.index, segment.1), depth + 1));
            places.push(place);
        }
        places.sort_by_key(|place| place.index);
        places
    }

    /// Looks at each place between its neighbours, moves it to where it is best there, and drops the
    /// least certain one until all are certain enough.
    fn eliminate(&self, places: &mut Vec<Place>) {
        loop {
            self.settle(places);
            let lacks = |place: &Place| place.confidence < self.required(place.depth);
            let least = (0..places.len())
                .filter(|number| lacks(&places[*number]))
                .min_by(|a, b| places[*a].confidence.total_cmp(&places[*b].confidence));
            let Some(least) = least else {
                return;
            };
            places.remove(least);
        }
    }

    /// Moves places until none moves any more. Each move lessens the sum of squares, so it ends;
    /// the limit is for what rounding could do.
    fn settle(&self, places: &mut [Place]) {
        for _ in 0..10 {
            let mut moved = false;
            for number in 0..places.len() {
                let from = number
                    .checked_sub(1)
                    .map_or(0, |before| places[before].index);
                let to = places
                    .get(number + 1)
                    .map_or(self.values.len(), |after| after.index);
                if places[number].segment == (from, to) {
                    continue;
                }
                let place = &mut places[number];
                place.segment = (from, to);
                let Some(index) = self.locate((from, to)) else {
                    place.confidence = 0.0;
                    continue;
                };
                place.confidence = self.confidence((from, to), self.required(place.depth));
                moved |= place.index != index;
                place.index = index;
            }
            if !moved {
                return;
            }
        }
    }
}
