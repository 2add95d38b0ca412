//! Queues that go when nobody uses them for as long as `x-expires` says.

mod support;

use std::time::Instant;

use client::{Connection, Event, FieldTable, Properties, PublishFlags, QueueOptions};
use support::durable::*;
use support::rules::*;
use support::*;

fn expires(milliseconds: i32) -> FieldTable {
    FieldTable::new().with("x-expires", milliseconds)
}

/// Asks without using the queue: a mandatory message comes back if it is gone.
async fn is_there(connection: &mut Connection, channel: u16, queue: &str) -> bool {
    let (flags, none) = (PublishFlags::MANDATORY, Properties::default());
    connection
        .publish(channel, "", queue, flags, none, b"are you there?")
        .expect("short names");
    connection.flush().await.expect("sent");
    synchronize(connection, channel).await;
    match connection.try_next().expect("no error") {
        None => true,
        Some(Event::Return(returned)) => {
            assert_eq!(returned.code, 312);
            false
        }
        Some(other) => panic!("a return expected, got {other:?}"),
    }
}

/// Waits until it is gone, which must be at that time after `since` or soon after.
async fn assert_goes(
    connection: &mut Connection,
    channel: u16,
    queue: &str,
    since: Instant,
    after: u64,
) {
    while is_there(connection, channel, queue).await {
        let elapsed = since.elapsed();
        assert!(elapsed < millis(after + 1_500), "{queue} is still there");
        tokio::time::sleep(millis(5)).await;
    }
    let elapsed = since.elapsed();
    assert!(elapsed + millis(2) >= millis(after), "after {elapsed:?}");
}

#[test]
fn unused_queue_goes_at_its_time_with_its_messages() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for options in [transient(expires(400)), durable(expires(400))] {
            let since = Instant::now();
            declare_as(&mut connection, channel, "unused", &options).await;
            for number in 0..100 {
                publish(&mut connection, channel, "unused", &numbered(number, 8));
            }
            assert_goes(&mut connection, channel, "unused", since, 400).await;
            let gone = messages_in(&broker, "unused").await;
            assert_eq!(gone, None);
        }
    });
}

/// Messages of a queue that expires are not dead letters.
#[test]
fn messages_of_an_expired_queue_are_not_dead_lettered() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "heir").await;
        let arguments = dead_letters_to("heir").with("x-expires", 200);
        let since = Instant::now();
        declare_as(&mut connection, channel, "rich", &transient(arguments)).await;
        publish(&mut connection, channel, "rich", b"message");
        assert_goes(&mut connection, channel, "rich", since, 200).await;
        assert_eq!(look_at(&mut connection, channel, "heir").await.messages, 0);
    });
}

#[test]
fn queue_stays_as_long_as_it_has_a_consumer() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(expires(200));
        declare_as(&mut connection, channel, "consumed", &options).await;
        let (mut consumer, consuming) = open(&broker).await;
        let first = consume_from(&mut consumer, consuming, "consumed", 0).await;
        let second = consume_from(&mut consumer, consuming, "consumed", 0).await;
        tokio::time::sleep(millis(500)).await;
        assert!(is_there(&mut connection, channel, "consumed").await);
        receive(&mut consumer).await;
        consumer.cancel(consuming, &first).await.expect("cancel-ok");
        tokio::time::sleep(millis(400)).await;
        assert!(is_there(&mut connection, channel, "consumed").await);
        receive(&mut consumer).await;
        let since = Instant::now();
        consumer
            .cancel(consuming, &second)
            .await
            .expect("cancel-ok");
        assert_goes(&mut connection, channel, "consumed", since, 200).await;
        // What it had given out ends in good order.
        consumer.ack(consuming, 0, true);
        synchronize(&mut consumer, consuming).await;
        assert_healthy(&broker).await;
    });
}

#[test]
fn lost_connection_of_the_last_consumer_starts_the_time() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(expires(300));
        declare_as(&mut connection, channel, "lost", &options).await;
        let (mut consumer, consuming) = open(&broker).await;
        consume_from(&mut consumer, consuming, "lost", 0).await;
        tokio::time::sleep(millis(500)).await;
        let since = Instant::now();
        drop(consumer);
        assert_goes(&mut connection, channel, "lost", since, 300).await;
    });
}

#[test]
fn redeclaring_a_queue_uses_it() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(expires(500));
        declare_as(&mut connection, channel, "declared", &options).await;
        for _ in 0..5 {
            tokio::time::sleep(millis(150)).await;
            assert!(is_there(&mut connection, channel, "declared").await);
            declare_as(&mut connection, channel, "declared", &options).await;
        }
        let since = Instant::now();
        declare_as(&mut connection, channel, "declared", &options).await;
        assert_goes(&mut connection, channel, "declared", since, 500).await;
    });
}

