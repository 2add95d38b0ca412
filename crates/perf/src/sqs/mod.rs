//! A client of Amazon SQS and of whatever speaks like it: both wire protocols, both signatures.
//!
//! [`Client`] carries out an [`Action`]: `request` has it written by `query` or `json` and signed by
//! `signature_v2` or `signature_v4`, as [`Protocol`] says; `http` carries it.
//!
//! A client belongs to one thread, runs in a `tokio::task::LocalSet`, and needs no lock. An answer
//! is not trusted: it is read up to 1 MiB, decoding never panics, a body must match its MD5.

mod action;
mod client;
mod credentials;
mod encoding;
mod endpoint;
mod error;
mod http;
mod json;
mod query;
mod request;
mod signature_v2;
mod signature_v4;
mod xml;

pub use action::{Action, Answer, Entry, Message, Outcome};
pub use client::{Client, Options, Protocol, Signature};
pub use credentials::{Credentials, Secret};
pub use endpoint::Endpoint;
pub use error::Error;
