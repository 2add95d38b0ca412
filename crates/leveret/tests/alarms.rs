//! The memory alarm: publishers wait, consumers go on, nothing that was confirmed is lost.

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use client::{
    Connection, ConsumeOptions, Event, FieldTable, Options, Properties, PublishFlags, RawConnection,
};
use testkit::Broker;

use support::*;

const BODY: usize = 16 * 1024;
/// Memory that messages may take before the alarm rings.
const ROOM: u64 = 30 << 20;

/// A broker whose alarm rings once it has taken `ROOM` more than it has at start.
fn tight_broker() -> Broker {
    let at_start = builder()
        .start()
        .expect("a broker")
        .rss()
        .expect("its memory");
    let watermark = at_start + ROOM;
    builder()
        .config(format!("vm_memory_high_watermark.absolute = {watermark}"))
        .start()
        .expect("a broker")
}

/// Publishes numbered messages, a few at a time on their way, and keeps count of the confirms.
struct Publisher {
    connection: Connection,
    channel: u16,
    queue: &'static str,
    published: u64,
    confirmed: u64,
    blocked: Option<String>,
}

impl Publisher {
    async fn start(options: &Options, queue: &'static str) -> Publisher {
        let mut connection = connect_with(options).await;
        let channel = connection.open_channel().await.expect("a channel");
        connection.confirm_select(channel).await.expect("confirms");
        declare(&mut connection, channel, queue).await;
        Publisher {
            connection,
            channel,
            queue,
            published: 0,
            confirmed: 0,
            blocked: None,
        }
    }

    /// Numbers start from 1, as the confirms do.
    fn publish(&mut self) {
        self.published += 1;
        let body = numbered(self.published, BODY);
        publish(&mut self.connection, self.channel, self.queue, &body);
    }

    async fn event(&mut self) {
        match self.connection.next().await.expect("an event") {
            Event::Confirm(confirm) => {
                self.confirmed = confirmed_up_to(self.confirmed, &confirm);
            }
            Event::Blocked { reason } => {
                assert_eq!(self.blocked, None, "told twice");
                self.blocked = Some(reason.lossy().into_owned());
            }
            Event::Unblocked => {
                self.blocked.take().expect("it was blocked before");
            }
            other => panic!("a confirm or a notice expected, got {other:?}"),
        }
    }

    /// Takes events for as long as they come one soon after the other.
    async fn settle(&mut self) {
        while tokio::time::timeout(millis(200), self.event())
            .await
            .is_ok()
        {}
    }

    /// Publishes with at most 64 messages on their way, until the broker says that it blocks.
    async fn publish_until_blocked(&mut self) {
        while self.blocked.is_none() {
            assert!(self.published < 20_000, "320 MB, and no alarm");
            while self.published < self.confirmed + 64 {
                self.publish();
            }
            self.event().await;
        }
    }
}

/// Consumes and acknowledges; returns the numbers of what came.
struct Consumer {
    connection: Connection,
    channel: u16,
    numbers: BTreeSet<u64>,
}

impl Consumer {
    async fn start(broker: &Broker, queue: &str) -> Consumer {
        let (mut connection, channel) = open(broker).await;
        connection.qos(channel, 100, false).await.expect("a limit");
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, queue, &options).await;
        consuming.expect("a consumer");
        Consumer {
            connection,
            channel,
            numbers: BTreeSet::new(),
        }
    }

    async fn delivery(&mut self) {
        let delivery = receive(&mut self.connection).await;
        assert!(self.numbers.insert(delivery.number()), "came twice");
        self.connection.ack(self.channel, delivery.tag, false);
    }
}

#[test]
fn publisher_waits_while_a_consumer_drains_and_nothing_confirmed_is_lost() {
    within(seconds(30), async {
        let broker = tight_broker();
        let mut publisher = Publisher::start(&options(&broker), "filled").await;
        publisher.publish_until_blocked().await;
        assert_eq!(publisher.blocked.as_deref(), Some("low on memory"));

        // What it goes on to send is not read.
        publisher.settle().await;
        let before = publisher.confirmed;
        for _ in 0..1_000 {
            publisher.publish();
        }
        publisher.settle().await;
        assert_eq!(publisher.confirmed, before, "was read while blocked");
        let (mut observer, channel) = open(&broker).await;
        let ready = look_at(&mut observer, channel, "filled").await.messages;
        assert_eq!(u64::from(ready), before);

        let mut consumer = Consumer::start(&broker, "filled").await;
        while publisher.blocked.is_some() {
            tokio::select! {
                () = consumer.delivery() => {}
                () = publisher.event() => {}
            }
        }
        // More room than was taken so far may be needed: the consumer goes on.
        while publisher.confirmed < publisher.published {
            tokio::select! {
                () = consumer.delivery() => {}
                () = publisher.event() => {}
            }
        }
        while (consumer.numbers.len() as u64) < publisher.confirmed {
            consumer.delivery().await;
        }
        assert_eq!(consumer.numbers.first(), Some(&1));
        assert_eq!(consumer.numbers.last(), Some(&publisher.published));
        let log = broker.log();
        assert!(log.contains("memory alarm"), "{log}");
    });
}

/// Fills the broker and blocks its publisher, which is returned.
async fn ringing(broker: &Broker) -> Publisher {
    let mut publisher = Publisher::start(&options(broker), "ringing").await;
    publisher.publish_until_blocked().await;
    publisher.settle().await;
    publisher
}

