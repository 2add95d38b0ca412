//! The hash that spreads messages: the same in every version and on every machine, so that a key
//! keeps its queue through restarts.

/// FNV-1a over parts, whose borders count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    pub fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    /// With a further part.
    pub fn with(self, part: &[u8]) -> Hash {
        let length = (part.len() as u64).to_le_bytes();
        let bytes = length.iter().chain(part);
        Hash(bytes.fold(self.0, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        }))
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
