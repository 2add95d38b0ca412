//! Short strings: at most 255 bytes, names and routing keys.

use std::fmt;

use crate::DecodeError;

/// A borrowed short string. Never longer than 255 bytes; not necessarily UTF-8, since routing keys
/// may be any bytes. Names are checked with [`ShortStr::utf8`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ShortStr<'a>(&'a [u8]);

impl<'a> ShortStr<'a> {
    /// The longest short string in bytes.
    pub const MAX_LEN: usize = 255;

    /// For bytes whose length came from a length octet.
    #[inline]
    pub(crate) fn from_wire(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() <= Self::MAX_LEN);
        ShortStr(bytes)
    }

    /// `None` if longer than 255 bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() <= Self::MAX_LEN).then_some(ShortStr(bytes))
    }

    /// Cut to 255 bytes at a character boundary: for reply texts.
    pub fn truncated(text: &'a str) -> Self {
        ShortStr(&text.as_bytes()[..text.floor_char_boundary(Self::MAX_LEN)])
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text, or an error that names the argument.
    #[inline]
    pub fn utf8(self, argument: &'static str) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.0).map_err(|_| DecodeError::NotUtf8(argument))
    }

    /// The text, with replacement characters: for messages to people.
    pub fn lossy(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// Length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// True for the empty string.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for ShortStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}

impl<'a> TryFrom<&'a str> for ShortStr<'a> {
    type Error = DecodeError;

    fn try_from(text: &'a str) -> Result<Self, DecodeError> {
        ShortStr::new(text.as_bytes()).ok_or(DecodeError::Truncated)
    }
}
