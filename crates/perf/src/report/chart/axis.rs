//! Axes: which values they show, and where their ticks are.

use crate::number;

/// What a round number begins with.
const DIGITS: &[f64] = &[1.0, 2.0, 5.0];
/// So, too, on a logarithmic axis of less than [`FINE`] decades.
const FINE_DIGITS: &[f64] = &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
/// With fewer decades than this, three round numbers each are too few.
const FINE: f64 = 0.8;
/// With more decades than this, they are too many.
const COARSE: f64 = 2.1;
/// So many nines at most; more would be too short to read.
pub const NINES: f64 = 8.0;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal ratios are equally long; only positive values have a place.
    Log,
}

/// One axis of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// How values become places.
    pub scale: Scale,
    /// The value at its beginning.
    pub low: f64,
    /// The value at its end; more than `low`.
    pub high: f64,
    /// What is written along it, in order.
    pub ticks: Vec<Tick>,
}

/// A value that an axis names.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value.
    pub at: f64,
    /// Its text; empty for a line alone.
    pub label: String,
    /// Left out where there is little room.
    pub minor: bool,
}

impl Axis {
    /// From 0, or from the lowest value if that is negative, to a round value over the highest.
    pub fn linear(low: f64, high: f64, count: usize, label: fn(f64) -> String) -> Axis {
        Axis::linear_near(low.min(0.0), high.max(0.0), count, label)
    }

    /// Close around the values, which may be far from 0.
    pub fn linear_near(low: f64, high: f64, count: usize, label: fn(f64) -> String) -> Axis {
        let (low, high) = ordered(low, high);
        let step = round_up((high - low) / count.max(1) as f64, DIGITS);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        Axis {
            scale: Scale::Linear,
            low: first * step,
            high: last * step,
            ticks: steps(first, last, step, label),
        }
    }

    /// Seconds from 0: in steps that clocks have.
    pub fn time(seconds: f64) -> Axis {
        const STEPS: [f64; 14] = [
            1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0,
            7200.0,
        ];
        let high = if seconds > 0.0 && seconds.is_finite() {
            seconds
        } else {
            1.0
        };
        let fitting = STEPS.into_iter().find(|step| high / step <= 7.0);
        let step = match fitting {
            Some(step) if high > 3.0 => step,
            _ => round_up(high / 6.0, DIGITS),
        };
        let label = if high > 300.0 { minutes } else { seconds_label };
        Axis {
            scale: Scale::Linear,
            low: 0.0,
            high,
            ticks: steps(0.0, (high / step * 1.000_001).floor(), step, label),
        }
    }

    /// From a round value under the lowest to one over the highest: decades, or more of each if they
    /// are few. Values that are not positive do not count.
    pub fn log(low: f64, high: f64, label: fn(f64) -> String) -> Axis {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let (low, high) = match (positive(low), positive(high)) {
            (true, true) if low <= high => (low, high),
            (_, true) => (high, high),
            _ => (1.0, 10.0),
        };
        let decades = (high / low).log10();
        let digits = if decades < FINE { FINE_DIGITS } else { DIGITS };
        let (low, high) = (round_down(low, digits), round_up(high, digits));
        let high = if low < high {
            high
        } else {
            round_up(low * 1.2, digits)
        };
        let every = ((decades / 6.0).ceil() as i32).max(1);
        let mut ticks = Vec::new();
        for decade in low.log10().floor() as i32..=high.log10().ceil() as i32 {
            for digit in digits {
                let at = digit * 10_f64.powi(decade);
                let shown = match *digit == 1.0 {
                    true => decade.rem_euclid(every) == 0,
                    false => decades <= COARSE,
                };
                if at >= low * 0.999 && at <= high * 1.001 && shown {
                    ticks.push(Tick::new(at, label(at)));
                }
            }
        }
        Axis {
            scale: Scale::Log,
            low,
            high,
            ticks,
        }
    }

    /// Percentiles so that each further nine has the same length, as HdrHistogram plots them: the
    /// axis shows log10(1/(1-p)), up to that of the largest of `count` values.
    pub fn percentiles(count: u64) -> Axis {
        let high = (count.max(10) as f64).log10().min(NINES);
        // Where nines are short, 0 would run into 50.
        let zero = if high > 3.5 { "" } else { "0%" };
        let mut ticks = vec![
            Tick::new(0.0, zero.into()),
            Tick::new(nines(0.5), "50%".into()),
        ];
        for nine in 1..=high as usize {
            ticks.push(Tick {
                at: nine as f64,
                label: match nine {
                    1 => "90%".into(),
                    2 => "99%".into(),
                    more => format!("99.{}%", "9".repeat(more - 2)),
                },
                minor: high > 5.2 && nine > 2 && nine % 2 == 1,
            });
        }
        Axis {
            scale: Scale::Linear,
            low: 0.0,
            high,
            ticks,
        }
    }

    /// Places with names, each one unit wide; so many are named as there is room for.
    pub fn named(names: &[String]) -> Axis {
        let every = names.len().div_ceil(8).max(1);
        let ticks = names.iter().enumerate().step_by(every);
        Axis {
            scale: Scale::Linear,
            low: -0.5,
            high: names.len().max(1) as f64 - 0.5,
            ticks: ticks
                .map(|(index, name)| Tick {
                    at: index as f64,
                    label: shortened(name, 12),
                    minor: (index / every) % 2 == 1,
                })
                .collect(),
        }
    }

    /// Where a value is, 0 to 1 if it is within; none if it has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        place.is_finite().then_some(place)
    }

    /// The same values with only the first and the last label: for charts that are small.
    pub fn sparse(mut self) -> Axis {
        let last = self.ticks.len().saturating_sub(1);
        let mut index = 0;
        self.ticks.retain(|_| {
            index += 1;
            index == 1 || index == last + 1
        });
        self
    }
}

