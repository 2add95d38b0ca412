//! Contents whose frames do not lie in one piece in the read buffer: bodies of several frames, and
//! frames of several channels interleaved. One is open per channel at most; buffers are reused.

use amqp::ContentHeader;

use crate::Error;

/// The largest body that is believed; RabbitMQ's own limit.
const BODY_MAX: u64 = 512 << 20;
/// The most that is allocated on the word of a content header alone.
const RESERVE_MAX: u64 = 16 << 20;
/// A body buffer above this size is given back.
const KEEP: usize = 1 << 20;

/// A message in the making.
#[derive(Default)]
pub(crate) struct Assembly {
    pub(crate) channel: u16,
    /// Payload of the method frame.
    pub(crate) method: Vec<u8>,
    /// Payload of the header frame; empty until it has arrived.
    pub(crate) header: Vec<u8>,
    pub(crate) body: Vec<u8>,
    body_size: u64,
}

impl Assembly {
    fn reset(&mut self, channel: u16, method: &[u8]) {
        self.channel = channel;
        self.method.clear();
        self.method.extend_from_slice(method);
        self.header.clear();
        self.body.clear();
        if self.body.capacity() > KEEP {
            self.body = Vec::new();
        }
    }

    /// Adds the header frame's payload; true if that completes the message.
    pub(crate) fn header(&mut self, payload: &[u8]) -> Result<bool, Error> {
        if !self.header.is_empty() {
            return Err(Error::Protocol(
                "second content header within one content".into(),
            ));
        }
        let header = ContentHeader::decode(payload)?;
        if header.body_size > BODY_MAX {
            let size = header.body_size;
            return Err(Error::Protocol(format!(
                "body of {size} bytes, over {BODY_MAX}"
            )));
        }
        self.header.extend_from_slice(payload);
        self.body_size = header.body_size;
        self.body
            .reserve(header.body_size.min(RESERVE_MAX) as usize);
        Ok(header.body_size == 0)
    }

    /// Adds a body frame's payload; true if that completes the message.
    pub(crate) fn body(&mut self, payload: &[u8]) -> Result<bool, Error> {
        self.body.extend_from_slice(payload);
        let len = self.body.len() as u64;
        if self.header.is_empty() || len > self.body_size {
            return Err(Error::Protocol(
                "body frame beyond the announced body size".into(),
            ));
        }
        Ok(len == self.body_size)
    }

    /// A message begun outside [`Assemblies`].
    pub(crate) fn begin(channel: u16, method: &[u8]) -> Self {
        let mut assembly = Assembly::default();
        assembly.reset(channel, method);
        assembly
    }
}

/// The open assemblies of a connection, and the last one that was completed.
#[derive(Default)]
pub(crate) struct Assemblies {
    open: Vec<Assembly>,
    done: Assembly,
    spare: Vec<Assembly>,
}

impl Assemblies {
    pub(crate) fn begin(&mut self, channel: u16, method: &[u8]) -> Result<(), Error> {
        if self.open.iter().any(|assembly| assembly.channel == channel) {
            return Err(Error::Protocol(format!(
                "method within a content on channel {channel}"
            )));
        }
        let mut assembly = self.spare.pop().unwrap_or_default();
        assembly.reset(channel, method);
        self.open.push(assembly);
        Ok(())
    }

    /// Adds a frame's payload with `add`; true if that completed a message, now in
    /// [`Assemblies::done`].
    pub(crate) fn add(
        &mut self,
        channel: u16,
        add: impl FnOnce(&mut Assembly) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let Some(index) = self
            .open
            .iter()
            .position(|assembly| assembly.channel == channel)
        else {
            return Err(Error::Protocol(format!(
                "content frame out of place on channel {channel}"
            )));
        };
        if !add(&mut self.open[index])? {
            return Ok(false);
        }
        let completed = self.open.swap_remove(index);
        self.spare
            .push(std::mem::replace(&mut self.done, completed));
        Ok(true)
    }

    pub(crate) fn done(&self) -> &Assembly {
        &self.done
    }

    /// Forgets what a closed channel had begun.
    pub(crate) fn abandon(&mut self, channel: u16) {
        self.open.retain(|assembly| assembly.channel != channel);
    }
}
