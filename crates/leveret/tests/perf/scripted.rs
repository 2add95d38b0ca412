//! A broker that takes messages and confirms them as a script says.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amqp::frame::{self, Header};
use amqp::method::{basic, channel, confirm, connection, exchange, queue, tx};
use amqp::{FieldTable, Method, ShortStr, Table, Version};

use crate::support::*;

/// A client that says nothing for so long waits for something.
const QUIET: Duration = millis(150);

/// What a script is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// The message of that number, from 1, came on the channel.
    Published { channel: u16, number: u64 },
    /// The client waits.
    Quiet,
}

/// A connection, as its script sees it.
pub struct Link {
    stream: TcpStream,
    unread: Vec<u8>,
    published: u64,
}

/// Starts a broker; returns its URI. All its connections share the script.
pub fn start(script: impl FnMut(&mut Link, Happening) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let script = Arc::new(Mutex::new(script));
    // Ends with the test program.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a client");
            stream.set_nodelay(true).expect("a TCP stream");
            let script = script.clone();
            std::thread::spawn(move || {
                let mut link = Link {
                    stream,
                    unread: Vec::new(),
                    published: 0,
                };
                link.serve(&mut |link, happening| {
                    script.lock().unwrap_or_else(PoisonError::into_inner)(link, happening);
                });
            });
        }
    });
    format!("amqp://{address}")
}

impl Link {
    fn serve(&mut self, script: &mut dyn FnMut(&mut Link, Happening)) {
        self.open();
        let quiet = self.stream.set_read_timeout(Some(QUIET));
        quiet.expect("a TCP stream");
        loop {
            match self.frame() {
                Ok(Some((1, channel, payload))) => {
                    let method = Method::decode(Version::V0_9_1, &payload).expect("a method");
                    if let Method::BasicPublish(_) = method {
                        self.published += 1;
                        let number = self.published;
                        script(self, Happening::Published { channel, number });
                    } else if !self.answer(channel, &method) {
                        return;
                    }
                }
                Ok(Some(_)) => {}
                // Only those that have published are waited for.
                Ok(None) if self.published > 0 => script(self, Happening::Quiet),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    fn open(&mut self) {
        let mut header = [0; 8];
        let read = self.stream.read_exact(&mut header);
        read.expect("a protocol header");
        let properties = FieldTable::new().with("product", "scripted").encode();
        self.send(
            0,
            connection::Start {
                version_major: 0,
                version_minor: 9,
                server_properties: Table::from_wire(&properties),
                mechanisms: b"PLAIN",
                locales: b"en_US",
            },
        );
    }

    /// Answers anything but messages; false at the end of the connection.
    fn answer(&mut self, channel: u16, method: &Method<'_>) -> bool {
        match method {
            Method::ConnectionStartOk(_) => {
                let tune = connection::Tune {
                    channel_max: 100,
                    frame_max: 131_072,
                    heartbeat: 0,
                };
                self.send(0, tune);
            }
            Method::ConnectionOpen(_) => self.send(0, connection::OpenOk::default()),
            Method::ConnectionClose(_) => {
                self.send(0, connection::CloseOk::default());
                return false;
            }
            Method::ChannelOpen(_) => self.send(channel, channel::OpenOk::default()),
            Method::ChannelClose(_) => self.send(channel, channel::CloseOk::default()),
            Method::ConfirmSelect(_) => self.send(channel, confirm::SelectOk::default()),
            Method::TxSelect(_) => self.send(channel, tx::SelectOk::default()),
            Method::ExchangeDeclare(_) => self.send(channel, exchange::DeclareOk::default()),
            Method::QueueDeclare(declare) => {
                let declared = queue::DeclareOk {
                    queue: ShortStr::new(declare.queue.as_bytes()).expect("short"),
                    ..queue::DeclareOk::default()
                };
                self.send(channel, declared);
            }
            _ => {}
        }
        true
    }

    /// The next frame: type, channel, payload; `None` when the client is quiet.
    fn frame(&mut self) -> std::io::Result<Option<(u8, u16, Vec<u8>)>> {
        loop {
            if let Some(header) = Header::decode(&self.unread) {
                let whole = header.size as usize + frame::OVERHEAD;
                if self.unread.len() >= whole {
                    let frame: Vec<u8> = self.unread.drain(..whole).collect();
                    let payload = frame[frame::HEADER_LEN..whole - 1].to_vec();
                    return Ok(Some((header.kind, header.channel, payload)));
                }
            }
            let mut bytes = [0; 65_536];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.unread.extend_from_slice(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Confirms messages.
    pub fn ack(&mut self, channel: u16, delivery_tag: u64, multiple: bool) {
        self.send(
            channel,
            basic::Ack {
                delivery_tag,
                multiple,
            },
        );
    }

    /// Refuses messages.
    pub fn nack(&mut self, channel: u16, delivery_tag: u64, multiple: bool) {
        self.send(
            channel,
            basic::Nack {
                delivery_tag,
                multiple,
                requeue: false,
            },
        );
    }

    fn send<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let mut out = Vec::new();
        frame::write_method(&mut out, channel, Version::V0_9_1, &method.into());
        // A client that is gone shows when it is read from.
        let _ = self.stream.write_all(&out);
    }
}
