//! `leveret perf`: how fast, how late, and since when.
//!
//! `command/` reads the command line into [`settings::Settings`], `load/` runs them, `output/` shows
//! what happens, [`result`] is what stays. `scenarios/` are loads with a name; `report/`,
//! `changepoint/` and comparisons work on results alone.

pub mod changepoint;
mod changes;
pub mod clock;
mod command;
mod compare;
mod entry;
mod error;
mod interrupt;
mod load;
mod number;
mod output;
mod process;
mod report;
pub mod result;
pub mod scenarios;
pub mod settings;
pub mod sqs;
mod sync;

pub use entry::run;
pub use error::Error;
