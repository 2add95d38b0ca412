//! Routing keys: one, or another random one for each message.

use crate::load::random::Random;
use crate::settings::RandomKeys;

/// Length of a key in the form of a UUID.
const UUID: usize = 36;

/// Where a producer's routing keys come from.
#[derive(Debug)]
pub enum Keys {
    /// Always the same.
    Fixed(Vec<u8>),
    /// New ones.
    Fresh {
        /// The last one.
        key: [u8; UUID],
        random: Random,
    },
    /// From a stock, in turn.
    Cached { keys: Vec<[u8; UUID]>, next: usize },
}

impl Keys {
    /// Those of a producer.
    pub fn new(fixed: &str, random: Option<RandomKeys>, mut source: Random) -> Keys {
        match random {
            None => Keys::Fixed(fixed.as_bytes().to_vec()),
            Some(RandomKeys::Fresh) => Keys::Fresh {
                key: uuid(&mut source),
                random: source,
            },
            Some(RandomKeys::Cached(count)) => Keys::Cached {
                keys: (0..count.max(1)).map(|_| uuid(&mut source)).collect(),
                next: 0,
            },
        }
    }

    /// The next message's.
    #[inline]
    pub fn next(&mut self) -> &[u8] {
        match self {
            Keys::Fixed(key) => key,
            Keys::Fresh { key, random } => {
                *key = uuid(random);
                key
            }
            Keys::Cached { keys, next } => {
                let key = &keys[*next];
                *next = (*next + 1) % keys.len();
                key
            }
        }
    }
}

/// A random UUID in text: version 4 of RFC 9562.
pub fn uuid(random: &mut Random) -> [u8; UUID] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bits =
        (u128::from(random.next()) << 64 | u128::from(random.next())) & !(0xf << 76) & !(0x3 << 62)
            | 0x4 << 76
            | 0x2 << 62;
    let mut text = [b'-'; UUID];
    for (at, digit) in text.iter_mut().enumerate().rev() {
        if !matches!(at, 8 | 13 | 18 | 23) {
            *digit = HEX[(bits & 0xf) as usize];
            bits >>= 4;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_keys_look_like_uuids_and_differ() {
        let mut keys = Keys::new("", Some(RandomKeys::Fresh), Random::new(1));
        let first = keys.next().to_vec();
        let text = String::from_utf8(first.clone()).expect("ASCII");
        let parts: Vec<usize> = text.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(text.as_bytes()[14], b'4');
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_ne!(keys.next(), first);
    }

    #[test]
    fn cached_keys_come_round() {
        let mut keys = Keys::new("", Some(RandomKeys::Cached(2)), Random::new(1));
        let (a, b) = (keys.next().to_vec(), keys.next().to_vec());
        assert_ne!(a, b);
        assert_eq!(keys.next(), a);
        assert_eq!(Keys::new("k", None, Random::new(1)).next(), b"k");
    }
}
