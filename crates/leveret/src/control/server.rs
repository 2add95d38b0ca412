//! The server's side of the control socket: who may connect, how much and how long they may talk.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broker::Broker;
use store::Durability;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::Short;
use super::protocol::{Failure, MAX_REQUEST, Request, Response, status};
use super::{Shared, execute};

/// Connections that are served at a time; others wait.
const MAX_CONNECTIONS: usize = 8;
/// How long a client may take for a request, from the connection or the last response on.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// How long a client may take to read a response.
const RESPONSE_LIMIT: Duration = Duration::from_secs(60);
/// After an error that may last, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Opens the socket. It gets its name only when nobody else may open it any more.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    let unfinished = path.with_extension("sock.new");
    let _ = fs::remove_file(&unfinished);
    let short = Short::new(&unfinished)?;
    let listener = UnixListener::bind(&short.path)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))?;
    fs::rename(&unfinished, path)?;
    Ok(listener)
}

/// Accepts connections until it is aborted.
pub(super) async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve(stream, &shared).await {
                        tracing::debug!(%error, "a control connection failed");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept control connections");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(mut stream: UnixStream, shared: &Arc<Shared>) -> io::Result<()> {
    if !is_permitted(&stream)? {
        tracing::warn!("refused a control connection of another user");
        return Ok(());
    }
    loop {
        let request = match timeout(REQUEST_LIMIT, read(&mut stream)).await? {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let failure = Failure {
                    status: status::SOFTWARE,
                    text: format!("Error:\n{error}"),
                };
                return write(&mut stream, &Response::Failed(failure)).await;
            }
            Err(error) => return Err(error),
        };
        let stop = matches!(request, Request::Stop);
        let response = answer(request, shared).await;
        write(&mut stream, &response).await?;
        if stop {
            tracing::info!("asked to stop");
            shared.stop.notify_one();
            // Closed by the end of the process, which is what the client waits for.
            std::mem::forget(stream.into_std()?);
            return Ok(());
        }
    }
}

/// The socket's permissions say the same; they may be changed by mistake.
fn is_permitted(stream: &UnixStream) -> io::Result<bool> {
    let peer = stream.peer_cred()?.uid();
    Ok(peer == 0 || peer == rustix::process::geteuid().as_raw())
}

/// The next request; `None` at the end. Memory is taken as the bytes come, not as announced.
async fn read(stream: &mut UnixStream) -> io::Result<Option<Request>> {
    let length = match stream.read_u32().await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    if length > MAX_REQUEST {
        return Err(invalid(format!(
            "the request is larger than {MAX_REQUEST} bytes"
        )));
    }
    let mut frame = Vec::new();
    let read = stream.take(length.into()).read_to_end(&mut frame).await?;
    if read < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let request = serde_json::from_slice(&frame);
    request
        .map(Some)
        .map_err(|error| invalid(format!("the server does not know this request: {error}")))
}

async fn write(stream: &mut UnixStream, response: &Response) -> io::Result<()> {
    let frame = serde_json::to_vec(response)?;
    let length = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let written = async {
        stream.write_u32(length).await?;
        stream.write_all(&frame).await
    };
    timeout(RESPONSE_LIMIT, written).await?
}

/// Does what is asked for, on a thread of its own, and waits until the log has it.
async fn answer(request: Request, shared: &Arc<Shared>) -> Response {
    let executing = shared.clone();
    let executed = tokio::task::spawn_blocking(move || execute::execute(request, &executing));
    match executed.await {
        Ok(Ok(value)) => {
            durable(&shared.broker).await;
            Response::Done(value)
        }
        Ok(Err(failure)) => Response::Failed(failure),
        Err(error) => Response::Failed(Failure {
            status: status::SOFTWARE,
            text: format!("Error:\n{error}"),
        }),
    }
}

/// Waits until all changes of definitions so far are durable.
async fn durable(broker: &Broker) {
    let logged = broker.definitions_logged();
    std::future::poll_fn(
        |cx| match broker.store.wait(logged, Durability::Fsync, cx.waker()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        },
    )
    .await;
}
