//! Buffers that the connections of one thread share, so that an idle connection holds none.
//!
//! Input is read into one buffer per thread, behind room for a frame that had begun to arrive.
//! Output buffers are lent while a connection's task runs and kept only by connections whose
//! client is slower than they are.

use std::cell::RefCell;

/// Bytes read at once.
const READ_SIZE: usize = 256 * 1024;
/// Output buffers with more capacity than this are not kept.
const MAX_KEPT: usize = 1024 * 1024;
/// Output buffers kept per thread.
const MAX_SPARE: usize = 8;
/// What a new output buffer holds without growing.
const OUTPUT_SIZE: usize = 64 * 1024;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The thread's input buffer while one connection uses it.
pub(super) struct Input<'a> {
    buffer: &'a mut [u8],
    /// Where bytes are read to; the partial frame ends here.
    start: usize,
    partial: Vec<u8>,
}

impl Input<'_> {
    /// Where to read to.
    pub fn free(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..]
    }

    /// The partial frame and the `count` bytes that were read after it.
    pub fn filled(&mut self, count: usize) -> &[u8] {
        let begin = self.start - self.partial.len();
        self.buffer[begin..self.start].copy_from_slice(&self.partial);
        &self.buffer[begin..self.start + count]
    }

    /// Nothing was read: the partial frame as it was.
    pub fn keep_partial(self) -> Vec<u8> {
        self.partial
    }
}

/// Runs `read` with the thread's input buffer. `partial` is shorter than a frame.
pub(super) fn with_input<R>(
    frame_max: u32,
    partial: Vec<u8>,
    read: impl FnOnce(Input<'_>) -> R,
) -> R {
    INPUT.with_borrow_mut(|buffer| {
        let start = (frame_max as usize).max(partial.len());
        if buffer.len() < start + READ_SIZE {
            buffer.resize(start + READ_SIZE, 0);
        }
        read(Input {
            buffer: &mut buffer[..start + READ_SIZE],
            start,
            partial,
        })
    })
}

/// Gives a connection without an output buffer one of the thread's.
#[inline]
pub(super) fn lend(out: &mut Vec<u8>) {
    if out.capacity() == 0 {
        *out = SPARE
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| Vec::with_capacity(OUTPUT_SIZE));
    }
}

/// Takes an empty output buffer back.
#[inline]
pub(super) fn give_back(out: &mut Vec<u8>) {
    if out.is_empty() {
        let buffer = std::mem::take(out);
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE && buffer.capacity() <= MAX_KEPT {
                spare.push(buffer);
            }
        });
    }
}
