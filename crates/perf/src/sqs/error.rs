//! Why a call failed, and the code by which failures are counted.

use std::io;
use std::time::Duration;

/// Longest code and message of a service that are kept.
const LONGEST: usize = 200;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address makes no sense.
    #[error("{0}")]
    Endpoint(String),
    /// Nobody knows how to sign.
    #[error(
        "no credentials for {0}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give \
         --access-key-id and --secret-access-key"
    )]
    NoCredentials(String),
    /// No connection.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// A connection, but no TLS on it.
    #[error("no TLS: {0}")]
    Tls(io::Error),
    /// The connection ended before the answer did.
    #[error("the connection was lost: {}", innermost(.0))]
    Lost(#[from] hyper::Error),
    /// No whole answer in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The service said no.
    #[error("{code}{}{message}", if message.is_empty() { "" } else { ": " })]
    Refused {
        /// HTTP status.
        status: u16,
        /// The service's code, or `HTTP 502` where it gave none.
        code: String,
        /// The service's words.
        message: String,
    },
    /// The answer is longer than 1 MiB.
    #[error("the answer is longer than 1 MiB")]
    TooLong,
    /// The answer is none.
    #[error("the answer makes no sense: {0}")]
    Malformed(String),
    /// A body changed on its way.
    #[error("a message's MD5 is {found}, not {expected}")]
    Md5 {
        /// Of the body here.
        expected: String,
        /// What the service said.
        found: String,
    },
}

impl Error {
    /// What a service refused with; an empty code becomes the HTTP status.
    pub fn refused(status: u16, code: &str, message: &str) -> Error {
        let code = match code.trim().is_empty() {
            true => format!("HTTP {status}"),
            false => printable(code),
        };
        Error::Refused {
            status,
            code,
            message: printable(message),
        }
    }

    /// The name under which failures like this one are counted.
    pub fn code(&self) -> &str {
        match self {
            Error::Endpoint(_) => "BadEndpoint",
            Error::NoCredentials(_) => "NoCredentials",
            Error::Connect(_) => "CannotConnect",
            Error::Tls(_) => "NoTLS",
            Error::Lost(_) => "ConnectionLost",
            Error::Timeout(_) => "Timeout",
            Error::Refused { code, .. } => code,
            Error::TooLong => "AnswerTooLong",
            Error::Malformed(_) => "MalformedAnswer",
            Error::Md5 { .. } => "WrongMD5",
        }
    }

    /// Whether the same call may succeed a moment later: throttling, a server's failure, a network's.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Connect(_) | Error::Lost(_) | Error::Timeout(_) => true,
            Error::Refused { status, code, .. } => {
                *status >= 500 || *status == 429 || code.contains("Throttl")
            }
            _ => false,
        }
    }

    /// Whether the service may have carried the call out all the same.
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Error::Refused { status, .. } => *status >= 500,
            Error::Endpoint(_) | Error::NoCredentials(_) => false,
            Error::Connect(_) | Error::Tls(_) => false,
            _ => true,
        }
    }
}

/// What is at the bottom of a failure: hyper's own words only say at which layer it showed.
fn innermost(error: &hyper::Error) -> &dyn std::error::Error {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost
}

/// A server's words, fit for a terminal and a report.
fn printable(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_cannot_write_to_the_terminal() {
        let error = Error::refused(400, "Bad\u{1b}[31m", &"a\n\n b".repeat(1000));
        assert_eq!(error.code(), "Bad [31m");
        let text = error.to_string();
        assert!(text.len() < 300 && text.starts_with("Bad [31m: a ba b"));
    }

    #[test]
    fn an_answer_without_a_code_is_counted_by_its_status() {
        let error = Error::refused(503, "", "");
        assert_eq!(error.to_string(), "HTTP 503");
        assert!(error.is_transient());
    }

    #[test]
    fn throttling_is_transient_and_a_missing_queue_is_not() {
        for code in [
            "RequestThrottled",
            "ThrottlingException",
            "AWS.SimpleQueueService.Throttling",
        ] {
            assert!(Error::refused(403, code, "").is_transient(), "{code}");
        }
        assert!(!Error::refused(400, "QueueDoesNotExist", "").is_transient());
    }
}
