//! What a producer publishes: bodies and properties, made beforehand and marked for each message.

use std::sync::Arc;

use client::{FieldTable, Properties, PropertiesBuilder, Property};

use crate::clock;
use crate::load::mark::{HeaderMark, Mark, WITH_PRODUCER};
use crate::load::random::Random;
use crate::settings::{Body, Payload, Producers, PropertyValue};

use super::json;

/// A producer's messages.
pub struct Content {
    bodies: Bodies,
    properties: Vec<u8>,
    in_headers: Option<HeaderMark>,
}

enum Bodies {
    /// One buffer, of which that many bytes are sent.
    One(Vec<u8>),
    /// Sizes and until when in the cycle, in nanoseconds; from an origin.
    Varying {
        buffer: Vec<u8>,
        sizes: Vec<(usize, i64)>,
        origin: i64,
    },
    /// Any size from the first to the second.
    Between {
        buffer: Vec<u8>,
        min: usize,
        random: Random,
    },
    /// In turn.
    Several { bodies: Arc<[Vec<u8>]>, next: usize },
}

impl Content {
    /// The messages of the producer with that number.
    pub fn new(
        payload: &Payload,
        producers: &Producers,
        made: Arc<[Vec<u8>]>,
        producer: u32,
        random: Random,
    ) -> Content {
        let marked_headers = matches!(payload.body, Body::Files(_) | Body::Json { .. });
        let properties = properties(payload, producers, marked_headers.then_some(producer));
        Content {
            in_headers: HeaderMark::locate(&properties).filter(|_| marked_headers),
            bodies: Bodies::new(&payload.body, made, random),
            properties,
        }
    }

    /// The next message, marked.
    #[inline]
    pub fn next(&mut self, mark: &Mark) -> (Properties<'_>, &[u8]) {
        if let Some(places) = &self.in_headers {
            places.write(mark, &mut self.properties);
        }
        let body = match &mut self.bodies {
            Bodies::One(buffer) => {
                mark.write(buffer);
                &buffer[..]
            }
            Bodies::Varying {
                buffer,
                sizes,
                origin,
            } => {
                mark.write(buffer);
                &buffer[..size_now(sizes, *origin)]
            }
            Bodies::Between {
                buffer,
                min,
                random,
            } => {
                mark.write(buffer);
                let range = buffer.len() - *min + 1;
                &buffer[..*min + random.below(range as u64) as usize]
            }
            Bodies::Several { bodies, next } => {
                let body = &bodies[*next];
                *next = (*next + 1) % bodies.len();
                &body[..]
            }
        };
        (Properties::from_wire(&self.properties), body)
    }
}

impl Bodies {
    fn new(body: &Body, made: Arc<[Vec<u8>]>, random: Random) -> Bodies {
        match body {
            Body::Sized(size) => Bodies::One(vec![0; *size]),
            Body::Between(min, max) => Bodies::Between {
                buffer: vec![0; (*max).max(*min)],
                min: *min,
                random,
            },
            Body::Varying(sizes) => {
                let mut end = 0;
                let ends = sizes.iter().map(|(size, time)| {
                    end += time.as_nanos() as i64;
                    (*size, end)
                });
                Bodies::Varying {
                    sizes: ends.collect(),
                    buffer: vec![0; sizes.iter().map(|(size, _)| *size).max().unwrap_or(0)],
                    origin: clock::nanos(),
                }
            }
            Body::Files(_) | Body::Json { .. } => Bodies::Several {
                bodies: made,
                next: 0,
            },
        }
    }
}

/// Bodies that are made or read beforehand, for all producers.
pub fn made_beforehand(body: &Body, mut random: Random) -> Arc<[Vec<u8>]> {
    match body {
        Body::Files(files) => files.clone().into(),
        Body::Json {
            size,
            fields,
            bodies,
        } => json::documents(*size, *fields, *bodies, &mut random).into(),
        _ => Arc::new([]),
    }
}

/// The size that is in force now.
fn size_now(sizes: &[(usize, i64)], origin: i64) -> usize {
    let cycle = sizes.last().map_or(1, |(_, end)| *end).max(1);
    let now = (clock::nanos() - origin) % cycle;
    let current = sizes.iter().find(|(_, end)| now < *end);
    current.map_or(0, |(size, _)| *size)
}

/// True if the bodies name their producer.
pub fn names_producer(body: &Body) -> bool {
    match body {
        Body::Sized(size) | Body::Between(size, _) => *size >= WITH_PRODUCER,
        Body::Varying(sizes) => sizes.iter().all(|(size, _)| *size >= WITH_PRODUCER),
        Body::Files(_) | Body::Json { .. } => true,
    }
}

/// Encoded; with the headers of a mark if `producer` is given.
fn properties(payload: &Payload, producers: &Producers, producer: Option<u32>) -> Vec<u8> {
    let given = |name: &str| {
        let mut all = payload.properties.iter();
        all.find(|(given, _)| given == name).map(|(_, value)| value)
    };
    let mut builder = PropertiesBuilder::default();
    // In the order in which they are encoded.
    for (name, kind) in PROPERTIES {
        let value = given(name);
        builder = match kind {
            Kind::Text(Property::ContentType) => match content_type(payload, value) {
                Some(content_type) => builder.text(Property::ContentType, &content_type),
                None => builder,
            },
            Kind::Text(property) => match value {
                Some(value) => builder.text(property, &text(value)),
                None => builder,
            },
            Kind::Headers => {
                let headers = headers(payload, producer);
                match headers.is_empty() {
                    true => builder,
                    false => builder.headers(&headers),
                }
            }
            Kind::DeliveryMode => match value.and_then(number) {
                Some(mode) => builder.delivery_mode(mode as u8),
                None if producers.persistent => builder.delivery_mode(2),
                None => builder,
            },
            Kind::Priority => match value.and_then(number) {
                Some(priority) => builder.priority(priority as u8),
                None => builder,
            },
            Kind::Timestamp => match value.and_then(number) {
                Some(seconds) => builder.timestamp(seconds as u64),
                None => builder,
            },
        };
    }
    builder.finish()
}

