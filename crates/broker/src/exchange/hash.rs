//! The hash that spreads messages: the same in every version and on every machine, so that a key
//! keeps its queue through restarts.

/// Over parts, whose borders count: eight bytes at a time, since every message of a sharded exchange
/// is hashed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    pub fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    /// With a further part.
    pub fn with(self, part: &[u8]) -> Hash {
        let (words, rest) = part.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let mut hash = self.word(part.len() as u64);
        for word in words {
            hash = hash.word(u64::from_le_bytes(*word));
        }
        match rest {
            [] => hash,
            _ => hash.word(u64::from_le_bytes(last)),
        }
    }

    /// Each word is mixed in by a bijection, so that two that differ in one are never the same.
    #[inline]
    fn word(self, word: u64) -> Hash {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Hash(mixed ^ (mixed >> 32))
    }

    /// All bits depend on all parts: SplitMix64's last step.
    pub fn finish(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }
}

/// Of all routing keys of a message, which are one in most.
pub(super) fn of_keys(keys: &[&[u8]]) -> u64 {
    keys.iter()
        .fold(Hash::new(), |hash, key| hash.with(key))
        .finish()
}
