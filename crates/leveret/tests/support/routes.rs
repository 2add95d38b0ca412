//! Exchanges, bindings and where messages go, for tests of what survives a restart.

use std::sync::OnceLock;

use amqp::FieldValue;
use client::{Connection, ExchangeOptions, FieldTable};
use testkit::Broker;

use super::durable::{Publisher, ask};

/// No arguments.
pub fn none() -> &'static FieldTable {
    static NONE: OnceLock<FieldTable> = OnceLock::new();
    NONE.get_or_init(FieldTable::new)
}

pub fn durable_exchange() -> ExchangeOptions {
    ExchangeOptions {
        durable: true,
        ..ExchangeOptions::default()
    }
}

pub async fn declare_exchange(
    connection: &mut Connection,
    channel: u16,
    name: &str,
    kind: &str,
    options: &ExchangeOptions,
) {
    let declared = connection.declare_exchange(channel, name, kind, options);
    declared.await.unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Publishes one message and says which of these queues it has reached; they are empty after that.
pub async fn reached<'q>(
    broker: &Broker,
    exchange: &str,
    key: &str,
    headers: &FieldTable,
    queues: &[&'q str],
) -> Vec<&'q str> {
    let mut publisher = Publisher::open(broker).await;
    let properties = client::PropertiesBuilder::default().headers(headers);
    publisher.publish(exchange, key, &properties.finish(), b"where to?");
    publisher.all_confirmed().await;
    let mut found = Vec::new();
    let (connection, channel) = (&mut publisher.connection, publisher.channel);
    for queue in queues {
        if connection.purge(channel, queue).await.expect(queue) > 0 {
            found.push(*queue);
        }
    }
    found
}

pub async fn exchange_is_there(broker: &Broker, name: &str) -> bool {
    let passive = ExchangeOptions {
        passive: true,
        ..ExchangeOptions::default()
    };
    let found = ask(broker, async |connection, channel| {
        let declared = connection.declare_exchange(channel, name, "direct", &passive);
        declared.await
    });
    match found.await {
        Ok(()) => true,
        Err((404, _)) => false,
        Err(other) => panic!("{name}: {other:?}"),
    }
}

/// Every type of value that a table can hold, and tables in tables to the depth that is allowed.
pub fn arguments_of_all_types() -> FieldTable {
    let mut deep = FieldTable::new().with("bottom", true);
    for _ in 0..100 {
        deep = FieldTable::new().with("deeper", deep);
    }
    let array = vec![
        FieldValue::Void,
        FieldValue::Array(vec![FieldValue::I8(-1)]),
        FieldValue::Table(FieldTable::new().with("in", "an array")),
    ];
    FieldTable::new()
        .with("bool", true)
        .with("i8", FieldValue::I8(-8))
        .with("u8", FieldValue::U8(200))
        .with("i16", FieldValue::I16(-16_000))
        .with("u16", FieldValue::U16(60_000))
        .with("i32", -32)
        .with("u32", FieldValue::U32(4_000_000_000))
        .with("i64", FieldValue::I64(-(1 << 60)))
        .with("f32", FieldValue::F32(0.5))
        .with("f64", FieldValue::F64(-1e300))
        .with("decimal", FieldValue::Decimal(2, 12_345))
        .with("text", "ü")
        .with("not text", FieldValue::LongStr(vec![0xff, 0, 0xfe]))
        .with("bytes", FieldValue::Bytes(vec![0, 255]))
        .with("timestamp", FieldValue::Timestamp(u64::MAX))
        .with("array", FieldValue::Array(array))
        .with("void", FieldValue::Void)
        .with("", "no name")
        .with("deep", deep)
}
