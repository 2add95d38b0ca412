//! A byte buffer whose memory starts at a block boundary, as unbuffered writes want it.

use bytemuck::{Pod, Zeroable};

use crate::disk::BLOCK;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK]);

/// Grows like a `Vec<u8>`; its memory is a whole number of blocks.
#[derive(Default)]
pub struct AlignedBuffer {
    blocks: Vec<Block>,
    len: usize,
}

impl AlignedBuffer {
    /// `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = AlignedBuffer::default();
        buffer.resize(len);
        buffer
    }

    /// Bytes that it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that it keeps.
    pub fn capacity(&self) -> usize {
        self.blocks.capacity() * BLOCK
    }

    /// Drops the contents, keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Sets the length. Bytes that are new hold anything: zeros, or what was there before.
    pub fn resize(&mut self, len: usize) {
        self.reserve_to(len);
        self.len = len;
    }

    /// Appends bytes.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        let start = self.len;
        self.resize(start + bytes.len());
        self.as_mut_slice()[start..].copy_from_slice(bytes);
    }

    /// Appends zeros up to the next block boundary.
    pub fn pad(&mut self) {
        let start = self.len;
        self.resize(start.next_multiple_of(BLOCK));
        self.as_mut_slice()[start..].fill(0);
    }

    /// The contents.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.blocks)[..self.len]
    }

    /// The contents, to change.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.blocks)[..self.len]
    }

    #[inline]
    fn reserve_to(&mut self, len: usize) {
        let blocks = len.div_ceil(BLOCK);
        if blocks > self.blocks.len() {
            self.grow(blocks);
        }
    }

    #[cold]
    fn grow(&mut self, blocks: usize) {
        // Doubled, and never fewer than 64 KiB, so that growing is rare.
        let target = blocks.max(self.blocks.len() * 2).max(16);
        self.blocks.reserve_exact(target - self.blocks.len());
        self.blocks.resize(target, Block::zeroed());
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_survive_growth_and_start_at_a_block() {
        let mut buffer = AlignedBuffer::default();
        let mut expected = Vec::new();
        for round in 0..3_000_u32 {
            buffer.extend(&round.to_le_bytes());
            expected.extend(round.to_le_bytes());
            if round % 500 == 0 {
                buffer.pad();
                expected.resize(expected.len().next_multiple_of(BLOCK), 0);
            }
        }
        assert_eq!(buffer.as_slice(), expected);
        assert_eq!(buffer.as_slice().as_ptr() as usize % BLOCK, 0);
    }
}
