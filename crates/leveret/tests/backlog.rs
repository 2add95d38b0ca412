//! A queue that is much longer than its memory: it pages out, survives, and everything that works
//! on a short one works on it, in order.

mod support;

use std::collections::VecDeque;

use client::{Connection, ConsumeOptions};
use support::durable::*;
use support::folder::size_of;
use support::*;
use testkit::Broker;

const BODY: usize = 1024;
const MIB: u64 = 1 << 20;

/// A broker with little memory for a queue, and a short log.
fn tight() -> Broker {
    with_little_memory().start().expect("a broker")
}

/// A body that can be told from any other at every byte.
fn body(number: u64) -> Vec<u8> {
    let mut body = numbered(number, BODY);
    for (index, byte) in body[8..].iter_mut().enumerate() {
        *byte = (number as usize + index) as u8;
    }
    body
}

/// Publishes numbers to a durable queue, at most a thousand ahead of the confirms.
async fn fill(broker: &Broker, queue: &str, numbers: std::ops::Range<u64>) {
    let mut publisher = Publisher::open(broker).await;
    let (connection, channel) = (&mut publisher.connection, publisher.channel);
    declare_durable(connection, channel, queue).await;
    for number in numbers {
        publisher.persistent(queue, &body(number));
        while publisher.published - publisher.confirmed > 1_000 {
            publisher.confirm().await;
        }
    }
    publisher.all_confirmed().await;
    publisher.connection.close().await.expect("close-ok");
}

/// Consumes, checks and acknowledges.
struct Reader {
    connection: Connection,
    channel: u16,
}

impl Reader {
    async fn start(broker: &Broker, queue: &str, prefetch: u16) -> Reader {
        let (mut connection, channel) = open(broker).await;
        connection.qos(channel, prefetch, false).await.expect("ok");
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, queue, &options).await;
        consuming.expect("a consumer");
        Reader {
            connection,
            channel,
        }
    }

    async fn next(&mut self) -> Received {
        let delivery = receive(&mut self.connection).await;
        assert!(delivery.body == body(delivery.number()), "a wrong body");
        delivery
    }

    /// Takes these numbers in order, and acknowledges them.
    async fn take(&mut self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let delivery = self.next().await;
            assert_eq!(delivery.number(), number);
            self.connection.ack(self.channel, delivery.tag, false);
        }
        self.connection.flush().await.expect("sent");
    }
}

#[test]
fn long_queue_takes_little_memory_and_its_log_stays_short() {
    const COUNT: u64 = 100_000;
    within(seconds(60), async {
        let mut broker = tight();
        let at_start = broker.rss().expect("a running broker");
        fill(&broker, "long", 0..COUNT).await;
        assert_eq!(messages_in(&broker, "long").await, Some(COUNT as u32));
        let more = broker.rss().expect("a running broker") - at_start;
        assert!(more < 48 * MIB, "{} MiB for 100 of messages", more / MIB);
        let log = size_of(&broker.data_dir().join("wal"));
        assert!(log < 64 * MIB, "the log takes {} MiB", log / MIB);

        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "long").await, Some(COUNT as u32));
        let started = broker.rss().expect("a running broker");
        assert!(started < at_start + 80 * MIB, "{} MiB", started / MIB);
        let mut reader = Reader::start(&broker, "long", 500).await;
        reader.take(0..COUNT).await;
        let more = broker.rss().expect("a running broker") - at_start;
        assert!(more < 80 * MIB, "{} MiB after reading", more / MIB);

        // Its files go: an empty queue takes no room.
        let data = broker.data_dir();
        eventually("the files go", seconds(20), async || {
            size_of(&data.join("queues")) < 10 * MIB
        })
        .await;
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "long").await, Some(0));
    });
}

#[test]
fn order_holds_while_new_messages_come_to_a_long_queue() {
    const COUNT: u64 = 20_000;
    within(seconds(60), async {
        let mut broker = tight();
        fill(&broker, "growing", 0..COUNT).await;
        Ending::Killed.restart(&mut broker);
        let mut publisher = Publisher::open(&broker).await;
        let mut reader = Reader::start(&broker, "growing", 200).await;
        for step in 0..100 {
            for number in 0..100 {
                publisher.persistent("growing", &body(COUNT + 100 * step + number));
            }
            publisher.connection.flush().await.expect("sent");
            reader.take(300 * step..300 * step + 300).await;
            publisher.all_confirmed().await;
        }
        assert_quiet(&mut reader.connection).await;
        assert_eq!(messages_in(&broker, "growing").await, Some(0));
    });
}

