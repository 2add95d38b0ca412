//! What is known of each message of a queue: its body begins with its number, so that whatever
//! comes out can be told apart, and what is missing counted.

use crate::clock;
use crate::result::{Checks, ConsumerChecks};
use crate::sqs::Message;

/// Digits of a number, which every body begins with.
pub(super) const SHORTEST_BODY: u32 = 10;

/// The messages of one queue.
pub(super) struct Ledger {
    entries: Vec<Entry>,
    next: u32,
    body_size: usize,
    accepted_and_missing: u32,
    checks: Checks,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    sent_at: i64,
    accepted: bool,
    received: bool,
}

impl Ledger {
    /// One for so many messages with bodies of so many bytes.
    pub(super) fn new(messages: u32, body_size: u32) -> Ledger {
        Ledger {
            entries: vec![Entry::default(); messages as usize],
            next: 0,
            body_size: body_size as usize,
            accepted_and_missing: 0,
            checks: Checks::default(),
        }
    }

    /// Takes the next numbers to send, up to `count`; none when all have been taken.
    pub(super) fn take(&mut self, count: u8) -> std::ops::Range<u32> {
        let begin = self.next;
        self.next = (begin + u32::from(count)).min(self.entries.len() as u32);
        let now = clock::nanos();
        for number in begin..self.next {
            self.entries[number as usize].sent_at = now;
        }
        begin..self.next
    }

    /// The body of a message.
    pub(super) fn body(&self, number: u32) -> String {
        let mut body = format!("{number:010}");
        body.extend(std::iter::repeat_n('x', self.body_size - body.len()));
        body
    }

    /// The service took a message.
    pub(super) fn accepted(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        entry.accepted = true;
        // It may have come out before the answer arrived that it is in.
        self.accepted_and_missing += u32::from(!entry.received);
    }

    /// A message came out. Returns the nanoseconds since it was sent, if it is new.
    pub(super) fn arrived(&mut self, message: &Message) -> Option<u64> {
        let number = message.body.get(..SHORTEST_BODY as usize)?.parse().ok();
        let known =
            number.filter(|number| *number < self.next && message.body == self.body(*number));
        let Some(number) = known else {
            self.checks.unchecked += 1;
            return None;
        };
        self.checks.checked += 1;
        let entry = &mut self.entries[number as usize];
        if entry.received {
            match message.is_redelivered() {
                true => self.checks.redelivered += 1,
                false => self.checks.duplicates += 1,
            }
            return None;
        }
        entry.received = true;
        self.accepted_and_missing -= u32::from(entry.accepted);
        u64::try_from(clock::nanos() - entry.sent_at).ok()
    }

    /// Whether all that the service took has come out.
    pub(super) fn is_complete(&self) -> bool {
        self.accepted_and_missing == 0
    }

    /// Adds what was found out to the checks of all queues.
    pub(super) fn add_to(&self, checks: &mut Checks, queue: &str) {
        let gaps = u64::from(self.accepted_and_missing);
        checks.checked += self.checks.checked;
        checks.unchecked += self.checks.unchecked;
        checks.duplicates += self.checks.duplicates;
        checks.redelivered += self.checks.redelivered;
        checks.gaps += gaps;
        if gaps > 0 || self.checks.duplicates > 0 {
            checks.by_consumer.push(ConsumerChecks {
                queue: queue.to_owned(),
                gaps,
                duplicates: self.checks.duplicates,
                ..ConsumerChecks::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: String, receive_count: u32) -> Message {
        Message {
            body,
            receive_count: Some(receive_count),
            ..Message::default()
        }
    }

    fn checks(ledger: &Ledger) -> Checks {
        let mut checks = Checks::default();
        ledger.add_to(&mut checks, "q");
        checks
    }

    #[test]
    fn numbers_are_taken_once_each() {
        let mut ledger = Ledger::new(25, 10);
        let taken: Vec<u32> = (0..4).flat_map(|_| ledger.take(10)).collect();
        assert_eq!(taken, (0..25).collect::<Vec<u32>>());
        assert_eq!(ledger.body(7), "0000000007");
    }

    #[test]
    fn what_was_taken_and_never_came_is_a_gap() {
        let mut ledger = Ledger::new(4, 12);
        ledger.take(4);
        (0..3).for_each(|number| ledger.accepted(number));
        assert!(ledger.arrived(&message(ledger.body(0), 1)).is_some());
        // Its answer was lost, it was not.
        assert!(ledger.arrived(&message(ledger.body(3), 1)).is_some());
        assert!(!ledger.is_complete());
        let found = checks(&ledger);
        assert_eq!((found.gaps, found.checked), (2, 2));
        assert_eq!(found.by_consumer.len(), 1);
    }

    #[test]
    fn a_message_may_come_before_the_answer_to_its_call() {
        let mut ledger = Ledger::new(1, 10);
        ledger.take(1);
        assert!(ledger.arrived(&message(ledger.body(0), 1)).is_some());
        ledger.accepted(0);
        assert!(ledger.is_complete() && checks(&ledger).passed());
    }

    #[test]
    fn a_second_time_is_a_duplicate_unless_the_service_says_so() {
        let mut ledger = Ledger::new(1, 10);
        ledger.take(1);
        ledger.arrived(&message(ledger.body(0), 1));
        ledger.arrived(&message(ledger.body(0), 2));
        ledger.arrived(&message(ledger.body(0), 1));
        let found = checks(&ledger);
        assert_eq!((found.redelivered, found.duplicates), (1, 1));
    }

    #[test]
    fn a_body_that_was_never_sent_is_no_message_of_ours() {
        let mut ledger = Ledger::new(2, 12);
        ledger.take(1);
        for body in [
            "0000000000xy",
            "0000000001xx",
            "9999999999xx",
            "hello world",
            "ü0000000000",
        ] {
            assert_eq!(ledger.arrived(&message(body.into(), 1)), None);
        }
        assert_eq!(checks(&ledger).unchecked, 5);
    }
}
