//! Which numbers of a producer's sequence have come: a bitmap that forgets what is complete.

use std::collections::VecDeque;

/// Numbers in one chunk.
const CHUNK: i64 = 8_192;
const WORDS: usize = CHUNK as usize / 64;
/// Chunks that are kept while numbers in them are missing; beyond that the oldest is given up, and
/// what is missing there counts as a gap for good.
const MAX_CHUNKS: usize = 32_768;
/// The same for producers that may be anything.
const MAX_CHUNKS_FOREIGN: usize = 64;

#[derive(Debug)]
struct Chunk {
    bits: [u64; WORDS],
    count: u32,
}

/// A set of numbers that mostly come in order.
#[derive(Debug)]
pub struct Seen {
    chunks: VecDeque<Box<Chunk>>,
    /// Number of the first bit of the first chunk.
    base: i64,
    /// Numbers below this one are not expected.
    first: i64,
    /// The highest that has come.
    highest: i64,
    /// The lowest that has come.
    lowest: i64,
    /// Missing in chunks that were given up.
    given_up: u64,
    max_chunks: usize,
    /// So that steady state allocates nothing.
    spare: Option<Box<Chunk>>,
}

impl Seen {
    /// Expects numbers from `first` on.
    pub fn from(first: i64) -> Seen {
        Seen {
            chunks: VecDeque::new(),
            base: first.div_euclid(CHUNK) * CHUNK,
            first,
            highest: first - 1,
            lowest: i64::MAX,
            given_up: 0,
            max_chunks: MAX_CHUNKS,
            spare: None,
        }
    }

    /// The same, for numbers that somebody else made up: it takes little memory whatever they are.
    pub fn foreign_from(first: i64) -> Seen {
        Seen {
            max_chunks: MAX_CHUNKS_FOREIGN,
            ..Seen::from(first)
        }
    }

    /// Adds a number; false if it had come before, or so long after later ones that nobody knows.
    #[inline]
    pub fn add(&mut self, number: i64) -> bool {
        if number < self.base {
            return false;
        }
        self.highest = self.highest.max(number);
        self.lowest = self.lowest.min(number);
        let index = ((number - self.base) / CHUNK) as usize;
        if index >= self.chunks.len() {
            if !self.extend(index) {
                return true;
            }
            return self.add(number);
        }
        let bit = (number - self.base) as usize % CHUNK as usize;
        let chunk = &mut self.chunks[index];
        let (word, mask) = (&mut chunk.bits[bit / 64], 1 << (bit % 64));
        if *word & mask != 0 {
            return false;
        }
        *word |= mask;
        chunk.count += 1;
        if index == 0 && chunk.count == CHUNK as u32 {
            self.forget_complete();
        }
        true
    }

    /// Makes room up to a chunk; false if the number is so far ahead that all before it is given up
    /// and the set begins anew there.
    #[cold]
    fn extend(&mut self, index: usize) -> bool {
        if index >= 2 * self.max_chunks {
            // The highest is the number at hand.
            let missing = self.missing_up_to(self.highest - 1);
            *self = Seen {
                given_up: missing,
                lowest: self.lowest,
                max_chunks: self.max_chunks,
                ..Seen::from(self.highest + 1)
            };
            return false;
        }
        let wanted = index + 1 - self.chunks.len();
        for _ in 0..wanted {
            let chunk = self.spare.take().unwrap_or_else(|| {
                Box::new(Chunk {
                    bits: [0; WORDS],
                    count: 0,
                })
            });
            self.chunks.push_back(chunk);
        }
        if self.chunks.len() == wanted {
            self.count_unexpected();
        }
        while self.chunks.len() > self.max_chunks {
            if let Some(chunk) = self.chunks.pop_front() {
                self.given_up += (CHUNK as u32 - chunk.count) as u64;
                self.base += CHUNK;
            }
        }
        true
    }

    /// Numbers of the first chunk that are not expected count as if they had come.
    fn count_unexpected(&mut self) {
        let below = (self.first - self.base).clamp(0, CHUNK) as usize;
        if let Some(chunk) = self.chunks.front_mut() {
            for bit in 0..below {
                chunk.bits[bit / 64] |= 1 << (bit % 64);
            }
            chunk.count += below as u32;
        }
    }

