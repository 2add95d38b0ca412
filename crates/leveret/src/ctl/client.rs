//! The client's side of the control socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::arguments::Arguments;
use super::command::Failed;
use crate::config::{self, Environment, Flags};
use crate::control::address::{self, Short};
use crate::control::protocol::{Failure, MAX_REQUEST, MAX_RESPONSE, Request, Response, status};

/// A connection to the server.
pub(super) struct Client {
    stream: UnixStream,
    path: PathBuf,
}

impl Client {
    /// Connects to the server that the arguments, or else the environment and the configuration
    /// file, mean.
    pub fn connect(arguments: &Arguments) -> Result<Client, Failed> {
        let path = socket(arguments)?;
        let connected = Short::new(&path).and_then(|short| UnixStream::connect(&short.path));
        let stream = connected.map_err(|error| unreachable(&path, &error))?;
        let client = Client { stream, path };
        client.limit(arguments.timeout)?;
        Ok(client)
    }

    fn limit(&self, timeout: Option<Duration>) -> Result<(), Failed> {
        let timeout = timeout.filter(|timeout| !timeout.is_zero());
        let stream = &self.stream;
        stream
            .set_read_timeout(timeout)
            .and_then(|()| stream.set_write_timeout(timeout))
            .map_err(|error| self.broken(&error))
    }

    /// One request and its response.
    pub fn ask(&mut self, request: &Request) -> Result<Value, Failed> {
        let response = self.exchange(request);
        match response.map_err(|error| self.broken(&error))? {
            Response::Done(value) => Ok(value),
            Response::Failed(Failure { status, text }) => Err(Failed::new(status, text)),
        }
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Response> {
        let frame = serde_json::to_vec(request)?;
        let length = u32::try_from(frame.len())
            .ok()
            .filter(|len| *len <= MAX_REQUEST);
        let length = length.ok_or_else(|| {
            io::Error::other(format!("the request is larger than {MAX_REQUEST} bytes"))
        })?;
        self.stream.write_all(&length.to_be_bytes())?;
        self.stream.write_all(&frame)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length > MAX_RESPONSE {
            return Err(io::Error::other("the response is too large"));
        }
        let mut frame = Vec::new();
        let mut stream = &self.stream;
        let read = Read::take(&mut stream, length.into()).read_to_end(&mut frame)?;
        if read < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&frame)?)
    }

    /// Waits until the server's process has ended.
    pub fn wait_for_end(&mut self) -> Result<(), Failed> {
        match io::copy(&mut self.stream, &mut io::sink()) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
            ended => ended.map(drop).map_err(|error| self.broken(&error)),
        }
    }

    fn broken(&self, error: &io::Error) -> Failed {
        let path = self.path.display();
        let text = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("Error: the server at {path} did not answer in time")
            }
            io::ErrorKind::UnexpectedEof => {
                format!("Error: the server at {path} ended before it answered")
            }
            _ => format!("Error: lost the server at {path}: {error}"),
        };
        Failed::new(status::UNAVAILABLE, text)
    }
}

fn unreachable(path: &std::path::Path, error: &io::Error) -> Failed {
    let path = path.display();
    let text = match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "Error: {path} may not be opened: only the user who runs the server, and root, may \
             administer it"
        ),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => format!(
            "Error: no server answers at {path}: it is not running, or uses another directory; \
             --data-dir DIR says which"
        ),
        _ => format!("Error: cannot connect to {path}: {error}"),
    };
    Failed::new(status::UNAVAILABLE, text)
}

/// The data directory is found as the server finds it.
fn socket(arguments: &Arguments) -> Result<PathBuf, Failed> {
    if let Some(socket) = &arguments.socket {
        return Ok(socket.clone());
    }
    if let Some(dir) = &arguments.data_dir {
        return Ok(address::in_data_dir(dir));
    }
    let flags = Flags {
        config_file: arguments.config.clone(),
        data_dir: None,
    };
    let loaded = config::load(&flags, &Environment::of_process())
        .map_err(|error| Failed::usage(format!("Error: {error}")))?;
    Ok(address::in_data_dir(&loaded.config.data_dir))
}
