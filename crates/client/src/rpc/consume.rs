//! Consumers, and single messages.

use amqp::method::basic;
use amqp::{Method, Table, frame};

use super::{name, unexpected};
use crate::assembly::Assembly;
use crate::decode::{content_event, id_of};
use crate::event::{Event, owned};
use crate::topology::{ConsumeOptions, Message};
use crate::{Connection, Error};

impl Connection {
    /// Limits unacknowledged deliveries: of each later consumer of the channel, or with `global` of
    /// the channel.
    pub async fn qos(&mut self, channel: u16, prefetch: u16, global: bool) -> Result<(), Error> {
        let qos = basic::Qos {
            prefetch_size: 0,
            prefetch_count: prefetch,
            global,
        };
        self.call::<basic::QosOk>(channel, qos).await.map(drop)
    }

    /// Starts a consumer; returns its tag.
    pub async fn consume(
        &mut self,
        channel: u16,
        queue: &str,
        options: &ConsumeOptions,
    ) -> Result<String, Error> {
        let arguments = options.arguments.encode();
        let consume = basic::Consume {
            queue: name("queue", queue)?,
            consumer_tag: name("consumer tag", &options.consumer_tag)?,
            no_ack: options.no_ack,
            exclusive: options.exclusive,
            arguments: Table::from_wire(&arguments),
            ..Default::default()
        };
        match self
            .call::<basic::ConsumeOk<'static>>(channel, consume)
            .await?
        {
            Method::BasicConsumeOk(ok) => Ok(ok.consumer_tag.lossy().into_owned()),
            other => Err(unexpected(other)),
        }
    }

    /// Ends a consumer. Deliveries that are under way still come.
    pub async fn cancel(&mut self, channel: u16, consumer_tag: &str) -> Result<(), Error> {
        let cancel = basic::Cancel {
            consumer_tag: name("consumer tag", consumer_tag)?,
            no_wait: false,
        };
        self.call::<basic::CancelOk<'static>>(channel, cancel)
            .await
            .map(drop)
    }

    /// Returns all unacknowledged deliveries of the channel to their queues.
    pub async fn recover(&mut self, channel: u16, requeue: bool) -> Result<(), Error> {
        self.call::<basic::RecoverOk>(channel, basic::Recover { requeue })
            .await
            .map(drop)
    }

    /// Asks for one message, and does not wait: the answer comes as [`Event::GetOk`] or
    /// [`Event::GetEmpty`].
    pub fn send_get(&mut self, channel: u16, queue: &str, no_ack: bool) -> Result<(), Error> {
        let queue = name("queue", queue)?;
        self.output.send(
            channel,
            basic::Get {
                queue,
                no_ack,
                ..Default::default()
            },
        );
        Ok(())
    }

    /// Takes one message, or `None` from an empty queue.
    pub async fn get(
        &mut self,
        channel: u16,
        queue: &str,
        no_ack: bool,
    ) -> Result<Option<Message>, Error> {
        let version = self.version();
        let get_ok = id_of::<basic::GetOk<'static>>(version);
        let wanted = [get_ok, id_of::<basic::GetEmpty<'static>>(version)];
        let get = basic::Get {
            queue: name("queue", queue)?,
            no_ack,
            ..Default::default()
        };
        let (mut walk, reply) = self.send_and_find(channel, get.into(), &wanted).await?;
        if self.decoder.input.method_id(reply) != get_ok {
            return Ok(None);
        }
        let mut assembly = Assembly::begin(channel, self.decoder.input.get(reply));
        loop {
            let frame = self.walk(&mut walk).await?;
            let payload = self.decoder.input.get(frame.payload);
            let complete = match frame::Kind::from_octet(frame.kind) {
                Some(frame::Kind::Header) => assembly.header(payload)?,
                Some(frame::Kind::Body) => assembly.body(payload)?,
                Some(frame::Kind::Heartbeat) => continue,
                _ => {
                    return Err(Error::Protocol(
                        "method within the content of get-ok".into(),
                    ));
                }
            };
            self.decoder.input.mask(&frame);
            if complete {
                break;
            }
        }
        let Assembly {
            method,
            header,
            body,
            ..
        } = &assembly;
        match content_event(version, channel, method, header, body)? {
            Event::GetOk(message) => Ok(Some(owned(&message))),
            _ => Err(Error::Protocol("basic.get-ok expected".into())),
        }
    }
}
