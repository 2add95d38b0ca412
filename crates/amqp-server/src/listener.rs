//! Listening sockets and the life of each connection, from accept to the end of its task.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use broker::{Broker, Outbox};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::connection::End;
use crate::handshake::{Handshake, HandshakeError};
use crate::options::{Options, TcpOptions};

/// How often a failure to accept is reported while it lasts.
const ACCEPT_REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// A listener that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", explained(.error))]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// What the system says.
    pub error: io::Error,
}

/// What the system says, and what to do about it.
fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is in use: another broker may be running there \
             (ss -ltnp shows it); listeners.tcp.NAME or RABBITMQ_NODE_PORT choose another port"
            .to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied: ports below 1024 need privileges".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A bound socket that accepts AMQP clients once it is run.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    broker: Arc<Broker>,
    options: Arc<Options>,
}

impl Listener {
    /// Binds. A wildcard IPv6 address takes IPv4 clients too; where there is no IPv6, it is bound
    /// as IPv4.
    pub fn bind(
        address: SocketAddr,
        broker: Arc<Broker>,
        options: Arc<Options>,
    ) -> Result<Listener, ListenError> {
        let bound = match (bind(address, &options.tcp), address.ip()) {
            (Err(error), IpAddr::V6(ip)) if ip.is_unspecified() && no_ipv6(&error) => {
                bind((Ipv4Addr::UNSPECIFIED, address.port()).into(), &options.tcp)
            }
            (bound, _) => bound,
        };
        let failed = |error| ListenError { address, error };
        let socket = bound.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Listener {
            socket,
            address,
            broker,
            options,
        })
    }

    /// Where it listens, with the port that was chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts clients until it is dropped.
    pub async fn run(self) {
        let mut last_report = None;
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => self.accepted(stream, peer),
                Err(error) => {
                    // Out of file descriptors, most likely: others may be closed in a moment.
                    let now = Instant::now();
                    if last_report.is_none_or(|last| now - last > ACCEPT_REPORT_INTERVAL) {
                        last_report = Some(now);
                        tracing::error!(
                            %error,
                            "cannot accept connections; is the limit of open files (ulimit -n, \
                             LimitNOFILE) high enough?"
                        );
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn accepted(&self, stream: TcpStream, peer: SocketAddr) {
        // An IPv4 client of a socket for both comes as ::ffff:a.b.c.d.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let (broker, options) = (self.broker.clone(), self.options.clone());
        if let Err(error) = stream.set_nodelay(options.tcp.nodelay) {
            tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        tokio::spawn(serve(stream, peer, broker, options));
    }
}

/// Registered as long as it lives.
struct Registration {
    broker: Arc<Broker>,
    id: broker::ConnectionId,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.broker.connections.close(self.id);
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, broker: Arc<Broker>, options: Arc<Options>) {
    let id = broker.connections.next_id();
    let outbox = Arc::new(Outbox::default());
    tracing::debug!(connection = id.0, %peer, "accepted");
    let timeout = options.handshake_timeout;
    // Boxed, so that what only the handshake needs does not make every connection larger.
    let handshake = Handshake::new(stream, peer, broker.clone(), options);
    let handshake = Box::pin(handshake.run(id, outbox.clone()));
    let connection = match tokio::time::timeout(timeout, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return log_failed_handshake(id, peer, &error),
        Err(_) => {
            tracing::warn!(connection = id.0, %peer, "handshake took longer than {timeout:?}");
            return;
        }
    };
    // Only now: shutting down waits for open connections, not for those that may never be.
    let connections = &broker.connections;
    connections.open(connection.session(), outbox, &broker.users);
    let _registration = Registration { broker, id };
    tracing::debug!(connection = id.0, %peer, "open");
    match connection.run().await {
        End::Closed => tracing::debug!(connection = id.0, %peer, "closed"),
        End::Vanished => {
            tracing::warn!(connection = id.0, %peer, "client unexpectedly closed TCP connection");
        }
        End::Silent => tracing::warn!(connection = id.0, %peer, "missed heartbeats from client"),
        End::Unanswered => {
            tracing::warn!(connection = id.0, %peer, "client did not answer connection.close");
        }
        End::Failed(error) => {
            tracing::warn!(connection = id.0, %peer, %error, "socket failed");
        }
    }
}

fn log_failed_handshake(id: broker::ConnectionId, peer: SocketAddr, error: &HandshakeError) {
    match error {
        // Port checks of load balancers do this all day.
        HandshakeError::Left => tracing::debug!(connection = id.0, %peer, "left in handshake"),
        error => tracing::warn!(connection = id.0, %peer, %error, "handshake failed"),
    }
}

fn bind(address: SocketAddr, tcp: &TcpOptions) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(tcp.backlog).unwrap_or(i32::MAX))?;
    TcpListener::from_std(socket.into())
}

fn no_ipv6(error: &io::Error) -> bool {
    // EAFNOSUPPORT comes without a kind of its own.
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}
