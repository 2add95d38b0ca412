//! Consumes one stream of messages from one queue, and checks that none is missing, doubled or out
//! of order.

use client::{Connection, ConsumeOptions, Event, Options};

use super::producer::{NUMBER, QUIT};
use super::unexpected;
use crate::error::Error;

const TAG: &str = "bench";

/// How deliveries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// Not at all.
    None,
    /// All that was read at once, together; so many may be unacknowledged.
    Batch { prefetch: u16 },
    /// One by one; any number may be unacknowledged.
    Each,
}

pub struct Consumer {
    connection: Connection,
    channel: u16,
    acks: Acks,
    ordered: bool,
    next: u64,
    quit: bool,
}

impl Consumer {
    pub async fn connect(options: &Options, queue: &str, acks: Acks) -> Result<Consumer, Error> {
        let mut connection = Connection::connect(options).await?;
        let channel = connection.open_channel().await?;
        if let Acks::Batch { prefetch } = acks {
            connection.qos(channel, prefetch, false).await?;
        }
        let consume = ConsumeOptions {
            consumer_tag: TAG.into(),
            no_ack: acks == Acks::None,
            ..ConsumeOptions::default()
        };
        connection.consume(channel, queue, &consume).await?;
        Ok(Consumer {
            connection,
            channel,
            acks,
            ordered: true,
            next: 0,
            quit: false,
        })
    }

    /// The messages are only counted: each producer numbers its own.
    pub fn of_several_producers(&mut self) {
        self.ordered = false;
    }

    /// Number of the message that must come next: how many have come.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// True once the last message has come.
    pub fn quit(&self) -> bool {
        self.quit
    }

    /// Waits for messages, takes all that have arrived, and acknowledges them; returns how many.
    /// `each` is shown what follows the number in each body.
    pub async fn take(&mut self, mut each: impl FnMut(&[u8])) -> Result<u64, Error> {
        self.connection.ready().await?;
        let before = self.next;
        let mut last = None;
        while let Some((event, output)) = self.connection.try_next_and_output()? {
            let Event::Delivery(delivery) = event else {
                return Err(unexpected("consumer", &event));
            };
            last = Some(delivery.delivery_tag);
            if self.acks == Acks::Each {
                output.ack(self.channel, delivery.delivery_tag, false);
            }
            match delivery.body.split_first_chunk::<NUMBER>() {
                Some((number, rest)) => {
                    let (expected, got) = (self.next, u64::from_be_bytes(*number));
                    if self.ordered && got != expected {
                        return Err(Error::OutOfOrder { expected, got });
                    }
                    self.next += 1;
                    each(rest);
                }
                None => self.quit |= delivery.body == QUIT,
            }
        }
        if let (Acks::Batch { .. }, Some(tag)) = (self.acks, last) {
            self.connection.ack(self.channel, tag, true);
        }
        Ok(self.next - before)
    }

    /// Messages that wait in a queue. Nothing may be on its way to this consumer.
    pub async fn cancel_and_count(&mut self, queue: &str) -> Result<u64, Error> {
        self.connection.cancel(self.channel, TAG).await?;
        super::queues::count(&mut self.connection, self.channel, queue).await
    }

    /// The broker has taken every acknowledgement once this returns.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.connection.close().await?)
    }
}
