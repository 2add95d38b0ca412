//! The control socket: how `leveret ctl` reaches the server that uses a data directory.
//!
//! A Unix socket in the data directory, for the user who runs the server and for root alone:
//! whoever may open it may do everything. One request at a time on a connection, each a frame of
//! JSON behind its length ([`protocol`]); all of them are bounded, in size and in time, and so is
//! the number of connections. What a request asks for is done on a thread of its own ([`execute`]),
//! never on a worker that serves clients.

pub mod address;
mod execute;
pub mod protocol;
mod server;
mod status;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use broker::Broker;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What is told about the node besides what its broker knows.
#[derive(Debug)]
pub struct NodeInfo {
    /// `name@host`.
    pub name: String,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The configuration file, if there is one.
    pub config_file: Option<PathBuf>,
    /// Where AMQP clients may come.
    pub listeners: Vec<SocketAddr>,
    /// When the process started.
    pub started: Instant,
    /// Memory in bytes above which publishers wait, if that is known.
    pub memory_limit: Option<u64>,
    /// Free bytes on the disk below which publishers wait, if that is known.
    pub disk_limit: Option<u64>,
}

/// The open control socket.
pub struct Control {
    shared: Arc<Shared>,
    /// Accepts connections; `None` where the socket could not be made.
    accepting: Option<JoinHandle<()>>,
}

/// What all its connections need.
struct Shared {
    broker: Arc<Broker>,
    node: NodeInfo,
    stop: Notify,
}

impl Control {
    /// Opens the socket in the data directory, in place of one that a process has left behind. A
    /// node whose file system has no sockets runs without.
    pub fn open(broker: Arc<Broker>, node: NodeInfo) -> Control {
        let path = address::in_data_dir(&node.data_dir);
        let shared = Arc::new(Shared {
            broker,
            node,
            stop: Notify::new(),
        });
        let accepting = match server::bind(&path) {
            Ok(listener) => Some(tokio::spawn(server::accept(listener, shared.clone()))),
            Err(error) => {
                tracing::warn!(
                    socket = %path.display(),
                    %error,
                    "cannot open the control socket: leveret ctl will not reach this server"
                );
                None
            }
        };
        Control { shared, accepting }
    }

    /// Waits until a request asks the node to stop.
    pub async fn asked_to_stop(&self) {
        self.shared.stop.notified().await;
    }

    /// Accepts no more, and removes the socket.
    pub fn close(self) {
        if let Some(accepting) = self.accepting {
            accepting.abort();
            // The directory is still locked, so it is our own.
            let _ = std::fs::remove_file(address::in_data_dir(&self.shared.node.data_dir));
        }
    }
}
