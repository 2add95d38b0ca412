//! Wire format of AMQP 0-8, 0-9 and 0-9-1: frames, methods, field tables, content headers.
//!
//! Owns every byte layout and nothing else: no sockets, no runtime, no broker state. Decoding
//! borrows from the caller's buffer and never allocates more than what it was given; every length
//! is checked against the bytes at hand before it is believed. The three protocol versions share
//! one codec; where they differ, the [`Version`] parameter decides.

mod error;
pub mod frame;
pub mod method;
mod properties;
mod reply;
mod shortstr;
mod table;
mod value;
mod version;
mod wire;

pub use error::DecodeError;
pub use method::Method;
pub use properties::{ContentHeader, Properties, PropertiesBuilder, Property, PropertySummary};
pub use reply::ReplyCode;
pub use shortstr::ShortStr;
pub use table::{FieldTable, Table};
pub use value::{Array, FieldValue, MAX_DEPTH, Value};
pub use version::{HEADER_LEN, Version};
pub use wire::{Field, Reader, Writer};
