//! The TCP stream: moves bytes between the socket and the two buffers, and knows no frames.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

use crate::input::Input;
use crate::output::Output;
use crate::{Error, Options};

pub(crate) struct Transport {
    stream: TcpStream,
    /// `host:port`, for messages.
    address: String,
    /// Writing failed. The peer's reason may still be on its way, so reading goes on.
    write_failed: bool,
    /// Something was sent or received since the heartbeat last looked.
    pub(crate) sent: bool,
    pub(crate) received: bool,
}

impl Transport {
    pub(crate) async fn connect(options: &Options) -> Result<Self, Error> {
        let address = options.address();
        let connecting = tokio::time::timeout(options.connect_timeout, connect(options));
        let stream = match connecting.await {
            Ok(connected) => connected,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        match stream {
            Ok(stream) => Ok(Transport {
                stream,
                address,
                write_failed: false,
                sent: false,
                received: false,
            }),
            Err(source) => Err(Error::Unreachable { address, source }),
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// True once writing has failed: what was pending then, and ever since, is gone.
    pub(crate) fn write_failed(&self) -> bool {
        self.write_failed
    }

    /// Writes what is pending; ready once nothing is.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<()> {
        while output.pending() > 0 {
            if self.write_failed {
                output.clear();
                break;
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, output.unwritten()));
            self.wrote(output, written);
        }
        Poll::Ready(())
    }

    /// Writes what the socket takes at once; true if nothing is left.
    pub(crate) fn try_write(&mut self, output: &mut Output) -> bool {
        while output.pending() > 0 && !self.write_failed {
            match self.stream.try_write(output.unwritten()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                written => self.wrote(output, written),
            }
        }
        true
    }

    fn wrote(&mut self, output: &mut Output, written: io::Result<usize>) {
        match written {
            Ok(len) => {
                output.advance(len);
                self.sent = true;
            }
            Err(_) => self.write_failed = true,
        }
    }

    /// Reads once; ready with the number of bytes, or with 0 where the buffer has no room.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
    ) -> Poll<Result<usize, Error>> {
        let Some(room) = input.room() else {
            return Poll::Ready(Ok(0));
        };
        let mut buffer = ReadBuf::new(room);
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
        let len = buffer.filled().len();
        Poll::Ready(match result {
            Ok(()) if len > 0 => {
                input.advance(len);
                self.received = true;
                Ok(len)
            }
            Ok(()) => Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
            Err(source) => Err(self.lost(source)),
        })
    }

    #[cold]
    pub(crate) fn lost(&self, source: io::Error) -> Error {
        Error::Disconnected {
            address: self.address.clone(),
            source,
        }
    }
}

/// Tries the host's addresses in turn.
async fn connect(options: &Options) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in tokio::net::lookup_host((options.host.as_str(), options.port)).await? {
        match connect_to(options, address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn connect_to(options: &Options, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(local) = options.local_address {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    socket.connect(address).await
}
