//! Frames: a seven-byte header, a payload, an end octet (0-9-1 section 4.2.3).

use crate::{ContentHeader, Method, Version, Writer};

/// Bytes before the payload: type, channel, size.
pub const HEADER_LEN: usize = 7;
/// The octet after every payload.
pub const END: u8 = 0xCE;
/// Header and end octet together.
pub const OVERHEAD: usize = HEADER_LEN + 1;
/// The least frame size that a peer may negotiate, header and end octet included.
pub const MIN_FRAME_MAX: u32 = 4096;
/// A heartbeat, whole.
pub const HEARTBEAT: [u8; OVERHEAD] = [8, 0, 0, 0, 0, 0, 0, END];

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A method and its arguments.
    Method = 1,
    /// A content header.
    Header = 2,
    /// A part of a content body.
    Body = 3,
    /// A sign of life.
    Heartbeat = 8,
}

impl Kind {
    /// The kind with that type octet.
    #[inline]
    pub fn from_octet(octet: u8) -> Option<Kind> {
        match octet {
            1 => Some(Kind::Method),
            2 => Some(Kind::Header),
            3 => Some(Kind::Body),
            8 => Some(Kind::Heartbeat),
            _ => None,
        }
    }
}

/// The first seven bytes of a frame, unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The type octet; see [`Kind::from_octet`].
    pub kind: u8,
    /// Channel number.
    pub channel: u16,
    /// Payload bytes that follow, without the end octet.
    pub size: u32,
}

impl Header {
    /// Decodes the header, or `None` where fewer than seven bytes are there yet.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let (head, _) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let [kind, c0, c1, s0, s1, s2, s3] = *head;
        Some(Header {
            kind,
            channel: u16::from_be_bytes([c0, c1]),
            size: u32::from_be_bytes([s0, s1, s2, s3]),
        })
    }

    /// Encodes the header.
    #[inline]
    pub fn encode(kind: Kind, channel: u16, size: u32) -> [u8; HEADER_LEN] {
        let [c0, c1] = channel.to_be_bytes();
        let [s0, s1, s2, s3] = size.to_be_bytes();
        [kind as u8, c0, c1, s0, s1, s2, s3]
    }
}

/// Appends a method frame.
pub fn write_method(out: &mut Vec<u8>, channel: u16, version: Version, method: &Method<'_>) {
    write_framed(out, Kind::Method, channel, |writer| {
        method.write(version, writer)
    });
}

/// Appends a content header frame.
pub fn write_header(out: &mut Vec<u8>, channel: u16, header: &ContentHeader<'_>) {
    write_framed(out, Kind::Header, channel, |writer| header.write(writer));
}

/// Appends a body as frames of at most `frame_max` bytes each, overhead included; none if empty.
pub fn write_body(out: &mut Vec<u8>, channel: u16, body: &[u8], frame_max: u32) {
    let chunk = (frame_max as usize).max(OVERHEAD + 1) - OVERHEAD;
    for part in body.chunks(chunk) {
        out.extend_from_slice(&Header::encode(Kind::Body, channel, part.len() as u32));
        out.extend_from_slice(part);
        out.push(END);
    }
}

fn write_framed(
    out: &mut Vec<u8>,
    kind: Kind,
    channel: u16,
    payload: impl FnOnce(&mut Writer<'_>),
) {
    let start = out.len();
    out.extend_from_slice(&Header::encode(kind, channel, 0));
    payload(&mut Writer::new(out));
    let size = (out.len() - start - HEADER_LEN) as u32;
    out[start + 3..start + HEADER_LEN].copy_from_slice(&size.to_be_bytes());
    out.push(END);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_split_at_frame_max() {
        let mut out = Vec::new();
        write_body(&mut out, 3, &[7; 25], 18);
        let sizes: Vec<u32> = out
            .chunks(18)
            .map(|frame| Header::decode(frame).expect("a whole header").size)
            .collect();
        assert_eq!(sizes, [10, 10, 5]);
    }

    #[test]
    fn empty_body_has_no_frame() {
        let mut out = Vec::new();
        write_body(&mut out, 1, &[], 4096);
        assert!(out.is_empty());
    }

    #[test]
    fn header_needs_seven_bytes() {
        assert_eq!(Header::decode(&[1, 0, 1, 0, 0, 0]), None);
        let header = Header {
            kind: 1,
            channel: 258,
            size: 5,
        };
        assert_eq!(
            Header::decode(&Header::encode(Kind::Method, 258, 5)),
            Some(header)
        );
    }
}
