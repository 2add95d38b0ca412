//! Frames of channels that wait for the log: what comes after a commit is done after it, while other
//! channels go on.

use ahash::HashMap;

use super::{Connection, MAX_HELD, MAX_UNWRITTEN};

/// Whole frames, by channel, in order.
#[derive(Debug, Default)]
pub(super) struct Held {
    frames: HashMap<u16, Vec<u8>>,
    bytes: usize,
}

impl Held {
    fn take(&mut self, channel: u16) -> Option<Vec<u8>> {
        let frames = self.frames.remove(&channel)?;
        self.bytes -= frames.len();
        Some(frames)
    }

    fn put_back(&mut self, channel: u16, mut first: Vec<u8>) {
        if !first.is_empty() {
            let later = self.take(channel).unwrap_or_default();
            first.extend(later);
            self.bytes += first.len();
            self.frames.insert(channel, first);
        }
    }
}

impl Connection {
    /// True if frames of that channel must wait.
    #[inline]
    pub(super) fn is_held(&self, channel: u16) -> bool {
        self.core.awaiting.holds(channel)
            || (self.held.bytes > 0 && self.held.frames.contains_key(&channel))
    }

    /// Keeps a frame for later; false if there are too many already.
    pub(super) fn hold(&mut self, channel: u16, frame: &[u8]) -> bool {
        if self.held.bytes + frame.len() > MAX_HELD {
            return false;
        }
        self.held.bytes += frame.len();
        let frames = self.held.frames.entry(channel).or_default();
        frames.extend_from_slice(frame);
        true
    }

    /// Acts on what was kept for channels that need not wait any longer; true if there was any.
    pub(super) fn act_on_held(&mut self) -> bool {
        if self.held.bytes == 0 || self.unwritten() > MAX_UNWRITTEN {
            return false;
        }
        let free = self.held.frames.keys().copied();
        let free: Vec<u16> = free
            .filter(|channel| !self.core.awaiting.holds(*channel))
            .collect();
        let held_back = self.held_back;
        for channel in &free {
            let Some(frames) = self.held.take(*channel) else {
                continue;
            };
            match self.frames(&frames) {
                // The output is full: the rest waits for room, in front of what was kept since.
                Ok(consumed) => self.held.put_back(*channel, frames[consumed..].to_vec()),
                Err(exception) => self.close(exception),
            }
        }
        self.held_back = held_back;
        self.finish_batch();
        !free.is_empty()
    }
}
