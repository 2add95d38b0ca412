//! Random numbers for resampling: the same seed gives the same numbers on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, fast, and far better than shuffling needs.
pub(super) struct Random(u64);

/// The odd number nearest to 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Numbers for values `from..to` of a series: no other part of it gets the same, whatever was
    /// looked at before.
    pub(super) fn for_segment(seed: u64, from: usize, to: usize) -> Random {
        let from = Random(seed ^ from as u64).next();
        Random(from ^ (to as u64).wrapping_mul(STEP))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is at most 2³². The bias is below `bound` / 2³².
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }

    /// Puts values into an order of which each is as likely as any other.
    pub(super) fn shuffle(&mut self, values: &mut [f64]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}
