//! The memory alarm: publishers wait, consumers go on, nothing that was confirmed is lost.

mod support;

use std::collections::BTreeSet;

use client::{Connection, ConsumeOptions, Event, FieldTable, Options};
use testkit::Broker;

use support::*;

const BODY: usize = 16 * 1024;
/// Memory that messages may take before the alarm rings.
const ROOM: u64 = 30 << 20;
/// How far above the watermark a test works: an alarm that has only just rung may end by itself,
/// with what the allocator gives back.
const CLEARLY: u64 = 10 << 20;

/// A broker whose alarm rings once it has taken `ROOM` more than it has at start.
struct Tight {
    broker: Broker,
    watermark: u64,
}

impl Tight {
    fn start() -> Tight {
        let at_start = builder().start().expect("a broker").rss();
        let watermark = at_start.expect("its memory") + ROOM;
        let broker = builder()
            .config(format!("vm_memory_high_watermark.absolute = {watermark}"))
            .start()
            .expect("a broker");
        Tight { broker, watermark }
    }

    fn rings_clearly(&self) -> bool {
        self.broker.rss().expect("a running broker") > self.watermark + CLEARLY
    }
}

/// Publishes numbered messages and keeps count of the confirms.
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

    /// Takes events until none has come for a while: longer than the broker takes to look again.
    async fn settle(&mut self) {
        let quiet = millis(500);
        while tokio::time::timeout(quiet, self.event()).await.is_ok() {}
    }

    /// Publishes until the alarm rings clearly; returns the number of the first message that is in
    /// the queue then.
    async fn publish_until_blocked(&mut self, tight: &Tight) -> u64 {
        let (mut other, channel) = open(&tight.broker).await;
        for _ in 0..20 {
            let first = self.published + 1;
            // In one go, so that most of it is there when the broker looks.
            for _ in 0..4_000 {
                self.publish();
            }
            self.settle().await;
            if self.blocked.is_some() && tight.rings_clearly() {
                return first;
            }
            // Again from the start. What is still to be read may make it ring once more.
            while self.blocked.is_some() || self.confirmed < self.published {
                other.purge(channel, self.queue).await.expect("a purge");
                let _ = tokio::time::timeout(millis(50), self.event()).await;
            }
            other.purge(channel, self.queue).await.expect("a purge");
        }
        panic!("64 MB in one go, and no alarm");
    }
}

/// Consumes and acknowledges, and keeps the numbers of what came.
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

    async fn deliveries_up_to(&mut self, last: u64) {
        while self.numbers.last() != Some(&last) {
            self.delivery().await;
        }
    }
}

#[test]
fn publisher_waits_while_a_consumer_drains_and_nothing_confirmed_is_lost() {
    within(seconds(30), async {
        let tight = Tight::start();
        let broker = &tight.broker;
        let mut publisher = Publisher::start(&options(broker), "filled").await;
        let first = publisher.publish_until_blocked(&tight).await;
        assert_eq!(publisher.blocked.as_deref(), Some("low on memory"));

        // What it goes on to send is not read.
        let before = publisher.confirmed;
        for _ in 0..1_000 {
            publisher.publish();
        }
        publisher.settle().await;
        assert_eq!(publisher.confirmed, before, "was read while blocked");
        let (mut observer, channel) = open(broker).await;
        let ready = look_at(&mut observer, channel, "filled").await.messages;
        assert_eq!(u64::from(ready), before + 1 - first);

        let mut consumer = Consumer::start(broker, "filled").await;
        while publisher.blocked.is_some() || publisher.confirmed < publisher.published {
            tokio::select! {
                () = consumer.delivery() => {}
                () = publisher.event() => {}
            }
        }
        consumer.deliveries_up_to(publisher.published).await;
        assert!(consumer.numbers.into_iter().eq(first..=publisher.published));
        let log = broker.log();
        assert!(log.contains("memory alarm"), "{log}");
    });
}

/// Fills the broker and blocks its publisher, which is returned.
async fn ringing(tight: &Tight) -> Publisher {
    let mut publisher = Publisher::start(&options(&tight.broker), "ringing").await;
    publisher.publish_until_blocked(tight).await;
    publisher
}

#[test]
fn connections_that_do_not_publish_are_served_during_the_alarm() {
    within(seconds(20), async {
        let tight = Tight::start();
        let mut publisher = ringing(&tight).await;
        let (mut connection, channel) = open(&tight.broker).await;
        declare(&mut connection, channel, "another").await;
        let message = connection.get(channel, "ringing", false).await;
        let message = message.expect("an answer").expect("a message");
        connection.nack(channel, message.delivery_tag, false, true);
        synchronize(&mut connection, channel).await;
        let mut consumer = Consumer::start(&tight.broker, "ringing").await;
        for _ in 0..10 {
            consumer.delivery().await;
        }
        assert_quiet(&mut connection).await;
        publisher.settle().await;
        assert!(publisher.blocked.is_some(), "the alarm ended meanwhile");
    });
}

