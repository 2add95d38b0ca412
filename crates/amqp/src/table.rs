//! Field tables: named values, in the order they were sent.

use crate::{DecodeError, FieldValue, MAX_DEPTH, Reader, ShortStr, Value, Writer};

/// A borrowed table: its entries' bytes, decoded when iterated. Nothing is checked until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Table<'a>(&'a [u8]);

impl<'a> Table<'a> {
    /// From the bytes after the table's 32-bit length.
    #[inline]
    pub fn from_wire(bytes: &'a [u8]) -> Self {
        Table(bytes)
    }

    /// The bytes after the table's 32-bit length.
    #[inline]
    pub fn as_wire(self) -> &'a [u8] {
        self.0
    }

    /// True for a table without entries.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The entries; ends after the first error.
    pub fn iter(self) -> impl Iterator<Item = Result<(ShortStr<'a>, Value<'a>), DecodeError>> {
        let mut reader = Reader::new(self.0);
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed || reader.remaining() == 0 {
                return None;
            }
            let entry = reader
                .short_str()
                .and_then(|name| Ok((name, Value::read(&mut reader)?)));
            failed = entry.is_err();
            Some(entry)
        })
    }

    /// The first entry of that name; `None` also where the bytes before it are malformed.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        self.iter()
            .map_while(Result::ok)
            .find(|(key, _)| key.as_bytes() == name.as_bytes())
            .map(|(_, value)| value)
    }

    /// Checks all entries, down to the deepest.
    pub fn validate(self) -> Result<(), DecodeError> {
        self.validate_at(0)
    }

    pub(crate) fn validate_at(self, depth: usize) -> Result<(), DecodeError> {
        if depth >= MAX_DEPTH {
            return Err(DecodeError::TooDeep);
        }
        self.iter().try_for_each(|entry| entry?.1.validate(depth))
    }

    /// A copy that owns its values. Names that are not UTF-8 get replacement characters.
    pub fn to_owned(self) -> Result<FieldTable, DecodeError> {
        self.to_owned_at(0)
    }

    pub(crate) fn to_owned_at(self, depth: usize) -> Result<FieldTable, DecodeError> {
        if depth >= MAX_DEPTH {
            return Err(DecodeError::TooDeep);
        }
        let entries = self.iter().map(|entry| {
            let (name, value) = entry?;
            Ok((name.lossy().into(), value.to_owned_at(depth)?))
        });
        Ok(FieldTable(entries.collect::<Result<_, DecodeError>>()?))
    }
}

/// An owned table, in the order of its entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldTable(Vec<(Box<str>, FieldValue)>);

impl IntoIterator for FieldTable {
    type Item = (Box<str>, FieldValue);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Entries as they come: unlike [`FieldTable::insert`], no search for others of the same name.
impl FromIterator<(Box<str>, FieldValue)> for FieldTable {
    fn from_iter<I: IntoIterator<Item = (Box<str>, FieldValue)>>(entries: I) -> Self {
        FieldTable(entries.into_iter().collect())
    }
}

impl FieldTable {
    /// An empty table.
    pub fn new() -> Self {
        FieldTable::default()
    }

    /// Sets a value, replacing an entry of the same name.
    pub fn insert(&mut self, name: &str, value: impl Into<FieldValue>) {
        let value = value.into();
        match self.0.iter_mut().find(|(key, _)| &**key == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// The same as [`FieldTable::insert`], to chain.
    pub fn with(mut self, name: &str, value: impl Into<FieldValue>) -> Self {
        self.insert(name, value);
        self
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        self.0
            .iter()
            .find(|(key, _)| &**key == name)
            .map(|(_, value)| value)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, name: &str) -> Option<FieldValue> {
        let at = self.0.iter().position(|(key, _)| &**key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldValue)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// True for a table without entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes after the table's 32-bit length. Names longer than 255 bytes are cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        for (name, value) in &self.0 {
            writer.short_str(ShortStr::truncated(name));
            value.write(&mut writer);
        }
        out
    }

    /// True if both hold the same entries, in whatever order.
    pub fn same_entries(&self, other: &FieldTable) -> bool {
        self.0.len() == other.0.len()
            && self
                .iter()
                .all(|(name, value)| other.get(name) == Some(value))
    }
}
