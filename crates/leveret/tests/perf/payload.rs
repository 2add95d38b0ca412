//! What messages look like when they arrive.

use std::collections::{BTreeMap, BTreeSet};

use client::{Message, Property};
use perf::clock;

use crate::load::{path, run};
use crate::queues::*;
use crate::support::folder::Folder;
use crate::support::*;

/// What a load on a broker of its own leaves in the queue `sent`.
async fn messages(words: &str) -> Vec<Message> {
    let broker = builder().start().expect("a broker");
    let words = format!("-y 0 -u sent -ad false -c 100 {words}");
    run(broker.uri(), &words).await.well();
    take(&broker, "sent").await
}

fn header(message: &Message, name: &str) -> Option<i64> {
    message.properties().headers()?.get(name)?.as_i64()
}

fn property(message: &Message, property: Property) -> String {
    let text = message.properties().text(property).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[test]
fn bodies_are_twelve_bytes_of_sequence_and_monotonic_nanoseconds() {
    within(seconds(30), async {
        let before = clock::nanos();
        let messages = messages("-C 20").await;
        let now = clock::nanos();
        let mut last = before;
        for (number, message) in messages.iter().enumerate() {
            assert_eq!(message.body.len(), 12);
            assert_eq!(sequence(&message.body), number as u32);
            let time = time(&message.body);
            assert!((last..=now).contains(&time), "{last} {time} {now}");
            last = time;
        }
        assert_eq!(messages.len(), 20);
    });
}

#[test]
fn with_millis_they_carry_the_wall_clock() {
    within(seconds(30), async {
        let before = clock::millis();
        for message in messages("-C 3 -ms").await {
            let time = time(&message.body);
            assert!((before - 1..=clock::millis()).contains(&time), "{time}");
        }
    });
}

#[test]
fn larger_bodies_name_their_producer_and_end_in_zeros() {
    within(seconds(30), async {
        let mut of_producer: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for message in messages("-x 2 -X 2 -C 5 -s 40").await {
            assert_eq!(message.body.len(), 40);
            assert_eq!(message.body[16..], [0; 24]);
            let sequences = of_producer.entry(producer(&message.body)).or_default();
            sequences.push(sequence(&message.body));
        }
        // One for each channel.
        assert_eq!(of_producer.len(), 4);
        assert!(!of_producer.contains_key(&0));
        assert!(of_producer.values().all(|sent| sent == &[0, 1, 2, 3, 4]));
    });
}

#[test]
fn producers_of_two_runs_are_told_apart() {
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        for _ in 0..2 {
            let words = "-y 0 -u both -ad false -c 1 -C 1 -s 16";
            run(broker.uri(), words).await.well();
        }
        let messages = take(&broker, "both").await;
        assert_ne!(producer(&messages[0].body), producer(&messages[1].body));
    });
}

#[test]
fn sizes_vary_over_time() {
    within(seconds(30), async {
        let messages = messages("-vs 20:1 -vs 300:1 -r 50 -prsd 0 -z 3").await;
        let sizes: Vec<usize> = messages.iter().map(|m| m.body.len()).collect();
        assert!(sizes.iter().all(|size| [20, 300].contains(size)));
        let changes = sizes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=3).contains(&changes), "{sizes:?}");
    });
}

#[test]
fn files_are_sent_in_turn_with_number_and_time_in_headers() {
    within(seconds(30), async {
        let folder = Folder::new("perf");
        let (one, two) = (path(&folder, "one"), path(&folder, "two"));
        std::fs::write(&one, "first").expect("written");
        std::fs::write(&two, b"\x00second\xff").expect("written");
        let before = clock::nanos();
        let words = format!("-B {one},{two} -T text/x-odd -C 5");
        let messages = messages(&words).await;
        assert_eq!(messages.len(), 5);
        for (number, message) in messages.iter().enumerate() {
            let expected = [&b"first"[..], b"\x00second\xff"][number % 2];
            assert_eq!(message.body, expected);
            assert_eq!(property(message, Property::ContentType), "text/x-odd");
            assert_eq!(header(message, "sequence"), Some(number as i64));
            let time = header(message, "timestamp").expect("a time");
            assert!((before..=clock::nanos()).contains(&time));
        }
    });
}

/// So are the messages checked and their latencies measured.
#[test]
fn marks_in_headers_are_read_back() {
    within(seconds(30), async {
        let broker = shared();
        for body in ["-jb -s 300", "-B Cargo.toml"] {
            let words = format!("-x 2 -y 2 -C 10 -D 20 {body}");
            let ended = run(broker.uri(), &words).await.well();
            assert_eq!((ended.check("checked"), ended.check("unchecked")), (40, 0));
            assert_eq!(ended.faults(), [0, 0, 0]);
            assert_eq!(ended.run()["consumer_latency"]["count"], 40);
        }
    });
}

#[test]
fn json_bodies_are_documents_of_about_that_size_in_turn() {
    within(seconds(30), async {
        let messages = messages("-jb -s 500 -bc 3 -bfc 20 -C 9").await;
        let mut distinct = BTreeSet::new();
        for message in &messages {
            let document: serde_json::Value =
                serde_json::from_slice(&message.body).expect("a document");
            assert!(document.is_object());
            assert!((500..600).contains(&message.body.len()));
            assert_eq!(property(message, Property::ContentType), "application/json");
            distinct.insert(&message.body);
        }
        assert_eq!(distinct.len(), 3);
        assert_eq!(messages[0].body, messages[3].body);
    });
}

#[test]
fn properties_are_set_and_whatever_is_none_is_a_header() {
    within(seconds(30), async {
        let words = "-C 2 -s 30 -mp priority=5,appId=shop,deliveryMode=2,type=order,x-zone=eu,\
                     x-count=7,timestamp=2018-11-29T10:00:00Z";
        let messages = messages(words).await;
        assert_eq!(messages.len(), 2);
        for message in &messages {
            let summary = message.properties().summarize().expect("properties");
            assert_eq!((summary.priority, summary.delivery_mode), (5, 2));
            assert_eq!(property(message, Property::AppId), "shop");
            assert_eq!(property(message, Property::Type), "order");
            let timestamp = message.properties().get(Property::Timestamp);
            assert_eq!(timestamp, Some(amqp::Value::Timestamp(1_543_485_600)));
            assert_eq!(header(message, "x-count"), Some(7));
            let headers = message.properties().headers().expect("headers");
            let zone = headers.get("x-zone").and_then(|zone| zone.as_long_str());
            assert_eq!(zone, Some(&b"eu"[..]));
            assert!(headers.get("appId").is_none());
        }
        assert_eq!(sequence(&messages[1].body), 1);
    });
}