#[test]
fn new_publisher_is_blocked_at_its_first_message() {
    within(seconds(20), async {
        let tight = Tight::start();
        let _publisher = ringing(&tight).await;
        let mut late = Publisher::start(&options(&tight.broker), "late").await;
        assert_quiet(&mut late.connection).await;
        late.publish();
        until(&mut late.connection, |event| {
            matches!(event, Event::Blocked { .. }).then_some(())
        })
        .await;
        // Nothing more of it is read: calls get no answer either.
        let call = synchronize(&mut late.connection, late.channel);
        let answered = tokio::time::timeout(millis(300), call).await;
        assert!(answered.is_err(), "the blocked connection was read");
    });
}

#[test]
fn clients_without_the_capability_are_blocked_without_a_word() {
    within(seconds(20), async {
        let tight = Tight::start();
        let _publisher = ringing(&tight).await;
        let capabilities = FieldTable::new().with("publisher_confirms", true);
        let options = Options {
            properties: FieldTable::new().with("capabilities", capabilities),
            ..options(&tight.broker)
        };
        let mut plain = connect_with(&options).await;
        let channel = plain.open_channel().await.expect("a channel");
        declare(&mut plain, channel, "plain").await;
        publish(&mut plain, channel, "plain", b"one");
        plain.flush().await.expect("a small message");
        tokio::time::sleep(millis(100)).await;
        publish(&mut plain, channel, "plain", b"two");
        assert_quiet(&mut plain).await;
        let (mut observer, channel) = open(&tight.broker).await;
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
        let tight = Tight::start();
        let mut publisher = ringing(&tight).await;
        let (mut observer, channel) = open(&tight.broker).await;
        observer.purge(channel, "ringing").await.expect("a purge");
        while publisher.blocked.is_some() {
            publisher.event().await;
        }
    });
}

#[test]
fn blocked_client_may_leave_and_its_confirmed_messages_stay() {
    within(seconds(20), async {
        let tight = Tight::start();
        let mut publisher = Publisher::start(&options(&tight.broker), "left").await;
        let first = publisher.publish_until_blocked(&tight).await;
        let confirmed = publisher.confirmed;
        drop(publisher);
        let mut consumer = Consumer::start(&tight.broker, "left").await;
        consumer.deliveries_up_to(confirmed).await;
        // What had been read and was not confirmed yet may follow.
        let numbers = consumer.numbers.into_iter().take_while(|n| *n <= confirmed);
        assert!(numbers.eq(first..=confirmed));
        consumer.connection.close().await.expect("close-ok");
        let (mut other, channel) = open(&tight.broker).await;
        other.purge(channel, "left").await.expect("a purge");
        assert_healthy(&tight.broker).await;
    });
}

/// It is the broker that does not read: it cannot hold that against the client.
#[test]
fn blocked_client_that_sends_heartbeats_is_not_taken_for_dead() {
    within(seconds(20), async {
        let tight = Tight::start();
        let options = Options {
            heartbeat: 1,
            ..options(&tight.broker)
        };
        let mut publisher = Publisher::start(&options, "patient").await;
        publisher.publish_until_blocked(&tight).await;
        let waited = tokio::time::timeout(seconds(3), publisher.event()).await;
        assert!(waited.is_err(), "something but heartbeats came");
        let (mut observer, channel) = open(&tight.broker).await;
        observer.purge(channel, "patient").await.expect("a purge");
        while publisher.blocked.is_some() {
            publisher.event().await;
        }
    });
}

#[test]
fn blocked_client_is_told_when_the_broker_stops() {
    within(seconds(20), async {
        let tight = Tight::start();
        let mut publisher = ringing(&tight).await;
        tight.broker.terminate().expect("a running broker");
        let error = loop {
            match publisher.connection.next().await {
                Ok(Event::Unblocked) => {}
                Ok(other) => panic!("connection.close expected, got {other:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.reply_code(), Some(320), "{error}");
        // Its answer comes after all that it had not been able to send.
        let ending = end_of(tight.broker, seconds(5));
        let ((status, log), _) = tokio::join!(ending, publisher.connection.flush());
        assert_eq!(status.code(), Some(0), "{log}");
    });
}
