//! Which channel numbers of a connection are open.

use crate::Error;

/// Numbers from 1 to `max`. A number is free again once its channel is closed on both sides.
pub(crate) struct Channels {
    /// Indexed by number; 0 is the connection itself.
    open: Vec<bool>,
    /// No lower number is free.
    lowest: usize,
    max: u16,
}

impl Channels {
    pub(crate) fn new(max: u16) -> Self {
        Channels {
            open: vec![true],
            lowest: 1,
            max,
        }
    }

    /// Takes the lowest free number.
    pub(crate) fn allocate(&mut self) -> Result<u16, Error> {
        while self.open.get(self.lowest) == Some(&true) {
            self.lowest += 1;
        }
        match u16::try_from(self.lowest) {
            Ok(number) if number <= self.max => {
                self.mark(number);
                Ok(number)
            }
            _ => Err(Error::NoFreeChannel {
                channel_max: self.max,
            }),
        }
    }

    /// Takes a number of the caller's choice, free or not: the broker is the judge.
    pub(crate) fn mark(&mut self, number: u16) {
        let index = usize::from(number);
        if self.open.len() <= index {
            self.open.resize(index + 1, false);
        }
        self.open[index] = true;
    }

    pub(crate) fn release(&mut self, number: u16) {
        let index = usize::from(number);
        if index > 0 && index < self.open.len() {
            self.open[index] = false;
            self.lowest = self.lowest.min(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_numbers_are_taken_first() {
        let mut channels = Channels::new(3);
        channels.mark(2);
        assert_eq!(channels.allocate().ok(), Some(1));
        assert_eq!(channels.allocate().ok(), Some(3));
        assert!(matches!(
            channels.allocate(),
            Err(Error::NoFreeChannel { channel_max: 3 })
        ));
        channels.release(2);
        channels.release(9);
        assert_eq!(channels.allocate().ok(), Some(2));
    }
}
