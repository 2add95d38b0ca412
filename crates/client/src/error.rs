//! What can go wrong between this client and a broker: each message says what happened, where, and
//! what to do about it.

use std::io;
use std::time::Duration;

use amqp::{DecodeError, Version};

use crate::ChannelClosed;

/// Why a call failed. After any error but [`Error::ChannelClosed`], [`Error::NameTooLong`],
/// [`Error::HeadersTooLarge`] and [`Error::NoFreeChannel`] the connection is of no further use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A connection URI that cannot be understood.
    #[error("connection URI: {reason}; expected amqp://user:password@host:port/vhost?heartbeat=60")]
    InvalidUri {
        /// Which part, and why. Never holds the password.
        reason: String,
    },
    /// No connection to the broker's port.
    #[error("cannot reach {address}: {source}; check that the broker runs and listens there")]
    Unreachable {
        /// `host:port`.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The broker did not complete the opening handshake in time.
    #[error(
        "{address} did not complete the AMQP handshake within {limit:?}; check that the port speaks \
         AMQP without TLS, and the broker's log"
    )]
    HandshakeTimeout {
        /// `host:port`.
        address: String,
        /// The limit that ran out.
        limit: Duration,
    },
    /// The broker speaks another protocol version.
    #[error(
        "the broker refused protocol {asked:?} and offered header {offered:02x?}; choose a version \
         that it speaks"
    )]
    VersionRefused {
        /// The version that was asked for.
        asked: Version,
        /// The eight bytes of the broker's answer.
        offered: [u8; 8],
    },
    /// User name, password or mechanism were not accepted.
    #[error("login of user '{user}' with {mechanism} refused: {text}")]
    LoginRefused {
        /// The user that tried.
        user: String,
        /// The SASL mechanism used.
        mechanism: &'static str,
        /// What the broker said.
        text: String,
    },
    /// The virtual host does not exist, or the user may not enter it.
    #[error(
        "virtual host '{vhost}' refused: {text}; a URI that ends in '/' names the empty virtual \
         host: leave the slash out for the default one"
    )]
    VhostRefused {
        /// The name as sent.
        vhost: String,
        /// What the broker said.
        text: String,
    },
    /// The broker closed the connection, with a reason.
    #[error("the broker closed the connection: {code} {text} (class {class}, method {method})")]
    ConnectionClosed {
        /// AMQP reply code.
        code: u16,
        /// AMQP reply text.
        text: String,
        /// Class of the method at fault, or 0.
        class: u16,
        /// Id of the method at fault, or 0.
        method: u16,
    },
    /// The broker closed the channel that a call was waiting on; the connection goes on.
    #[error("the broker closed channel {channel}: {code} {text} (class {class}, method {method})")]
    ChannelClosed {
        /// The channel.
        channel: u16,
        /// AMQP reply code.
        code: u16,
        /// AMQP reply text.
        text: String,
        /// Class of the method at fault, or 0.
        class: u16,
        /// Id of the method at fault, or 0.
        method: u16,
    },
    /// The stream ended or broke without a reason from the broker.
    #[error("connection to {address} lost: {source}; look for its reason in the broker's log")]
    Disconnected {
        /// `host:port`.
        address: String,
        /// What the system said; `UnexpectedEof` where the peer closed the stream.
        source: io::Error,
    },
    /// Nothing was received for two heartbeat intervals.
    #[error("nothing received from {address} for {silence:?}: peer or network are gone")]
    HeartbeatMissed {
        /// `host:port`.
        address: String,
        /// For how long.
        silence: Duration,
    },
    /// The peer sent something that the protocol does not allow there.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// A frame's payload could not be decoded.
    #[error("undecodable frame from the peer: {0}")]
    Decode(#[from] DecodeError),
    /// An exchange, queue, key or tag over 255 bytes.
    #[error("{what} has {len} bytes; AMQP allows 255")]
    NameTooLong {
        /// Which argument.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// The properties do not fit into one frame.
    #[error(
        "message properties of {len} bytes do not fit the negotiated frame of {frame_max} bytes"
    )]
    HeadersTooLarge {
        /// Bytes of encoded properties.
        len: usize,
        /// Negotiated frame size.
        frame_max: u32,
    },
    /// All channel numbers are in use.
    #[error(
        "all {channel_max} channels of the connection are open; close some or raise channel_max"
    )]
    NoFreeChannel {
        /// The negotiated limit.
        channel_max: u16,
    },
    /// More arrived while a call waited for its reply than the client may hold back.
    #[error(
        "{limit} bytes of events arrived before the reply to {request}; take events more often, or \
         set a prefetch limit"
    )]
    BacklogFull {
        /// Bytes held back.
        limit: usize,
        /// The method that waits.
        request: &'static str,
    },
}

impl From<ChannelClosed<'_>> for Error {
    /// For owners that cannot go on without the channel.
    fn from(closed: ChannelClosed<'_>) -> Error {
        Error::ChannelClosed {
            channel: closed.channel,
            code: closed.code,
            text: closed.text.lossy().into_owned(),
            class: closed.class,
            method: closed.method,
        }
    }
}

impl Error {
    /// The AMQP reply code, where the broker sent one.
    pub fn reply_code(&self) -> Option<u16> {
        match self {
            Error::ConnectionClosed { code, .. } | Error::ChannelClosed { code, .. } => Some(*code),
            _ => None,
        }
    }
}
