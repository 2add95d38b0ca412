use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use leveret_interop_rust::{Session, consume, next, send};

const FRAME_OVERHEAD: usize = 8; // type, channel, size and end marker

#[tokio::test]
async fn body_of_1_mib_spans_frames_and_arrives_byte_for_byte() {
    Session::run(async |session| {
        let body = noise(1024 * 1024);
        let frame_max = session.connection.configuration().frame_max() as usize;
        assert!(
            (1..body.len()).contains(&frame_max),
            "the body must not fit a frame"
        );
        assert_same(
            &round_trip(session, &body, BasicProperties::default())
                .await
                .data,
            &body,
        );
    })
    .await;
}

#[tokio::test]
async fn bodies_at_the_edge_of_a_frame_arrive_byte_for_byte() {
    Session::run(async |session| {
        let full = session.connection.configuration().frame_max() as usize - FRAME_OVERHEAD;
        for size in [full - 1, full, full + 1, 2 * full] {
            let body = noise(size);
            assert_same(
                &round_trip(session, &body, BasicProperties::default())
                    .await
                    .data,
                &body,
            );
        }
    })
    .await;
}

#[tokio::test]
async fn empty_body_arrives_empty_and_the_next_message_is_intact() {
    Session::run(async |session| {
        let none = BasicProperties::default;
        assert_eq!(round_trip(session, b"", none()).await.data, b"");
        assert_eq!(round_trip(session, b"next", none()).await.data, b"next");
    })
    .await;
}

/// lapin keeps the type of a value, so this also pins that the broker passes types on unchanged.
#[tokio::test]
async fn every_header_value_type_survives_nested_too() {
    Session::run(async |session| {
        let values = [
            AMQPValue::LongString("Grüße 🐇".into()),
            AMQPValue::LongString("".into()),
            AMQPValue::ByteArray(vec![0, 1, 254, 255].into()),
            AMQPValue::Boolean(true),
            AMQPValue::Boolean(false),
            AMQPValue::Void,
            AMQPValue::ShortShortInt(i8::MIN),
            AMQPValue::ShortShortUInt(u8::MAX),
            AMQPValue::ShortInt(i16::MIN),
            AMQPValue::ShortUInt(u16::MAX),
            AMQPValue::LongInt(i32::MIN),
            AMQPValue::LongUInt(u32::MAX),
            AMQPValue::LongLongInt(i64::MIN),
            AMQPValue::Float(1.5),
            AMQPValue::Double(std::f64::consts::PI),
            AMQPValue::Timestamp(1_700_000_000),
            AMQPValue::DecimalValue(DecimalValue {
                scale: 2,
                value: 12345,
            }),
            AMQPValue::FieldTable(FieldTable::default()),
            AMQPValue::FieldArray(FieldArray::default()),
        ];
        let mut flat = FieldTable::default();
        for (number, value) in values.iter().enumerate() {
            flat.insert(format!("value-{number}").into(), value.clone());
        }
        let nested_array = FieldArray::from(vec![FieldArray::from(values.to_vec()).into()]);
        let mut nested_table = FieldTable::default();
        nested_table.insert("deeper".into(), flat.clone().into());
        let mut headers = flat;
        headers.insert("table".into(), nested_table.into());
        headers.insert("array".into(), nested_array.into());

        let properties = BasicProperties::default().with_headers(headers.clone());
        let received = round_trip(session, b"x", properties).await;
        assert_eq!(received.properties.headers(), &Some(headers));
    })
    .await;
}

#[tokio::test]
async fn every_basic_property_survives() {
    Session::run(async |session| {
        let properties = BasicProperties::default()
            .with_content_type("text/plain".into())
            .with_content_encoding("gzip".into())
            .with_delivery_mode(2)
            .with_priority(7)
            .with_correlation_id("correlation".into())
            .with_reply_to("reply".into())
            .with_expiration("60000".into())
            .with_message_id("message".into())
            .with_timestamp(1_700_000_000)
            .with_type("type".into())
            .with_user_id("guest".into())
            .with_app_id("application".into())
            .with_cluster_id("cluster".into());
        let received = round_trip(session, b"x", properties.clone()).await;
        assert_eq!(received.properties, properties);
    })
    .await;
}

async fn round_trip(session: &Session, body: &[u8], properties: BasicProperties) -> Delivery {
    let channel = session.channel().await;
    let queue = session.queue(&channel).await;
    let mut consumer = consume(&channel, &queue, true).await;
    send(&channel, &"".into(), &queue, body, properties).await;
    let delivery = next(&mut consumer).await;
    channel.close(200, "done".into()).await.unwrap();
    delivery
}

/// Bytes that do not repeat (xorshift), so that frames swapped or doubled show.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(|_| step()).collect()
}

/// As `assert_eq!`, without printing a megabyte.
fn assert_same(got: &[u8], want: &[u8]) {
    assert!(
        got == want,
        "got {} bytes that differ from the {} sent",
        got.len(),
        want.len()
    );
}
