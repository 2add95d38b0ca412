//! `x-queue-type: stream`: a log that many read, and that keeps what they have read.

mod support;

use client::{
    Connection, ConsumeOptions, Error, Event, FieldTable, FieldValue, Properties,
    PropertiesBuilder, PublishFlags, QueueOptions,
};

use support::durable::Publisher;
use support::*;

fn stream() -> FieldTable {
    FieldTable::new().with("x-queue-type", "stream")
}

async fn declare_stream(connection: &mut Connection, channel: u16, name: &str, more: FieldTable) {
    let mut arguments = stream();
    for (name, value) in more.iter() {
        arguments.insert(name, value.clone());
    }
    let options = QueueOptions {
        durable: true,
        arguments,
        ..QueueOptions::default()
    };
    let declared = connection.declare_queue(channel, name, &options);
    declared.await.expect("declare-ok");
}

/// A consumer on a channel of its own.
async fn read(
    connection: &mut Connection,
    stream: &str,
    prefetch: u16,
    arguments: FieldTable,
) -> u16 {
    let channel = connection.open_channel().await.expect("open-ok");
    let limited = connection.qos(channel, prefetch, false);
    limited.await.expect("qos-ok");
    let options = ConsumeOptions {
        arguments,
        ..ConsumeOptions::default()
    };
    let consuming = connection.consume(channel, stream, &options);
    consuming.await.expect("a consumer");
    channel
}

fn from(offset: impl Into<FieldValue>) -> FieldTable {
    FieldTable::new().with("x-stream-offset", offset)
}

/// A delivery's offset, number, and what acknowledges it.
struct Read {
    channel: u16,
    tag: u64,
    offset: i64,
    number: u64,
}

async fn next(connection: &mut Connection) -> Read {
    let event = connection.next().await.expect("an event");
    let Event::Delivery(delivery) = event else {
        panic!("a delivery expected, got {event:?}");
    };
    let headers = delivery.properties.headers().expect("headers");
    let offset = headers
        .get("x-stream-offset")
        .and_then(|offset| offset.as_i64());
    Read {
        channel: delivery.channel,
        tag: delivery.delivery_tag,
        offset: offset.expect("an offset"),
        number: number(delivery.body),
    }
}

async fn fill(
    connection: &mut Connection,
    channel: u16,
    stream: &str,
    numbers: std::ops::Range<u64>,
) {
    for number in numbers {
        publish(connection, channel, stream, &numbered(number, 100));
    }
    synchronize(connection, channel).await;
}

async fn expect_numbers(connection: &mut Connection, expected: std::ops::Range<u64>) {
    for number in expected {
        let read = next(connection).await;
        assert_eq!((read.number, read.offset), (number, number as i64));
        connection.ack(read.channel, read.tag, false);
    }
}

#[test]
fn everybody_reads_everything_and_nothing_goes() {
    within(seconds(20), async {
        let broker = shared();
        let (mut publisher, channel) = open(&broker).await;
        declare_stream(&mut publisher, channel, "stream-all", FieldTable::new()).await;
        fill(&mut publisher, channel, "stream-all", 0..500).await;
        for _ in 0..3 {
            let mut reader = connect(&broker).await;
            read(&mut reader, "stream-all", 10, from("first")).await;
            expect_numbers(&mut reader, 0..500).await;
            assert_quiet(&mut reader).await;
        }
        let left = look_at(&mut publisher, channel, "stream-all").await;
        assert_eq!(left.messages, 500);
    });
}

#[test]
fn readers_begin_where_they_say() {
    within(seconds(20), async {
        let broker = shared();
        let (mut publisher, channel) = open(&broker).await;
        declare_stream(&mut publisher, channel, "stream-start", FieldTable::new()).await;
        fill(&mut publisher, channel, "stream-start", 0..10).await;
        let mut readers = Vec::new();
        for (arguments, first) in [
            (FieldTable::new(), 10),
            (from("next"), 10),
            (from("last"), 9),
            (from("first"), 0),
            (from(4), 4),
            (from(12), 12),
            (from(FieldValue::Timestamp(1_000_000_000)), 0),
            // As `next`, as in RabbitMQ.
            (from(FieldValue::Timestamp(4_000_000_000)), 10),
            (from("1h"), 0),
        ] {
            let mut reader = connect(&broker).await;
            read(&mut reader, "stream-start", 100, arguments).await;
            readers.push((reader, first));
        }
        fill(&mut publisher, channel, "stream-start", 10..15).await;
        for (reader, first) in &mut readers {
            expect_numbers(reader, *first..15).await;
            assert_quiet(reader).await;
        }
    });
}

#[test]
fn acknowledgements_are_credit_whatever_they_say() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_stream(&mut connection, channel, "stream-credit", FieldTable::new()).await;
        fill(&mut connection, channel, "stream-credit", 0..6).await;
        let reading = read(&mut connection, "stream-credit", 2, from("first")).await;
        let first = next(&mut connection).await;
        let second = next(&mut connection).await;
        assert_quiet(&mut connection).await;
        connection.reject(reading, first.tag, true);
        assert_eq!(next(&mut connection).await.number, 2);
        connection.reject(reading, second.tag, false);
        assert_eq!(next(&mut connection).await.number, 3);
        assert_quiet(&mut connection).await;
        connection.ack(reading, 0, true);
        assert_eq!(next(&mut connection).await.number, 4);
        assert_eq!(next(&mut connection).await.number, 5);
        connection.close_channel(reading).await.expect("close-ok");
        let left = look_at(&mut connection, channel, "stream-credit").await;
        assert_eq!(left.messages, 6);
    });
}

