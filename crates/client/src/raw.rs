//! A connection without manners of its own: any bytes out, one frame at a time in. For tests of how
//! a broker answers what no proper client sends, and for the opening handshake.

use std::future::poll_fn;

use amqp::{DecodeError, Method, Version, frame};

use crate::input::Input;
use crate::output::Output;
use crate::transport::Transport;
use crate::{Error, Options};

/// A TCP connection to a broker on which nothing has been said yet.
pub struct RawConnection {
    pub(crate) transport: Transport,
    pub(crate) input: Input,
    pub(crate) output: Output,
}

/// A frame as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct RawFrame<'a> {
    /// The type octet; see [`frame::Kind`].
    pub kind: u8,
    /// Channel number.
    pub channel: u16,
    /// What it carries.
    pub payload: &'a [u8],
    version: Version,
}

impl<'a> RawFrame<'a> {
    /// The method that a method frame carries.
    pub fn method(&self) -> Result<Method<'a>, DecodeError> {
        Method::decode(self.version, self.payload)
    }
}

impl RawConnection {
    /// Connects, and sends nothing. Of the options only address, version, frame size and timeout
    /// count here.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let frame_max = frame_max(options.frame_max);
        Ok(RawConnection {
            transport: Transport::connect(options).await?,
            input: Input::new(frame_max, options.backlog_limit),
            output: Output::new(options.version, frame_max),
        })
    }

    /// Appends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.send_bytes(bytes);
    }

    /// Appends a method frame.
    pub fn send<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        self.output.send(channel, method);
    }

    /// Appends a frame of any type and payload, `payload` not over 4 GiB.
    pub fn send_frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let mut header = frame::Header::encode(frame::Kind::Method, channel, payload.len() as u32);
        header[0] = kind;
        self.output.send_bytes(&header);
        self.output.send_bytes(payload);
        self.output.send_bytes(&[frame::END]);
    }

    /// The requests' buffer, for whole messages.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Writes everything that was appended. A peer that is gone shows at the next read.
    pub async fn flush(&mut self) {
        poll_fn(|cx| self.transport.poll_write(cx, &mut self.output)).await;
    }

    /// Writes everything that was appended and waits for a frame; `None` once the peer has closed
    /// the stream between two frames.
    pub async fn next_frame(&mut self) -> Result<Option<RawFrame<'_>>, Error> {
        let frame = loop {
            if let Some(frame) = self.input.frame_at(self.input.offset())? {
                break frame;
            }
            if !self.read().await? {
                return Ok(None);
            }
        };
        self.input.consume_to(frame.next);
        Ok(Some(RawFrame {
            kind: frame.kind,
            channel: frame.channel,
            payload: self.input.get(frame.payload),
            version: self.output.version(),
        }))
    }

    /// The next method, passing over heartbeats; `None` once the peer has closed the stream.
    pub async fn next_method(&mut self) -> Result<Option<(u16, Method<'_>)>, Error> {
        loop {
            match self.input.frame_at(self.input.offset())? {
                Some(frame) if frame.kind == frame::Kind::Heartbeat as u8 => {
                    self.input.consume_to(frame.next);
                }
                Some(_) => break,
                None => {
                    if !self.read().await? {
                        return Ok(None);
                    }
                }
            }
        }
        match self.next_frame().await? {
            Some(frame) if frame.kind == frame::Kind::Method as u8 => {
                Ok(Some((frame.channel, frame.method()?)))
            }
            Some(frame) => Err(Error::Protocol(format!(
                "frame of type {}, no method",
                frame.kind
            ))),
            None => Ok(None),
        }
    }

    /// Bytes that have arrived and belong to no frame taken yet: a protocol header, for example.
    pub fn unread(&self) -> &[u8] {
        self.input.live()
    }

    /// Writes what is pending and reads once; false once the peer has closed or reset the stream.
    pub async fn read(&mut self) -> Result<bool, Error> {
        let read = poll_fn(|cx| {
            let _ = self.transport.poll_write(cx, &mut self.output);
            self.transport.poll_read(cx, &mut self.input)
        });
        match read.await {
            Ok(_) => Ok(true),
            Err(Error::Disconnected { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// 0 stands for "no limit": then ours is the default's.
pub(crate) fn frame_max(asked: u32) -> u32 {
    match asked {
        0 => 131_072,
        asked => asked.clamp(frame::MIN_FRAME_MAX, 64 << 20),
    }
}
