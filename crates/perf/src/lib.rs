//! `leveret perf`: how fast, how late, and since when.
//!
//! `command/` reads the command line into [`settings::Settings`], `load/` runs them, `output/` shows
//! what happens, [`result`] is what stays. `scenarios/` are loads with a name; `report/`,
//! `changepoint/` and comparisons work on results alone.

pub mod changepoint;
pub mod clock;
mod command;
mod error;
pub mod result;
pub mod settings;

pub use error::Error;