#[test]
fn what_is_no_stream_operation_is_refused() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_stream(
            &mut connection,
            channel,
            "stream-refuses",
            FieldTable::new(),
        )
        .await;
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, "stream-refuses", &options);
        let error = consuming.await.expect_err("no prefetch");
        let text = "PRECONDITION_FAILED - consumer prefetch count is not set for 'queue \
                    'stream-refuses' in vhost '/''";
        assert!(
            matches!(&error, Error::ChannelClosed { code: 406, text: said, .. } if said == text),
            "{error}"
        );
        for refused in ["get", "no-ack", "purge"] {
            let (mut connection, channel) = open(&broker).await;
            connection.qos(channel, 1, false).await.expect("qos-ok");
            let error = match refused {
                "get" => connection.get(channel, "stream-refuses", true).await.err(),
                "purge" => connection.purge(channel, "stream-refuses").await.err(),
                _ => {
                    let no_ack = ConsumeOptions {
                        no_ack: true,
                        ..ConsumeOptions::default()
                    };
                    connection
                        .consume(channel, "stream-refuses", &no_ack)
                        .await
                        .err()
                }
            };
            let error = error.unwrap_or_else(|| panic!("{refused} is refused"));
            assert_eq!(error.reply_code(), Some(540), "{refused}: {error}");
        }
    });
}

fn valued(value: Option<&str>) -> Vec<u8> {
    let headers = match value {
        Some(value) => FieldTable::new().with("x-stream-filter-value", value),
        None => FieldTable::new(),
    };
    PropertiesBuilder::default().headers(&headers).finish()
}

#[test]
fn filters_choose_by_value() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_stream(&mut connection, channel, "stream-filter", FieldTable::new()).await;
        for (number, value) in [Some("a"), Some("b"), None, Some("c"), Some("a")]
            .iter()
            .enumerate()
        {
            let properties = valued(*value);
            let properties = Properties::from_wire(&properties);
            let body = numbered(number as u64, 8);
            let flags = PublishFlags::NONE;
            let sent = connection.publish(channel, "", "stream-filter", flags, properties, &body);
            sent.expect("a short key");
        }
        synchronize(&mut connection, channel).await;
        let both = FieldValue::Array(vec!["a".into(), "c".into()]);
        for (arguments, expected) in [
            (from("first").with("x-stream-filter", "a"), vec![0, 4]),
            (from("first").with("x-stream-filter", both), vec![0, 3, 4]),
            (
                from("first")
                    .with("x-stream-filter", "b")
                    .with("x-stream-match-unfiltered", true),
                vec![1, 2],
            ),
        ] {
            let mut reader = connect(&broker).await;
            read(&mut reader, "stream-filter", 10, arguments).await;
            for number in expected {
                assert_eq!(next(&mut reader).await.offset, number);
            }
            assert_quiet(&mut reader).await;
        }
    });
}

/// The oldest go; offsets go on.
#[test]
fn too_many_bytes_go_from_the_front() {
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let limit = FieldTable::new().with("x-max-length-bytes", 100_000);
        declare_stream(&mut connection, channel, "stream-bytes", limit).await;
        fill(&mut connection, channel, "stream-bytes", 0..5_000).await;
        let kept = look_at(&mut connection, channel, "stream-bytes")
            .await
            .messages;
        assert!((300..1_100).contains(&kept), "{kept}");
        read(&mut connection, "stream-bytes", 5_000, from("first")).await;
        let first = next(&mut connection).await;
        assert_eq!(first.offset as u64, first.number);
        assert_eq!(first.number, 5_000 - u64::from(kept));
    });
}

#[test]
fn old_messages_go() {
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let limit = FieldTable::new().with("x-max-age", "1s");
        declare_stream(&mut connection, channel, "stream-age", limit).await;
        fill(&mut connection, channel, "stream-age", 0..100).await;
        assert_eq!(
            look_at(&mut connection, channel, "stream-age")
                .await
                .messages,
            100
        );
        eventually("they are old", seconds(10), async || {
            // The last one stays.
            look_at(&mut connection, channel, "stream-age")
                .await
                .messages
                == 1
        })
        .await;
        fill(&mut connection, channel, "stream-age", 100..101).await;
        read(&mut connection, "stream-age", 10, from(100)).await;
        assert_eq!(next(&mut connection).await.offset, 100);
    });
}

/// Transient messages are kept as well: a stream has no others.
#[test]
fn a_stream_outlasts_a_crash_with_its_offsets() {
    within(seconds(60), async {
        let mut broker = builder()
            .config("leveret.queue_memory = 1MiB\n")
            .start()
            .expect("a broker");
        const COUNT: u64 = 40_000;
        let mut publisher = Publisher::open(&broker).await;
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        declare_stream(connection, channel, "log", FieldTable::new()).await;
        for number in 0..COUNT {
            publisher.publish("", "log", &[0, 0], &numbered(number, 200));
        }
        publisher.all_confirmed().await;
        broker.crash_and_restart().expect("it starts again");
        let (mut connection, channel) = open(&broker).await;
        let found = look_at(&mut connection, channel, "log").await.messages;
        assert_eq!(u64::from(found), COUNT);
        publish(&mut connection, channel, "log", &numbered(COUNT, 200));
        synchronize(&mut connection, channel).await;
        // Two at a time, at different places, with what has gone to segments.
        let mut other = connect(&broker).await;
        read(&mut connection, "log", 500, from("first")).await;
        read(&mut other, "log", 500, from(30_000)).await;
        expect_numbers(&mut connection, 0..20_000).await;
        expect_numbers(&mut other, 30_000..COUNT + 1).await;
        expect_numbers(&mut connection, 20_000..COUNT + 1).await;
        assert_quiet(&mut other).await;
    });
}
