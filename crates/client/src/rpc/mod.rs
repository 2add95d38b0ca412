//! Calls that wait for their reply.
//!
//! The reply is looked for ahead of the events in the read buffer, which stay there, in order, for
//! [`Connection::next`]; the buffer grows meanwhile, up to the backlog limit. A channel that the
//! broker closes instead of answering is [`Error::ChannelClosed`].

mod consume;
mod declare;

use std::future::poll_fn;

use amqp::method::{MethodId, access, channel, confirm, tx};
use amqp::{Method, ShortStr, frame};

use crate::Error;
use crate::connection::Connection;
use crate::decode::id_of;
use crate::input::{Frame, Span};

/// A walk along the frames of one channel, ahead of the events.
struct Walk {
    channel: u16,
    /// Stream offset of the next frame to look at.
    at: u64,
    /// The method that is waited for, for messages.
    request: &'static str,
}

impl Connection {
    /// Sends a method and waits for its reply `R`.
    pub async fn call<'a, R: MethodId>(
        &mut self,
        channel: u16,
        request: impl Into<Method<'a>>,
    ) -> Result<Method<'_>, Error> {
        let wanted = id_of::<R>(self.version());
        let (_, reply) = self
            .send_and_find(channel, request.into(), &[wanted])
            .await?;
        Ok(Method::decode(
            self.version(),
            self.decoder.input.get(reply),
        )?)
    }

    async fn send_and_find(
        &mut self,
        channel: u16,
        request: Method<'_>,
        wanted: &[u32],
    ) -> Result<(Walk, Span), Error> {
        self.decoder.skip_dealt_with()?;
        // What had arrived before the request was sent cannot be its reply.
        let sent_at = self.decoder.input.end_offset();
        let at = self.decoder.input.offset();
        let mut walk = Walk {
            channel,
            at,
            request: request.name(),
        };
        self.output.send(channel, request);
        loop {
            let frame = self.walk(&mut walk).await?;
            if frame.kind == frame::Kind::Method as u8
                && frame.offset >= sent_at
                && wanted.contains(&self.decoder.input.method_id(frame.payload))
            {
                self.decoder.input.mask(&frame);
                return Ok((walk, frame.payload));
            }
        }
    }

    /// The next frame on the walk's channel.
    async fn walk(&mut self, walk: &mut Walk) -> Result<Frame, Error> {
        const CHANNEL_CLOSE: u32 = 20 << 16 | 40;
        loop {
            while let Some(frame) = self.decoder.input.frame_at(walk.at)? {
                walk.at = frame.next;
                let id = match frame.kind == frame::Kind::Method as u8 {
                    true => self.decoder.input.method_id(frame.payload),
                    false => 0,
                };
                if frame.channel == 0 && id == self.close_id() {
                    return Err(self.connection_closed(frame.payload));
                }
                if frame.channel != walk.channel {
                    continue;
                }
                if id == CHANNEL_CLOSE && walk.channel != 0 {
                    self.decoder.input.mask(&frame);
                    self.channel_closed(walk.channel);
                    return Err(self.channel_error(walk.channel, frame.payload));
                }
                return Ok(frame);
            }
            if poll_fn(|cx| self.poll_progress(cx)).await? == 0 {
                let limit = self.decoder.input.limit();
                return Err(Error::BacklogFull {
                    limit,
                    request: walk.request,
                });
            }
        }
    }

    fn channel_error(&self, channel: u16, payload: Span) -> Error {
        match Method::decode(self.version(), self.decoder.input.get(payload)) {
            Ok(Method::ChannelClose(close)) => Error::ChannelClosed {
                channel,
                code: close.reply_code,
                text: close.reply_text.lossy().into_owned(),
                class: close.class_id,
                method: close.method_id,
            },
            Ok(other) => Error::Protocol(format!("channel.close expected, got {}", other.name())),
            Err(error) => error.into(),
        }
    }

    /// Opens the lowest free channel; returns its number.
    pub async fn open_channel(&mut self) -> Result<u16, Error> {
        let number = self.channels.allocate()?;
        self.open_channel_as(number).await?;
        Ok(number)
    }

    /// Opens the channel of that number.
    pub async fn open_channel_as(&mut self, number: u16) -> Result<(), Error> {
        self.channels.mark(number);
        self.call::<channel::OpenOk<'static>>(number, channel::Open::default())
            .await
            .map(drop)
    }

    /// Closes a channel; its unacknowledged deliveries return to their queues.
    pub async fn close_channel(&mut self, number: u16) -> Result<(), Error> {
        let reply_text = ShortStr::truncated("closed by the client");
        let close = channel::Close {
            reply_code: 200,
            reply_text,
            ..Default::default()
        };
        self.call::<channel::CloseOk>(number, close).await?;
        self.channels.release(number);
        Ok(())
    }

    /// Asks for an access ticket, as 0-8 clients do.
    pub async fn request_access(
        &mut self,
        channel: u16,
        request: access::Request<'_>,
    ) -> Result<u16, Error> {
        match self.call::<access::RequestOk>(channel, request).await? {
            Method::AccessRequestOk(ok) => Ok(ok.ticket),
            other => Err(unexpected(other)),
        }
    }

    /// Puts the channel into confirm mode: the broker answers every later publish with an
    /// [`Event::Confirm`].
    pub async fn confirm_select(&mut self, channel: u16) -> Result<(), Error> {
        let select = confirm::Select { no_wait: false };
        self.call::<confirm::SelectOk>(channel, select)
            .await
            .map(drop)
    }

    /// Makes the channel transactional.
    pub async fn tx_select(&mut self, channel: u16) -> Result<(), Error> {
        self.call::<tx::SelectOk>(channel, tx::Select::default())
            .await
            .map(drop)
    }

    /// Commits what was published and acknowledged since the last commit or rollback.
    pub async fn tx_commit(&mut self, channel: u16) -> Result<(), Error> {
        self.call::<tx::CommitOk>(channel, tx::Commit::default())
            .await
            .map(drop)
    }

    /// Drops what was published and acknowledged since the last commit or rollback.
    pub async fn tx_rollback(&mut self, channel: u16) -> Result<(), Error> {
        self.call::<tx::RollbackOk>(channel, tx::Rollback::default())
            .await
            .map(drop)
    }
}

fn name<'a>(what: &'static str, text: &'a str) -> Result<ShortStr<'a>, Error> {
    ShortStr::new(text.as_bytes()).ok_or(Error::NameTooLong {
        what,
        len: text.len(),
    })
}

fn unexpected(reply: Method<'_>) -> Error {
    Error::Protocol(format!(
        "{} is not the reply that was asked for",
        reply.name()
    ))
}
