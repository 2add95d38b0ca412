//! Messages at rest: the one layout that a message has in memory, in the log and in segments; what
//! is kept of queues and definitions, and how it is found again.
//!
//! A message is laid out once, when it is published, and never copied into another form on its way
//! through queues. What is kept of it on disk is these same bytes: at once in the log (the `wal`
//! crate), and, if it stays, in a segment of its queue. `docs/storage-format.md` describes every
//! byte; `docs/architecture.md` how the parts work together.

mod bytes;
pub mod check;
mod data_dir;
mod definitions;
mod error;
mod liveness;
mod load;
mod manifest;
mod message;
mod op;
mod pager;
mod queue;
mod recovery;
mod resident;
mod segment;
mod seq;
mod shared;
mod store;

pub use data_dir::DirectoryLock;
pub use definitions::{DefinitionChange, DefinitionMap};
pub use error::Error;
pub use liveness::Epoch;
pub use load::{Load, Loaded};
pub use message::{Message, MessageBuilder, MessageHead, Times};
pub use queue::{Flush, Identity, QueueStore, Record, TransactionRecord, Written};
pub use recovery::{Recovered, RecoveredQueue};
pub use resident::{FlushGoal, MAX_FLUSH_BYTES, MAX_FLUSH_MESSAGES, Resident};
pub use seq::{QueueSeq, SeqRun};
pub use store::{Budget, Store, Work};
pub use wal::{Disk, Durability, Lsn, MAX_PAYLOAD as MAX_TRANSACTION, RealDisk, StreamId};
