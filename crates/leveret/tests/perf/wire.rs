//! Between a load and its broker: everything passes, and what the load says is written down.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use amqp::frame::{HEADER_LEN, Header, Kind};
use amqp::{Method, Version};
use client::FieldTable;
use testkit::Broker;

use crate::support::*;

/// The broker's address on the way.
pub struct Wire {
    address: String,
    frames: Arc<Mutex<Vec<Said>>>,
}

/// A frame that carries a method.
#[derive(Debug, Clone)]
pub struct Said {
    pub channel: u16,
    pub at: Instant,
    payload: Vec<u8>,
}

impl Said {
    pub fn method(&self) -> Method<'_> {
        Method::decode(Version::V0_9_1, &self.payload).expect("a method")
    }
}

impl Wire {
    /// A way to that broker.
    pub fn to(broker: &Broker) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let target = options(broker).address();
        let frames = Arc::new(Mutex::new(Vec::new()));
        let kept = frames.clone();
        // Ends with the test program.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a client");
                let server = TcpStream::connect(&target).expect("the broker");
                pass_on(client, server, kept.clone());
            }
        });
        Wire { address, frames }
    }

    pub fn uri(&self) -> String {
        format!("amqp://{}", self.address)
    }

    /// What was said so far.
    pub fn said(&self) -> Vec<Said> {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.clone()
    }

    /// Picks out of what was said.
    pub fn all<T>(&self, mut pick: impl FnMut(&Method<'_>) -> Option<T>) -> Vec<T> {
        let said = self.said();
        let picked = said.iter().filter_map(|said| pick(&said.method()));
        picked.collect()
    }

    /// Names of the methods on channels, in order.
    pub fn names(&self) -> Vec<&'static str> {
        let said = self.said();
        let on_channels = said.iter().filter(|said| said.channel != 0);
        on_channels.map(|said| said.method().name()).collect()
    }

    /// How many methods of that name.
    pub fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|said| **said == name).count()
    }

    /// Declarations of queues.
    pub fn queues(&self) -> Vec<DeclaredQueue> {
        self.all(|method| match method {
            Method::QueueDeclare(declare) => Some(DeclaredQueue {
                name: declare.queue.lossy().into_owned(),
                passive: declare.passive,
                durable: declare.durable,
                exclusive: declare.exclusive,
                auto_delete: declare.auto_delete,
                arguments: declare.arguments.to_owned().expect("a table"),
            }),
            _ => None,
        })
    }

    /// Exchanges and keys of bindings.
    pub fn bindings(&self) -> Vec<(String, String)> {
        self.all(|method| match method {
            Method::QueueBind(bind) => Some((
                bind.exchange.lossy().into_owned(),
                bind.routing_key.lossy().into_owned(),
            )),
            _ => None,
        })
    }

    /// Exchanges and keys of messages.
    pub fn published(&self) -> Vec<(String, String)> {
        self.all(|method| match method {
            Method::BasicPublish(publish) => Some((
                publish.exchange.lossy().into_owned(),
                publish.routing_key.lossy().into_owned(),
            )),
            _ => None,
        })
    }
}

/// Arguments of queue.declare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeclaredQueue {
    pub name: String,
    pub passive: bool,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: FieldTable,
}

fn pass_on(client: TcpStream, server: TcpStream, kept: Arc<Mutex<Vec<Said>>>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("a TCP stream");
    }
    let mut back = (server.try_clone(), client.try_clone());
    std::thread::spawn(move || {
        if let (Ok(server), Ok(client)) = (&mut back.0, &mut back.1) {
            let _ = std::io::copy(server, client);
            let _ = client.shutdown(Shutdown::Write);
        }
    });
    std::thread::spawn(move || {
        let (mut client, mut server) = (client, server);
        let _ = listen(&mut client, &mut server, &kept);
        let _ = server.shutdown(Shutdown::Write);
    });
}

fn listen(
    client: &mut TcpStream,
    server: &mut TcpStream,
    kept: &Mutex<Vec<Said>>,
) -> std::io::Result<()> {
    let mut protocol = [0; 8];
    client.read_exact(&mut protocol)?;
    server.write_all(&protocol)?;
    loop {
        let mut frame = vec![0; HEADER_LEN];
        client.read_exact(&mut frame)?;
        let header = Header::decode(&frame).expect("seven bytes");
        frame.resize(HEADER_LEN + header.size as usize + 1, 0);
        client.read_exact(&mut frame[HEADER_LEN..])?;
        if header.kind == Kind::Method as u8 {
            let said = Said {
                channel: header.channel,
                at: Instant::now(),
                payload: frame[HEADER_LEN..frame.len() - 1].to_vec(),
            };
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(said);
        }
        server.write_all(&frame)?;
    }
}
