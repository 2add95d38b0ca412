//! Opening a connection: header, start, tune, open (0-9-1 section 2.2.4), and telling apart the
//! ways in which a broker refuses.

use amqp::method::connection::{Close, CloseOk, Open, StartOk, TuneOk};
use amqp::{HEADER_LEN, Method, ReplyCode, ShortStr, Table};

use crate::raw::frame_max;
use crate::{Error, Mechanism, Options, RawConnection};

/// What client and broker agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuned {
    /// Highest channel number.
    pub channel_max: u16,
    /// Largest frame in bytes, overhead included.
    pub frame_max: u32,
    /// Heartbeat interval in seconds; 0 = none.
    pub heartbeat: u16,
}

impl RawConnection {
    /// Opens the connection as `options` say, up to and including connection.open-ok. Returns what
    /// was agreed on, and the broker's server-properties as they were on the wire.
    pub async fn handshake(&mut self, options: &Options) -> Result<(Tuned, Vec<u8>), Error> {
        let vhost = ShortStr::new(options.vhost.as_bytes()).ok_or(Error::NameTooLong {
            what: "virtual host",
            len: options.vhost.len(),
        })?;
        self.send_bytes(&options.version.header());
        let server_properties = self.start(options).await?;
        let tuned = self.tune(options).await?;
        self.input.set_frame_max(tuned.frame_max);
        self.output.set_frame_max(tuned.frame_max);
        let Tuned {
            channel_max,
            frame_max,
            heartbeat,
        } = tuned;
        self.send(
            0,
            TuneOk {
                channel_max,
                frame_max,
                heartbeat,
            },
        );
        self.send(
            0,
            Open {
                virtual_host: vhost,
                insist: true,
                ..Open::default()
            },
        );
        self.open_ok(options).await?;
        Ok((tuned, server_properties))
    }

    async fn start(&mut self, options: &Options) -> Result<Vec<u8>, Error> {
        while self.unread().len() < HEADER_LEN {
            if !self.read().await? {
                return Err(self.ended());
            }
        }
        if let Some(offered) = self.unread().first_chunk::<HEADER_LEN>()
            && offered.starts_with(b"AMQP")
        {
            return Err(Error::VersionRefused {
                asked: options.version,
                offered: *offered,
            });
        }
        let server_properties = match self.next_method().await? {
            Some((0, Method::ConnectionStart(start))) => start.server_properties.as_wire().to_vec(),
            other => return Err(unexpected("connection.start", other)),
        };
        let properties = options.client_properties().encode();
        let response = options.sasl_response();
        self.send(
            0,
            StartOk {
                client_properties: Table::from_wire(&properties),
                mechanism: ShortStr::truncated(options.mechanism.name()),
                response: &response,
                locale: ShortStr::truncated("en_US"),
            },
        );
        Ok(server_properties)
    }

    async fn tune(&mut self, options: &Options) -> Result<Tuned, Error> {
        let refused = |text: String| Error::LoginRefused {
            user: match options.mechanism {
                Mechanism::Plain | Mechanism::AmqPlain => options.user.clone(),
                Mechanism::External | Mechanism::Anonymous => String::new(),
            },
            mechanism: options.mechanism.name(),
            text,
        };
        let answer = match self.next_method().await {
            Err(Error::Disconnected { .. }) => None,
            answer => answer?,
        };
        match answer {
            Some((0, Method::ConnectionTune(tune))) => Ok(Tuned {
                channel_max: lower(options.channel_max, tune.channel_max, u16::MAX),
                frame_max: frame_max(lower(options.frame_max, tune.frame_max, 0)),
                heartbeat: match options.heartbeat {
                    0 => 0,
                    wanted => lower(wanted, tune.heartbeat, 0),
                },
            }),
            Some((0, Method::ConnectionClose(close)))
                if close.reply_code == ReplyCode::AccessRefused.code() =>
            {
                Err(refused(close.reply_text.lossy().into_owned()))
            }
            Some((0, Method::ConnectionClose(close))) => Err(closed(&close)),
            // Brokers that do not know authentication_failure_close just hang up.
            None => Err(refused("the broker hung up without a reason".into())),
            other => Err(unexpected("connection.tune", other)),
        }
    }

    async fn open_ok(&mut self, options: &Options) -> Result<(), Error> {
        let refused = |text| Error::VhostRefused {
            vhost: options.vhost.clone(),
            text,
        };
        let failure = match self.next_method().await? {
            Some((0, Method::ConnectionOpenOk(_))) => return Ok(()),
            Some((0, Method::ConnectionClose(close))) => match close.reply_code {
                402 | 403 | 530 => refused(close.reply_text.lossy().into_owned()),
                _ => closed(&close),
            },
            None => self.ended(),
            other => return Err(unexpected("connection.open-ok", other)),
        };
        self.send(0, CloseOk::default());
        self.transport.try_write(&mut self.output);
        Err(failure)
    }

    fn ended(&self) -> Error {
        Error::Disconnected {
            address: self.transport.address().to_owned(),
            source: std::io::ErrorKind::UnexpectedEof.into(),
        }
    }
}

/// The error that a broker's connection.close is.
pub(crate) fn closed(close: &Close<'_>) -> Error {
    Error::ConnectionClosed {
        code: close.reply_code,
        text: close.reply_text.lossy().into_owned(),
        class: close.class_id,
        method: close.method_id,
    }
}

fn unexpected(expected: &str, got: Option<(u16, Method<'_>)>) -> Error {
    let got = match got {
        Some((channel, method)) => format!("{} on channel {channel}", method.name()),
        None => "the end of the stream".into(),
    };
    Error::Protocol(format!("{expected} expected, got {got}"))
}

/// The lower of two limits where 0 stands for none; `unlimited` if both are.
fn lower<T: Ord + Default + Copy>(ours: T, theirs: T, unlimited: T) -> T {
    let none = T::default();
    match (ours == none, theirs == none) {
        (true, true) => unlimited,
        (true, false) => theirs,
        (false, true) => ours,
        (false, false) => ours.min(theirs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_means_unlimited() {
        assert_eq!(lower(0, 0, 7), 7);
        assert_eq!(lower(5, 0, 7), 5);
        assert_eq!(lower(0, 6, 7), 6);
        assert_eq!(lower(5, 6, 7), 5);
    }
}