#[derive(Clone, Copy)]
enum Kind {
    Text(Property),
    Headers,
    DeliveryMode,
    Priority,
    Timestamp,
}

/// PerfTest's names of the properties, in the order of 0-9-1's content header.
const PROPERTIES: [(&str, Kind); 14] = [
    ("contentType", Kind::Text(Property::ContentType)),
    ("contentEncoding", Kind::Text(Property::ContentEncoding)),
    ("headers", Kind::Headers),
    ("deliveryMode", Kind::DeliveryMode),
    ("priority", Kind::Priority),
    ("correlationId", Kind::Text(Property::CorrelationId)),
    ("replyTo", Kind::Text(Property::ReplyTo)),
    ("expiration", Kind::Text(Property::Expiration)),
    ("messageId", Kind::Text(Property::MessageId)),
    ("timestamp", Kind::Timestamp),
    ("type", Kind::Text(Property::Type)),
    ("userId", Kind::Text(Property::UserId)),
    ("appId", Kind::Text(Property::AppId)),
    ("clusterId", Kind::Text(Property::ClusterId)),
];

fn content_type(payload: &Payload, given: Option<&PropertyValue>) -> Option<String> {
    let json = matches!(payload.body, Body::Json { .. });
    given
        .map(text)
        .or_else(|| payload.content_type.clone())
        .or_else(|| json.then(|| "application/json".to_owned()))
}

/// Whatever is no property, and a mark's headers.
fn headers(payload: &Payload, producer: Option<u32>) -> FieldTable {
    let mut headers = FieldTable::new();
    for (name, value) in &payload.properties {
        if PROPERTIES.iter().any(|(property, _)| property == name) {
            continue;
        }
        match value {
            PropertyValue::Number(number) => headers.insert(name, *number),
            PropertyValue::Text(text) => headers.insert(name, text.as_str()),
        }
    }
    if let Some(producer) = producer {
        HeaderMark::add(&mut headers, producer);
    }
    headers
}

fn text(value: &PropertyValue) -> String {
    match value {
        PropertyValue::Number(number) => number.to_string(),
        PropertyValue::Text(text) => text.clone(),
    }
}

/// A number, or a date as seconds since 1970.
fn number(value: &PropertyValue) -> Option<i64> {
    match value {
        PropertyValue::Number(number) => Some(*number),
        PropertyValue::Text(text) => clock::parse_rfc3339(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(payload: Payload, persistent: bool) -> Content {
        let producers = Producers {
            persistent,
            ..Producers::default()
        };
        let made = made_beforehand(&payload.body, Random::new(1));
        Content::new(&payload, &producers, made, 5, Random::new(1))
    }

    const MARK: Mark = Mark {
        sequence: 3,
        time: 4,
        producer: 5,
    };

    #[test]
    fn properties_and_headers_are_told_apart() {
        let text = |text: &str| PropertyValue::Text(text.into());
        let payload = Payload {
            properties: vec![
                ("priority".into(), PropertyValue::Number(5)),
                ("appId".into(), text("shop")),
                ("timestamp".into(), text("2018-11-29T10:00:00Z")),
                ("zone".into(), text("a")),
                ("count".into(), PropertyValue::Number(7)),
            ],
            ..Payload::default()
        };
        let mut content = content(payload, true);
        let (properties, body) = content.next(&MARK);
        let summary = properties.summarize().expect("well formed");
        assert_eq!((summary.delivery_mode, summary.priority), (2, 5));
        assert_eq!(properties.text(Property::AppId), Some(&b"shop"[..]));
        let headers = properties.headers().expect("headers");
        assert_eq!(headers.get("count").and_then(|v| v.as_i64()), Some(7));
        assert!(headers.get("zone").is_some() && headers.get("appId").is_none());
        assert_eq!(body.len(), 12);
        assert_eq!(Mark::read(body).map(|mark| mark.sequence), Some(3));
    }

    #[test]
    fn bodies_of_files_keep_their_bytes_and_carry_the_mark_in_headers() {
        let payload = Payload {
            body: Body::Files(vec![b"one".to_vec(), b"two".to_vec()]),
            ..Payload::default()
        };
        let mut content = content(payload, false);
        for expected in [b"one", b"two", b"one"] {
            let (properties, body) = content.next(&MARK);
            assert_eq!(body, expected);
            assert_eq!(Mark::read_headers(properties), Some(MARK));
        }
    }

    #[test]
    fn random_sizes_stay_in_their_range() {
        let payload = Payload {
            body: Body::Between(35, 37),
            ..Payload::default()
        };
        let mut content = content(payload, false);
        let mut seen = [0; 3];
        (0..300).for_each(|_| seen[content.next(&MARK).1.len() - 35] += 1);
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    }
}
