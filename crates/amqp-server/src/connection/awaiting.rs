//! What a connection says once the log has reached some position: confirms, and the answers to
//! commits and declarations. In the order in which it was put in: positions only grow.

use std::collections::VecDeque;

use broker::{LogPositions, Logged};

/// Things to say, in order.
#[derive(Debug, Default)]
pub(crate) struct Awaiting {
    entries: VecDeque<Entry>,
    replies: usize,
    /// What the connection's task will be woken for.
    pub registered: Option<Logged>,
}

#[derive(Debug)]
struct Entry {
    channel: u16,
    positions: LogPositions,
    what: What,
}

/// What to say on a channel.
#[derive(Debug)]
pub(crate) enum What {
    /// Everything that was published up to this one is confirmed.
    Confirmed(u64),
    /// An encoded frame.
    Reply(Vec<u8>),
}

impl Awaiting {
    pub fn push_confirm(&mut self, channel: u16, positions: LogPositions, up_to: u64) {
        self.entries.push_back(Entry {
            channel,
            positions,
            what: What::Confirmed(up_to),
        });
    }

    pub fn push_reply(&mut self, channel: u16, positions: LogPositions, reply: Vec<u8>) {
        self.replies += 1;
        self.entries.push_back(Entry {
            channel,
            positions,
            what: What::Reply(reply),
        });
    }

    /// True while the channel's last reply has not been sent.
    #[inline]
    pub fn holds(&self, channel: u16) -> bool {
        self.replies > 0
            && self
                .entries
                .iter()
                .any(|entry| entry.channel == channel && matches!(entry.what, What::Reply(_)))
    }

    /// The positions that the first entry waits for.
    pub fn next(&self) -> Option<LogPositions> {
        self.entries.front().map(|entry| entry.positions)
    }

    /// Takes the first entry out if its positions are reached.
    pub fn take(&mut self, reached: impl Fn(&LogPositions) -> bool) -> Option<(u16, What)> {
        if !self
            .entries
            .front()
            .is_some_and(|entry| reached(&entry.positions))
        {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.replies -= usize::from(matches!(entry.what, What::Reply(_)));
        Some((entry.channel, entry.what))
    }

    /// The channel has ended.
    pub fn forget(&mut self, channel: u16) {
        self.entries.retain(|entry| entry.channel != channel);
        let replies = self.entries.iter();
        self.replies = replies
            .filter(|entry| matches!(entry.what, What::Reply(_)))
            .count();
    }
}
