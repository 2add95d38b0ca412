//! Confirms while the log takes its time: in order, counted right, promptly, and no more of them
//! once their channel has gone.

mod support;

use std::time::Instant;

use client::method::channel;
use client::{ConsumeOptions, Event};
use support::durable::*;
use support::slow_disk::SlowDisk;
use support::*;
use testkit::Broker;

async fn declare_all(broker: &Broker, queues: &[&str]) {
    let (mut connection, channel) = open(broker).await;
    for queue in queues {
        declare_durable(&mut connection, channel, queue).await;
    }
    connection.close().await.expect("close-ok");
}

/// One at a time, nothing else to do: a confirm takes a sync, and no timer's tick.
#[test]
fn lone_message_is_confirmed_promptly() {
    within(seconds(20), async {
        let broker = shared();
        declare_all(&broker, &["lone"]).await;
        let mut publisher = Publisher::open(&broker).await;
        let mut times = Vec::new();
        for _ in 0..31 {
            let began = Instant::now();
            publisher.persistent("lone", b"message");
            publisher.all_confirmed().await;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        assert!(times[15] < millis(60), "{times:?}");
    });
}

#[test]
fn lone_commit_is_answered_promptly() {
    within(seconds(20), async {
        let broker = shared();
        declare_all(&broker, &["lone commit"]).await;
        let (mut connection, channel) = open(&broker).await;
        connection.tx_select(channel).await.expect("select-ok");
        let mut times = Vec::new();
        for _ in 0..31 {
            let began = Instant::now();
            publish_persistent(&mut connection, channel, "lone commit", b"message");
            connection.tx_commit(channel).await.expect("commit-ok");
            times.push(began.elapsed());
        }
        times.sort_unstable();
        assert!(times[15] < millis(60), "{times:?}");
    });
}

/// What could be confirmed at once waits for what was published before it on its channel, and for
/// nothing else.
#[test]
fn confirms_come_in_order_whatever_the_messages() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["mixed"]).await;
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_syncs();
        publisher.publish("", "mixed", &[0, 0], b"transient");
        publisher.all_confirmed().await;
        for _ in 0..20 {
            publisher.persistent("mixed", b"persistent");
            publisher.connection.flush().await.expect("sent");
            publisher.publish("", "mixed", &[0, 0], b"transient");
            publisher.connection.flush().await.expect("sent");
            publisher.persistent("nowhere", b"unroutable");
            publisher.connection.flush().await.expect("sent");
        }
        assert_quiet(&mut publisher.connection).await;
        disk.release();
        publisher.all_confirmed().await;
        assert_quiet(&mut publisher.connection).await;
    });
}

/// Two channels of a connection: each counts for itself, and neither misses or repeats one.
#[test]
fn confirms_of_two_channels_do_not_mix() {
    within(seconds(30), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["a", "b"]).await;
        let (mut connection, first) = open(&broker).await;
        let second = connection.open_channel().await.expect("a second channel");
        let channels = [first, second];
        for channel in channels {
            connection.confirm_select(channel).await.expect("confirms");
        }
        let mut random = testkit::Random::new(5);
        let (mut published, mut confirmed) = ([0_u64; 2], [0_u64; 2]);
        for round in 0..300 {
            if round % 30 == 0 {
                disk.hold_syncs();
            }
            for _ in 0..random.below(5) {
                let which = random.below(2);
                let (channel, queue) = (channels[which], ["a", "b"][which]);
                published[which] += 1;
                match random.one_in(3) {
                    true => publish(&mut connection, channel, queue, b"transient"),
                    false => publish_persistent(&mut connection, channel, queue, b"persistent"),
                }
            }
            connection.flush().await.expect("sent");
            if round % 30 == 20 {
                disk.release();
            }
            while let Ok(event) = tokio::time::timeout(millis(1), connection.next()).await {
                let Event::Confirm(confirm) = event.expect("an event") else {
                    panic!("a confirm expected");
                };
                let which = usize::from(confirm.channel != first);
                confirmed[which] = confirmed_up_to(confirmed[which], &confirm);
                assert!(confirmed[which] <= published[which], "of what is to come");
            }
        }
        disk.release();
        while confirmed != published {
            let Event::Confirm(confirm) = connection.next().await.expect("an event") else {
                panic!("a confirm expected");
            };
            let which = usize::from(confirm.channel != first);
            confirmed[which] = confirmed_up_to(confirmed[which], &confirm);
        }
        assert_quiet(&mut connection).await;
    });
}

