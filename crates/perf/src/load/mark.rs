//! What each message carries: its number in its producer's sequence, the time from which its latency
//! counts, and which producer it is from.
//!
//! In a body these are PerfTest's first 12 bytes, sequence (4) and time (8), and after them, where
//! there is room, 4 bytes for the producer, which PerfTest leaves zero. Bodies that come from files,
//! or are JSON, stay as they are: then the header `timestamp` is PerfTest's, and `sequence` and
//! `producer` are ours.

use client::{FieldTable, Properties};

use crate::settings::HEADER;

/// Bytes that a body needs to name its producer.
pub const WITH_PRODUCER: usize = HEADER + 4;
/// Names of the headers.
pub const TIMESTAMP: &str = "timestamp";
const SEQUENCE: &str = "sequence";
const PRODUCER: &str = "producer";

/// A message's mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// From 0; wraps.
    pub sequence: u32,
    /// Monotonic nanoseconds, or milliseconds since 1970.
    pub time: i64,
    /// Differs between runs; 0 where unknown.
    pub producer: u32,
}

impl Mark {
    /// Writes it to the start of a body of at least [`HEADER`] bytes.
    #[inline]
    pub fn write(&self, body: &mut [u8]) {
        body[..4].copy_from_slice(&self.sequence.to_be_bytes());
        body[4..HEADER].copy_from_slice(&self.time.to_be_bytes());
        if let Some(place) = body.get_mut(HEADER..WITH_PRODUCER) {
            place.copy_from_slice(&self.producer.to_be_bytes());
        }
    }

    /// Reads it from a body; `None` if that is too short for one.
    #[inline]
    pub fn read(body: &[u8]) -> Option<Mark> {
        let (sequence, rest) = body.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        Some(Mark {
            sequence: u32::from_be_bytes(*sequence),
            time: i64::from_be_bytes(*time),
            producer: rest
                .first_chunk()
                .map_or(0, |producer| u32::from_be_bytes(*producer)),
        })
    }

    /// Reads it from headers.
    pub fn read_headers(properties: Properties<'_>) -> Option<Mark> {
        let headers = properties.headers()?;
        let number = |name| headers.get(name).and_then(|value| value.as_i64());
        Some(Mark {
            time: number(TIMESTAMP)?,
            sequence: number(SEQUENCE).unwrap_or(0) as u32,
            producer: number(PRODUCER).unwrap_or(0) as u32,
        })
    }
}

/// Encoded properties with a mark among their headers, which is overwritten in place.
#[derive(Debug)]
pub struct HeaderMark {
    time: usize,
    sequence: usize,
}

/// Stand in for the values while they are encoded. Nothing else looks like them.
const TIME_PLACE: i64 = 0x7a6b_5c4d_3e2f_1a0b;
const SEQUENCE_PLACE: i64 = 0x7a6b_5c4d_3e2f_1a0c;

impl HeaderMark {
    /// Adds the headers of a mark to others.
    pub fn add(headers: &mut FieldTable, producer: u32) {
        headers.insert(TIMESTAMP, TIME_PLACE);
        headers.insert(SEQUENCE, SEQUENCE_PLACE);
        headers.insert(PRODUCER, i64::from(producer));
    }

    /// Finds their places in encoded properties.
    pub fn locate(properties: &[u8]) -> Option<HeaderMark> {
        let place = |value: i64| {
            let bytes = value.to_be_bytes();
            properties.windows(bytes.len()).position(|at| at == bytes)
        };
        Some(HeaderMark {
            time: place(TIME_PLACE)?,
            sequence: place(SEQUENCE_PLACE)?,
        })
    }

    /// Writes a mark.
    pub fn write(&self, mark: &Mark, properties: &mut [u8]) {
        properties[self.time..][..8].copy_from_slice(&mark.time.to_be_bytes());
        properties[self.sequence..][..8].copy_from_slice(&i64::from(mark.sequence).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use client::PropertiesBuilder;

    use super::*;

    const MARK: Mark = Mark {
        sequence: 7,
        time: 1 << 40,
        producer: 9,
    };

    #[test]
    fn a_mark_is_read_back_from_a_body() {
        let mut body = [0; 20];
        MARK.write(&mut body);
        assert_eq!(Mark::read(&body), Some(MARK));
        assert_eq!(body[..12], [0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0]);
        let mut short = [0; 12];
        MARK.write(&mut short);
        assert_eq!(Mark::read(&short).map(|mark| mark.producer), Some(0));
        assert_eq!(Mark::read(&[0; 11]), None);
    }

    #[test]
    fn a_mark_is_read_back_from_headers() {
        let mut headers = FieldTable::new().with("zone", "a");
        HeaderMark::add(&mut headers, MARK.producer);
        let mut encoded = PropertiesBuilder::default().headers(&headers).finish();
        let places = HeaderMark::locate(&encoded).expect("just added");
        places.write(&MARK, &mut encoded);
        assert_eq!(
            Mark::read_headers(Properties::from_wire(&encoded)),
            Some(MARK)
        );
        assert_eq!(Mark::read_headers(Properties::default()), None);
    }
}
