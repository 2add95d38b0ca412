//! Reading numbers and slices from bytes that may be anything.

/// Bytes ended before what they should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("breaks off or makes no sense")]
pub struct Malformed;

/// Takes values from the front; every length is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Seven bits an octet, least significant first, the highest bit on all but the last.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.u8()?;
            value |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// A slice behind its length as u32.
    pub fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.bytes(length as usize)
    }
}

/// Writes what [`Cursor::varint`] reads.
#[inline]
pub(crate) fn varint(mut value: u64, mut put: impl FnMut(&[u8])) {
    let mut octets = [0; 10];
    let mut count = 0;
    loop {
        octets[count] = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 {
            break;
        }
        octets[count] |= 0x80;
        count += 1;
    }
    put(&octets[..=count]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varint_comes_out_as_it_went_in(value in any::<u64>(), shift in 0_u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            varint(value, |part| bytes.extend(part));
            let mut cursor = Cursor(&bytes);
            prop_assert_eq!(cursor.varint(), Ok(value));
            prop_assert!(cursor.is_empty());
        }
    }
}
