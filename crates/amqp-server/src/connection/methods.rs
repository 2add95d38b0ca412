//! Methods of class connection, and the life of channels.

use amqp::method::{channel, connection};
use amqp::{Method, ReplyCode};

use super::Connection;
use super::frames::expected_open;
use crate::channel::Channel;
use crate::exception::Exception;

impl Connection {
    /// A method on channel 0.
    pub(super) fn connection_method(&mut self, method: &Method<'_>) -> Result<(), Exception> {
        match method {
            Method::ConnectionClose(_) => {
                self.release_everything();
                self.core.send(0, connection::CloseOk {});
                self.finish();
                Ok(())
            }
            // Nothing here expires: any secret will do.
            Method::ConnectionUpdateSecret(_) => {
                self.core.send(0, connection::UpdateSecretOk {});
                Ok(())
            }
            other => Err(unexpected_method(other.ids(self.core.version))),
        }
    }

    /// A method on a channel.
    pub(super) fn channel_method(
        &mut self,
        number: u16,
        method: Method<'_>,
    ) -> Result<(), Exception> {
        let cause = method.ids(self.core.version);
        let Some(channel) = self.channels.get_mut(&number) else {
            return match method {
                Method::ChannelOpen(_) => self.open_channel(number),
                _ => Err(expected_open().caused_by(cause)),
            };
        };
        if channel.closing {
            match method {
                Method::ChannelCloseOk(_) => drop(self.channels.remove(&number)),
                Method::ChannelOpen(_) => return Err(second_open().caused_by(cause)),
                // Both sides closed at once; the answer to ours is still to come.
                Method::ChannelClose(_) => self.core.send(number, channel::CloseOk {}),
                _ => {}
            }
            return Ok(());
        }
        if let Method::ChannelClose(_) = method {
            channel.close(&mut self.core);
            self.channels.remove(&number);
            self.core.send(number, channel::CloseOk {});
            return Ok(());
        }
        match channel.method(&mut self.core, method) {
            Ok(()) => Ok(()),
            Err(exception) => {
                let exception = exception.or_caused_by(cause);
                self.channel_exception(number, exception)
            }
        }
    }

    fn open_channel(&mut self, number: u16) -> Result<(), Exception> {
        let max = self.core.channel_max;
        if self.channels.len() >= usize::from(max) {
            return Err(Exception::new(
                ReplyCode::NotAllowed,
                format!(
                    "number of channels opened ({max}) has reached the negotiated channel_max \
                     ({max})"
                ),
            ));
        }
        self.channels.insert(number, Channel::new(number));
        let events = &self.core.broker.events;
        events.channel_created(&self.core.session, number);
        self.core.send(number, channel::OpenOk::default());
        Ok(())
    }

    /// Ends the channel where that suffices; passes the exception on where it ends the connection.
    pub(super) fn channel_exception(
        &mut self,
        number: u16,
        exception: Exception,
    ) -> Result<(), Exception> {
        if exception.code.closes_connection() {
            return Err(exception);
        }
        tracing::debug!(
            connection = self.core.session.connection.0,
            channel = number,
            error = %exception.reply_text(),
            "closing channel"
        );
        if let Some(channel) = self.channels.get_mut(&number) {
            channel.close(&mut self.core);
            channel.closing = true;
        }
        self.core.send_channel_close(number, &exception);
        Ok(())
    }
}

pub(crate) fn second_open() -> Exception {
    Exception::new(ReplyCode::ChannelError, "second 'channel.open' seen")
}

pub(super) fn unexpected_method(cause: (u16, u16)) -> Exception {
    let text = "unexpected method in connection state running";
    Exception::new(ReplyCode::ChannelError, text).caused_by(cause)
}
