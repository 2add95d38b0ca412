//! Messages that wait for a consumer, in order of sequence numbers.

use std::collections::VecDeque;

use store::Message;

/// A message's place in its queue. Never reused; order in the queue is the order of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QueueSeq(pub u64);

/// One waiting message.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub message: Message,
    pub seq: QueueSeq,
    /// It was out for delivery before.
    pub redelivered: bool,
}

/// An empty queue keeps room for this many messages; a backlog's worth is given back.
pub(super) const MAX_IDLE_CAPACITY: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Sorted by `seq`.
    pub entries: VecDeque<Entry>,
    next_seq: u64,
}

impl Ready {
    pub fn append(&mut self, messages: impl Iterator<Item = Message>) {
        for message in messages {
            let seq = QueueSeq(self.next_seq);
            self.next_seq += 1;
            self.entries.push_back(Entry {
                message,
                seq,
                redelivered: false,
            });
        }
    }

    /// Takes the first message.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front();
        if self.entries.is_empty() && self.entries.capacity() > MAX_IDLE_CAPACITY {
            self.entries = VecDeque::new();
        }
        entry
    }

    /// Puts messages back where they were. Costs what lies before the last of them, not the
    /// length of the queue.
    pub fn put_back(&mut self, mut returned: Vec<Entry>) {
        returned.sort_unstable_by_key(|entry| entry.seq);
        let Some(last) = returned.last() else { return };
        let before_last = self.entries.partition_point(|entry| entry.seq < last.seq);
        let mut overtaken: Vec<Entry> = self.entries.drain(..before_last).collect();
        // Merge from the back, so that each entry is pushed to the front once.
        while let Some(entry) = returned.pop() {
            while let Some(other) = overtaken.pop_if(|other| other.seq > entry.seq) {
                self.entries.push_front(other);
            }
            self.entries.push_front(entry);
        }
        while let Some(entry) = overtaken.pop() {
            self.entries.push_front(entry);
        }
    }
}
