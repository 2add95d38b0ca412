//! `--verify`: what is found, and how it is told.

use std::future::Future;

use client::{Confirm, Connection, Event, Properties, PublishFlags};
use testkit::Broker;

use crate::load::{Ended, run, start};
use crate::queues::*;
use crate::support::*;

const NOT_IN_ORDER: &str = "messages are missing, doubled or out of order";

/// Between producer and consumer: what the load sends to one queue is brought to the other, as
/// `change` says, one batch of ten after the other. With a broker of its own.
async fn relayed(change: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>) -> Ended {
    let broker = builder().start().expect("a broker");
    let (mut connection, channel) = open(&broker).await;
    let options = durable_exchange();
    let declared = connection.declare_exchange(channel, "in", "direct", &options);
    declared.await.expect("declare-ok");
    declare(&mut connection, channel, "sent").await;
    declare(&mut connection, channel, "brought").await;
    bind(&mut connection, channel, "sent", "in", "key").await;
    let options = client::ConsumeOptions::no_ack();
    let consuming = connection.consume(channel, "sent", &options).await;
    consuming.expect("consume-ok");
    let load = start(
        broker.uri(),
        "-p -sb -e in -k key -u brought -s 16 -C 100 --verify",
    );
    tokio::select! {
        ended = load.end() => ended,
        never = bring(&mut connection, channel, change) => never,
    }
}

async fn bring<T>(
    connection: &mut Connection,
    channel: u16,
    change: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
) -> T {
    loop {
        let batch = receive_all(connection, 10).await;
        for body in change(batch.into_iter().map(|it| it.body).collect()) {
            publish(connection, channel, "brought", &body);
        }
        connection.flush().await.expect("a connection");
    }
}

#[test]
fn what_is_brought_as_it_was_sent_passes() {
    within(seconds(30), async {
        let ended = relayed(|batch| batch).await.well();
        assert_eq!((ended.check("checked"), ended.faults()), (100, [0, 0, 0]));
        assert!(ended.out.contains("order: in order; 100 checked"));
    });
}

#[test]
fn a_message_that_is_missing_is_a_gap() {
    within(seconds(30), async {
        let ended = relayed(|mut batch| {
            batch.retain(|body| ![33, 34, 77].contains(&sequence(body)));
            batch
        })
        .await;
        assert_eq!(ended.failed(3), NOT_IN_ORDER);
        assert_eq!((ended.check("checked"), ended.faults()), (97, [3, 0, 0]));
        assert!(ended.out.contains("NOT IN ORDER; 97 checked, gaps 3"));
    });
}

/// The last ones, too, after which nothing comes that would show it.
#[test]
fn messages_missing_at_the_end_are_gaps() {
    within(seconds(30), async {
        let ended = relayed(|mut batch| {
            batch.retain(|body| sequence(body) < 95);
            batch
        })
        .await;
        assert_eq!(ended.failed(3), NOT_IN_ORDER);
        assert_eq!(ended.faults(), [5, 0, 0]);
    });
}

#[test]
fn messages_that_are_all_missing_are_gaps() {
    within(seconds(30), async {
        let ended = relayed(|_| Vec::new()).await;
        assert_eq!(ended.failed(3), NOT_IN_ORDER);
        assert_eq!((ended.check("checked"), ended.faults()), (0, [100, 0, 0]));
    });
}

#[test]
fn a_message_that_comes_twice_is_a_duplicate() {
    within(seconds(30), async {
        let ended = relayed(|mut batch| {
            let twice = batch.iter().position(|body| sequence(body) == 42);
            if let Some(at) = twice {
                batch.insert(at, batch[at].clone());
            }
            batch
        })
        .await;
        assert_eq!(ended.failed(3), NOT_IN_ORDER);
        assert_eq!((ended.check("checked"), ended.faults()), (101, [0, 1, 0]));
    });
}

#[test]
fn a_message_that_comes_after_a_later_one_is_reordered() {
    within(seconds(30), async {
        let ended = relayed(|mut batch| {
            if sequence(&batch[0]) == 50 {
                batch.swap(3, 4);
            }
            batch
        })
        .await;
        assert_eq!(ended.failed(3), NOT_IN_ORDER);
        assert_eq!(ended.faults(), [0, 0, 1]);
        let place = &ended.run()["checks"]["by_consumer"][0];
        assert_eq!(
            (&place["queue"], &place["producer"], &place["reordered"]),
            (&"brought".into(), &0.into(), &1.into())
        );
    });
}

#[test]
fn without_verify_faults_are_shown_and_do_not_fail() {
    within(seconds(30), async {
        let broker = shared();
        fill_swapped(&broker, "swapped").await;
        let words = "-x 0 -u swapped -ad false -s 16 -D 2";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(ended.faults(), [0, 0, 1]);
        assert!(ended.out.contains("NOT IN ORDER"), "{}", ended.out);
    });
}

/// Two messages of one producer, the second one first.
async fn fill_swapped(broker: &Broker, queue: &str) {
    let words = format!("-y 0 -u {queue} -ad false -s 16 -c 2 -C 2");
    run(broker.uri(), &words).await.well();
    let messages = take(broker, queue).await;
    let (mut connection, channel) = open(broker).await;
    connection.confirm_select(channel).await.expect("confirms");
    for message in messages.iter().rev() {
        publish(&mut connection, channel, queue, &message.body);
    }
    let mut confirmed = 0;
    while confirmed < 2 {
        match connection.next().await.expect("an event") {
            Event::Confirm(Confirm { delivery_tag, .. }) => confirmed = delivery_tag,
            other => panic!("a confirm expected, got {other:?}"),
        }
    }
}

