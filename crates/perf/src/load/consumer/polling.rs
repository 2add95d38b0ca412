//! `--polling`: one basic.get after the other, over a consumer's queues in turn.

use std::time::Duration;

/// Where the polling of a channel is.
#[derive(Debug)]
pub struct Polling {
    pause: i64,
    /// Index of the queue that is asked next, or was asked last while an answer is awaited.
    at: usize,
    asked: bool,
    /// When to ask next; none before the start.
    next: Option<i64>,
    count: usize,
}

impl Polling {
    /// With that pause between two questions.
    pub fn new(pause: Duration) -> Polling {
        Polling {
            pause: pause.as_nanos() as i64,
            at: 0,
            asked: false,
            next: None,
            count: 1,
        }
    }

    /// From now on.
    pub fn start(&mut self, now: i64) {
        self.next = Some(now);
    }

    /// Index of the queue to ask, of `count`, if it is time.
    pub fn ask(&mut self, now: i64, count: usize) -> Option<usize> {
        if self.asked || count == 0 || self.next.is_none_or(|next| now < next) {
            return None;
        }
        self.asked = true;
        self.count = count;
        Some(self.at)
    }

    /// An answer has come; returns which queue it is of.
    pub fn answered(&mut self, now: i64) -> usize {
        let queue = self.at;
        self.asked = false;
        self.next = Some(now + self.pause);
        self.at = (self.at + 1) % self.count;
        queue
    }

    /// When to ask next, unless an answer is awaited.
    pub fn next(&self) -> Option<i64> {
        self.next.filter(|_| !self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_asked_in_turn_and_after_a_pause() {
        let mut polling = Polling::new(Duration::from_nanos(10));
        assert_eq!(polling.ask(5, 2), None);
        polling.start(5);
        assert_eq!(polling.ask(5, 2), Some(0));
        assert_eq!((polling.ask(6, 2), polling.next()), (None, None));
        assert_eq!(polling.answered(7), 0);
        assert_eq!(polling.next(), Some(17));
        assert_eq!(polling.ask(16, 2), None);
        assert_eq!(polling.ask(17, 2), Some(1));
        assert_eq!(polling.answered(18), 1);
        assert_eq!(polling.ask(28, 2), Some(0));
    }
}