/// Transient messages page out with the others; after a restart they are gone, and only they.
#[test]
fn transient_messages_keep_their_places_in_a_long_queue_until_a_restart() {
    const COUNT: u64 = 12_000;
    within(seconds(60), async {
        let mut broker = tight();
        let mut publisher = Publisher::open(&broker).await;
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        declare_durable(connection, channel, "mixed").await;
        for number in 0..COUNT {
            match number % 3 {
                0 => publisher.persistent("mixed", &body(number)),
                _ => publisher.publish("", "mixed", &[0, 0], &body(number)),
            }
        }
        publisher.all_confirmed().await;
        let mut reader = Reader::start(&broker, "mixed", 100).await;
        reader.take(0..COUNT / 2).await;
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        let expected: Vec<u64> = (COUNT / 2..COUNT).filter(|n| n % 3 == 0).collect();
        assert_eq!(messages_in(&broker, "mixed").await, Some(2_000));
        let mut reader = Reader::start(&broker, "mixed", 100).await;
        for number in expected {
            let delivery = reader.next().await;
            assert_eq!(delivery.number(), number);
            // Those that were out, which the prefetch limit bounds.
            let was_out = number < COUNT / 2 + 100;
            assert_eq!(delivery.redelivered, was_out, "{number}");
            reader.connection.ack(reader.channel, delivery.tag, false);
        }
    });
}

/// A queue of transient messages alone is bounded in memory as well.
#[test]
fn transient_queue_pages_out_and_leaves_nothing_behind() {
    const COUNT: u64 = 70_000;
    within(seconds(60), async {
        let mut broker = tight();
        let at_start = broker.rss().expect("a running broker");
        let mut publisher = Publisher::open(&broker).await;
        declare(&mut publisher.connection, publisher.channel, "transient").await;
        for number in 0..COUNT {
            publisher.publish("", "transient", &[0, 0], &body(number));
            while publisher.published - publisher.confirmed > 1_000 {
                publisher.confirm().await;
            }
        }
        publisher.all_confirmed().await;
        let more = broker.rss().expect("a running broker") - at_start;
        assert!(more < 56 * MIB, "{} MiB for 70 of messages", more / MIB);
        let mut reader = Reader::start(&broker, "transient", 500).await;
        reader.take(0..COUNT / 10).await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "transient").await, None);
        let data = broker.data_dir();
        eventually("its files go", seconds(10), async || {
            size_of(&data.join("queues")) < MIB
        })
        .await;
    });
}

/// A window of messages that goes back lands before everything else, each at its place; over and
/// over, also when what went back is longer than what a queue keeps in memory.
#[test]
fn requeued_windows_return_to_their_places_in_a_long_queue() {
    const COUNT: u64 = 15_000;
    const WINDOW: u64 = 4_000;
    within(seconds(60), async {
        let mut broker = tight();
        fill(&broker, "windows", 0..COUNT).await;
        Ending::Killed.restart(&mut broker);
        let mut random = testkit::Random::new(11);
        let mut reader = Reader::start(&broker, "windows", WINDOW as u16).await;
        // Numbers that are not gone; the first of them are out.
        let mut left: VecDeque<u64> = (0..COUNT).collect();
        for round in 0..6 {
            let mut tags = Vec::new();
            for expected in left.iter().take(WINDOW as usize) {
                let delivery = reader.next().await;
                assert_eq!(delivery.number(), *expected, "round {round}");
                tags.push((*expected, delivery.tag));
            }
            let (channel, last) = (reader.channel, tags[tags.len() - 1].1);
            // Some of them are done, here and there; the rest goes back in one go.
            let mut gone = 0;
            for (number, tag) in &tags {
                if random.one_in(10) {
                    reader.connection.ack(channel, *tag, false);
                    left.retain(|other| other != number);
                    gone += 1;
                }
            }
            // Those acknowledgements let as many others out: they go back as well.
            for _ in 0..gone {
                reader.next().await;
            }
            let last = last + gone;
            reader.connection.nack(channel, last, true, true);
        }
        for expected in &left {
            let delivery = reader.next().await;
            assert_eq!(delivery.number(), *expected);
            reader.connection.ack(reader.channel, delivery.tag, false);
        }
        synchronize(&mut reader.connection, reader.channel).await;
        assert_eq!(messages_in(&broker, "windows").await, Some(0));
    });
}

