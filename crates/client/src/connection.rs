//! A connection with one owner and no task of its own.
//!
//! Methods that send append to [`Output`] and return at once. [`Connection::next`] writes what is
//! pending, reads, and yields the next event; [`Connection::try_next`] yields one that has already
//! arrived. Both directions move in every wait, so neither side can block the other. Heartbeats are
//! kept while the owner waits in any `async` method: an owner that does none for two intervals is
//! taken for dead by the broker.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use amqp::frame::Kind;
use amqp::method::{basic, channel, connection};
use amqp::{DecodeError, FieldTable, Method, Properties, Table, Version};

use crate::channels::Channels;
use crate::decode::{Decoder, Located, id_of};
use crate::event::Event;
use crate::handshake::{Tuned, closed};
use crate::heartbeat::Heartbeat;
use crate::input::Span;
use crate::output::{Output, PublishFlags};
use crate::transport::Transport;
use crate::{Error, Options, RawConnection};

/// An open AMQP connection.
///
/// All waiting methods are cancel safe: dropping one midway loses no event, only its own reply,
/// which then comes as [`Event::Reply`].
pub struct Connection {
    pub(crate) transport: Transport,
    pub(crate) decoder: Decoder,
    pub(crate) output: Output,
    pub(crate) channels: Channels,
    heartbeat: Option<Heartbeat>,
    tuned: Tuned,
    server_properties: Vec<u8>,
    options: Options,
}

impl Connection {
    /// Connects, logs in and opens the virtual host.
    pub async fn connect(options: &Options) -> Result<Self, Error> {
        let limit = options.connect_timeout;
        let mut raw = RawConnection::open(options).await?;
        let (tuned, server_properties) =
            match tokio::time::timeout(limit, raw.handshake(options)).await {
                Ok(result) => result?,
                Err(_) => {
                    let address = options.address();
                    return Err(Error::HandshakeTimeout { address, limit });
                }
            };
        Ok(Connection {
            transport: raw.transport,
            decoder: Decoder::new(options.version, raw.input),
            output: raw.output,
            channels: Channels::new(tuned.channel_max),
            heartbeat: Heartbeat::new(tuned.heartbeat),
            tuned,
            server_properties,
            options: options.clone(),
        })
    }

    /// Connects to an `amqp://` URI.
    pub async fn connect_uri(uri: &str) -> Result<Self, Error> {
        Connection::connect(&uri.parse()?).await
    }

    /// What was agreed on when the connection was opened.
    pub fn tuned(&self) -> Tuned {
        self.tuned
    }

    /// What the connection was opened with: to open it again.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What the broker says about itself.
    pub fn server_properties(&self) -> Result<FieldTable, DecodeError> {
        Table::from_wire(&self.server_properties).to_owned()
    }

