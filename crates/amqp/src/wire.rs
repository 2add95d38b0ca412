//! Reading and writing the primitive types. Consecutive bits share an octet (0-9-1 section 4.2.5.2).

use crate::{DecodeError, ShortStr, Table};

/// A cursor over the arguments of one method or the properties of one header.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// The octet that bits are being taken from, and the mask of the next bit; mask 0 = none.
    bits: u8,
    mask: u8,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader {
            bytes,
            bits: 0,
            mask: 0,
        }
    }

    /// Bytes not yet read.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Everything not yet read, leaving nothing.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Takes `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        self.mask = 0;
        let (head, tail) = self
            .bytes
            .split_at_checked(len)
            .ok_or(DecodeError::Truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.mask = 0;
        let (head, tail) = self
            .bytes
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.bytes = tail;
        Ok(*head)
    }

    /// One octet.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// A 16-bit number.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// A 32-bit number.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A 64-bit number.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// The next bit; opens a new octet where the last one is used up.
    #[inline]
    pub fn bit(&mut self) -> Result<bool, DecodeError> {
        if self.mask == 0 {
            self.bits = self.u8()?;
            self.mask = 1;
        }
        let set = self.bits & self.mask != 0;
        self.mask <<= 1;
        Ok(set)
    }

    /// A short string: a length octet and up to 255 bytes.
    #[inline]
    pub fn short_str(&mut self) -> Result<ShortStr<'a>, DecodeError> {
        let len = self.u8()?;
        self.take(len.into()).map(ShortStr::from_wire)
    }

    /// A long string: a 32-bit length and bytes.
    #[inline]
    pub fn long_str(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    /// Fails unless everything has been read.
    #[inline]
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.bytes.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

/// Appends primitive values to a buffer.
#[derive(Debug)]
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
    /// Mask of the next bit in the last octet of `out`; 0 = the next bit opens an octet.
    mask: u8,
}

impl<'b> Writer<'b> {
    /// Appends to `out`.
    #[inline]
    pub fn new(out: &'b mut Vec<u8>) -> Self {
        Writer { out, mask: 0 }
    }

    /// Raw bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.mask = 0;
        self.out.extend_from_slice(bytes);
    }

    /// One octet.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// A 16-bit number.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// A 32-bit number.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// A 64-bit number.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// One bit, packed with its neighbours.
    #[inline]
    pub fn bit(&mut self, value: bool) {
        if self.mask == 0 {
            self.out.push(0);
            self.mask = 1;
        }
        if value && let Some(last) = self.out.last_mut() {
            *last |= self.mask;
        }
        self.mask <<= 1;
    }

    /// A short string. `ShortStr` cannot be longer than 255 bytes.
    #[inline]
    pub fn short_str(&mut self, value: ShortStr<'_>) {
        self.u8(value.len() as u8);
        self.bytes(value.as_bytes());
    }

    /// A long string.
    #[inline]
    pub fn long_str(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.bytes(value);
    }
}

/// A method argument: how it is read from and written to the wire.
pub trait Field<'a>: Sized {
    /// Reads the value.
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
    /// Writes the value.
    fn write(&self, writer: &mut Writer<'_>);
    /// Checks what reading leaves unchecked.
    fn check(&self) -> Result<(), DecodeError> {
        Ok(())
    }
}

macro_rules! number_field {
    ($($ty:ident)*) => {$(
        impl<'a> Field<'a> for $ty {
            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> { reader.$ty() }
            #[inline]
            fn write(&self, writer: &mut Writer<'_>) { writer.$ty(*self) }
        }
    )*};
}
number_field!(u8 u16 u32 u64);

impl<'a> Field<'a> for bool {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.bit()
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.bit(*self);
    }
}

impl<'a> Field<'a> for ShortStr<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.short_str()
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.short_str(*self);
    }
    fn check(&self) -> Result<(), DecodeError> {
        self.utf8("short string").map(drop)
    }
}

/// A long string is a plain byte slice.
impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.long_str()
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.long_str(self);
    }
}

impl<'a> Field<'a> for Table<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.long_str().map(Table::from_wire)
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.long_str(self.as_wire());
    }
    fn check(&self) -> Result<(), DecodeError> {
        self.validate()
    }
}