/// What is out on leases while the rest is paged out, and while the process ends.
#[test]
fn leases_of_a_long_queue_come_back_in_order_after_a_crash() {
    const COUNT: u64 = 10_000;
    within(seconds(60), async {
        let mut broker = tight();
        fill(&broker, "leased", 0..COUNT).await;
        let mut reader = Reader::start(&broker, "leased", 3_000).await;
        let mut tags = Vec::new();
        for number in 0..3_000 {
            let delivery = reader.next().await;
            assert_eq!(delivery.number(), number);
            tags.push(delivery.tag);
        }
        for tag in tags.iter().skip(1).step_by(2) {
            reader.connection.ack(reader.channel, *tag, false);
        }
        // Half of them are gone, and as many others are out.
        for number in 3_000..4_500 {
            assert_eq!(reader.next().await.number(), number);
        }
        fill(&broker, "leased", COUNT..2 * COUNT).await;
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        let mut reader = Reader::start(&broker, "leased", 500).await;
        for number in (0..2 * COUNT).filter(|n| *n >= 3_000 || n % 2 == 0) {
            let delivery = reader.next().await;
            assert_eq!(delivery.number(), number);
            assert_eq!(delivery.redelivered, number < 4_500, "{number}");
            reader.connection.ack(reader.channel, delivery.tag, false);
        }
        assert_quiet(&mut reader.connection).await;
    });
}

#[test]
fn get_works_through_a_long_queue() {
    const COUNT: u64 = 8_000;
    within(seconds(60), async {
        let mut broker = tight();
        fill(&broker, "gotten", 0..COUNT).await;
        Ending::Killed.restart(&mut broker);
        let (mut connection, channel) = open(&broker).await;
        for number in 0..COUNT {
            let no_ack = number % 2 == 0;
            let got = get(&mut connection, channel, "gotten", no_ack).await;
            let got = got.expect("a message");
            assert_eq!(support::number(&got.body), number);
            assert!(got.body == body(number), "a wrong body");
            assert_eq!(u64::from(got.message_count), COUNT - number - 1);
            if !no_ack {
                connection.ack(channel, got.delivery_tag, false);
            }
        }
        let got = get(&mut connection, channel, "gotten", true).await;
        assert!(got.is_none(), "{got:?}");
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "gotten").await, Some(0));
    });
}

#[test]
fn purge_and_delete_of_a_long_queue_are_final_and_free_its_files() {
    const COUNT: u64 = 15_000;
    within(seconds(60), async {
        let mut broker = tight();
        let data = broker.data_dir();
        for round in 0..2 {
            for queue in ["purged", "deleted"] {
                fill(&broker, queue, 0..COUNT).await;
            }
            assert!(size_of(&data.join("queues")) > 8 * MIB, "nothing paged out");
            if round == 1 {
                Ending::Killed.restart(&mut broker);
            }
            let (mut connection, channel) = open(&broker).await;
            let purged = connection.purge(channel, "purged").await;
            assert_eq!(purged.expect("purge-ok"), COUNT as u32);
            let deleted = connection.delete_queue(channel, "deleted").await;
            assert_eq!(deleted.expect("delete-ok"), COUNT as u32);
            connection.close().await.expect("close-ok");
            eventually("the files go", seconds(20), async || {
                size_of(&data.join("queues")) < 10 * MIB
            })
            .await;
            until_written_down().await;
            Ending::Killed.restart(&mut broker);
            assert_eq!(messages_in(&broker, "purged").await, Some(0));
            assert_eq!(messages_in(&broker, "deleted").await, None);
        }
    });
}

/// The log is moved on by whoever keeps it long: one message of a queue that nobody reads does
/// not hold gigabytes.
#[test]
fn forgotten_message_does_not_hold_the_log() {
    within(seconds(60), async {
        let mut broker = tight();
        fill(&broker, "forgotten", 0..3).await;
        for round in 0..2 {
            fill(&broker, "busy", 0..30_000).await;
            let mut reader = Reader::start(&broker, "busy", 500).await;
            reader.take(0..30_000).await;
            reader.connection.close().await.expect("close-ok");
            let log = size_of(&broker.data_dir().join("wal"));
            assert!(log < 64 * MIB, "round {round}: {} MiB of log", log / MIB);
        }
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(take_numbers(&broker, "forgotten").await, [0, 1, 2]);
        assert_eq!(messages_in(&broker, "busy").await, Some(0));
    });
}
