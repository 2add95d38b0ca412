//! What can be wrong with bytes from a peer.

use crate::ReplyCode;

/// Why bytes could not be decoded. Carries no borrowed data, so it outlives the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A length field points past the end of the frame.
    #[error("arguments end before their declared length")]
    Truncated,
    /// Bytes are left over after the last argument.
    #[error("{0} bytes left over after the last argument")]
    Trailing(usize),
    /// Class and method ids name nothing in this protocol version.
    #[error("unknown method: class {class}, method {method}")]
    UnknownMethod {
        /// Class id as received.
        class: u16,
        /// Method id as received.
        method: u16,
    },
    /// A field table holds a type tag that no version defines.
    #[error("unknown field type 0x{0:02x}")]
    UnknownFieldType(u8),
    /// Tables and arrays are nested deeper than [`crate::MAX_DEPTH`].
    #[error("tables nested deeper than {} levels", crate::MAX_DEPTH)]
    TooDeep,
    /// A name that must be text is not UTF-8.
    #[error("{0} is not valid UTF-8")]
    NotUtf8(&'static str),
}

impl DecodeError {
    /// The reply code that a peer is told.
    pub fn reply_code(self) -> ReplyCode {
        match self {
            DecodeError::UnknownMethod { .. } => ReplyCode::CommandInvalid,
            _ => ReplyCode::SyntaxError,
        }
    }
}