    /// This side's address.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.transport.local_address()
    }

    pub(crate) fn version(&self) -> Version {
        self.output.version()
    }

    /// What waits to be written; also the way to send while an event is borrowed, see
    /// [`Connection::try_next_and_output`].
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Appends a message; see [`Output::publish`].
    #[inline]
    pub fn publish(
        &mut self,
        channel: u16,
        exchange: impl AsRef<[u8]>,
        routing_key: impl AsRef<[u8]>,
        flags: PublishFlags,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Error> {
        self.output
            .publish(channel, exchange, routing_key, flags, properties, body)
    }

    /// Appends an acknowledgement; see [`Output::ack`].
    #[inline]
    pub fn ack(&mut self, channel: u16, delivery_tag: u64, multiple: bool) {
        self.output.ack(channel, delivery_tag, multiple);
    }

    /// Appends a rejection; see [`Output::nack`].
    pub fn nack(&mut self, channel: u16, delivery_tag: u64, multiple: bool, requeue: bool) {
        self.output.nack(channel, delivery_tag, multiple, requeue);
    }

    /// Appends a rejection; see [`Output::reject`].
    pub fn reject(&mut self, channel: u16, delivery_tag: u64, requeue: bool) {
        self.output.reject(channel, delivery_tag, requeue);
    }

    /// Appends any method; see [`Output::send`]. A channel that is opened this way counts as open.
    pub fn send<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let method = method.into();
        if let Method::ChannelOpen(_) = method {
            self.channels.mark(channel);
        }
        self.output.send(channel, method);
    }

    /// Bytes that wait to be written.
    #[inline]
    pub fn pending(&self) -> usize {
        self.output.pending()
    }

    /// Writes what the socket takes without waiting; true if nothing is left.
    pub fn try_flush(&mut self) -> bool {
        self.transport.try_write(&mut self.output)
    }

    /// Writes everything that is pending. While the socket takes no more, what arrives is read and
    /// kept for [`Connection::next`], up to the backlog limit; otherwise nothing is read, so an
    /// owner who only flushes does not learn that a channel was closed.
    pub async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            let written = self.transport.poll_write(cx, &mut self.output).is_ready();
            if written && !self.transport.write_failed() {
                return Poll::Ready(Ok(()));
            }
            match self.poll_progress(cx) {
                Poll::Ready(Ok(0)) if written => {
                    let lost = self.transport.lost(ErrorKind::BrokenPipe.into());
                    return Poll::Ready(Err(self.explained(lost)));
                }
                Poll::Ready(Ok(0)) | Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.explained(error))),
            }
        }
    }

    /// The broker's own reason, where it has arrived and waits behind other events.
    #[cold]
    fn explained(&mut self, error: Error) -> Error {
        let mut at = self.decoder.input.offset();
        while let Ok(Some(frame)) = self.decoder.input.frame_at(at) {
            at = frame.next;
            if frame.kind == Kind::Method as u8
                && frame.channel == 0
                && self.decoder.input.method_id(frame.payload) == self.close_id()
            {
                return self.connection_closed(frame.payload);
            }
        }
        error
    }

    /// Writes what the socket takes and reads once: ready with the number of bytes read, or with 0
    /// where the backlog limit is reached.
    pub(crate) fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.poll(cx, &mut self.transport, &mut self.output)?;
        }
        let _ = self.transport.poll_write(cx, &mut self.output);
        self.transport.poll_read(cx, &mut self.decoder.input)
    }

    /// Waits until there may be events for [`Connection::try_next`], writing what is pending
    /// meanwhile. For owners that work in batches, or wait for several things at once.
    pub async fn ready(&mut self) -> Result<(), Error> {
        poll_fn(|cx| match self.poll_progress(cx) {
            // What has arrived before an error is worth its while too.
            Poll::Pending | Poll::Ready(Err(_)) if self.decoder.may_have_event() => {
                Poll::Ready(Ok(()))
            }
            progress => progress.map_ok(drop),
        })
        .await
    }

    /// The next event. Writes what is pending while it waits.
    #[inline]
    pub async fn next(&mut self) -> Result<Event<'_>, Error> {
        let located = loop {
            match self.locate()? {
                Some(located) => break located,
                None => self.ready().await?,
            }
        };
        self.decoder.event(located)
    }

    /// The next event that has already arrived, without reading or writing. `None` tells the owner
    /// of a batch that it is complete: time to acknowledge.
    #[inline]
    pub fn try_next(&mut self) -> Result<Option<Event<'_>>, Error> {
        match self.locate()? {
            Some(located) => self.decoder.event(located).map(Some),
            None => Ok(None),
        }
    }

    /// The same as [`Connection::try_next`], with the means to answer while the event is borrowed:
    /// to publish its body again, for example.
    #[inline]
    pub fn try_next_and_output(&mut self) -> Result<Option<(Event<'_>, &mut Output)>, Error> {
        match self.locate()? {
            Some(located) => Ok(Some((self.decoder.event(located)?, &mut self.output))),
            None => Ok(None),
        }
    }

    #[inline]
    fn locate(&mut self) -> Result<Option<Located>, Error> {
        let located = self.decoder.locate()?;
        if let Some(Located::Method { channel, payload }) = located {
            self.attend(channel, payload)?;
        }
        Ok(located)
    }

    /// Gives the answers that the protocol asks of a client, before the owner sees the event.
    #[inline]
    fn attend(&mut self, number: u16, payload: Span) -> Result<(), Error> {
        const BASIC_ACK: u32 = 60 << 16 | 80;
        match self.decoder.input.method_id(payload) {
            BASIC_ACK => Ok(()),
            _ => self.attend_method(number, payload),
        }
    }

    fn attend_method(&mut self, number: u16, payload: Span) -> Result<(), Error> {
        match Method::decode(self.version(), self.decoder.input.get(payload))? {
            Method::ConnectionClose(_) => return Err(self.connection_closed(payload)),
            Method::ChannelClose(_) => self.channel_closed(number),
            Method::ChannelFlow(flow) => {
                self.output.send(
                    number,
                    channel::FlowOk {
                        active: flow.active,
                    },
                );
            }
            Method::BasicCancel(basic::Cancel {
                consumer_tag,
                no_wait: false,
            }) => {
                self.output.send(number, basic::CancelOk { consumer_tag });
            }
            _ => {}
        }
        Ok(())
    }

    /// Answers a channel.close from the broker.
    pub(crate) fn channel_closed(&mut self, number: u16) {
        self.channels.release(number);
        self.decoder.abandon(number);
        self.output.send(number, channel::CloseOk::default());
    }

    /// Answers a connection.close from the broker; returns the error that it is.
    #[cold]
    pub(crate) fn connection_closed(&mut self, payload: Span) -> Error {
        let error = match Method::decode(self.version(), self.decoder.input.get(payload)) {
            Ok(Method::ConnectionClose(close)) => closed(&close),
            Ok(other) => {
                Error::Protocol(format!("connection.close expected, got {}", other.name()))
            }
            Err(error) => error.into(),
        };
        self.output.send(0, connection::CloseOk::default());
        self.transport.try_write(&mut self.output);
        error
    }

    pub(crate) fn close_id(&self) -> u32 {
        id_of::<connection::Close<'static>>(self.version())
    }

    /// Closes in order: everything sent so far is processed by the broker before it answers. Events
    /// that still arrive are dropped.
    pub async fn close(mut self) -> Result<(), Error> {
        let limit = self.options.connect_timeout;
        let reply_text = amqp::ShortStr::truncated("closed by the client");
        let close = connection::Close {
            reply_code: 200,
            reply_text,
            ..Default::default()
        };
        self.output.send(0, close);
        let closing = async {
            loop {
                match self.next().await {
                    Ok(Event::Reply {
                        method: Method::ConnectionCloseOk(_),
                        ..
                    }) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
        };
        match tokio::time::timeout(limit, closing).await {
            Ok(result) => result,
            Err(_) => Err(Error::HandshakeTimeout {
                address: self.options.address(),
                limit,
            }),
        }
    }
}
