//! What a connection asks for: where, who, which limits. Pure data; [`crate::uri`] fills it.

use std::net::IpAddr;
use std::time::Duration;

use amqp::{FieldTable, Version};

/// How to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mechanism {
    /// User and password, separated by zero octets (RFC 4616).
    #[default]
    Plain,
    /// User and password in a field table: what the first AMQP clients send.
    AmqPlain,
    /// Whatever the transport says, a client certificate for example.
    External,
    /// Nobody in particular.
    Anonymous,
}

impl Mechanism {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::AmqPlain => "AMQPLAIN",
            Mechanism::External => "EXTERNAL",
            Mechanism::Anonymous => "ANONYMOUS",
        }
    }
}

/// Where to connect, as whom, with which limits. The defaults are those of `amqp://`.
#[derive(Clone, PartialEq)]
pub struct Options {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User name.
    pub user: String,
    /// Password, in the clear.
    pub password: String,
    /// Virtual host.
    pub vhost: String,
    /// SASL mechanism.
    pub mechanism: Mechanism,
    /// Protocol version to open with.
    pub version: Version,
    /// Heartbeat interval in seconds; the smaller of this and the broker's proposal. 0 = none.
    pub heartbeat: u16,
    /// Largest frame in bytes; the smaller of this and the broker's proposal.
    pub frame_max: u32,
    /// Highest channel number; the smaller of this and the broker's proposal.
    pub channel_max: u16,
    /// Limit for connecting and the handshake together.
    pub connect_timeout: Duration,
    /// Address to connect from; ports are 65,536 per address.
    pub local_address: Option<IpAddr>,
    /// Shown by management tools as the connection's name.
    pub connection_name: Option<String>,
    /// Added to the client properties; replaces entries of the same name.
    pub properties: FieldTable,
    /// Bytes of events that may be held back while a call waits for its reply.
    pub backlog_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: "localhost".into(),
            port: 5672,
            user: "guest".into(),
            password: "guest".into(),
            vhost: "/".into(),
            mechanism: Mechanism::default(),
            version: Version::V0_9_1,
            heartbeat: 60,
            frame_max: 131_072,
            channel_max: 2047,
            connect_timeout: Duration::from_secs(10),
            local_address: None,
            connection_name: None,
            properties: FieldTable::new(),
            backlog_limit: 64 << 20,
        }
    }
}

/// All but the password, so that options may be logged.
impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address())
            .field("user", &self.user)
            .field("vhost", &self.vhost)
            .field("mechanism", &self.mechanism)
            .field("version", &self.version)
            .field("heartbeat", &self.heartbeat)
            .field("frame_max", &self.frame_max)
            .field("channel_max", &self.channel_max)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// `host:port`, an IPv6 address in brackets.
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// What connection.start-ok tells the broker about this client.
    pub(crate) fn client_properties(&self) -> FieldTable {
        let capabilities = [
            "publisher_confirms",
            "exchange_exchange_bindings",
            "basic.nack",
            "consumer_cancel_notify",
            "connection.blocked",
            "authentication_failure_close",
        ]
        .into_iter()
        .fold(FieldTable::new(), |table, name| table.with(name, true));
        let mut table = FieldTable::new()
            .with("product", "Leveret client")
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("platform", "Rust")
            .with("capabilities", capabilities);
        if let Some(name) = &self.connection_name {
            table.insert("connection_name", name.as_str());
        }
        for (name, value) in self.properties.iter() {
            table.insert(name, value.clone());
        }
        table
    }

    /// The response that goes with the mechanism.
    pub(crate) fn sasl_response(&self) -> Vec<u8> {
        match self.mechanism {
            Mechanism::Plain => format!("\0{}\0{}", self.user, self.password).into_bytes(),
            Mechanism::AmqPlain => FieldTable::new()
                .with("LOGIN", self.user.as_str())
                .with("PASSWORD", self.password.as_str())
                .encode(),
            Mechanism::External | Mechanism::Anonymous => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_password() {
        let options = Options {
            password: "s3cret".into(),
            ..Options::default()
        };
        assert!(!format!("{options:?}").contains("s3cret"));
    }

    #[test]
    fn own_properties_replace_the_defaults() {
        let options = Options {
            properties: FieldTable::new().with("product", "relay"),
            connection_name: Some("r1".into()),
            ..Options::default()
        };
        let table = options.client_properties();
        assert_eq!(table.get("product").and_then(|v| v.as_str()), Some("relay"));
        assert_eq!(
            table.get("connection_name").and_then(|v| v.as_str()),
            Some("r1")
        );
    }

    #[test]
    fn plain_response_separates_with_zero_octets() {
        assert_eq!(Options::default().sasl_response(), b"\0guest\0guest");
    }
}
