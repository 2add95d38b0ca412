//! When a producer's messages are due.
//!
//! The schedule does not wait for the broker: a message that could not be sent in time keeps the
//! time at which it was due, and its latency counts from there. Otherwise a broker that stands still
//! for a second would delay one message for a second, and all those that were not sent meanwhile
//! would not show (coordinated omission).

use std::time::Duration;

use crate::settings::Rate;

/// Above one message per tick, messages are due in bunches, a tick apart: waking up for each costs
/// more than it tells.
const TICK: i64 = 100_000;

/// Moments, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Messages per second, and for how many nanoseconds; over and over.
    segments: Vec<(f64, f64)>,
    segment: usize,
    /// Where the current segment ends.
    segment_end: f64,
    /// When a message of the current segment was due, and how many have been since; from `origin`.
    anchor: f64,
    since: u64,
    origin: i64,
}

impl Schedule {
    /// One that begins at `origin`; `None` for a producer that need not wait.
    pub fn new(rate: &Rate, origin: i64) -> Option<Schedule> {
        let segments = match rate {
            Rate::Unlimited => return None,
            Rate::Fixed(rate) => vec![(*rate, f64::INFINITY)],
            Rate::Every(interval) => vec![(1.0 / interval.as_secs_f64(), f64::INFINITY)],
            Rate::Variable(segments) => segments
                .iter()
                .map(|(rate, time)| (*rate, nanos(*time)))
                .collect(),
        };
        let segment_end = segments.first()?.1;
        let mut schedule = Schedule {
            segments,
            segment: 0,
            segment_end,
            anchor: 0.0,
            since: 0,
            origin,
        };
        schedule.skip_pauses();
        Some(schedule)
    }

    /// When the next message is due.
    pub fn next(&self) -> i64 {
        let exact = self.exact();
        if exact.is_infinite() {
            return i64::MAX;
        }
        // Upwards, so that rounding makes no message early.
        let exact = exact.ceil() as i64;
        let bunched = self.segments[self.segment].0 * (TICK as f64) > 1e9;
        let due = match bunched {
            true => (exact + TICK - 1) / TICK * TICK,
            false => exact,
        };
        self.origin.saturating_add(due)
    }

    /// The same, from `origin`. Counted, not added up: additions would drift.
    fn exact(&self) -> f64 {
        match self.since {
            0 => self.anchor,
            since => self.anchor + since as f64 * 1e9 / self.segments[self.segment].0,
        }
    }

    /// Goes on to the message after that.
    pub fn advance(&mut self) {
        let before = self.exact();
        self.since += 1;
        if self.exact() <= self.segment_end {
            return;
        }
        // What the segment leaves of a message has to pass in the next ones.
        let mut left = 1.0 - (self.segment_end - before) * self.segments[self.segment].0 / 1e9;
        loop {
            (self.anchor, self.since) = (self.segment_end, 0);
            self.turn();
            if !self.skip_pauses() {
                return;
            }
            let (rate, _) = self.segments[self.segment];
            if self.anchor + left * 1e9 / rate <= self.segment_end {
                self.anchor += left * 1e9 / rate;
                return;
            }
            left -= (self.segment_end - self.anchor) * rate / 1e9;
        }
    }

    /// On to a segment with a rate; false where there is none.
    fn skip_pauses(&mut self) -> bool {
        for _ in 0..=self.segments.len() {
            if self.segments[self.segment].0 > 0.0 {
                return true;
            }
            self.anchor = self.segment_end;
            if self.anchor.is_infinite() {
                return false;
            }
            self.turn();
        }
        self.anchor = f64::INFINITY;
        false
    }

    fn turn(&mut self) {
        self.segment = (self.segment + 1) % self.segments.len();
        self.segment_end += self.segments[self.segment].1;
    }
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rate: Rate, count: usize) -> Vec<i64> {
        let mut schedule = Schedule::new(&rate, 0).expect("a rate");
        (0..count)
            .map(|_| {
                let due = schedule.next();
                schedule.advance();
                due / 1_000
            })
            .collect()
    }

    #[test]
    fn a_fixed_rate_does_not_drift() {
        assert_eq!(times(Rate::Fixed(1_000.0), 4), [0, 1_000, 2_000, 3_000]);
        assert_eq!(times(Rate::Fixed(3.0), 300_001)[300_000], 100_000_000_000);
        assert_eq!(
            times(Rate::Every(Duration::from_millis(2_500)), 3),
            [0, 2_500_000, 5_000_000]
        );
    }

    #[test]
    fn high_rates_come_in_bunches() {
        let times = times(Rate::Fixed(50_000.0), 12);
        assert_eq!(times[1..6], [100; 5]);
        assert_eq!(times[6..11], [200; 5]);
    }

    #[test]
    fn variable_rates_turn_and_pause() {
        let second = Duration::from_secs(1);
        let rate = Rate::Variable(vec![(2.0, second), (0.0, second), (4.0, second)]);
        assert_eq!(
            times(rate, 9),
            [
                0, 500_000, 1_000_000, 2_250_000, 2_500_000, 2_750_000, 3_000_000, 3_500_000,
                4_000_000
            ]
        );
        let never = Schedule::new(&Rate::Variable(vec![(0.0, second)]), 0).expect("a rate");
        assert_eq!(never.next(), i64::MAX);
        let none = Schedule::new(&Rate::Fixed(0.0), 0).expect("a rate");
        assert_eq!(none.next(), i64::MAX);
    }
}
