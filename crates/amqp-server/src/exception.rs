//! Exceptions: errors with the method that caused them, as close methods carry them.

use amqp::method::connection;
use amqp::{DecodeError, ReplyCode, ShortStr};

/// What ends a channel or a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    pub code: ReplyCode,
    /// Without the code's name.
    pub text: String,
    /// Class and method id of the cause; zeros where it was not a method.
    pub cause: (u16, u16),
}

impl Exception {
    pub fn new(code: ReplyCode, text: impl Into<String>) -> Self {
        Exception {
            code,
            text: text.into(),
            cause: (0, 0),
        }
    }

    pub fn caused_by(mut self, cause: (u16, u16)) -> Self {
        self.cause = cause;
        self
    }

    /// Names the cause unless it is known already.
    pub fn or_caused_by(self, cause: (u16, u16)) -> Self {
        if self.cause == (0, 0) {
            self.caused_by(cause)
        } else {
            self
        }
    }

    /// A method frame's payload that is no method, or whose arguments are malformed.
    pub fn cannot_decode(error: DecodeError, payload: &[u8]) -> Self {
        let cause = match payload {
            [c0, c1, m0, m1, ..] => (
                u16::from_be_bytes([*c0, *c1]),
                u16::from_be_bytes([*m0, *m1]),
            ),
            _ => (0, 0),
        };
        let arguments = payload.get(4..).unwrap_or_default();
        let exception = match error {
            DecodeError::UnknownMethod { .. } => {
                Exception::new(ReplyCode::CommandInvalid, "unimplemented method")
            }
            DecodeError::NotUtf8(_) => {
                return Exception::new(ReplyCode::FrameError, "Malformed UTF-8 in shortstr");
            }
            _ => Exception::new(
                ReplyCode::FrameError,
                format!("cannot decode {}", erlang_binary(arguments)),
            ),
        };
        exception.caused_by(cause)
    }

    /// Properties, or the arguments of a method whose cause is added later.
    pub fn malformed(octets: &[u8]) -> Self {
        let text = format!("cannot decode {}", erlang_binary(octets));
        Exception::new(ReplyCode::FrameError, text)
    }

    /// As it goes on the wire: at most 255 bytes, the last three dots where it was longer.
    pub fn reply_text(&self) -> String {
        const DOTS: &str = "...";
        let mut text = match self.text.as_str() {
            "" => self.code.name().to_owned(),
            text => format!("{} - {text}", self.code.name()),
        };
        if text.len() > ShortStr::MAX_LEN {
            text.truncate(text.floor_char_boundary(ShortStr::MAX_LEN - DOTS.len()));
            text.push_str(DOTS);
        }
        text
    }

    /// As connection.close; the text is [`Exception::reply_text`]'s.
    pub fn connection_close<'t>(&self, reply_text: &'t str) -> connection::Close<'t> {
        connection::Close {
            reply_code: self.code.code(),
            reply_text: ShortStr::truncated(reply_text),
            class_id: self.cause.0,
            method_id: self.cause.1,
        }
    }
}

impl From<broker::Error> for Exception {
    fn from(error: broker::Error) -> Self {
        Exception::new(error.code, error.text)
    }
}

impl From<DecodeError> for Exception {
    fn from(error: DecodeError) -> Self {
        Exception::new(error.reply_code(), error.to_string())
    }
}

/// A frame's payload, or its beginning, as RabbitMQ's frame errors show it.
pub(crate) fn octets(payload: &[u8]) -> String {
    const SHOWN: usize = 16;
    match payload.get(..SHOWN) {
        Some(first) if payload.len() > SHOWN => {
            format!("first {SHOWN} octets = {}", erlang_binary(first))
        }
        _ => format!("all octets = {}", erlang_binary(payload)),
    }
}

/// Octets as Erlang prints them: text where it can be read, else numbers. Bounded, since a reply
/// text takes 255 bytes.
fn erlang_binary(octets: &[u8]) -> String {
    let octets = &octets[..octets.len().min(255)];
    let printable = |byte: &u8| matches!(byte, 0x20..=0x7e);
    if octets.is_empty() || !octets.iter().all(printable) {
        let numbers: Vec<String> = octets.iter().map(u8::to_string).collect();
        return format!("<<{}>>", numbers.join(","));
    }
    let text: String = octets.iter().map(|byte| char::from(*byte)).collect();
    format!("<<{text:?}>>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_shown_as_erlang_does() {
        assert_eq!(octets(b""), "all octets = <<>>");
        assert_eq!(octets(b"abc"), "all octets = <<\"abc\">>");
        assert_eq!(octets(&[0, 20, 0, 20, 1]), "all octets = <<0,20,0,20,1>>");
        assert_eq!(
            octets(&[b'x'; 40]),
            format!("first 16 octets = <<\"{}\">>", "x".repeat(16))
        );
    }
}
