//! Field values: the types that tables and arrays hold.
//!
//! Type tags are RabbitMQ's (its "Errata and grammar" page), which differ from the 0-9-1 text:
//! `s` is a 16-bit number, `l` a signed 64-bit number, `x` a byte array, `V` void.

use crate::{DecodeError, FieldTable, Reader, Table, Writer};

/// How deep tables and arrays may nest. Enough for every real message; bounds the stack.
pub const MAX_DEPTH: usize = 128;

/// A borrowed field value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s`
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l` or `L`
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: digits after the decimal point, and the digits as a whole number.
    Decimal(u8, u32),
    /// `S`: text or bytes.
    LongStr(&'a [u8]),
    /// `x`: bytes.
    Bytes(&'a [u8]),
    /// `T`: seconds since 1970.
    Timestamp(u64),
    /// `F`
    Table(Table<'a>),
    /// `A`
    Array(Array<'a>),
    /// `V`
    Void,
}

/// A borrowed array: the bytes of its elements, decoded when iterated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Array<'a>(&'a [u8]);

impl<'a> Array<'a> {
    /// The elements; ends after the first error.
    pub fn iter(self) -> impl Iterator<Item = Result<Value<'a>, DecodeError>> {
        let mut reader = Reader::new(self.0);
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed || reader.remaining() == 0 {
                return None;
            }
            let item = Value::read(&mut reader);
            failed = item.is_err();
            Some(item)
        })
    }
}

impl<'a> Value<'a> {
    /// Reads a type tag and its value. Nested tables and arrays are not looked into.
    pub fn read(reader: &mut Reader<'a>) -> Result<Value<'a>, DecodeError> {
        Ok(match reader.u8()? {
            b't' => Value::Bool(reader.u8()? != 0),
            b'b' => Value::I8(reader.u8()? as i8),
            b'B' => Value::U8(reader.u8()?),
            b's' => Value::I16(reader.u16()? as i16),
            b'u' => Value::U16(reader.u16()?),
            b'I' => Value::I32(reader.u32()? as i32),
            b'i' => Value::U32(reader.u32()?),
            b'l' | b'L' => Value::I64(reader.u64()? as i64),
            b'f' => Value::F32(f32::from_bits(reader.u32()?)),
            b'd' => Value::F64(f64::from_bits(reader.u64()?)),
            b'D' => Value::Decimal(reader.u8()?, reader.u32()?),
            b'S' => Value::LongStr(reader.long_str()?),
            b'x' => Value::Bytes(reader.long_str()?),
            b'T' => Value::Timestamp(reader.u64()?),
            b'F' => Value::Table(Table::from_wire(reader.long_str()?)),
            b'A' => Value::Array(Array(reader.long_str()?)),
            b'V' => Value::Void,
            other => return Err(DecodeError::UnknownFieldType(other)),
        })
    }

    /// Checks what [`Value::read`] did not look into, down to [`MAX_DEPTH`].
    pub(crate) fn validate(self, depth: usize) -> Result<(), DecodeError> {
        match self {
            Value::Table(table) => table.validate_at(depth + 1),
            Value::Array(array) => {
                if depth >= MAX_DEPTH {
                    return Err(DecodeError::TooDeep);
                }
                array.iter().try_for_each(|item| item?.validate(depth + 1))
            }
            _ => Ok(()),
        }
    }

    /// Any whole-number type as `i64`.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::I8(n) => Some(n.into()),
            Value::U8(n) => Some(n.into()),
            Value::I16(n) => Some(n.into()),
            Value::U16(n) => Some(n.into()),
            Value::I32(n) => Some(n.into()),
            Value::U32(n) => Some(n.into()),
            Value::I64(n) => Some(n),
            _ => None,
        }
    }

    /// The bytes of a long string.
    pub fn as_long_str(self) -> Option<&'a [u8]> {
        match self {
            Value::LongStr(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A copy that owns what it holds.
    pub fn to_owned(self) -> Result<FieldValue, DecodeError> {
        self.to_owned_at(0)
    }

    pub(crate) fn to_owned_at(self, depth: usize) -> Result<FieldValue, DecodeError> {
        Ok(match self {
            Value::Bool(v) => FieldValue::Bool(v),
            Value::I8(v) => FieldValue::I8(v),
            Value::U8(v) => FieldValue::U8(v),
            Value::I16(v) => FieldValue::I16(v),
            Value::U16(v) => FieldValue::U16(v),
            Value::I32(v) => FieldValue::I32(v),
            Value::U32(v) => FieldValue::U32(v),
            Value::I64(v) => FieldValue::I64(v),
            Value::F32(v) => FieldValue::F32(v),
            Value::F64(v) => FieldValue::F64(v),
            Value::Decimal(scale, v) => FieldValue::Decimal(scale, v),
            Value::LongStr(v) => FieldValue::LongStr(v.to_vec()),
            Value::Bytes(v) => FieldValue::Bytes(v.to_vec()),
            Value::Timestamp(v) => FieldValue::Timestamp(v),
            Value::Table(v) => FieldValue::Table(v.to_owned_at(depth + 1)?),
            Value::Array(v) => {
                if depth >= MAX_DEPTH {
                    return Err(DecodeError::TooDeep);
                }
                let items = v.iter().map(|item| item?.to_owned_at(depth + 1));
                FieldValue::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Void => FieldValue::Void,
        })
    }
}

/// An owned field value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the same cases as Value")]
pub enum FieldValue {
    Bool(bool),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    F32(f32),
    F64(f64),
    Decimal(u8, u32),
    LongStr(Vec<u8>),
    Bytes(Vec<u8>),
    Timestamp(u64),
    Table(FieldTable),
    Array(Vec<FieldValue>),
    Void,
}

impl FieldValue {
    /// Any whole-number type as `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            FieldValue::I8(n) => Some(n.into()),
            FieldValue::U8(n) => Some(n.into()),
            FieldValue::I16(n) => Some(n.into()),
            FieldValue::U16(n) => Some(n.into()),
            FieldValue::I32(n) => Some(n.into()),
            FieldValue::U32(n) => Some(n.into()),
            FieldValue::I64(n) => Some(n),
            _ => None,
        }
    }

    /// The text of a long string, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            FieldValue::LongStr(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Appends the type tag and the value.
    pub fn write(&self, writer: &mut Writer<'_>) {
        match self {
            FieldValue::Bool(v) => writer.bytes(&[b't', u8::from(*v)]),
            FieldValue::I8(v) => writer.bytes(&[b'b', *v as u8]),
            FieldValue::U8(v) => writer.bytes(&[b'B', *v]),
            FieldValue::I16(v) => tagged(writer, b's', &v.to_be_bytes()),
            FieldValue::U16(v) => tagged(writer, b'u', &v.to_be_bytes()),
            FieldValue::I32(v) => tagged(writer, b'I', &v.to_be_bytes()),
            FieldValue::U32(v) => tagged(writer, b'i', &v.to_be_bytes()),
            FieldValue::I64(v) => tagged(writer, b'l', &v.to_be_bytes()),
            FieldValue::F32(v) => tagged(writer, b'f', &v.to_bits().to_be_bytes()),
            FieldValue::F64(v) => tagged(writer, b'd', &v.to_bits().to_be_bytes()),
            FieldValue::Decimal(scale, v) => {
                writer.bytes(&[b'D', *scale]);
                writer.u32(*v);
            }
            FieldValue::LongStr(v) => {
                writer.u8(b'S');
                writer.long_str(v);
            }
            FieldValue::Bytes(v) => {
                writer.u8(b'x');
                writer.long_str(v);
            }
            FieldValue::Timestamp(v) => tagged(writer, b'T', &v.to_be_bytes()),
            FieldValue::Table(v) => {
                writer.u8(b'F');
                writer.long_str(&v.encode());
            }
            FieldValue::Array(items) => {
                let mut encoded = Vec::new();
                let mut inner = Writer::new(&mut encoded);
                items.iter().for_each(|item| item.write(&mut inner));
                writer.u8(b'A');
                writer.long_str(&encoded);
            }
            FieldValue::Void => writer.u8(b'V'),
        }
    }
}

fn tagged(writer: &mut Writer<'_>, tag: u8, bytes: &[u8]) {
    writer.u8(tag);
    writer.bytes(bytes);
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        FieldValue::LongStr(text.as_bytes().to_vec())
    }
}
impl From<bool> for FieldValue {
    fn from(value: bool) -> Self {
        FieldValue::Bool(value)
    }
}
impl From<i32> for FieldValue {
    fn from(value: i32) -> Self {
        FieldValue::I32(value)
    }
}
impl From<i64> for FieldValue {
    fn from(value: i64) -> Self {
        FieldValue::I64(value)
    }
}
impl From<FieldTable> for FieldValue {
    fn from(value: FieldTable) -> Self {
        FieldValue::Table(value)
    }
}
