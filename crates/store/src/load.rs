//! Reading a queue's backlog back from its segments.

use std::path::Path;

use wal::{AlignedBuffer, Disk, Open, StreamId};

use crate::error::Error;
use crate::message::Message;
use crate::segment::{Chunk, Contents, Unreadable, path};
use crate::seq::QueueSeq;

/// Chunks that are to be read.
#[derive(Debug)]
pub struct Load {
    pub(crate) stream: StreamId,
    /// Messages from here on are wanted.
    pub from: QueueSeq,
    /// The place behind the last chunk.
    pub end: QueueSeq,
    /// Only to see what is there, not because it is their turn.
    pub look: bool,
    pub(crate) chunks: Vec<Chunk>,
}

/// Reads one chunk, and checks everything in it.
pub(crate) fn verify(
    disk: &dyn Disk,
    path: &Path,
    chunk: &Chunk,
    buffer: &mut AlignedBuffer,
) -> Result<(), String> {
    let file = disk.open(path, Open::Read);
    let file = file.map_err(|error| format!("cannot be opened: {error}"))?;
    buffer.resize(chunk.place.size as usize);
    file.read(buffer.as_mut_slice(), chunk.place.offset)
        .map_err(|error| format!("cannot be read: {error}"))?;
    let mut messages = Vec::new();
    parse(chunk, buffer.as_slice(), &mut messages).map_err(|error| error.to_string())?;
    match messages.len() == chunk.live as usize {
        true => Ok(()),
        false => Err(Unreadable::Malformed.to_string()),
    }
}

/// Messages that were read, in order; some may have gone meanwhile.
#[derive(Debug)]
pub struct Loaded {
    /// Everything from here on was read,
    pub from: QueueSeq,
    /// up to here.
    pub end: QueueSeq,
    /// The messages.
    pub messages: Vec<(QueueSeq, Message)>,
    /// Live messages, when the reading began, in chunks that cannot be read.
    pub lost: u64,
    /// As in [`Load`].
    pub look: bool,
}

impl Load {
    /// Nothing was read.
    pub(crate) fn nothing(&self) -> Loaded {
        Loaded {
            from: self.from,
            end: self.from,
            messages: Vec::new(),
            lost: 0,
            look: self.look,
        }
    }

    /// The segments that it reads.
    pub(crate) fn segments(&self) -> impl Iterator<Item = u64> {
        self.chunks.iter().map(|chunk| chunk.place.segment)
    }

    /// Reads and checks the chunks. One that is damaged is left out, said in the log, and left
    /// where it is.
    pub(crate) fn read(
        &self,
        disk: &dyn Disk,
        queues: &Path,
        buffer: &mut AlignedBuffer,
    ) -> Result<Loaded, Error> {
        let mut loaded = Loaded {
            from: self.from,
            end: self.end,
            messages: Vec::new(),
            lost: 0,
            look: self.look,
        };
        for run in self
            .chunks
            .chunk_by(|a, b| a.place.segment == b.place.segment)
        {
            let path = path(queues, self.stream, run[0].place.segment);
            let file = disk
                .open(&path, Open::Read)
                .map_err(Error::disk("open", &path))?;
            for chunk in run {
                buffer.resize(chunk.place.size as usize);
                let before = loaded.messages.len();
                // A bad sector costs what is in it, not the process: it would be met again after
                // each start.
                let read = file
                    .read(buffer.as_mut_slice(), chunk.place.offset)
                    .map_err(|error| error.to_string());
                let parsed = read.and_then(|()| {
                    parse(chunk, buffer.as_slice(), &mut loaded.messages)
                        .map_err(|error| error.to_string())
                });
                if let Err(error) = parsed {
                    loaded.messages.truncate(before);
                    loaded.lost += u64::from(chunk.live);
                    tracing::error!(
                        path = %path.display(), offset = chunk.place.offset, messages = chunk.live,
                        %error, "messages cannot be read: they are skipped, and left in the file"
                    );
                }
            }
        }
        let from = self.from;
        loaded.messages.retain(|(seq, _)| *seq >= from);
        Ok(loaded)
    }
}

fn parse(
    chunk: &Chunk,
    bytes: &[u8],
    messages: &mut Vec<(QueueSeq, Message)>,
) -> Result<(), Unreadable> {
    let (_, contents) = Contents::verify(bytes, chunk.place.segment)?;
    for message in contents.0 {
        let (seq, stored) = message?;
        if chunk.is_live(seq) {
            let message = Message::from_stored(stored).ok_or(Unreadable::Malformed)?;
            messages.push((seq, message));
        }
    }
    Ok(())
}
