//! `x-single-active-consumer`: one consumer gets messages, and the others wait in line.
//!
//! In a quorum queue the active one gives way to a newcomer of higher priority, as in RabbitMQ 4: it
//! gets nothing more, and once it has settled what it has, its successor begins.

use std::collections::VecDeque;

use super::consumers::ConsumerId;

#[derive(Debug)]
pub(super) struct Line {
    /// The active one first; the others as they came.
    places: VecDeque<(ConsumerId, i64)>,
    gives_way: bool,
    /// The active one only finishes what it has.
    finishing: bool,
}

impl Line {
    pub fn new(gives_way: bool) -> Self {
        Line {
            places: VecDeque::new(),
            gives_way,
            finishing: false,
        }
    }

    /// Whose turn it is.
    pub fn first(&self) -> Option<ConsumerId> {
        self.places.front().map(|(id, _)| *id)
    }

    /// True if that one may get messages.
    pub fn is_active(&self, id: ConsumerId) -> bool {
        self.first() == Some(id) && !self.finishing
    }

    /// True if that one has nothing to do but to finish.
    pub fn is_finishing(&self, id: ConsumerId) -> bool {
        self.finishing && self.first() == Some(id)
    }

    /// A newcomer. True if the active one, which had been until now, gives way to it.
    pub fn join(&mut self, id: ConsumerId, priority: i64) -> bool {
        self.places.push_back((id, priority));
        let before = self.finishing;
        self.finishing |= self.gives_way && self.is_outranked();
        self.finishing && !before
    }

    /// One has left; true if whoever is first has to be chosen, or may go on.
    pub fn leave(&mut self, id: ConsumerId) -> bool {
        let was_first = self.first() == Some(id);
        self.places.retain(|(other, _)| *other != id);
        if was_first {
            return true;
        }
        let stays = self.finishing && !self.is_outranked();
        self.finishing &= !stays;
        stays
    }

    /// Of those in line the one with the highest priority is next, and of several the one that has
    /// waited longest.
    pub fn choose(&mut self) -> Option<ConsumerId> {
        self.finishing = false;
        let highest = self.places.iter().map(|(_, priority)| *priority).max()?;
        let at = self.places.iter().position(|(_, p)| *p == highest)?;
        let next = self.places.remove(at)?;
        self.places.push_front(next);
        Some(next.0)
    }

    fn is_outranked(&self) -> bool {
        let first = self.places.front().map(|(_, priority)| *priority);
        self.places
            .iter()
            .any(|(_, priority)| Some(*priority) > first)
    }
}
