//! Field tables: any bytes are refused or decoded, never a panic; the borrowed and the owned form
//! agree; and what an owned table encodes to is decoded and encoded to the same bytes again.

#![no_main]

use amqp::{FieldTable, FieldValue, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: leveret_fuzz::plant(seeds()),
    |data: &[u8]| {
        let table = Table::from_wire(data);
        assert_eq!(table.as_wire(), data);
        let owned = table.to_owned();
        // Both walk the same way, so they must find the same fault first.
        assert_eq!(table.validate().err(), owned.as_ref().err().copied());
        if let Ok(owned) = owned {
            entries_agree(table, &owned);
            encoding_is_stable(&owned);
        }
    }
);

fn entries_agree(table: Table<'_>, owned: &FieldTable) {
    assert_eq!(table.is_empty(), owned.is_empty());
    assert_eq!(table.iter().count(), owned.len());
    for (name, _) in table.iter().flatten() {
        // An owned name has this in place of what is not UTF-8, so two names may become one.
        let Ok(name) = name.utf8("name") else {
            continue;
        };
        if name.contains(char::REPLACEMENT_CHARACTER) {
            continue;
        }
        // A name may come twice; the first one counts.
        let borrowed = table.get(name).expect("a name that was just read");
        let owned = owned.get(name).expect("a name that the borrowed table has");
        assert_eq!(borrowed.as_i64(), owned.as_i64());
        let text = borrowed
            .as_long_str()
            .and_then(|text| std::str::from_utf8(text).ok());
        assert_eq!(text, owned.as_str());
    }
}

/// Compared as bytes, since not-a-number is not equal to itself.
fn encoding_is_stable(owned: &FieldTable) {
    let encoded = owned.encode();
    let again = Table::from_wire(&encoded)
        .to_owned()
        .expect("what was just encoded");
    assert_eq!(again.encode(), encoded);
    assert_eq!(again.len(), owned.len());
}

/// Every type of value, a table of tables, and one that is nested too deep.
fn seeds() -> Vec<Vec<u8>> {
    let nested = |depth| {
        (0..depth).fold(FieldTable::new(), |inner, _| {
            FieldTable::new().with("t", inner)
        })
    };
    let arrays = (0..3).fold(FieldValue::Void, |inner, _| FieldValue::Array(vec![inner]));
    let tables = [
        FieldTable::new(),
        leveret_fuzz::table(),
        nested(3),
        nested(amqp::MAX_DEPTH + 1),
        FieldTable::new().with("a", arrays),
    ];
    tables.iter().map(FieldTable::encode).collect()
}
