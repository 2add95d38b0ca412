//! HTTP/1.1 to one endpoint: connections are kept and used again, the last one used first.
//!
//! A connection is in `idle`, or a call has it; a call that fails drops it. There are never more
//! than there were calls at once. Each has a task of the `LocalSet` that ends with it.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{Endpoint, Error};

/// Longest body of an answer that is read, in bytes: what a batch of messages can have.
pub(super) const LONGEST_ANSWER: usize = 1 << 20;
/// Longest head of an answer that is read, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Limit for connecting, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type Sender = SendRequest<Full<Bytes>>;

/// Connections to an endpoint.
pub(super) struct Pool {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: RefCell<Vec<Sender>>,
}

impl Pool {
    /// One without connections.
    pub(super) fn new(endpoint: &Endpoint) -> Result<Pool, Error> {
        let tls = match endpoint.tls {
            true => Some(tls(&endpoint.host)?),
            false => None,
        };
        Ok(Pool {
            host: endpoint.host.clone(),
            port: endpoint.port,
            tls,
            idle: RefCell::default(),
        })
    }

    /// Sends a request, and reads the answer and its body.
    ///
    /// A connection that the service closed while it was idle costs nothing but another one: the
    /// request is sent again only if none of it was written.
    pub(super) async fn call(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, Error> {
        loop {
            let (mut sender, is_used) = match self.take_idle().await {
                Some(sender) => (sender, true),
                None => (self.connect().await?, false),
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let answer = read(response).await?;
                    self.idle.borrow_mut().push(sender);
                    return Ok(answer);
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if is_used => request = unsent,
                    _ => return Err(Error::Lost(failed.into_error())),
                },
            }
        }
    }

    async fn take_idle(&self) -> Option<Sender> {
        loop {
            let mut sender = self.idle.borrow_mut().pop()?;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<Sender, Error> {
        let connecting = async {
            let connected = TcpStream::connect((self.host.as_str(), self.port)).await;
            let stream = connected.map_err(Error::Connect)?;
            stream.set_nodelay(true).map_err(Error::Connect)?;
            let Some((connector, name)) = &self.tls else {
                return handshake(stream).await;
            };
            let encrypted = connector.connect(name.clone(), stream).await;
            handshake(encrypted.map_err(Error::Tls)?).await
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        connected.unwrap_or_else(|_| Err(Error::Connect(late())))
    }
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Result<Sender, Error> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(LONGEST_HEAD);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // What ends a connection, the call on it is told.
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(sender)
}

async fn read(response: Response<Incoming>) -> Result<Response<Bytes>, Error> {
    let (head, mut body) = response.into_parts();
    let mut read = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if read.len() + data.len() > LONGEST_ANSWER {
            return Err(Error::TooLong);
        }
        // Nearly all answers are one frame, which need not be copied.
        read = match read.is_empty() {
            true => data,
            false => [mem::take(&mut read), data].concat().into(),
        };
    }
    Ok(Response::from_parts(head, read))
}

/// TLS that trusts what this machine trusts; `SSL_CERT_FILE` and `SSL_CERT_DIR` say otherwise.
fn tls(host: &str) -> Result<(TlsConnector, ServerName<'static>), Error> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Error::Endpoint(format!("{host:?} can have no certificate")))?;
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reason = "no root certificates on this machine; SSL_CERT_FILE names a file of them";
        return Err(Error::Endpoint(reason.into()));
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((TlsConnector::from(Arc::new(config)), name))
}
