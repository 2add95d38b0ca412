//! Property tests: what is encoded decodes to the same, and no bytes make the decoder panic.

use proptest::prelude::*;

use super::*;
use crate::{FieldTable, FieldValue, ShortStr, Table};

const VERSIONS: [Version; 3] = [Version::V0_8, Version::V0_9, Version::V0_9_1];

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(&VERSIONS[..])
}

fn field_value() -> impl Strategy<Value = FieldValue> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(FieldValue::Bool),
        any::<i8>().prop_map(FieldValue::I8),
        any::<u8>().prop_map(FieldValue::U8),
        any::<i16>().prop_map(FieldValue::I16),
        any::<u16>().prop_map(FieldValue::U16),
        any::<i32>().prop_map(FieldValue::I32),
        any::<u32>().prop_map(FieldValue::U32),
        any::<i64>().prop_map(FieldValue::I64),
        (-1e30f32..1e30).prop_map(FieldValue::F32),
        (-1e300f64..1e300).prop_map(FieldValue::F64),
        any::<(u8, u32)>().prop_map(|(scale, digits)| FieldValue::Decimal(scale, digits)),
        any::<Vec<u8>>().prop_map(FieldValue::LongStr),
        any::<Vec<u8>>().prop_map(FieldValue::Bytes),
        any::<u64>().prop_map(FieldValue::Timestamp),
        Just(FieldValue::Void),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(FieldValue::Array),
            prop::collection::btree_map("[a-z]{0,8}", inner, 0..5).prop_map(|entries| {
                let mut table = FieldTable::new();
                entries
                    .into_iter()
                    .for_each(|(name, value)| table.insert(&name, value));
                FieldValue::Table(table)
            }),
        ]
    })
}

fn field_table() -> impl Strategy<Value = FieldTable> {
    prop::collection::btree_map("[a-z-]{0,20}", field_value(), 0..6).prop_map(|entries| {
        let mut table = FieldTable::new();
        entries
            .into_iter()
            .for_each(|(name, value)| table.insert(&name, value));
        table
    })
}

fn encode(method: &Method<'_>, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    method.write(version, &mut Writer::new(&mut out));
    out
}

fn round_trip(method: Method<'_>, version: Version) {
    let bytes = encode(&method, version);
    assert_eq!(Method::decode(version, &bytes), Ok(method));
    for cut in 0..bytes.len() {
        assert!(
            Method::decode(version, &bytes[..cut]).is_err(),
            "{method:?} cut at {cut}"
        );
    }
}

proptest! {
    #[test]
    fn table_encodes_and_decodes_to_itself(table in field_table()) {
        let bytes = table.encode();
        prop_assert_eq!(Table::from_wire(&bytes).validate(), Ok(()));
        prop_assert_eq!(Table::from_wire(&bytes).to_owned(), Ok(table));
    }

    #[test]
    fn queue_declare_round_trips(
        version in version(),
        queue in "\\PC{0,60}",
        bits in any::<[bool; 5]>(),
        table in field_table(),
    ) {
        let arguments = table.encode();
        let [passive, durable, exclusive, auto_delete, no_wait] = bits;
        let queue = ShortStr::truncated(&queue);
        let arguments = Table::from_wire(&arguments);
        round_trip(
            queue::Declare {
                ticket: 7, queue, passive, durable, exclusive, auto_delete, no_wait, arguments,
            }.into(),
            version,
        );
    }

    #[test]
    fn deliver_round_trips(
        version in version(),
        tag in "\\PC{0,40}",
        delivery_tag in any::<u64>(),
        redelivered in any::<bool>(),
        routing_key in prop::collection::vec(any::<u8>(), 0..=255),
    ) {
        round_trip(
            basic::Deliver {
                consumer_tag: ShortStr::truncated(&tag),
                delivery_tag,
                redelivered,
                exchange: ShortStr::truncated("x"),
                routing_key: ShortStr::new(&routing_key).expect("at most 255"),
            }.into(),
            version,
        );
    }

    #[test]
    fn any_bytes_never_panic(version in version(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Method::decode(version, &bytes);
        let _ = Table::from_wire(&bytes).to_owned();
        let _ = Table::from_wire(&bytes).validate();
        if let Ok(header) = crate::ContentHeader::decode(&bytes) {
            let _ = header.properties.summarize();
            let _ = header.properties.with_headers(&FieldTable::new());
        }
    }

    #[test]
    fn any_arguments_never_panic(
        version in version(),
        ids in prop::sample::select(vec![(10u16, 10u16), (10, 11), (40, 10), (50, 10), (60, 20), (60, 40), (60, 60)]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut payload = Vec::new();
        let mut writer = Writer::new(&mut payload);
        writer.u16(ids.0);
        writer.u16(ids.1);
        writer.bytes(&bytes);
        if let Ok(method) = Method::decode(version, &payload) {
            let encoded = encode(&method, version);
            prop_assert_eq!(Method::decode(version, &encoded), Ok(method));
        }
    }
}

#[test]
fn consume_has_no_arguments_on_0_8() {
    let method = Method::from(basic::Consume::default());
    assert_eq!(
        encode(&method, Version::V0_8).len() + 4,
        encode(&method, Version::V0_9_1).len()
    );
}

#[test]
fn connection_close_is_method_60_on_0_8() {
    let method = Method::from(connection::Close::default());
    assert_eq!(method.ids(Version::V0_8), (10, 60));
    assert_eq!(method.ids(Version::V0_9_1), (10, 50));
    round_trip(method, Version::V0_8);
}

#[test]
fn unknown_method_is_named() {
    assert_eq!(
        Method::decode(Version::V0_9_1, &[0, 50, 0, 99]),
        Err(DecodeError::UnknownMethod {
            class: 50,
            method: 99
        })
    );
}

#[test]
fn trailing_bytes_are_an_error() {
    assert_eq!(
        Method::decode(Version::V0_9_1, &[0, 90, 0, 10, 0]),
        Err(DecodeError::Trailing(1))
    );
}

#[test]
fn table_nested_a_thousand_deep_is_refused() {
    // Built by hand, since an owned table that deep could not be encoded without recursion.
    let mut bytes = Vec::new();
    for _ in 0..1_000 {
        let mut outer = vec![1, b't', b'F'];
        outer.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        outer.extend_from_slice(&bytes);
        bytes = outer;
    }
    assert_eq!(
        Table::from_wire(&bytes).validate(),
        Err(DecodeError::TooDeep)
    );
    assert_eq!(
        Table::from_wire(&bytes).to_owned(),
        Err(DecodeError::TooDeep)
    );
}
