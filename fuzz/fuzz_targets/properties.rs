//! Content headers and properties: any bytes are refused or decoded, never a panic; the summary
//! and the single look-ups agree; and replacing one property leaves all others as they were.

#![no_main]

use amqp::{
    ContentHeader, FieldTable, Properties, PropertiesBuilder, Property, ShortStr, Value, Writer,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: leveret_fuzz::plant(seeds()),
    |data: &[u8]| {
        // The last byte chooses what is replaced and by what; the rest is a header frame's payload.
        let Some((choice, payload)) = data.split_last() else { return };
        let Ok(header) = ContentHeader::decode(payload) else { return };
        let mut encoded = Vec::new();
        header.write(&mut Writer::new(&mut encoded));
        assert_eq!(encoded, payload);

        let properties = header.properties;
        summary_agrees_with_look_ups(properties);
        replace_headers(properties);
        let texts: Vec<Property> = Property::ALL.into_iter().filter(|property| is_text(*property)).collect();
        let text = &payload[..payload.len().min(usize::from(*choice))];
        let replaced = texts[usize::from(*choice) % texts.len()];
        replace_text(properties, replaced, ShortStr::new(text).expect("at most 255 bytes"));
    }
);

fn summary_agrees_with_look_ups(properties: Properties<'_>) {
    let values = Property::ALL.map(|property| properties.get(property));
    let Ok(summary) = properties.summarize() else {
        return;
    };
    let octet = |property| match properties.get(property) {
        Some(Value::U8(value)) => value,
        None => 0,
        other => panic!("{property:?} is {other:?}"),
    };
    assert_eq!(summary.delivery_mode, octet(Property::DeliveryMode));
    assert_eq!(summary.priority, octet(Property::Priority));
    assert_eq!(summary.headers, properties.headers());
    for (property, text) in [
        (Property::Expiration, summary.expiration),
        (Property::UserId, summary.user_id),
        (Property::ReplyTo, summary.reply_to),
    ] {
        assert_eq!(text.map(ShortStr::as_bytes), properties.text(property));
    }
    if let Some(headers) = summary.headers {
        assert!(headers.to_owned().is_ok(), "the summary has checked them");
    }
    let flags = u16::from_be_bytes([properties.as_wire()[0], properties.as_wire()[1]]);
    let set = values.iter().filter(|value| value.is_some()).count();
    assert_eq!(set, (flags & !0b11).count_ones() as usize);
}

fn replace_headers(properties: Properties<'_>) {
    let headers = FieldTable::new().with("by", "the broker");
    let Ok(changed) = properties.with_headers(&headers) else {
        assert!(properties.summarize().is_err());
        return;
    };
    let changed = Properties::from_wire(&changed);
    changed
        .summarize()
        .expect("only the headers are looked into, and they are new");
    let found = changed.headers().expect("they were just set");
    assert_eq!(found.to_owned(), Ok(headers));
    others_are_as_they_were(properties, changed, Property::Headers);
}

fn replace_text(properties: Properties<'_>, replaced: Property, text: ShortStr<'_>) {
    let Ok(changed) = properties.with_text(replaced, text) else {
        assert!(properties.summarize().is_err());
        return;
    };
    let changed = Properties::from_wire(&changed);
    assert_eq!(changed.summarize().is_ok(), properties.summarize().is_ok());
    assert_eq!(changed.text(replaced), Some(text.as_bytes()));
    others_are_as_they_were(properties, changed, replaced);
}

fn others_are_as_they_were(before: Properties<'_>, after: Properties<'_>, replaced: Property) {
    for property in Property::ALL
        .into_iter()
        .filter(|property| *property != replaced)
    {
        assert_eq!(
            wire(before.get(property)),
            wire(after.get(property)),
            "{property:?}"
        );
    }
}

/// A value that can be compared whatever is in it; header tables are compared as bytes.
fn wire(value: Option<Value<'_>>) -> Option<(u64, &[u8])> {
    Some(match value? {
        Value::U8(value) => (value.into(), &[]),
        Value::Timestamp(value) => (value, &[]),
        Value::LongStr(text) => (0, text),
        Value::Table(table) => (0, table.as_wire()),
        other => panic!("no property is {other:?}"),
    })
}

fn is_text(property: Property) -> bool {
    use Property::{DeliveryMode, Headers, Priority, Timestamp};
    !matches!(property, Headers | DeliveryMode | Priority | Timestamp)
}

/// No property, the delivery mode alone, each text property alone, and all of them.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![Properties::default().as_wire().to_vec()];
    seeds.push(PropertiesBuilder::default().delivery_mode(2).finish());
    let texts = Property::ALL
        .into_iter()
        .filter(|property| is_text(*property));
    seeds.extend(texts.map(|text| PropertiesBuilder::default().text(text, "text").finish()));
    let all = Property::ALL
        .into_iter()
        .fold(
            PropertiesBuilder::default(),
            |builder, property| match property {
                Property::Headers => builder.headers(&leveret_fuzz::table()),
                Property::DeliveryMode => builder.delivery_mode(2),
                Property::Priority => builder.priority(9),
                Property::Timestamp => builder.timestamp(1_700_000_000),
                text => builder.text(text, "some text"),
            },
        );
    seeds.push(all.finish());
    let header = |properties: &Vec<u8>| {
        let mut payload = Vec::new();
        let header = ContentHeader::basic(4, Properties::from_wire(properties));
        header.write(&mut Writer::new(&mut payload));
        payload.push(7);
        payload
    };
    seeds.iter().map(header).collect()
}
