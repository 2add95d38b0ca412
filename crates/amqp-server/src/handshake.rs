//! From the protocol header to an open connection: start, tune, open (0-9-1 section 2.2.4).
//!
//! Not on the hot path, so plain `async` with a small buffer. Until connection.open a client is
//! not trusted: what it does wrong ends the socket, and only clients that say they understand it
//! are told why a login was refused. From then on errors are connection.close with RabbitMQ's
//! codes and texts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use amqp::frame::{self, END, HEADER_LEN, Header, Kind, OVERHEAD};
use amqp::method::connection;
use amqp::{Method, ReplyCode, Table, Version};
use broker::access::{Login, User};
use broker::{Broker, ClientInfo, ConnectionId, Outbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::auth::{self, MECHANISMS};
use crate::connection::{Connection, Core, Negotiated};
use crate::exception::{Exception, octets};
use crate::options::Options;
use crate::properties::{self, ClientCapabilities};

/// Why a handshake came to nothing. Where the client was to be told, it has been.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("socket: {0}")]
    Socket(#[from] io::Error),
    #[error("the client closed the socket")]
    Left,
    #[error("no AMQP 0-8, 0-9 or 0-9-1 protocol header, but {:?}", .0.escape_ascii().to_string())]
    Header([u8; 8]),
    #[error("malformed or misplaced frame: {0}")]
    Frame(String),
    #[error("login refused for user '{user}': {why}")]
    Login { user: String, why: &'static str },
    #[error("mechanism or response not understood")]
    Sasl,
    #[error("{0}")]
    Refused(String),
}

/// Why connection.open came to nothing.
enum Unopened {
    /// The client is to be told.
    Refused(Exception),
    /// There is nobody to tell.
    Gone(HandshakeError),
}

impl From<Exception> for Unopened {
    fn from(exception: Exception) -> Self {
        Unopened::Refused(exception)
    }
}

/// What the client has answered so far.
struct Tuned {
    frame_max: u32,
    channel_max: u16,
    heartbeat_s: u16,
}

pub(crate) struct Handshake {
    stream: TcpStream,
    peer: SocketAddr,
    broker: Arc<Broker>,
    options: Arc<Options>,
    version: Version,
    input: Vec<u8>,
    frame_max: u32,
    capabilities: ClientCapabilities,
    /// What is known of the client so far.
    client: ClientInfo,
}

impl Handshake {
    pub fn new(
        stream: TcpStream,
        peer: SocketAddr,
        broker: Arc<Broker>,
        options: Arc<Options>,
    ) -> Self {
        let frame_max = options.initial_frame_max;
        let client = unknown_client(&stream, peer, &broker);
        Handshake {
            stream,
            peer,
            broker,
            options,
            version: Version::V0_9_1,
            input: Vec::new(),
            frame_max,
            capabilities: ClientCapabilities::default(),
            client,
        }
    }

    /// Runs the handshake; the connection is registered under `id`.
    pub async fn run(
        mut self,
        id: ConnectionId,
        outbox: Arc<Outbox>,
    ) -> Result<Connection, HandshakeError> {
        self.protocol_header().await?;
        let user = self.authenticate().await?;
        let tuned = self.tune().await?;
        self.frame_max = tuned.frame_max;
        let session = match self.open(&user, id).await {
            Ok(session) => session,
            Err(Unopened::Refused(exception)) => return Err(self.refuse(exception).await),
            Err(Unopened::Gone(error)) => return Err(error),
        };
        let session = session.of_client(Arc::new(ClientInfo {
            channel_max: tuned.channel_max,
            frame_max: tuned.frame_max,
            heartbeat_s: tuned.heartbeat_s,
            ..self.client
        }));
        self.broker.events.connection_created(&session);
        let negotiated = Negotiated {
            version: self.version,
            frame_max: tuned.frame_max,
            channel_max: tuned.channel_max,
            capabilities: self.capabilities,
        };
        let core = Core::new(self.broker, self.options, session, outbox, negotiated);
        Ok(Connection::new(
            self.stream,
            core,
            tuned.heartbeat_s,
            self.input,
        ))
    }

    async fn protocol_header(&mut self) -> Result<(), HandshakeError> {
        let mut header = [0; amqp::HEADER_LEN];
        match self.stream.read_exact(&mut header).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(HandshakeError::Left);
            }
            result => drop(result?),
        }
        if let Some(version) = Version::from_header(header) {
            self.version = version;
            self.client.protocol = match version {
                Version::V0_8 => [0, 8, 0],
                Version::V0_9 => [0, 9, 0],
                Version::V0_9_1 => [0, 9, 1],
            };
            return Ok(());
        }
        self.stream.write_all(&Version::V0_9_1.header()).await?;
        // Read what is left of the client's words, so that closing does not turn into a reset
        // that destroys the answer.
        self.stream.shutdown().await?;
        self.drain().await;
        Err(HandshakeError::Header(header))
    }

    async fn authenticate(&mut self) -> Result<Arc<User>, HandshakeError> {
        let (version_major, version_minor) = self.version.major_minor();
        let server_properties =
            properties::server(self.version, &self.broker.cluster_name).encode();
        self.send(connection::Start {
            version_major,
            version_minor,
            server_properties: Table::from_wire(&server_properties),
            mechanisms: MECHANISMS.as_bytes(),
            locales: b"en_US",
        })
        .await?;
        let payload = self.method_frame().await?;
        let start_ok = match Method::decode(self.version, &payload) {
            Ok(Method::ConnectionStartOk(start_ok)) => start_ok,
            Ok(other) => return Err(misplaced(&other, "starting")),
            Err(error) => return Err(HandshakeError::Frame(error.to_string())),
        };
        self.capabilities = ClientCapabilities::from_properties(start_ok.client_properties);
        self.client.properties = start_ok.client_properties.as_wire().into();
        self.client.mechanism = start_ok.mechanism.lossy().into_owned();
        let mechanism = start_ok.mechanism.as_bytes();
        let credentials =
            auth::credentials(mechanism, start_ok.response).map_err(|_| HandshakeError::Sasl)?;
        let peer = self.peer.ip();
        match self
            .broker
            .login(credentials.user, credentials.password, peer)
        {
            Login::Accepted(user) => {
                let events = &self.broker.events;
                events.authenticated(&self.client, &user.name);
                Ok(user)
            }
            Login::Refused => {
                self.announce_refusal(credentials.user, |user| {
                    format!("user '{user}' - invalid credentials")
                });
                let text = format!(
                    "Login was refused using authentication mechanism {}. For details see the \
                     broker logfile.",
                    start_ok.mechanism.lossy()
                );
                self.refuse_login(text).await?;
                let user = credentials.user.to_owned();
                Err(HandshakeError::Login {
                    user,
                    why: "unknown user or wrong password",
                })
            }
            Login::OnlyFromLoopback => {
                let user = credentials.user.to_owned();
                self.announce_refusal(&user, |user| {
                    format!("user '{user}' can only connect via localhost")
                });
                let text = format!("User '{user}' can only connect via localhost");
                self.refuse_login(text).await?;
                Err(HandshakeError::Login {
                    user,
                    why: "may connect from this machine only",
                })
            }
        }
    }

    /// Tells whoever wants to know why somebody did not get in.
    fn announce_refusal(&self, user: &str, why: impl FnOnce(&str) -> String) {
        let events = &self.broker.events;
        if events.wanted() {
            events.not_authenticated(&self.client, user, &why(user));
        }
    }

    async fn refuse_login(&mut self, text: String) -> Result<(), HandshakeError> {
        if self.capabilities.authentication_failure_close {
            self.close(&Exception::new(ReplyCode::AccessRefused, text))
                .await?;
        }
        Ok(())
    }

    async fn tune(&mut self) -> Result<Tuned, HandshakeError> {
        let options = self.options.clone();
        self.send(connection::Tune {
            channel_max: options.channel_max,
            frame_max: options.frame_max,
            heartbeat: options.heartbeat_s,
        })
        .await?;
        // From here on the client may send frames as large as those it was offered.
        self.frame_max = effective_frame_max(options.frame_max);
        let payload = self.method_frame().await?;
        let tune_ok = match Method::decode(self.version, &payload) {
            Ok(Method::ConnectionTuneOk(tune_ok)) => tune_ok,
            Ok(other) => return Err(misplaced(&other, "tuning")),
            Err(error) => return Err(HandshakeError::Frame(error.to_string())),
        };
        let negotiated = negotiate(&tune_ok, &options);
        match negotiated {
            Ok(tuned) => Ok(tuned),
            Err(text) => {
                let exception = Exception::new(ReplyCode::NotAllowed, text).caused_by((10, 31));
                Err(self.refuse(exception).await)
            }
        }
    }

    async fn open(
        &mut self,
        user: &Arc<User>,
        id: ConnectionId,
    ) -> Result<broker::Session, Unopened> {
        let payload = match self.read_frame().await {
            Ok((Kind::Method, 0, payload)) => payload,
            Ok((kind, _, payload)) => return Err(unexpected_frame(kind, &payload).into()),
            Err(HandshakeError::Frame(text)) => {
                return Err(Exception::new(ReplyCode::FrameError, text).into());
            }
            Err(error) => return Err(Unopened::Gone(error)),
        };
        let session = self.session(&payload, user, id)?;
        self.send(connection::OpenOk::default())
            .await
            .map_err(Unopened::Gone)?;
        Ok(session)
    }

    /// Checks what should be connection.open.
    fn session(
        &self,
        payload: &[u8],
        user: &Arc<User>,
        id: ConnectionId,
    ) -> Result<broker::Session, Exception> {
        let malformed = |error| Exception::cannot_decode(error, payload);
        let method = Method::decode(self.version, payload).map_err(malformed)?;
        let cause = method.ids(self.version);
        method
            .check()
            .map_err(|error| malformed(error).or_caused_by(cause))?;
        let Method::ConnectionOpen(open) = method else {
            let text = "unexpected method in connection state opening";
            return Err(Exception::new(ReplyCode::ChannelError, text).caused_by(cause));
        };
        let vhost = open.virtual_host.utf8("virtual-host")?;
        self.broker
            .open_session(user, vhost, id)
            .map_err(|error| Exception::from(error).caused_by(cause))
    }

    /// Tells the client what is wrong, and waits for close-ok for a moment.
    async fn refuse(&mut self, exception: Exception) -> HandshakeError {
        match self.close(&exception).await {
            Ok(()) => HandshakeError::Refused(exception.reply_text()),
            Err(error) => error,
        }
    }

    async fn close(&mut self, exception: &Exception) -> Result<(), HandshakeError> {
        self.send(exception.connection_close(&exception.reply_text()))
            .await?;
        loop {
            let Ok((Kind::Method, 0, payload)) = self.read_frame().await else {
                return Ok(());
            };
            match Method::decode(self.version, &payload) {
                Ok(Method::ConnectionCloseOk(_)) | Err(_) => return Ok(()),
                Ok(Method::ConnectionClose(_)) => {
                    return self.send(connection::CloseOk {}).await;
                }
                Ok(_) => {}
            }
        }
    }

    async fn send<'m>(&mut self, method: impl Into<Method<'m>>) -> Result<(), HandshakeError> {
        let mut out = Vec::new();
        frame::write_method(&mut out, 0, self.version, &method.into());
        Ok(self.stream.write_all(&out).await?)
    }

    async fn method_frame(&mut self) -> Result<Vec<u8>, HandshakeError> {
        match self.read_frame().await? {
            (Kind::Method, 0, payload) => Ok(payload),
            (kind, channel, _) => {
                let text = format!("a {kind:?} frame on channel {channel} before connection.open");
                Err(HandshakeError::Frame(text))
            }
        }
    }

    /// Reads the next frame other than a heartbeat.
    async fn read_frame(&mut self) -> Result<(Kind, u16, Vec<u8>), HandshakeError> {
        loop {
            self.fill(HEADER_LEN).await?;
            let Some(header) = Header::decode(&self.input) else {
                continue;
            };
            let size = header.size as usize;
            if size > self.frame_max as usize {
                let text = format!("of {size} bytes; at most {} may come now", self.frame_max);
                return Err(HandshakeError::Frame(text));
            }
            self.fill(size + OVERHEAD).await?;
            let mut frame: Vec<u8> = self.input.drain(..size + OVERHEAD).collect();
            if frame.pop() != Some(END) {
                return Err(HandshakeError::Frame("no frame-end octet".to_owned()));
            }
            let payload = frame.split_off(HEADER_LEN);
            match Kind::from_octet(header.kind) {
                Some(Kind::Heartbeat) => {}
                Some(kind) => return Ok((kind, header.channel, payload)),
                None => {
                    let text = format!("of unknown type {}", header.kind);
                    return Err(HandshakeError::Frame(text));
                }
            }
        }
    }

    /// Reads until at least `len` bytes are there.
    async fn fill(&mut self, len: usize) -> Result<(), HandshakeError> {
        while self.input.len() < len {
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(HandshakeError::Left);
            }
        }
        Ok(())
    }

    /// Reads and drops what the client has sent, up to a bound.
    async fn drain(&mut self) {
        let mut scratch = [0; 1_024];
        for _ in 0..64 {
            match self.stream.read(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

/// A client of which no more is known than where it is.
fn unknown_client(stream: &TcpStream, peer: SocketAddr, broker: &Broker) -> ClientInfo {
    // Where that fails the socket is gone already.
    let server = stream.local_addr().unwrap_or(peer);
    ClientInfo {
        peer,
        // An IPv4 client of a socket for both has come to ::ffff:a.b.c.d.
        server: SocketAddr::new(server.ip().to_canonical(), server.port()),
        protocol: [0; 3],
        mechanism: String::new(),
        properties: Box::default(),
        channel_max: 0,
        frame_max: 0,
        heartbeat_s: 0,
        connected_at: broker.timer.clock.now(),
    }
}

/// 0 = no limit of the server's own; some bound there must be.
fn effective_frame_max(frame_max: u32) -> u32 {
    const LARGEST: u32 = 128 * 1024 * 1024;
    if frame_max == 0 {
        LARGEST
    } else {
        frame_max.min(LARGEST)
    }
}

/// A client may lower what it was offered. 0 sets no limit of its own, so the server's stays
/// (0-9-1, connection.tune-ok).
fn negotiate(client: &connection::TuneOk, options: &Options) -> Result<Tuned, String> {
    let frame_max = limit(
        "frame_max",
        client.frame_max,
        options.frame_max,
        frame::MIN_FRAME_MAX,
    )?;
    let channel_max = limit(
        "channel_max",
        client.channel_max.into(),
        options.channel_max.into(),
        1,
    )?;
    Ok(Tuned {
        frame_max: effective_frame_max(frame_max),
        channel_max: if channel_max == 0 {
            u16::MAX
        } else {
            channel_max as u16
        },
        heartbeat_s: client.heartbeat,
    })
}

fn limit(name: &str, client: u32, server: u32, least: u32) -> Result<u32, String> {
    match client {
        0 => Ok(server),
        _ if client < least => Err(format!(
            "negotiated {name} = {client} is lower than the minimum allowed value ({least})"
        )),
        _ if server != 0 && client > server => Err(format!(
            "negotiated {name} = {client} is higher than the maximum allowed value ({server})"
        )),
        _ => Ok(client),
    }
}

fn misplaced(method: &Method<'_>, state: &str) -> HandshakeError {
    HandshakeError::Frame(format!("'{}' in connection state {state}", method.name()))
}

fn unexpected_frame(kind: Kind, payload: &[u8]) -> Exception {
    Exception::new(
        ReplyCode::UnexpectedFrame,
        format!("type {}, {}", kind as u8, octets(payload)),
    )
}