#[test]
fn clean_loads_of_several_producers_and_consumers_pass() {
    within(seconds(40), async {
        let broker = shared();
        for (words, checked) in [
            ("-x 3 -y 2", 3_000),
            ("-x 2 -y 3 -u all-take", 1_000),
            ("-x 2 -X 2 -y 2 -Y 2 -q 10 -c 20 -A 5", 8_000),
            ("-x 3 -y 3 -qp spread-%d -qpf 1 -qpt 2 -f persistent", 1_500),
            ("-x 1 -y 2 -m 7 -n 3", 1_000),
            ("-x 2 -y 2 -po -a -u asked", 1_000),
            ("-x 2 -X 2 -y 2 --threads 1", 4_000),
            ("-x 2 -y 2 -K -t fanout -e keys", 2_000),
        ] {
            let words = format!("{words} -C 500 -s 16 --verify");
            let ended = run(broker.uri(), &words).await.well();
            assert_eq!(ended.check("checked"), checked, "{words}");
            assert_eq!(ended.faults(), [0, 0, 0], "{words}");
        }
    });
}

/// What the broker sent back is the load's to know, not to miss.
#[test]
fn returned_messages_are_not_missing() {
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let options = durable_exchange();
        let declared = connection.declare_exchange(channel, "some", "direct", &options);
        declared.await.expect("declare-ok");
        declare(&mut connection, channel, "some-come").await;
        bind(&mut connection, channel, "some-come", "some", "key").await;
        let words = "-p -sb -e some -k key -u some-come -s 16 -f mandatory -c 1 -r 200 -prsd 0 \
                     -C 300 --verify";
        let load = start(broker.uri(), words);
        load.out.says("starting producer").await;
        tokio::time::sleep(millis(200)).await;
        let none = client::FieldTable::new();
        let unbound = connection.unbind(channel, "some-come", "some", "key", &none);
        unbound.await.expect("unbind-ok");
        let ended = load.end().await.well();
        let (checked, returned) = (ended.check("checked"), ended.total("returned"));
        assert_eq!(checked + returned, 300);
        assert!(returned > 0);
    });
}

#[test]
fn small_bodies_of_several_producers_cannot_be_checked() {
    within(seconds(30), async {
        let broker = shared();
        let ended = run(broker.uri(), "-x 2 -C 10 --verify").await;
        let line = ended.failed(2);
        assert!(line.contains("give -s 16 or more"), "{line}");
        // Of a single one there is nobody else that they could be from.
        let ended = run(broker.uri(), "-C 10 --verify").await.well();
        assert_eq!(ended.check("checked"), 10);
    });
}

/// Whoever else is there does not disturb.
#[test]
fn foreign_messages_are_not_checked() {
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "mixed").await;
        publish(&mut connection, channel, "mixed", b"?");
        synchronize(&mut connection, channel).await;
        let words = "-u mixed -ad false -C 10 -D 11 -s 16";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!((ended.check("checked"), ended.check("unchecked")), (10, 1));
    });
}

/// A run during which the broker ends as `end` says fails with one line, and keeps its figures.
async fn broken_off<F: Future<Output = Broker>>(words: &str, end: impl FnOnce(Broker) -> F) {
    let broker = builder().start().expect("a broker");
    let load = start(broker.uri(), words);
    load.out.says("received").await;
    let broker = end(broker).await;
    let ended = load.end().await;
    let line = ended.failed(1);
    assert!(line.contains("connection"), "{line}");
    assert_eq!(ended.run()["error"], line);
    assert!(ended.total("received") > 0);
    assert_eq!(ended.faults(), [0, 0, 0]);
    drop(broker);
}

#[test]
fn a_restart_of_the_broker_ends_the_run() {
    within(seconds(40), async {
        broken_off(
            "-x 2 -y 2 -r 100 -c 10 --verify -s 16",
            async |mut broker| {
                broker.restart().expect("a broker");
                broker
            },
        )
        .await;
    });
}

#[test]
fn a_crash_of_the_broker_ends_the_run() {
    within(seconds(40), async {
        broken_off("-x 2 -y 2 -r 100 --verify -s 16", async |mut broker| {
            broker.kill().expect("a broker");
            broker
        })
        .await;
    });
}

/// Published by somebody who knows nothing of marks, with properties that look like one.
#[test]
fn headers_that_look_like_a_mark_do_no_harm() {
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "odd").await;
        let headers = client::FieldTable::new()
            .with("timestamp", "yesterday")
            .with("sequence", -1_i64);
        let properties = client::PropertiesBuilder::default()
            .headers(&headers)
            .finish();
        let properties = Properties::from_wire(&properties);
        let published =
            connection.publish(channel, "", "odd", PublishFlags::NONE, properties, b"x");
        published.expect("short names");
        synchronize(&mut connection, channel).await;
        let ended = run(broker.uri(), "-x 0 -u odd -ad false -jb -D 1").await;
        assert_eq!(ended.well().check("unchecked"), 1);
    });
}
