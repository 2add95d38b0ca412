//! Where a run has warmed up: connections are open, caches and queues have filled, the rate is what
//! it will be.

use super::{Options, detect};

/// Levels that differ by less are one: what is certain need not matter.
const TOLERANCE: f64 = 0.1;
/// Fewer values are no steady state.
const SHORTEST: usize = 5;
/// Nor is less than this share of the series.
const SHARE: f64 = 1.0 / 3.0;
/// So much of what follows must keep the level.
const KEEPS: f64 = 2.0 / 3.0;
/// Standard deviations from which on a first value belongs to the warm-up.
const OUTLYING: f64 = 3.0;

/// The index at which the steady state of a series of rates begins: the first level that two thirds
/// of the rest of the series keep, within a tenth, if that rest is a third of the series or more. So
/// a stall in the middle, or a lower level in the last seconds, is part of the steady state and not
/// hidden as a warm-up before it.
///
/// `None` if there is none: the series is too short, or rises all the time. Regular ups and downs,
/// as those of a variable rate, are a steady state of their own.
pub fn steady_from(values: &[f64]) -> Option<usize> {
    // Stalls and bursts are common in rates: ranks keep them from hiding the warm-up.
    let options = Options {
        ranks: true,
        ..Options::default()
    };
    let changes = detect(values, &options);
    let begins = std::iter::once(0).chain(changes.iter().map(|change| change.index));
    let ends = begins.clone().skip(1).chain([values.len()]);
    let segments: Vec<(usize, usize)> = begins.zip(ends).collect();
    let least_rest = SHORTEST.max((values.len() as f64 * SHARE).ceil() as usize);
    for (number, (from, _)) in segments.iter().enumerate() {
        if values.len() - from < least_rest {
            return None;
        }
        let level = median(&values[*from..])?;
        let near = |(from, to): (usize, usize)| {
            median(&values[from..to]).is_some_and(|part| is_near(part, level))
        };
        let keep = segments[number..].iter().filter(|segment| near(**segment));
        let kept: usize = keep.map(|(from, to)| to - from).sum();
        if near(segments[number]) && kept as f64 >= KEEPS * (values.len() - from) as f64 {
            let last = values.len() - least_rest;
            return Some(refine(values, *from, level, last));
        }
    }
    None
}

/// Moves the beginning, up to `last`, to the first value that is of the level. One or two values are
/// no level of their own to the search for changes, but nearly each run has a first second that
/// holds the connecting; and ranks put a change a value or two off.
fn refine(values: &[f64], from: usize, level: f64, last: usize) -> usize {
    let before = values[..from].iter().rev();
    let from = from - before.take_while(|value| is_near(**value, level)).count();
    let distances = values[from..].iter().map(|value| (value - level).abs());
    // The median distance of normal noise is 0.6745 standard deviations.
    let deviation = median(&distances.collect::<Vec<f64>>()).unwrap_or(0.0) / 0.6745;
    let is_off =
        |value: f64| !is_near(value, level) && (value - level).abs() > OUTLYING * deviation;
    (from..last)
        .find(|index| !is_off(values[*index]))
        .unwrap_or(last)
}

fn is_near(value: f64, level: f64) -> bool {
    (value - level).abs() <= TOLERANCE * level.abs()
}

/// The middle value of those that are finite; `None` of nothing.
fn median(values: &[f64]) -> Option<f64> {
    let mut finite: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    finite.sort_by(f64::total_cmp);
    let upper = *finite.get(finite.len() / 2)?;
    let lower = finite[(finite.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Noise;
    use super::*;

    /// Levels and how many values each has, with noise of 3 % of 1,000.
    fn series(seed: u64, levels: &[(f64, usize)]) -> Vec<f64> {
        let mut noise = Noise::new(seed);
        let each = levels
            .iter()
            .flat_map(|(level, count)| vec![*level; *count]);
        each.map(|level| level + 30.0 * noise.normal()).collect()
    }

    #[test]
    fn a_warm_up_is_passed_over() {
        let exact = (0..50).filter(|seed| {
            let values = series(*seed, &[(300.0, 2), (700.0, 2), (1_000.0, 56)]);
            steady_from(&values) == Some(4)
        });
        assert!(exact.count() >= 49);
    }

    #[test]
    fn one_slow_first_second_is_a_warm_up() {
        let values = series(1, &[(400.0, 1), (1_000.0, 29)]);
        assert_eq!(steady_from(&values), Some(1));
    }

    #[test]
    fn a_rise_before_the_level_is_passed_over() {
        let rise: Vec<(f64, usize)> = (1..10).map(|n| (f64::from(n) * 100.0, 1)).collect();
        for seed in 0..20 {
            let values = series(seed, &[rise.as_slice(), &[(1_000.0, 40)]].concat());
            let from = steady_from(&values);
            assert!(
                from.is_some_and(|from| (7..=10).contains(&from)),
                "{from:?}"
            );
        }
    }

    #[test]
    fn without_a_warm_up_all_of_it_is_steady() {
        for seed in 0..20 {
            assert_eq!(steady_from(&series(seed, &[(1_000.0, 60)])), Some(0));
        }
        assert_eq!(steady_from(&[5.0; 30]), Some(0));
        assert_eq!(steady_from(&[0.0; 30]), Some(0));
    }

    #[test]
    fn a_stall_or_a_slow_end_is_no_warm_up() {
        let stalled = series(2, &[(1_000.0, 25), (100.0, 5), (1_000.0, 30)]);
        assert_eq!(steady_from(&stalled), Some(0));
        let slow_end = series(3, &[(500.0, 5), (1_000.0, 45), (700.0, 10)]);
        assert_eq!(steady_from(&slow_end), Some(5));
    }

    #[test]
    fn ups_and_downs_that_come_again_are_steady() {
        let waves: Vec<(f64, usize)> = (0..6).flat_map(|_| [(1_000.0, 10), (500.0, 10)]).collect();
        assert_eq!(steady_from(&series(6, &waves)), Some(0));
    }

    #[test]
    fn a_lasting_new_level_is_the_steady_state() {
        let values = series(4, &[(1_000.0, 25), (700.0, 35)]);
        assert_eq!(steady_from(&values), Some(25));
    }

    #[test]
    fn what_rises_all_the_time_has_no_steady_state() {
        let rising: Vec<(f64, usize)> = (1..=60).map(|n| (f64::from(n) * 50.0, 1)).collect();
        assert_eq!(steady_from(&series(5, &rising)), None);
        assert_eq!(steady_from(&[1_000.0; 4]), None);
        assert_eq!(steady_from(&[]), None);
    }
}
