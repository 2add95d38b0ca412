//! Why a measurement could not be made.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] client::Error),
    #[error(transparent)]
    Broker(#[from] testkit::Error),
    #[error("no broker at {0}: run `cargo build --release -p leveret`, or set LEVERET_BIN")]
    NoBinary(PathBuf),
    #[error("sent {sent} messages but received {received}: the broker lost or doubled some")]
    Miscount { sent: u64, received: u64 },
    #[error("message {got} came where {expected} was next: the broker lost, doubled or moved some")]
    OutOfOrder { expected: u64, got: u64 },
    #[error("the queue holds {found} messages, not {wanted}: the broker lost or doubled some")]
    Depth { wanted: u64, found: u64 },
    #[error(
        "only {found} of {count} messages still waited when the last came: too slow to measure"
    )]
    ExpiredEarly { count: u64, found: u64 },
    #[error("the {role} did not finish within {limit:?}: the broker stands still")]
    Stuck { role: &'static str, limit: Duration },
    #[error("the {role} got {event} from the broker")]
    Unexpected { role: &'static str, event: String },
    #[error("only {allowed} files may be opened, {wanted} are needed: raise the limit (ulimit -n)")]
    TooFewFiles { allowed: u64, wanted: u64 },
    #[error("{wanted} bytes of disk are needed at {path}, {free} are free (see TMPDIR)")]
    TooLittleRoom {
        path: PathBuf,
        free: u64,
        wanted: u64,
    },
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start a runtime: {0}")]
    Runtime(#[source] std::io::Error),
    #[error("leveret ctl: {0}")]
    Ctl(#[source] std::io::Error),
    #[error("a load thread panicked; see its message above")]
    Panicked,
    #[error("no message arrived during a round: the broker does not deliver")]
    Silent,
    #[error("{0} of the cases failed")]
    Failed(usize),
}
