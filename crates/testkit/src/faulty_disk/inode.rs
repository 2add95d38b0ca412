//! A file without its names: what reads show, what the disk has, and what lies between the two.

use std::io;

use wal::BLOCK;

use super::Survival;
use super::contents::{ALL, Contents, Page, Sectors};
use super::room::Room;
use crate::random::Random;

/// Tells files apart. Never used again on the same disk, nor on those that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeId(pub(super) u64);

/// Part of a write.
#[derive(Debug, Clone)]
struct PageWrite {
    number: u64,
    page: Page,
    /// Those that were written.
    sectors: Sectors,
}

/// What was done to a file since it was last synced.
#[derive(Debug, Clone)]
enum Change {
    Write(Vec<PageWrite>),
    Grow(u64),
    SetLen(u64),
}

/// Which sectors of a write are on the disk. Whole writes and whole blocks are kept and lost often:
/// a log meets sound records behind a gap as well as torn ones.
#[derive(Clone, Copy)]
enum Odds {
    All,
    None,
    EachBlock,
    EachSector,
}

impl Odds {
    fn draw(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Odds::All,
            1 => Odds::None,
            2 => Odds::EachBlock,
            _ => Odds::EachSector,
        }
    }

    /// Those of the next block.
    fn sectors(self, random: &mut Random) -> Sectors {
        match self {
            Odds::All => ALL,
            Odds::None => 0,
            Odds::EachBlock if random.coin() => ALL,
            Odds::EachBlock => 0,
            Odds::EachSector => random.draw() as Sectors,
        }
    }
}

impl Change {
    fn apply(&self, contents: &mut Contents) {
        match self {
            Change::Write(pages) => {
                for PageWrite {
                    number,
                    page,
                    sectors,
                } in pages
                {
                    contents.put(*number, page, *sectors);
                }
            }
            Change::Grow(len) => contents.grow(*len),
            Change::SetLen(len) => contents.set_len(*len),
        }
    }

    /// Applies any part of it.
    fn apply_in_part(&self, contents: &mut Contents, random: &mut Random) {
        match self {
            Change::Write(pages) => {
                let odds = Odds::draw(random);
                for PageWrite {
                    number,
                    page,
                    sectors,
                } in pages
                {
                    contents.put(*number, page, sectors & odds.sectors(random));
                }
            }
            Change::Grow(_) | Change::SetLen(_) => {
                if random.coin() {
                    self.apply(contents);
                }
            }
        }
    }
}

/// A file. After a sync failed, `visible` has what `durable` lacks although nothing is unsynced.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    visible: Contents,
    durable: Contents,
    unsynced: Vec<Change>,
    room: Room,
    durable_room: Room,
    /// Handles to it.
    pub(super) handles: usize,
}

impl Inode {
    pub(super) fn len(&self) -> u64 {
        self.visible.len()
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.visible.read(buffer, offset)
    }

    /// Writes whole blocks.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        self.write_pages(bytes, offset, || ALL);
    }

    /// Writes what a write may have done before it failed: nothing beyond some block, and of what
    /// is before any part.
    pub(super) fn write_in_part(&mut self, bytes: &[u8], offset: u64, random: &mut Random) {
        let blocks = (bytes.len() / BLOCK) as u64;
        let reached = random.below(blocks as usize + 1);
        let odds = Odds::draw(random);
        self.write_pages(&bytes[..reached * BLOCK], offset, || odds.sectors(random));
    }

    fn write_pages(&mut self, bytes: &[u8], offset: u64, mut sectors: impl FnMut() -> Sectors) {
        let first = offset / BLOCK as u64;
        let pages: Vec<PageWrite> = (first..)
            .zip(bytes.chunks_exact(BLOCK))
            .map(|(number, bytes)| PageWrite {
                number,
                page: Page::new(bytes),
                sectors: sectors(),
            })
            .collect();
        self.room.take(first..first + pages.len() as u64);
        self.change(Change::Write(pages));
        if !bytes.is_empty() {
            self.grow(offset + bytes.len() as u64);
        }
    }

    /// Takes room for all of the first `length` bytes, and is at least that long.
    pub(super) fn allocate(&mut self, length: u64) {
        self.room.take(0..length.div_ceil(BLOCK as u64));
        self.grow(length);
    }

    pub(super) fn set_len(&mut self, length: u64) {
        self.room.cut(length.div_ceil(BLOCK as u64));
        self.change(Change::SetLen(length));
    }

    fn grow(&mut self, length: u64) {
        if length > self.visible.len() {
            self.change(Change::Grow(length));
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.visible);
        self.unsynced.push(change);
    }

    /// Makes everything durable, but for what an earlier sync has lost.
    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
        self.durable.set_len(self.visible.len());
        self.durable_room = self.room.clone();
    }

    /// Makes some of it durable. The rest counts as written, as in Linux, so no later sync will
    /// write it.
    pub(super) fn sync_in_part(&mut self, random: &mut Random) {
        for change in self.unsynced.drain(..) {
            change.apply_in_part(&mut self.durable, random);
        }
        self.durable_room.take_all(&self.room);
    }

    /// What is found of it later.
    pub(super) fn restarted(&self, survival: Survival, random: &mut Random) -> Self {
        let mut contents = match survival {
            Survival::Everything => {
                return Inode {
                    handles: 0,
                    ..self.clone()
                };
            }
            Survival::Nothing | Survival::Random => self.durable.clone(),
        };
        let mut room = self.durable_room.clone();
        if survival == Survival::Random {
            for change in &self.unsynced {
                change.apply_in_part(&mut contents, random);
            }
            room.take_all(&self.room);
        }
        // Data whose length is lost is not found.
        contents.set_len(contents.len());
        room.cut(contents.len().div_ceil(BLOCK as u64));
        Inode {
            visible: contents.clone(),
            durable: contents,
            unsynced: Vec::new(),
            room: room.clone(),
            durable_room: room,
            handles: 0,
        }
    }
}
