//! What the server offers to clients, permits them, and sets on their sockets.

use std::time::Duration;

/// What the server offers and permits.
#[derive(Debug, Clone)]
pub struct Options {
    /// Largest frame in bytes, overhead included; 0 = no limit.
    pub frame_max: u32,
    /// Largest frame before tuning.
    pub initial_frame_max: u32,
    /// Channels per connection; 0 = no limit.
    pub channel_max: u16,
    /// Proposed heartbeat interval in seconds; 0 = none.
    pub heartbeat_s: u16,
    /// Largest message body in bytes.
    pub max_message_size: u64,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How sockets are set up.
    pub tcp: TcpOptions,
}

/// Socket options.
#[derive(Debug, Clone)]
pub struct TcpOptions {
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Send small segments at once.
    pub nodelay: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            frame_max: 131_072,
            initial_frame_max: 4_096,
            channel_max: 2_047,
            heartbeat_s: 60,
            max_message_size: 128 * 1024 * 1024,
            handshake_timeout: Duration::from_secs(10),
            tcp: TcpOptions {
                backlog: 1_024,
                nodelay: true,
            },
        }
    }
}
