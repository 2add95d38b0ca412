//! Content headers and the properties of class basic (0-9-1 section 1.8 and 4.2.6).
//!
//! Properties stay as the bytes that the publisher sent and reach consumers unchanged; values are
//! looked up in those bytes. [`Properties::summarize`] checks them once, on the way in.

use crate::{DecodeError, FieldTable, Reader, ShortStr, Table, Value, Writer};

/// The payload of a header frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// Must be 60.
    pub class: u16,
    /// Must be 0.
    pub weight: u16,
    /// Bytes of body that follow in body frames.
    pub body_size: u64,
    /// Property flags and values.
    pub properties: Properties<'a>,
}

impl<'a> ContentHeader<'a> {
    /// The class id of every content: only basic has any.
    pub const CLASS: u16 = 60;

    /// A header of class basic.
    pub fn basic(body_size: u64, properties: Properties<'a>) -> Self {
        ContentHeader {
            class: Self::CLASS,
            weight: 0,
            body_size,
            properties,
        }
    }

    /// Decodes the fixed fields; the properties are not looked into.
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        Ok(ContentHeader {
            class: reader.u16()?,
            weight: reader.u16()?,
            body_size: reader.u64()?,
            properties: Properties(reader.rest()),
        })
    }

    /// Appends the payload.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u16(self.class);
        writer.u16(self.weight);
        writer.u64(self.body_size);
        writer.bytes(self.properties.0);
    }
}

/// A property of class basic; the number is its bit in the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the specification's names")]
pub enum Property {
    ContentType = 15,
    ContentEncoding = 14,
    Headers = 13,
    DeliveryMode = 12,
    Priority = 11,
    CorrelationId = 10,
    ReplyTo = 9,
    Expiration = 8,
    MessageId = 7,
    Timestamp = 6,
    Type = 5,
    UserId = 4,
    AppId = 3,
    ClusterId = 2,
}

impl Property {
    /// All of them, in the order of the wire.
    pub const ALL: [Property; 14] = [
        Property::ContentType,
        Property::ContentEncoding,
        Property::Headers,
        Property::DeliveryMode,
        Property::Priority,
        Property::CorrelationId,
        Property::ReplyTo,
        Property::Expiration,
        Property::MessageId,
        Property::Timestamp,
        Property::Type,
        Property::UserId,
        Property::AppId,
        Property::ClusterId,
    ];

    #[inline]
    const fn flag(self) -> u16 {
        1 << self as u8
    }
}

/// What routing and the queues need to know of a message's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PropertySummary<'a> {
    /// 2 is persistent.
    pub delivery_mode: u8,
    /// 0 where absent.
    pub priority: u8,
    /// The header table, if there is one.
    pub headers: Option<Table<'a>>,
    /// Milliseconds as text.
    pub expiration: Option<ShortStr<'a>>,
    /// Who the publisher says it is.
    pub user_id: Option<ShortStr<'a>>,
    /// Where replies go.
    pub reply_to: Option<ShortStr<'a>>,
}

/// Borrowed properties: two octets of flags, then the values that the flags announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties<'a>(&'a [u8]);

impl Default for Properties<'_> {
    fn default() -> Self {
        Properties(&[0, 0])
    }
}

impl<'a> Properties<'a> {
    /// From the bytes that follow the body size in a content header.
    #[inline]
    pub fn from_wire(bytes: &'a [u8]) -> Self {
        Properties(bytes)
    }