    fn forget_complete(&mut self) {
        while self
            .chunks
            .front()
            .is_some_and(|chunk| chunk.count == CHUNK as u32)
        {
            let chunk = self.chunks.pop_front();
            self.base += CHUNK;
            self.spare = chunk.map(|mut chunk| {
                *chunk = Chunk {
                    bits: [0; WORDS],
                    count: 0,
                };
                chunk
            });
        }
    }

    /// The highest number that has come; below the first expected one if none has.
    pub fn highest(&self) -> i64 {
        self.highest
    }

    /// How many numbers have not come between the lowest and the highest that have.
    pub fn missing_between(&self) -> u64 {
        if self.lowest > self.highest {
            return 0;
        }
        // Everything below the lowest is missing, wherever it is counted by now.
        let below = (self.lowest - self.first).max(0) as u64;
        self.missing_up_to(self.highest).saturating_sub(below)
    }

    /// How many numbers up to `last` have not come.
    pub fn missing_up_to(&self, last: i64) -> u64 {
        let held: u64 = self
            .chunks
            .iter()
            .enumerate()
            .map(|(index, chunk)| {
                let start = self.base + index as i64 * CHUNK;
                let expected = (last + 1 - start).clamp(0, CHUNK) as usize;
                missing_of_first(&chunk.bits, expected)
            })
            .sum();
        let end = (self.base + self.chunks.len() as i64 * CHUNK).max(self.first);
        self.given_up + held + (last + 1 - end).max(0) as u64
    }
}

/// Zeros among the first bits.
fn missing_of_first(bits: &[u64; WORDS], expected: usize) -> u64 {
    let whole: u32 = bits[..expected / 64]
        .iter()
        .map(|word| word.count_zeros())
        .sum();
    let rest = expected % 64;
    let partial = match rest {
        0 => 0,
        _ => (!bits[expected / 64] & ((1 << rest) - 1)).count_ones(),
    };
    u64::from(whole + partial)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::load::random::Random;

    #[test]
    fn it_agrees_with_a_plain_set() {
        for (seed, first) in [(1, 0), (2, 5), (3, 100_000), (4, -3)] {
            let mut random = Random::new(seed);
            let (mut seen, mut model) = (Seen::from(first), BTreeSet::new());
            for step in 0..60_000_i64 {
                // Nearly in order, some twice, some never.
                let number = first + step + random.below(40) as i64;
                assert_eq!(seen.add(number), model.insert(number), "{number}");
            }
            let highest = *model.last().expect("not empty");
            assert_eq!(seen.highest(), highest);
            let missing = (highest - first + 1) as u64 - model.len() as u64;
            assert_eq!(seen.missing_up_to(highest), missing);
            assert_eq!(seen.missing_up_to(highest + 10), missing + 10);
        }
    }

    #[test]
    fn in_order_nothing_is_missing_and_little_is_held() {
        let mut seen = Seen::from(0);
        (0..1_000_000).for_each(|number| assert!(seen.add(number)));
        assert_eq!(seen.missing_up_to(999_999), 0);
        assert!(seen.chunks.len() <= 1);
        assert!(!seen.add(999_999) && !seen.add(3));
    }

    #[test]
    fn far_jumps_are_bounded() {
        let mut seen = Seen::from(0);
        assert!(seen.add(0));
        assert!(seen.add(1 << 60));
        assert!(seen.chunks.len() <= MAX_CHUNKS);
        assert_eq!(seen.missing_up_to(seen.highest()), (1 << 60) - 1);
        assert!(seen.add((1 << 60) + 1));
        assert_eq!(seen.missing_between(), (1 << 60) - 1);
        let mut foreign = Seen::foreign_from(0);
        for number in (0..1_000).map(|n| n * 5_000) {
            foreign.add(number);
            assert!(foreign.chunks.len() <= MAX_CHUNKS_FOREIGN);
        }
        assert_eq!(foreign.missing_between(), 999 * 4_999);
        assert_eq!(Seen::from(4).missing_up_to(9), 6);
        assert_eq!(Seen::from(4).missing_up_to(3), 0);
    }
}
