//! Workload W1 (2008) while the log rolls over: transactions of persistent messages over AMQP 0-8,
//! a consumer that acknowledges singly. Then, commits timed out and messages changed places.

mod support;

use std::time::{Duration, Instant};

use client::method::access;
use client::{Connection, ConsumeOptions, ExchangeOptions, Options, Version};
use support::durable::*;
use support::*;
use testkit::Broker;

const EXCHANGE: &str = "X";
const QUEUE: &str = "w1";
const BODY: usize = 1_000;
/// No commit may take longer, whatever the log does meanwhile. A build without optimization, with
/// other tests beside it, needs that for the 20 MB of the large transactions alone.
const LONGEST: Duration = seconds(if cfg!(debug_assertions) { 3 } else { 1 });

/// A broker whose log has a new file every thousand messages.
fn rolling() -> Broker {
    builder()
        .config("leveret.log_file_size = 1MiB")
        .config("leveret.log_size = 8MiB")
        .start()
        .expect("a broker")
}

/// A connection of 2008, with a channel that was let in.
async fn connect_0_8(broker: &Broker, request: access::Request<'_>) -> (Connection, u16) {
    let options = Options {
        version: Version::V0_8,
        ..options(broker)
    };
    let mut connection = connect_with(&options).await;
    let channel = connection.open_channel().await.expect("a channel");
    let request = access::Request {
        realm: "/data".try_into().expect("a short name"),
        active: true,
        ..request
    };
    let ticket = connection.request_access(channel, request).await;
    ticket.expect("a ticket");
    (connection, channel)
}

/// Publishes `count` numbers and `quit`, and commits every `transaction` of them; returns the
/// longest that a commit took.
struct Producer {
    connection: Connection,
    channel: u16,
    longest: Duration,
}

impl Producer {
    async fn start(broker: &Broker) -> Producer {
        let request = access::Request {
            write: true,
            ..Default::default()
        };
        let (mut connection, channel) = connect_0_8(broker, request).await;
        // Unlike the consumer declares it, on purpose: on 0-8 that is no error.
        let flags = ExchangeOptions {
            auto_delete: true,
            ..ExchangeOptions::default()
        };
        let declared = connection.declare_exchange(channel, EXCHANGE, "direct", &flags);
        declared.await.expect("an exchange");
        connection.tx_select(channel).await.expect("select-ok");
        Producer {
            connection,
            channel,
            longest: Duration::ZERO,
        }
    }

    async fn publish(&mut self, body: &[u8]) {
        let properties = persistent();
        let properties = client::Properties::from_wire(&properties);
        let flags = client::PublishFlags::NONE;
        self.connection
            .publish(self.channel, EXCHANGE, "", flags, properties, body)
            .expect("short names");
        if self.connection.pending() > 64 * 1024 {
            self.connection.flush().await.expect("sent");
        }
    }

    async fn commit(&mut self) {
        let asked = Instant::now();
        let committed = self.connection.tx_commit(self.channel).await;
        committed.expect("commit-ok");
        let took = asked.elapsed();
        assert!(took < LONGEST, "a commit took {took:?}");
        self.longest = self.longest.max(took);
    }

    async fn run(&mut self, count: u64, transaction: u64) {
        for number in 0..count {
            self.publish(&numbered(number, BODY)).await;
            if (number + 1) % transaction == 0 {
                self.commit().await;
                // Again, although the channel is transactional for good.
                let selected = self.connection.tx_select(self.channel).await;
                selected.expect("select-ok");
            }
        }
        self.publish(b"quit").await;
        self.commit().await;
    }
}

/// Acknowledges each message singly, until `quit`.
struct Consumer {
    connection: Connection,
    channel: u16,
    received: u64,
}

impl Consumer {
    async fn start(broker: &Broker) -> Consumer {
        let request = access::Request {
            passive: true,
            read: true,
            ..Default::default()
        };
        let (mut connection, channel) = connect_0_8(broker, request).await;
        let durable = ExchangeOptions {
            durable: true,
            ..ExchangeOptions::default()
        };
        let declared = connection.declare_exchange(channel, EXCHANGE, "direct", &durable);
        declared.await.expect("the same exchange");
        declare_durable(&mut connection, channel, QUEUE).await;
        bind(&mut connection, channel, QUEUE, EXCHANGE, "").await;
        Consumer {
            connection,
            channel,
            received: 0,
        }
    }