    /// Flags and values, as on the wire.
    #[inline]
    pub fn as_wire(self) -> &'a [u8] {
        self.0
    }

    /// Checks all values and picks out those that the broker acts on.
    #[inline]
    pub fn summarize(self) -> Result<PropertySummary<'a>, DecodeError> {
        // The two usual cases: nothing set, or only the delivery mode.
        match *self.0 {
            [0, 0] => Ok(PropertySummary::default()),
            [0x10, 0, delivery_mode] => Ok(PropertySummary {
                delivery_mode,
                ..PropertySummary::default()
            }),
            _ => self.summarize_all(),
        }
    }

    fn summarize_all(self) -> Result<PropertySummary<'a>, DecodeError> {
        let mut summary = PropertySummary::default();
        self.walk(|property, reader| {
            match property {
                Property::Headers => {
                    let table = Table::from_wire(reader.long_str()?);
                    table.validate()?;
                    summary.headers = Some(table);
                }
                Property::DeliveryMode => summary.delivery_mode = reader.u8()?,
                Property::Priority => summary.priority = reader.u8()?,
                Property::Expiration => summary.expiration = Some(reader.short_str()?),
                Property::UserId => summary.user_id = Some(reader.short_str()?),
                Property::ReplyTo => summary.reply_to = Some(reader.short_str()?),
                Property::Timestamp => drop(reader.u64()?),
                _ => drop(reader.short_str()?),
            }
            Ok(())
        })?;
        Ok(summary)
    }

    /// One property's value; text properties come as [`Value::LongStr`]. `None` where absent, and
    /// where malformed.
    pub fn get(self, wanted: Property) -> Option<Value<'a>> {
        let mut found = None;
        self.walk(|property, reader| {
            let value = match property {
                Property::Headers => Value::Table(Table::from_wire(reader.long_str()?)),
                Property::DeliveryMode | Property::Priority => Value::U8(reader.u8()?),
                Property::Timestamp => Value::Timestamp(reader.u64()?),
                _ => Value::LongStr(reader.short_str()?.as_bytes()),
            };
            if property == wanted {
                found = Some(value);
            }
            Ok(())
        })
        .ok()?;
        found
    }

    /// A text property.
    pub fn text(self, property: Property) -> Option<&'a [u8]> {
        self.get(property)?.as_long_str()
    }

    /// The header table.
    pub fn headers(self) -> Option<Table<'a>> {
        match self.get(Property::Headers)? {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// A copy in which the header table is `headers`.
    pub fn with_headers(self, headers: &FieldTable) -> Result<Vec<u8>, DecodeError> {
        self.with(Property::Headers, |writer| {
            writer.long_str(&headers.encode())
        })
    }

    /// A copy in which a text property is `text`.
    pub fn with_text(self, property: Property, text: ShortStr<'_>) -> Result<Vec<u8>, DecodeError> {
        self.with(property, |writer| writer.short_str(text))
    }

    /// A copy in which a property is absent.
    pub fn without(self, removed: Property) -> Result<Vec<u8>, DecodeError> {
        let mut flags = 0;
        let mut values = Vec::with_capacity(self.0.len());
        self.walk(|property, reader| {
            let mut before = reader.clone();
            skip(property, reader)?;
            if property != removed {
                let length = before.remaining() - reader.remaining();
                values.extend_from_slice(before.take(length)?);
                flags |= property.flag();
            }
            Ok(())
        })?;
        Ok(PropertiesBuilder { flags, values }.finish())
    }

    fn with(
        self,
        replaced: Property,
        write: impl Fn(&mut Writer<'_>),
    ) -> Result<Vec<u8>, DecodeError> {
        let mut flags = replaced.flag();
        let mut values = Vec::with_capacity(self.0.len());
        let mut written = false;
        self.walk(|property, reader| {
            // Properties come in descending order of their bits.
            if !written && property as u8 <= replaced as u8 {
                write(&mut Writer::new(&mut values));
                written = true;
            }
            let mut before = reader.clone();
            skip(property, reader)?;
            if property != replaced {
                let length = before.remaining() - reader.remaining();
                values.extend_from_slice(before.take(length)?);
            }
            flags |= property.flag();
            Ok(())
        })?;
        if !written {
            write(&mut Writer::new(&mut values));
        }
        Ok(PropertiesBuilder { flags, values }.finish())
    }

    /// Visits the properties that are set, in order; the visitor reads each one's value. The two
    /// flags that stand for nothing are ignored, as RabbitMQ does.
    #[inline]
    fn walk(
        self,
        mut visit: impl FnMut(Property, &mut Reader<'a>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut reader = Reader::new(self.0);
        let flags = reader.u16()?;
        for property in Property::ALL {
            if flags & property.flag() != 0 {
                visit(property, &mut reader)?;
            }
        }
        reader.finish()
    }
}

fn skip(property: Property, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    match property {
        Property::Headers => drop(reader.long_str()?),
        Property::DeliveryMode | Property::Priority => drop(reader.u8()?),
        Property::Timestamp => drop(reader.u64()?),
        _ => drop(reader.short_str()?),
    }
    Ok(())
}

/// Builds properties. Set them in the order of [`Property`]'s declaration, which is the wire's.
#[derive(Debug, Default, Clone)]
pub struct PropertiesBuilder {
    flags: u16,
    values: Vec<u8>,
}

impl PropertiesBuilder {
    fn set(mut self, property: Property, write: impl FnOnce(&mut Writer<'_>)) -> Self {
        debug_assert!(
            self.flags & (property.flag() | (property.flag() - 1)) == 0,
            "{property:?} is set twice or out of order"
        );
        self.flags |= property.flag();
        write(&mut Writer::new(&mut self.values));
        self
    }

    /// A text property; cut at 255 bytes.
    pub fn text(self, property: Property, text: &str) -> Self {
        debug_assert!(!matches!(
            property,
            Property::Headers | Property::DeliveryMode | Property::Priority | Property::Timestamp
        ));
        self.set(property, |writer| {
            writer.short_str(ShortStr::truncated(text))
        })
    }

    /// The header table.
    pub fn headers(self, headers: &FieldTable) -> Self {
        self.set(Property::Headers, |writer| {
            writer.long_str(&headers.encode())
        })
    }

    /// 1 transient, 2 persistent.
    pub fn delivery_mode(self, mode: u8) -> Self {
        self.set(Property::DeliveryMode, |writer| writer.u8(mode))
    }

    /// 0 to 255.
    pub fn priority(self, priority: u8) -> Self {
        self.set(Property::Priority, |writer| writer.u8(priority))
    }

    /// Seconds since 1970.
    pub fn timestamp(self, seconds: u64) -> Self {
        self.set(Property::Timestamp, |writer| writer.u64(seconds))
    }

    /// Flags and values.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 + self.values.len());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.values);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        PropertiesBuilder::default()
            .text(Property::ContentType, "text/plain")
            .headers(&FieldTable::new().with("a", 1))
            .delivery_mode(2)
            .text(Property::ReplyTo, "here")
            .text(Property::AppId, "app")
            .finish()
    }

    #[test]
    fn replacing_a_property_leaves_the_others() {
        let sample = sample();
        let properties = Properties::from_wire(&sample);
        let headers = FieldTable::new().with("b", "c");
        let changed = properties.with_headers(&headers).expect("well-formed");
        let changed = Properties::from_wire(&changed);
        assert_eq!(changed.headers().expect("headers").to_owned(), Ok(headers));
        for property in [Property::ContentType, Property::ReplyTo, Property::AppId] {
            assert_eq!(changed.text(property), properties.text(property));
        }
        let there = ShortStr::truncated("there");
        let changed = properties
            .with_text(Property::ReplyTo, there)
            .expect("well-formed");
        assert_eq!(
            Properties::from_wire(&changed).text(Property::ReplyTo),
            Some(&b"there"[..])
        );
    }

    #[test]
    fn removing_a_property_leaves_the_others() {
        let sample = sample();
        let properties = Properties::from_wire(&sample);
        let changed = properties.without(Property::ReplyTo).expect("well-formed");
        let changed = Properties::from_wire(&changed);
        assert_eq!(changed.text(Property::ReplyTo), None);
        assert_eq!(changed.headers(), properties.headers());
        assert_eq!(changed.text(Property::AppId), Some(&b"app"[..]));
        let same = properties.without(Property::Type).expect("well-formed");
        assert_eq!(same, sample);
    }

    #[test]
    fn a_property_is_added_in_its_place() {
        for base in [sample(), vec![0, 0]] {
            let properties = Properties::from_wire(&base);
            let id = ShortStr::truncated("id");
            let changed = properties
                .with_text(Property::MessageId, id)
                .expect("well-formed");
            let changed = Properties::from_wire(&changed);
            assert_eq!(changed.text(Property::MessageId), Some(&b"id"[..]));
            assert_eq!(
                changed.text(Property::AppId),
                properties.text(Property::AppId)
            );
            changed.summarize().expect("well-formed");
        }
    }

    #[test]
    fn summary_holds_what_the_broker_acts_on() {
        let sample = sample();
        let summary = Properties::from_wire(&sample)
            .summarize()
            .expect("well-formed");
        assert_eq!(summary.delivery_mode, 2);
        assert_eq!(summary.reply_to, Some(ShortStr::truncated("here")));
        assert!(summary.headers.is_some() && summary.user_id.is_none());
    }
}