#[test]
fn getting_from_a_queue_uses_it_and_publishing_does_not() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(expires(500));
        declare_as(&mut connection, channel, "gotten", &options).await;
        let mut since = Instant::now();
        for round in 0..5 {
            tokio::time::sleep(millis(150)).await;
            since = Instant::now();
            let got = connection.get(channel, "gotten", true).await;
            assert!(got.expect("an answer").is_none(), "round {round}");
        }
        // Which asks by publishing, again and again.
        assert_goes(&mut connection, channel, "gotten", since, 500).await;
    });
}

#[test]
fn time_of_a_durable_queue_starts_anew_with_the_broker() {
    within(seconds(20), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            let options = durable(expires(1_500));
            declare_as(&mut connection, channel, "restarted", &options).await;
            publish_persistent(&mut connection, channel, "restarted", b"message");
            synchronize(&mut connection, channel).await;
            connection.close().await.expect("close-ok");
            tokio::time::sleep(millis(1_000)).await;
            ending.restart(&mut broker);
            let up = Instant::now();
            let (mut connection, channel) = open(&broker).await;
            tokio::time::sleep(millis(800)).await;
            assert!(is_there(&mut connection, channel, "restarted").await);
            let since = up - millis(100);
            assert_goes(&mut connection, channel, "restarted", since, 1_500).await;
            // For good.
            until_written_down().await;
            connection.close().await.expect("close-ok");
            ending.restart(&mut broker);
            assert_eq!(messages_in(&broker, "restarted").await, None, "{ending:?}");
        }
    });
}

#[test]
fn new_queue_of_the_same_name_has_its_own_time() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let short = transient(expires(200));
        declare_as(&mut connection, channel, "again", &short).await;
        connection
            .delete_queue(channel, "again")
            .await
            .expect("delete-ok");
        declare(&mut connection, channel, "again").await;
        tokio::time::sleep(millis(500)).await;
        assert!(is_there(&mut connection, channel, "again").await);
        connection
            .delete_queue(channel, "again")
            .await
            .expect("delete-ok");
        let since = Instant::now();
        declare_as(&mut connection, channel, "again", &short).await;
        assert_goes(&mut connection, channel, "again", since, 200).await;
        // Bindings go as well.
        let none = FieldTable::new();
        declare_as(&mut connection, channel, "again", &short).await;
        let bound = connection.bind(channel, "again", "amq.fanout", "", &none);
        bound.await.expect("a binding");
        tokio::time::sleep(millis(400)).await;
        declare(&mut connection, channel, "again").await;
        publish_to(
            &mut connection,
            channel,
            "amq.fanout",
            "",
            client::PropertiesBuilder::default(),
            b"nobody is bound",
        );
        assert_eq!(look_at(&mut connection, channel, "again").await.messages, 0);
    });
}

/// Many of them at the same time, while others come and go.
#[test]
fn hundreds_of_queues_go_together() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(expires(1_000));
        for number in 0..500 {
            let name = format!("many-{number}");
            declare_as(&mut connection, channel, &name, &options).await;
            publish(&mut connection, channel, &name, b"message");
        }
        let since = Instant::now();
        for number in [499, 0, 250] {
            let name = format!("many-{number}");
            while is_there(&mut connection, channel, &name).await {
                assert!(since.elapsed() < seconds(4), "{name} is still there");
                tokio::time::sleep(millis(5)).await;
            }
        }
        for number in 0..500 {
            let name = format!("many-{number}");
            assert!(!is_there(&mut connection, channel, &name).await, "{name}");
        }
        assert_healthy(&broker).await;
    });
}

#[test]
fn expires_that_is_no_time_is_refused() {
    within(seconds(10), async {
        let broker = shared();
        let with = |value: i64| transient(FieldTable::new().with("x-expires", value));
        for (options, problem) in [
            (with(0), "{value_zero,0}"),
            (with(-1), "{value_negative,-1}"),
            (with(315_360_000_001), "{value_too_large,315360000001}"),
            (
                transient(FieldTable::new().with("x-expires", "5")),
                "\"expected integer, got longstr\"",
            ),
        ] {
            let text = refusal_of(&broker, &options).await;
            let start = "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'refused' in vhost \
                         '/': ";
            assert_eq!(text, format!("{start}{problem}"));
        }
        let exclusive = QueueOptions {
            exclusive: true,
            ..with(60_000)
        };
        let (mut connection, channel) = open(&broker).await;
        declare_as(&mut connection, channel, "accepted", &exclusive).await;
    });
}
