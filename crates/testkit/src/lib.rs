//! For tests and measurements only: a `leveret` process on a free port, its log, and what it uses;
//! a disk that fails ([`FaultyDisk`]); random numbers
//! from a seed ([`Random`]).
//!
//! ```no_run
//! # fn example() -> Result<(), testkit::Error> {
//! let broker = testkit::Broker::start("target/debug/leveret")?;
//! let uri = broker.uri(); // amqp://127.0.0.1:PORT
//! # let _ = uri;
//! broker.stop()
//! # }
//! ```

mod broker;
mod error;
mod faulty_disk;
mod log;
mod process;
mod random;

pub use broker::{Broker, Builder};
pub use error::Error;
pub use faulty_disk::{FaultyDisk, Survival};
pub use process::{Usage, open_files_limit, raise_open_files, written_bytes};
pub use random::Random;