impl Tick {
    fn new(at: f64, label: String) -> Tick {
        Tick {
            at,
            label,
            minor: false,
        }
    }
}

/// How many nines a quantile has: 0.9 one, 0.99 two.
pub fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Finite, and not equal, so that there is something to divide by.
fn ordered(low: f64, high: f64) -> (f64, f64) {
    let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
    let (low, high) = (finite(low), finite(high));
    match low < high {
        true => (low, high),
        false if low == 0.0 => (0.0, 1.0),
        false => (low - low.abs() * 0.05, low + low.abs() * 0.05),
    }
}

/// The least of these digits times a power of ten that is no less.
fn round_up(value: f64, digits: &[f64]) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let least = value / decade * 0.999_999;
    let digit = digits.iter().find(|digit| **digit >= least);
    digit.unwrap_or(&10.0) * decade
}

/// The greatest that is no more.
fn round_down(value: f64, digits: &[f64]) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let most = value / decade * 1.000_001;
    let digit = digits.iter().rev().find(|digit| **digit <= most);
    digit.unwrap_or(&1.0) * decade
}

fn steps(first: f64, last: f64, step: f64, label: fn(f64) -> String) -> Vec<Tick> {
    let count = (last - first).round().clamp(0.0, 100.0) as u32;
    let at = |index: u32| (first + f64::from(index)) * step;
    (0..=count)
        .map(|index| Tick::new(at(index), label(at(index))))
        .collect()
}

/// Seconds as a tick names them.
pub fn seconds_label(seconds: f64) -> String {
    format!("{} s", number::trimmed(seconds))
}

fn minutes(seconds: f64) -> String {
    format!("{} min", number::trimmed(seconds / 60.0))
}

/// The beginning of a name that is too long, with a mark that there is more.
fn shortened(name: &str, longest: usize) -> String {
    match name.chars().count() > longest {
        true => name.chars().take(longest - 1).chain(['…']).collect(),
        false => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| &*tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::linear(3_000.0, 81_234.0, 4, number::compact);
        assert_eq!(labels(&axis), ["0", "50 k", "100 k"]);
        let axis = Axis::linear(0.0, 7.2, 4, number::compact);
        assert_eq!(labels(&axis), ["0", "2", "4", "6", "8"]);
        let axis = Axis::linear(-12.0, 30.0, 5, number::compact);
        assert_eq!(labels(&axis), ["−20", "−10", "0", "10", "20", "30"]);
        let axis = Axis::linear_near(8_100.0, 8_900.0, 4, number::compact);
        assert_eq!((axis.low, axis.high), (8_000.0, 9_000.0));
    }

    #[test]
    fn no_values_and_equal_values_have_an_axis() {
        for (low, high) in [
            (0.0, 0.0),
            (f64::INFINITY, f64::NEG_INFINITY),
            (f64::NAN, f64::NAN),
        ] {
            let axis = Axis::linear(low, high, 4, number::compact);
            assert!(axis.low < axis.high && axis.ticks.len() >= 2, "{axis:?}");
        }
        let axis = Axis::linear_near(500.0, 500.0, 4, number::compact);
        assert!(axis.low < 500.0 && 500.0 < axis.high);
        assert!(Axis::time(0.0).high > 0.0);
        assert!(Axis::named(&[]).low < Axis::named(&[]).high);
    }

    #[test]
    fn log_ticks_are_decades_or_parts_of_them() {
        let axis = Axis::log(130e3, 48e6, number::compact_duration);
        assert_eq!((axis.low, axis.high), (100e3, 50e6));
        assert_eq!(labels(&axis), ["100 µs", "1 ms", "10 ms"]);
        let axis = Axis::log(1.1e6, 4e6, number::compact_duration);
        assert_eq!(labels(&axis), ["1 ms", "1.5 ms", "2 ms", "3 ms", "4 ms"]);
        let axis = Axis::log(1.1e6, 14e6, number::compact_duration);
        assert_eq!(labels(&axis), ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms"]);
        assert_eq!(axis.place(1e6), Some(0.0));
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(-1.0), None);
        for (low, high) in [
            (5.0, 5.0),
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (f64::INFINITY, -1.0),
        ] {
            let axis = Axis::log(low, high, number::compact);
            assert!(
                axis.low > 0.0 && axis.low < axis.high && !axis.ticks.is_empty(),
                "{axis:?}"
            );
        }
    }

    #[test]
    fn each_nine_is_as_long_as_the_last() {
        let axis = Axis::percentiles(100_000);
        assert_eq!(
            labels(&axis),
            ["", "50%", "90%", "99%", "99.9%", "99.99%", "99.999%"]
        );
        let place = |quantile| axis.place(nines(quantile)).expect("finite");
        let nine = place(0.99) - place(0.9);
        assert!((place(0.999) - place(0.99) - nine).abs() < 1e-9);
        assert!((nine - 0.2).abs() < 1e-9);
        assert_eq!(axis.place(nines(1.0)), None);
    }

    #[test]
    fn time_has_steps_of_clocks() {
        assert_eq!(
            labels(&Axis::time(30.0)),
            ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]
        );
        assert_eq!(labels(&Axis::time(601.0))[1], "2 min");
        assert_eq!(labels(&Axis::time(1.0)).first(), Some(&"0 s"));
    }

    #[test]
    fn only_some_of_many_names_are_written() {
        let names: Vec<String> = (0..100).map(|n| format!("commit-{n:020}")).collect();
        let axis = Axis::named(&names);
        assert!(axis.ticks.len() <= 8);
        assert_eq!(axis.ticks[0].label, "commit-0000…");
    }
}