/// A channel that is closed gets no more confirms, nor does the next one of its number.
#[test]
fn channel_may_be_closed_with_confirms_outstanding() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["left"]).await;
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_syncs();
        for number in 0..5 {
            publisher.persistent("left", &numbered(number, 8));
        }
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        connection.close_channel(channel).await.expect("close-ok");
        let again = connection.open_channel_as(channel).await;
        again.expect("the same number");
        connection.confirm_select(channel).await.expect("confirms");
        publisher.published = 0;
        publisher.persistent("left", &numbered(5, 8));
        assert_quiet(&mut publisher.connection).await;
        disk.release();
        publisher.all_confirmed().await;
        assert_quiet(&mut publisher.connection).await;
        assert!((0..6).eq(take_numbers(&broker, "left").await));
    });
}

/// The error comes with what had been confirmed before it; nothing follows its close.
#[test]
fn channel_error_ends_outstanding_confirms() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["failed"]).await;
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_syncs();
        publisher.persistent("failed", b"message");
        publisher.publish("no such exchange", "", &persistent(), b"message");
        match publisher.connection.next().await.expect("an event") {
            Event::ChannelClosed(closed) => assert_eq!(closed.code, 404),
            other => panic!("channel.close expected, got {other:?}"),
        }
        disk.release();
        assert_quiet(&mut publisher.connection).await;
        assert_eq!(messages_in(&broker, "failed").await, Some(1));
    });
}

#[test]
fn connection_may_be_closed_with_confirms_and_a_commit_outstanding() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let mut broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["closed"]).await;
        let mut publisher = Publisher::open(&broker).await;
        let second = publisher.connection.open_channel().await.expect("another");
        publisher.connection.tx_select(second).await.expect("ok");
        disk.hold_syncs();
        publisher.persistent("closed", &numbered(0, 8));
        publish_persistent(&mut publisher.connection, second, "closed", &numbered(1, 8));
        let commit = client::method::tx::Commit::default();
        publisher.connection.send(second, commit);
        publisher.connection.close().await.expect("close-ok");
        disk.release();
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "a change that waits for the log").await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(take_numbers(&broker, "closed").await, [0, 1]);
    });
}

/// A client that goes without a word while its commit waits has committed all the same, and what
/// it had been given comes back.
#[test]
fn client_may_vanish_while_its_commit_waits() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["vanished", "held"]).await;
        let mut filler = Publisher::open(&broker).await;
        filler.persistent("held", &numbered(7, 8));
        filler.all_confirmed().await;
        let (mut connection, channel) = open(&broker).await;
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, "held", &options).await;
        consuming.expect("a consumer");
        receive(&mut connection).await;
        connection.tx_select(channel).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, channel, "vanished", &numbered(1, 8));
        connection.send(channel, client::method::tx::Commit::default());
        connection.send(channel, channel::Flow { active: true });
        assert_quiet(&mut connection).await;
        drop(connection);
        let (mut observer, channel) = open(&broker).await;
        eventually("the delivery comes back", seconds(5), async || {
            look_at(&mut observer, channel, "held").await.messages == 1
        })
        .await;
        disk.release();
        assert_eq!(take_numbers(&broker, "vanished").await, [1]);
        assert_healthy(&broker).await;
    });
}

/// It is the disk that takes its time: neither side takes the other for dead.
#[test]
fn heartbeats_go_on_while_a_commit_waits() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["patient"]).await;
        let options = client::Options {
            heartbeat: 1,
            ..options(&broker)
        };
        let mut connection = connect_with(&options).await;
        let channel = connection.open_channel().await.expect("a channel");
        connection.tx_select(channel).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, channel, "patient", b"message");
        connection.send(channel, client::method::tx::Commit::default());
        // So that its heartbeats lie behind a frame that is held back.
        connection.send(channel, channel::Flow { active: true });
        let waited = tokio::time::timeout(millis(3_500), connection.next()).await;
        assert!(waited.is_err(), "{waited:?}");
        disk.release();
        for expected in ["tx.commit-ok", "channel.flow-ok"] {
            let event = connection.next().await.expect("an event");
            assert!(is_reply(&event, expected), "{event:?}");
        }
    });
}

/// The log is written to its end before the process ends.
#[test]
fn stop_waits_for_the_log() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let mut broker = disk.under(builder()).start().expect("a broker");
        declare_all(&broker, &["stopped"]).await;
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_writes();
        for number in 0..100 {
            publisher.persistent("stopped", &numbered(number, 1_000));
        }
        synchronize(&mut publisher.connection, publisher.channel).await;
        broker.terminate().expect("a running broker");
        let closed = publisher.connection.next().await.map(drop);
        let closed = closed.expect_err("no confirm, but the broker's farewell");
        assert_eq!(closed.reply_code(), Some(320), "{closed}");
        drop(publisher);
        tokio::time::sleep(millis(300)).await;
        disk.release();
        let status = broker.wait(seconds(10)).expect("an end");
        assert!(status.success(), "{status}");
        broker.start_again().expect("a restart");
        assert!((0..100).eq(take_numbers(&broker, "stopped").await));
    });
}
