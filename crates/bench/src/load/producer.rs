//! Publishes one stream of messages to one place. Every body begins with the message's number in
//! the stream, so that whoever consumes them can check their order.

use std::sync::Arc;

use client::{Connection, Event, Options, Properties, PropertiesBuilder, PublishFlags};

use super::confirms::Confirms;
use super::unexpected;
use crate::error::Error;

/// Bytes of publishes per write.
const BATCH: usize = 64 << 10;
/// The last message of a stream. Shorter than a number.
pub const QUIT: &[u8] = b"quit";
/// Bytes of a number.
pub const NUMBER: usize = 8;

/// What is published, and where to.
#[derive(Debug, Clone)]
pub struct Message {
    pub exchange: String,
    /// Used in turns, one a message.
    pub routing_keys: Arc<[Box<str>]>,
    /// Bytes of body; at least those of a number.
    pub body: usize,
    pub persistent: bool,
}

impl Message {
    /// To a queue, through the default exchange.
    pub fn to_queue(queue: &str, body: usize, persistent: bool) -> Message {
        Message {
            exchange: String::new(),
            routing_keys: [queue.into()].into(),
            body,
            persistent,
        }
    }

    fn routing_key(&self, number: u64) -> &str {
        in_turn::<Box<str>>(&self.routing_keys, number)
    }
}

fn in_turn<T>(all: &[T], number: u64) -> &T {
    &all[(number % all.len() as u64) as usize]
}

pub struct Producer {
    pub connection: Connection,
    pub channel: u16,
    message: Message,
    /// Used in turns, one a message.
    properties: Vec<Vec<u8>>,
    body: Vec<u8>,
    /// Messages that may be unconfirmed; `None` without confirms.
    window: Option<u64>,
    confirms: Confirms,
    /// Number of the first message, and of the next.
    first: u64,
    next: u64,
}

impl Producer {
    pub async fn connect(options: &Options, message: Message) -> Result<Producer, Error> {
        let mut connection = Connection::connect(options).await?;
        let channel = connection.open_channel().await?;
        let properties = match message.persistent {
            true => PropertiesBuilder::default().delivery_mode(2).finish(),
            false => Properties::default().as_wire().to_vec(),
        };
        Ok(Producer {
            connection,
            channel,
            properties: vec![properties],
            body: vec![b'x'; message.body.max(NUMBER)],
            message,
            window: None,
            confirms: Confirms::default(),
            first: 0,
            next: 0,
        })
    }

    /// Asks for confirms; at most `window` messages are unconfirmed at a time.
    pub async fn confirm_within(&mut self, window: u64) -> Result<(), Error> {
        self.connection.confirm_select(self.channel).await?;
        self.window = Some(window);
        Ok(())
    }

    /// Gives messages these properties in turns, as on the wire; at least one.
    pub fn take_turns(&mut self, properties: Vec<Vec<u8>>) {
        self.properties = properties;
    }

    /// Continues a stream at that number.
    pub fn begin_at(&mut self, number: u64) {
        (self.first, self.next) = (number, number);
    }

    /// Number of the next message: of a stream from its beginning, how many were published.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The number from which messages are not confirmed.
    pub fn confirmed(&self) -> u64 {
        self.first + self.confirms.up_to()
    }

    fn unconfirmed(&self) -> u64 {
        self.next - self.first - self.confirms.count()
    }

    /// The rest of the body, for marks beside the number.
    pub fn body_after_number(&mut self) -> &mut [u8] {
        &mut self.body[NUMBER..]
    }

    /// Appends the next message to what is to be written.
    pub fn publish(&mut self) -> Result<(), Error> {
        self.body[..NUMBER].copy_from_slice(&self.next.to_be_bytes());
        self.connection.publish(
            self.channel,
            &self.message.exchange,
            self.message.routing_key(self.next).as_bytes(),
            PublishFlags::NONE,
            Properties::from_wire(in_turn::<Vec<u8>>(&self.properties, self.next)),
            &self.body,
        )?;
        self.next += 1;
        Ok(())
    }

    /// Publishes one batch, up to the message `end` and as far as the window allows. Waits for
    /// confirms only while the window is full.
    pub async fn step(&mut self, end: u64) -> Result<(), Error> {
        let room = self.window.map_or(u64::MAX, |w| w - self.unconfirmed());
        let end = end.min(self.next.saturating_add(room));
        while self.next < end && self.connection.pending() < BATCH {
            self.publish()?;
        }
        match self.window {
            Some(window) if self.unconfirmed() >= window => self.connection.ready().await?,
            _ => self.connection.flush().await?,
        }
        self.take_confirms()
    }

    /// Waits until everything is confirmed.
    pub async fn settle(&mut self) -> Result<(), Error> {
        while self.window.is_some() && self.unconfirmed() > 0 {
            self.connection.ready().await?;
            self.take_confirms()?;
        }
        Ok(())
    }

    /// Takes the confirms that have arrived.
    pub fn take_confirms(&mut self) -> Result<(), Error> {
        while let Some(event) = self.connection.try_next()? {
            match event {
                Event::Confirm(confirm) if confirm.acked => {
                    self.confirms.note(confirm.delivery_tag, confirm.multiple);
                }
                Event::Blocked { reason } => {
                    eprintln!("bench: the broker blocks publishers: {}", reason.lossy());
                }
                Event::Unblocked => eprintln!("bench: the broker unblocks publishers"),
                event => return Err(unexpected("producer", &event)),
            }
        }
        Ok(())
    }

    /// Commits the transaction, and begins the next.
    pub async fn commit(&mut self) -> Result<(), Error> {
        Ok(self.connection.tx_commit(self.channel).await?)
    }

    /// Tells the consumer that this was all.
    pub fn publish_quit(&mut self) -> Result<(), Error> {
        let exchange = &self.message.exchange;
        let routing_key = self.message.routing_key(self.next);
        let (flags, none) = (PublishFlags::NONE, Properties::default());
        self.connection
            .publish(self.channel, exchange, routing_key, flags, none, QUIT)?;
        Ok(())
    }

    /// The broker has taken everything once this returns.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.connection.close().await?)
    }
}