    async fn consume(&mut self) {
        let options = ConsumeOptions::default();
        let consuming = self.connection.consume(self.channel, QUEUE, &options);
        consuming.await.expect("a consumer");
    }

    /// Takes what comes, up to `quit` or that many.
    async fn take(&mut self, up_to: u64) {
        while self.received < up_to {
            let delivery = receive(&mut self.connection).await;
            self.connection.ack(self.channel, delivery.tag, false);
            if delivery.body == b"quit" {
                return;
            }
            assert_eq!(delivery.number(), self.received, "out of place");
            self.received += 1;
        }
    }
}

/// Nothing in a broker's log is a warning, or worse.
fn assert_calm(broker: &Broker) {
    let log = broker.log();
    for word in ["WARN", "ERROR", "panicked"] {
        assert!(!log.contains(word), "{log}");
    }
}

/// The consumer runs while the producer does.
async fn relay_at_the_same_time(count: u64, transaction: u64) {
    let broker = rolling();
    let mut producer = Producer::start(&broker).await;
    let mut consumer = Consumer::start(&broker).await;
    consumer.consume().await;
    tokio::join!(producer.run(count, transaction), consumer.take(u64::MAX));
    assert_eq!(consumer.received, count);
    eprintln!("the longest commit took {:?}", producer.longest);
    assert_calm(&broker);
}

/// The consumer comes when everything is there, goes half way, and comes again after a restart.
async fn relay_afterwards(count: u64, transaction: u64, ending: Ending) {
    let mut broker = rolling();
    let mut producer = Producer::start(&broker).await;
    let consumer = Consumer::start(&broker).await;
    producer.run(count, transaction).await;
    eprintln!("the longest commit took {:?}", producer.longest);
    producer.connection.close().await.expect("close-ok");
    consumer.connection.close().await.expect("close-ok");
    let mut consumer = Consumer::start(&broker).await;
    consumer.consume().await;
    consumer.take(count / 2).await;
    synchronize(&mut consumer.connection, consumer.channel).await;
    assert_calm(&broker);
    until_written_down().await;
    let received = consumer.received;
    drop(consumer);
    ending.restart(&mut broker);
    let mut consumer = Consumer::start(&broker).await;
    consumer.received = received;
    consumer.consume().await;
    consumer.take(u64::MAX).await;
    assert_eq!(consumer.received, count);
    synchronize(&mut consumer.connection, consumer.channel).await;
    let left = look_at(&mut consumer.connection, consumer.channel, QUEUE).await;
    assert_eq!(left.messages, 0);
}

#[test]
fn small_transactions_pass_a_consumer_in_order_while_the_log_rolls() {
    within(seconds(60), relay_at_the_same_time(20_000, 500));
}

/// One transaction is larger than twenty files of the log.
#[test]
fn large_transaction_passes_a_consumer_in_order_while_the_log_rolls() {
    within(seconds(60), relay_at_the_same_time(20_000, 20_000));
}

#[test]
fn small_transactions_wait_in_order_for_a_consumer() {
    within(seconds(60), relay_afterwards(20_000, 500, Ending::Killed));
}

#[test]
fn large_transaction_waits_in_order_for_a_consumer() {
    within(
        seconds(60),
        relay_afterwards(20_000, 20_000, Ending::Stopped),
    );
}

#[test]
#[ignore = "long: make test-long"]
fn long_run_of_small_transactions_at_the_same_time() {
    within(seconds(300), relay_at_the_same_time(200_000, 500));
}

#[test]
#[ignore = "long: make test-long"]
fn long_run_of_large_transactions_at_the_same_time() {
    within(seconds(300), relay_at_the_same_time(200_000, 20_000));
}

#[test]
#[ignore = "long: make test-long"]
fn long_run_of_small_transactions_that_wait() {
    within(seconds(300), relay_afterwards(200_000, 500, Ending::Killed));
}

#[test]
#[ignore = "long: make test-long"]
fn long_run_of_large_transactions_that_wait() {
    within(
        seconds(300),
        relay_afterwards(200_000, 20_000, Ending::Killed),
    );
}
