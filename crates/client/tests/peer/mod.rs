//! A broker that follows a script: one connection, blocking, on a thread of its own.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use amqp::frame::{self, Header};
use amqp::method::{basic, connection};
use amqp::{ContentHeader, FieldTable, Method, Properties, ShortStr, Table, Version};
use client::Options;

/// The broker's end of the connection.
pub struct Peer {
    stream: TcpStream,
    pub version: Version,
    /// The payload of the last frame that was read.
    payload: Vec<u8>,
}

/// Starts a broker that runs `script` on the first connection; returns how to reach it.
pub fn start(script: impl FnOnce(&mut Peer) + Send + 'static) -> (Options, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_nodelay(true).expect("a TCP stream");
        script(&mut Peer {
            stream,
            version: Version::V0_9_1,
            payload: Vec::new(),
        });
    });
    (
        Options {
            host: "127.0.0.1".into(),
            port,
            ..Options::default()
        },
        thread,
    )
}

/// The same, after an ordinary handshake.
pub fn start_open(script: impl FnOnce(&mut Peer) + Send + 'static) -> (Options, JoinHandle<()>) {
    start(|peer| {
        peer.handshake();
        script(peer);
    })
}

pub fn name(text: &str) -> ShortStr<'_> {
    ShortStr::try_from(text).expect("a short name")
}

impl Peer {
    /// Start to open-ok, proposing `heartbeat` 1 and frames of 4096 bytes.
    pub fn handshake(&mut self) {
        self.read_header();
        self.start();
        assert!(matches!(self.read(), (0, Method::ConnectionStartOk(_))));
        self.write(
            0,
            connection::Tune {
                channel_max: 100,
                frame_max: 4096,
                heartbeat: 1,
            },
        );
        assert!(matches!(self.read(), (0, Method::ConnectionTuneOk(_))));
        assert!(matches!(self.read(), (0, Method::ConnectionOpen(_))));
        self.write(0, connection::OpenOk::default());
    }

    pub fn read_header(&mut self) {
        let mut header = [0; 8];
        self.stream
            .read_exact(&mut header)
            .expect("a protocol header");
        self.version = Version::from_header(header).expect("a known version");
    }

    pub fn start(&mut self) {
        let properties = FieldTable::new().with("product", "scripted").encode();
        let (version_major, version_minor) = self.version.major_minor();
        self.write(
            0,
            connection::Start {
                version_major,
                version_minor,
                server_properties: Table::from_wire(&properties),
                mechanisms: b"PLAIN AMQPLAIN",
                locales: b"en_US",
            },
        );
    }

    /// The next frame: type, channel, payload. `None` at the end of the stream.
    pub fn read_frame(&mut self) -> Option<(u8, u16, &[u8])> {
        let mut head = [0; frame::HEADER_LEN];
        self.stream.read_exact(&mut head).ok()?;
        let header = Header::decode(&head).expect("seven bytes");
        self.payload.resize(header.size as usize + 1, 0);
        self.stream
            .read_exact(&mut self.payload)
            .expect("a whole frame");
        assert_eq!(self.payload.pop(), Some(frame::END));
        Some((header.kind, header.channel, &self.payload))
    }

    /// The next method, passing over contents and heartbeats.
    pub fn read(&mut self) -> (u16, Method<'_>) {
        let (channel, version) = loop {
            let version = self.version;
            match self.read_frame().expect("the client is still there") {
                (1, channel, _) => break (channel, version),
                _ => continue,
            }
        };
        (
            channel,
            Method::decode(version, &self.payload).expect("a method"),
        )
    }

    pub fn write<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let mut out = Vec::new();
        frame::write_method(&mut out, channel, self.version, &method.into());
        self.write_bytes(&out);
    }

    pub fn write_bytes(&mut self, bytes: &[u8]) {
        self.stream
            .write_all(bytes)
            .expect("the client is still there");
    }

    /// Writes until the client hangs up.
    pub fn write_forever(&mut self, bytes: &[u8]) {
        while self.stream.write_all(bytes).is_ok() {}
    }

    /// Reads until the client hangs up.
    pub fn read_forever(&mut self) {
        let mut sink = vec![0; 1 << 20];
        while self.stream.read(&mut sink).is_ok_and(|len| len > 0) {}
    }

    /// True once the client has closed its end.
    pub fn hung_up(&mut self) -> bool {
        self.stream.read(&mut [0]).is_ok_and(|len| len == 0)
    }
}

/// The frames of a delivery, apart: method, header, body frames of up to 4096 bytes.
pub fn delivery(channel: u16, delivery_tag: u64, body: &[u8]) -> Vec<Vec<u8>> {
    let deliver = basic::Deliver {
        consumer_tag: name("ctag"),
        delivery_tag,
        redelivered: false,
        exchange: name("x"),
        routing_key: name("key"),
    };
    let mut method = Vec::new();
    frame::write_method(&mut method, channel, Version::V0_9_1, &deliver.into());
    let mut header = Vec::new();
    let content = ContentHeader::basic(body.len() as u64, Properties::default());
    frame::write_header(&mut header, channel, &content);
    let mut frames = vec![method, header];
    for part in body.chunks(4096 - frame::OVERHEAD) {
        let mut out = Vec::new();
        frame::write_body(&mut out, channel, part, 4096);
        frames.push(out);
    }
    frames
}
