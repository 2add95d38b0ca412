//! The bytes of a file: pages, of which those that hold only zeros are not stored, and the others
//! are shared with every copy until one of the two is changed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use wal::BLOCK;

/// What a device writes whole or not at all.
pub(super) const SECTOR: usize = 512;

/// A bit for each sector of a page.
pub(super) type Sectors = u8;

/// All sectors of a page.
pub(super) const ALL: Sectors = Sectors::MAX;

const _: () = assert!(BLOCK / SECTOR == Sectors::BITS as usize);

type Bytes = [u8; BLOCK];

static ZEROS: Bytes = [0; BLOCK];

/// What a page holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Page(Option<Arc<Bytes>>);

impl Page {
    pub(super) fn new(bytes: &[u8]) -> Self {
        if bytes == ZEROS {
            return Page(None);
        }
        let bytes = bytes.try_into().expect("a page is one block");
        Page(Some(Arc::new(bytes)))
    }

    fn bytes(&self) -> &Bytes {
        self.0.as_deref().unwrap_or(&ZEROS)
    }

    /// This page with some sectors of another.
    fn with(&self, other: &Page, sectors: Sectors) -> Self {
        let mut bytes = *self.bytes();
        let (to, from) = (
            bytes.chunks_exact_mut(SECTOR),
            other.bytes().chunks_exact(SECTOR),
        );
        for (sector, (to, from)) in to.zip(from).enumerate() {
            if sectors & (1 << sector) != 0 {
                to.copy_from_slice(from);
            }
        }
        Page::new(&bytes)
    }
}

/// Pages by their number, and a length, which need not include all of them: a file's data may be
/// on the disk when its length is not.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    pages: BTreeMap<u64, Page>,
    len: u64,
}

impl Contents {
    /// Bytes that can be read.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Pages that take memory.
    #[cfg(test)]
    pub(super) fn stored(&self) -> usize {
        self.pages.len()
    }

    /// Fills a buffer of whole blocks.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.len {
            let text = format!("read up to {end} of a file of {} bytes", self.len);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        let first = offset / BLOCK as u64;
        for (page, to) in (first..).zip(buffer.chunks_exact_mut(BLOCK)) {
            let bytes = self.pages.get(&page).map_or(&ZEROS, Page::bytes);
            to.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Changes some sectors of a page. The length stays.
    pub(super) fn put(&mut self, number: u64, page: &Page, sectors: Sectors) {
        let page = match sectors {
            0 => return,
            ALL => page.clone(),
            _ => match self.pages.get(&number) {
                Some(old) => old.with(page, sectors),
                None => Page::default().with(page, sectors),
            },
        };
        if page.0.is_some() {
            self.pages.insert(number, page);
        } else {
            self.pages.remove(&number);
        }
    }

    /// Makes it at least that long.
    pub(super) fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    /// Makes it that long, and forgets what is beyond.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
        let pages = len.div_ceil(BLOCK as u64);
        while let Some(last) = self.pages.last_entry()
            && *last.key() >= pages
        {
            last.remove();
        }
        let within = (len % BLOCK as u64) as usize;
        let last = len / BLOCK as u64;
        if within != 0
            && let Some(page) = self.pages.get(&last)
        {
            let mut bytes = *page.bytes();
            bytes[within..].fill(0);
            self.put(last, &Page::new(&bytes), ALL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_zeros_take_no_memory() {
        let mut contents = Contents::default();
        contents.grow(64 << 20);
        contents.put(3, &Page::new(&ZEROS), ALL);
        contents.put(4, &Page::new(&[1; BLOCK]), ALL);
        assert_eq!(contents.stored(), 1);
        contents.put(4, &Page::new(&ZEROS), ALL);
        assert_eq!(contents.stored(), 0);
    }

    #[test]
    fn copies_share_their_pages() {
        let mut contents = Contents::default();
        contents.put(0, &Page::new(&[1; BLOCK]), ALL);
        let copy = contents.clone();
        let (Some(a), Some(b)) = (&contents.pages[&0].0, &copy.pages[&0].0) else {
            panic!("the page is not stored");
        };
        assert!(Arc::ptr_eq(a, b));
    }

    #[test]
    fn only_the_chosen_sectors_change() {
        let mut contents = Contents::default();
        contents.grow(BLOCK as u64);
        contents.put(0, &Page::new(&[1; BLOCK]), ALL);
        contents.put(0, &Page::new(&[2; BLOCK]), 0b1000_0001);
        let mut found = [0; BLOCK];
        contents.read(&mut found, 0).unwrap();
        let sectors: Vec<u8> = found.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert_eq!(sectors, [2, 1, 1, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        let mut contents = Contents::default();
        contents.grow(2 * BLOCK as u64);
        contents.put(0, &Page::new(&[1; BLOCK]), ALL);
        contents.put(1, &Page::new(&[1; BLOCK]), ALL);
        contents.set_len(100);
        contents.grow(2 * BLOCK as u64);
        let mut found = [0; 2 * BLOCK];
        contents.read(&mut found, 0).unwrap();
        assert_eq!(found[..100], [1; 100]);
        assert_eq!(found[100..], [0; 2 * BLOCK - 100]);
    }
}