#[test]
fn connections_that_do_not_publish_are_served_during_the_alarm() {
    within(seconds(20), async {
        let broker = tight_broker();
        let publisher = ringing(&broker).await;
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "another").await;
        let message = connection.get(channel, "ringing", false).await;
        let message = message.expect("an answer").expect("a message");
        assert_eq!(number(&message.body), 1);
        connection.nack(channel, message.delivery_tag, false, true);
        synchronize(&mut connection, channel).await;
        let mut consumer = Consumer::start(&broker, "ringing").await;
        for _ in 0..10 {
            consumer.delivery().await;
        }
        assert_quiet(&mut connection).await;
        assert!(publisher.blocked.is_some());
    });
}

#[test]
fn new_publisher_is_blocked_at_its_first_message() {
    within(seconds(20), async {
        let broker = tight_broker();
        let _publisher = ringing(&broker).await;
        let mut late = Publisher::start(&options(&broker), "late").await;
        assert_quiet(&mut late.connection).await;
        late.publish();
        until(&mut late.connection, |event| {
            matches!(event, Event::Blocked { .. }).then_some(())
        })
        .await;
        // What came in one piece with the first was taken too; this is not.
        synchronized_or_silent(&mut late).await;
    });
}

/// A blocked connection gets no replies either: nothing of it is read.
async fn synchronized_or_silent(publisher: &mut Publisher) {
    let (connection, channel) = (&mut publisher.connection, publisher.channel);
    let asked = tokio::time::timeout(millis(300), synchronize(connection, channel)).await;
    assert!(asked.is_err(), "the blocked connection was read");
}

#[test]
fn clients_without_the_capability_are_blocked_without_a_word() {
    within(seconds(20), async {
        let broker = tight_broker();
        let _publisher = ringing(&broker).await;
        let capabilities = FieldTable::new().with("publisher_confirms", true);
        let options = Options {
            properties: FieldTable::new().with("capabilities", capabilities),
            ..options(&broker)
        };
        let mut plain = connect_with(&options).await;
        let channel = plain.open_channel().await.expect("a channel");
        declare(&mut plain, channel, "plain").await;
        publish(&mut plain, channel, "plain", b"one");
        plain.flush().await.expect("a small message");
        tokio::time::sleep(millis(100)).await;
        publish(&mut plain, channel, "plain", b"two");
        assert_quiet(&mut plain).await;
        let (mut observer, channel) = open(&broker).await;
        assert_eq!(look_at(&mut observer, channel, "plain").await.messages, 1);
        observer.purge(channel, "ringing").await.expect("a purge");
        eventually("the second message", seconds(10), async || {
            look_at(&mut observer, channel, "plain").await.messages == 2
        })
        .await;
        assert_quiet(&mut plain).await;
    });
}

/// Room is made once, and then the broker is idle: that has to be enough.
#[test]
fn alarm_ends_after_a_purge() {
    within(seconds(20), async {
        let broker = tight_broker();
        let mut publisher = ringing(&broker).await;
        let (mut observer, channel) = open(&broker).await;
        observer.purge(channel, "ringing").await.expect("a purge");
        while publisher.blocked.is_some() {
            publisher.event().await;
        }
        publisher.publish();
        while publisher.confirmed < publisher.published {
            publisher.event().await;
        }
    });
}

#[test]
fn blocked_client_may_leave_and_its_confirmed_messages_stay() {
    within(seconds(20), async {
        let broker = tight_broker();
        let mut publisher = ringing(&broker).await;
        for _ in 0..100 {
            publisher.publish();
        }
        publisher.connection.try_flush();
        let confirmed = publisher.confirmed;
        drop(publisher);
        let mut consumer = Consumer::start(&broker, "ringing").await;
        while (consumer.numbers.len() as u64) < confirmed {
            consumer.delivery().await;
        }
        assert_healthy(&broker).await;
    });
}

/// It is the broker that does not read: it cannot hold that against the client.
#[test]
fn blocked_client_that_sends_heartbeats_is_not_taken_for_dead() {
    within(seconds(20), async {
        let broker = tight_broker();
        let _publisher = ringing(&broker).await;
        let options = Options {
            heartbeat: 1,
            ..options(&broker)
        };
        let mut publisher = Publisher::start(&options, "patient").await;
        publisher.publish();
        publisher.publish_until_blocked().await;
        let waited = tokio::time::timeout(Duration::from_secs(4), async {
            loop {
                publisher.event().await;
            }
        });
        assert!(waited.await.is_err(), "nothing but heartbeats comes");
        let (mut observer, channel) = open(&broker).await;
        observer.purge(channel, "ringing").await.expect("a purge");
        while publisher.blocked.is_some() {
            publisher.event().await;
        }
    });
}

/// The alarm must not keep the broker from noticing that a blocked client has gone for good.
#[test]
fn blocked_connection_ends_when_the_broker_stops() {
    within(seconds(20), async {
        let broker = tight_broker();
        let publisher = ringing(&broker).await;
        let options = options(&broker);
        let mut raw = RawConnection::open(&options).await.expect("a connection");
        raw.handshake(&options).await.expect("a handshake");
        raw.send(1, client::method::channel::Open::default());
        assert!(raw.next_method().await.expect("a method").is_some());
        let (flags, none) = (PublishFlags::NONE, Properties::default());
        raw.output()
            .publish(1, "", "ringing", flags, none, b"x")
            .expect("short names");
        raw.flush().await;
        drop((publisher, raw));
        let mut broker = broker;
        broker.terminate().expect("a running broker");
        let status = broker.wait(seconds(12)).expect("an end");
        assert_eq!(status.code(), Some(0), "{}", broker.log());
    });
}
