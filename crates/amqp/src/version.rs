//! Protocol versions and the eight-byte protocol header.

/// Length of a protocol header in bytes.
pub const HEADER_LEN: usize = 8;

/// A protocol version that this codec speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// AMQP 0-8, announced as `1 1 8 0` or `1 1 9 1`.
    V0_8,
    /// AMQP 0-9, announced as `1 1 0 9`. Encoded as 0-9-1, as RabbitMQ does.
    V0_9,
    /// AMQP 0-9-1, announced as `0 0 9 1`.
    V0_9_1,
}

impl Version {
    /// The version that a protocol header asks for, or `None` for any other eight bytes.
    pub fn from_header(header: [u8; HEADER_LEN]) -> Option<Version> {
        match &header {
            b"AMQP\x00\x00\x09\x01" => Some(Version::V0_9_1),
            b"AMQP\x01\x01\x00\x09" => Some(Version::V0_9),
            b"AMQP\x01\x01\x08\x00" | b"AMQP\x01\x01\x09\x01" => Some(Version::V0_8),
            _ => None,
        }
    }

    /// The header that a client of this version opens with.
    pub fn header(self) -> [u8; HEADER_LEN] {
        match self {
            Version::V0_8 => *b"AMQP\x01\x01\x08\x00",
            Version::V0_9 => *b"AMQP\x01\x01\x00\x09",
            Version::V0_9_1 => *b"AMQP\x00\x00\x09\x01",
        }
    }

    /// `version-major` and `version-minor` of connection.start.
    pub fn major_minor(self) -> (u8, u8) {
        match self {
            Version::V0_8 => (8, 0),
            Version::V0_9 | Version::V0_9_1 => (0, 9),
        }
    }
}
