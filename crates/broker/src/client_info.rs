//! Who is at the other end of a connection, as traces and events tell it.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use amqp::{FieldTable, Table};

use crate::clock::Millis;

/// A client.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// Where it is.
    pub peer: SocketAddr,
    /// What it has connected to.
    pub server: SocketAddr,
    /// The protocol version: `[0, 9, 1]`.
    pub protocol: [u8; 3],
    /// The mechanism that it has logged in with.
    pub mechanism: String,
    /// What it says of itself, in the encoding of AMQP. Kept as it came: few ask for it, and
    /// connections are many.
    pub properties: Box<[u8]>,
    /// Channels that it may open.
    pub channel_max: u16,
    /// Its largest frame in bytes.
    pub frame_max: u32,
    /// Seconds between heartbeats.
    pub heartbeat_s: u16,
    /// When it came.
    pub connected_at: Millis,
}

impl ClientInfo {
    /// What RabbitMQ calls the connection: `127.0.0.1:50000 -> 127.0.0.1:5672`.
    pub fn name(&self) -> String {
        format!("{} -> {}", self.peer, self.server)
    }

    /// What it says of itself. Empty where that makes no sense.
    pub fn properties(&self) -> FieldTable {
        let properties = Table::from_wire(&self.properties).to_owned();
        properties.unwrap_or_default()
    }
}

/// An address as a term of Erlang: `{127,0,0,1}`.
pub(crate) fn address_term(address: IpAddr) -> String {
    let parts: Vec<u16> = match address {
        IpAddr::V4(address) => address.octets().map(u16::from).into(),
        IpAddr::V6(address) => address.segments().into(),
    };
    let mut term = String::new();
    for (index, part) in parts.iter().enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        // Writing to a string cannot fail.
        let _ = write!(term, "{before}{part}");
    }
    term + "}"
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn addresses_look_as_erlang_writes_them() {
        assert_eq!(address_term(Ipv4Addr::LOCALHOST.into()), "{127,0,0,1}");
        assert_eq!(
            address_term(Ipv6Addr::LOCALHOST.into()),
            "{0,0,0,0,0,0,0,1}"
        );
    }
}
