//! What the fuzz targets share: the inputs that they start from.
//!
//! Seeds are not kept in the repository. A target makes them when it starts, with the encoder that
//! it tests, and writes them into the corpus folder that libFuzzer was given first.

use std::path::PathBuf;

use amqp::{FieldTable, FieldValue, Method, Version};

/// All versions that the codec speaks.
pub const VERSIONS: [Version; 3] = [Version::V0_8, Version::V0_9, Version::V0_9_1];

/// Writes the seeds into the first folder among libFuzzer's arguments. Does nothing where there is
/// none, as when a finding is run again.
pub fn plant(seeds: impl IntoIterator<Item = Vec<u8>>) {
    let arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(corpus) = arguments.into_iter().find(|argument| argument.is_dir()) else {
        return;
    };
    for (number, seed) in seeds.into_iter().enumerate() {
        let path = corpus.join(format!("seed-{number}"));
        std::fs::write(&path, seed).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The payload of every method of a version, its arguments zero or empty.
pub fn methods(version: Version) -> impl Iterator<Item = Vec<u8>> {
    const LONGEST: usize = 32;
    let ids = (0..=90u16).flat_map(|class| (0..=130u16).map(move |method| (class, method)));
    ids.filter_map(move |(class, method)| {
        let mut payload = [class.to_be_bytes(), method.to_be_bytes()].concat();
        while Method::decode(version, &payload).is_err() {
            if payload.len() == LONGEST {
                return None;
            }
            payload.push(0);
        }
        Some(payload)
    })
}

/// A table with a value of every type, some of them nested.
pub fn table() -> FieldTable {
    let inner = FieldTable::new()
        .with("void", FieldValue::Void)
        .with("text", "words");
    let array = vec![FieldValue::I8(-1), FieldValue::Table(inner.clone())];
    FieldTable::new()
        .with("bool", true)
        .with("i8", FieldValue::I8(-8))
        .with("u8", FieldValue::U8(8))
        .with("i16", FieldValue::I16(-16))
        .with("u16", FieldValue::U16(16))
        .with("i32", -32)
        .with("u32", FieldValue::U32(32))
        .with("i64", -64i64)
        .with("f32", FieldValue::F32(0.5))
        .with("f64", FieldValue::F64(-0.25))
        .with("decimal", FieldValue::Decimal(2, 314))
        .with("bytes", FieldValue::Bytes(vec![0, 255]))
        .with("timestamp", FieldValue::Timestamp(1_700_000_000))
        .with("array", FieldValue::Array(array))
        .with("table", inner)
}
