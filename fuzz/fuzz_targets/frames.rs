//! Frames and methods: any bytes are refused or decoded, never a panic, and what is decoded is
//! encoded to the same method again, in every version.

#![no_main]

use amqp::frame::{self, END, HEADER_LEN, Header, Kind};
use amqp::{ContentHeader, Method, Version, Writer};
use leveret_fuzz::VERSIONS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: leveret_fuzz::plant(seeds()),
    |data: &[u8]| {
        protocol_header(data);
        let mut rest = data;
        while let Some(header) = Header::decode(rest) {
            header_comes_back(&header, rest);
            let end = HEADER_LEN.saturating_add(header.size as usize);
            let Some(payload) = rest.get(HEADER_LEN..end) else { break };
            match Kind::from_octet(header.kind) {
                Some(Kind::Method) => VERSIONS.iter().for_each(|version| method(*version, payload)),
                Some(Kind::Header) => drop(ContentHeader::decode(payload)),
                Some(Kind::Body) => body_is_split_and_joined(header.channel, payload),
                Some(Kind::Heartbeat) | None => {}
            }
            // The end octet is skipped whatever it is: the connection looks at it, not the codec.
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
);

fn protocol_header(data: &[u8]) {
    let Some((header, _)) = data.split_first_chunk() else {
        return;
    };
    if let Some(version) = Version::from_header(*header) {
        assert_eq!(Version::from_header(version.header()), Some(version));
    }
}

fn header_comes_back(header: &Header, bytes: &[u8]) {
    if let Some(kind) = Kind::from_octet(header.kind) {
        assert_eq!(
            Header::encode(kind, header.channel, header.size),
            bytes[..HEADER_LEN]
        );
    }
}

fn method(version: Version, payload: &[u8]) {
    let method = match Method::decode(version, payload) {
        Ok(method) => method,
        Err(error) => {
            assert!(error.reply_code().closes_connection(), "{error}");
            return;
        }
    };
    let mut encoded = Vec::new();
    method.write(version, &mut Writer::new(&mut encoded));
    // Bits that stand for nothing are not kept, so the bytes may differ; the lengths may not.
    assert_eq!(encoded.len(), payload.len(), "{method:?}");
    let again = Method::decode(version, &encoded);
    assert_eq!(again, Ok(method));
    // Tables are compared as bytes above, so this says the same of what is in them.
    assert_eq!(again.map(|again| again.check()), Ok(method.check()));
    assert_eq!(
        encoded[..4],
        payload[..4],
        "{} has other numbers now",
        method.name()
    );

    let mut framed = Vec::new();
    frame::write_method(&mut framed, 1, version, &method);
    assert_eq!(framed[HEADER_LEN..], [&encoded[..], &[END]].concat());
}

/// The frame limit is taken from the channel number, so that small ones are tried too.
fn body_is_split_and_joined(channel: u16, body: &[u8]) {
    let frame_max = u32::from(channel);
    let mut frames = Vec::new();
    frame::write_body(&mut frames, channel, body, frame_max);
    let (mut rest, mut joined) = (&frames[..], Vec::new());
    while let Some(header) = Header::decode(rest) {
        let size = header.size as usize;
        let whole = size + frame::OVERHEAD;
        assert!(whole as u32 <= frame_max.max(frame::OVERHEAD as u32 + 1));
        assert_eq!((header.kind, header.channel), (Kind::Body as u8, channel));
        joined.extend_from_slice(&rest[HEADER_LEN..HEADER_LEN + size]);
        assert_eq!(rest[whole - 1], END);
        rest = &rest[whole..];
    }
    assert!(rest.is_empty());
    assert_eq!(joined, body);
}

/// Every method of every version, and a publish with its content.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for version in VERSIONS {
        seeds.push(version.header().to_vec());
        seeds.extend(leveret_fuzz::methods(version).map(|payload| framed(Kind::Method, &payload)));
    }
    let publish = amqp::method::basic::Publish::default();
    let mut content = Vec::new();
    frame::write_method(&mut content, 1, Version::V0_9_1, &publish.into());
    frame::write_header(
        &mut content,
        1,
        &ContentHeader::basic(4, amqp::Properties::default()),
    );
    frame::write_body(&mut content, 1, b"body", frame::MIN_FRAME_MAX);
    content.extend_from_slice(&frame::HEARTBEAT);
    seeds.push(content);
    seeds
}

fn framed(kind: Kind, payload: &[u8]) -> Vec<u8> {
    [
        &Header::encode(kind, 1, payload.len() as u32),
        payload,
        &[END],
    ]
    .concat()
}
