//! Queues that hold so many messages, or so many bytes, and no more.

mod support;

use std::collections::BTreeSet;

use client::{
    Connection, Error, Event, ExchangeOptions, FieldTable, Properties, PropertiesBuilder,
    PublishFlags,
};
use support::durable::*;
use support::rules::*;
use support::*;
use testkit::{Broker, Random};

fn max_length(count: i32) -> FieldTable {
    FieldTable::new().with("x-max-length", count)
}

fn rejecting(count: i32) -> FieldTable {
    max_length(count).with("x-overflow", "reject-publish")
}

/// Takes all messages out of a queue; returns the numbers that they begin with.
async fn take(connection: &mut Connection, channel: u16, queue: &str) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(message) = get(connection, channel, queue, true).await {
        all.push(number(&message.body));
    }
    all
}

/// A channel in confirm mode, and what the broker has said of each message.
struct Judged {
    connection: Connection,
    channel: u16,
    published: u64,
    acked: BTreeSet<u64>,
    nacked: BTreeSet<u64>,
}

impl Judged {
    async fn open(broker: &Broker) -> Judged {
        let (mut connection, channel) = open(broker).await;
        connection.confirm_select(channel).await.expect("confirms");
        Judged {
            connection,
            channel,
            published: 0,
            acked: BTreeSet::new(),
            nacked: BTreeSet::new(),
        }
    }

    /// Publishes; messages count from 1.
    fn publish(&mut self, exchange: &str, key: &str, properties: PropertiesBuilder, len: usize) {
        self.published += 1;
        let body = numbered(self.published, len);
        let (connection, channel) = (&mut self.connection, self.channel);
        publish_to(connection, channel, exchange, key, properties, &body);
    }

    /// Waits until all are judged. Each is so once; an acknowledgement of several covers none that
    /// is refused, now or later.
    async fn all_judged(&mut self) {
        while ((self.acked.len() + self.nacked.len()) as u64) < self.published {
            let Event::Confirm(confirm) = self.connection.next().await.expect("an event") else {
                panic!("a confirm expected");
            };
            let tag = confirm.delivery_tag;
            assert!(tag <= self.published, "{tag} was not published yet");
            let first = if confirm.multiple { 1 } else { tag };
            for tag in first..=tag {
                if confirm.multiple && (self.acked.contains(&tag) || self.nacked.contains(&tag)) {
                    continue;
                }
                let new = match confirm.acked {
                    true => self.acked.insert(tag),
                    false => self.nacked.insert(tag),
                };
                assert!(new, "{tag} was judged before");
            }
        }
        assert!(self.acked.is_disjoint(&self.nacked));
        assert_quiet(&mut self.connection).await;
    }
}

#[test]
fn oldest_messages_make_room() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let explicit = max_length(10).with("x-overflow", "drop-head");
        for (queue, arguments) in [("head", max_length(10)), ("said", explicit)] {
            declare_as(&mut connection, channel, queue, &transient(arguments)).await;
            for number in 0..1_000 {
                publish(&mut connection, channel, queue, &numbered(number, 8));
            }
            assert_eq!(count(&mut connection, channel, queue).await, 10);
            let left = take(&mut connection, channel, queue).await;
            assert!((990..1_000).eq(left));
        }
    });
}

#[test]
fn bytes_of_bodies_are_limited() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let bytes = FieldTable::new().with("x-max-length-bytes", 1_000);
        declare_as(&mut connection, channel, "bytes", &transient(bytes)).await;
        for number in 0..20 {
            publish(&mut connection, channel, "bytes", &numbered(number, 100));
        }
        assert_eq!(count(&mut connection, channel, "bytes").await, 10);
        // One large message takes the place of several small ones.
        publish(&mut connection, channel, "bytes", &numbered(20, 550));
        assert_eq!(count(&mut connection, channel, "bytes").await, 5);
        // Properties do not count.
        let headers = FieldTable::new().with("large", "x".repeat(5_000).as_str());
        let properties = PropertiesBuilder::default().headers(&headers);
        send(
            &mut connection,
            channel,
            "bytes",
            properties,
            &numbered(21, 50),
        );
        assert_eq!(count(&mut connection, channel, "bytes").await, 6);
        // One that is larger than all room there is drops everything, itself included.
        publish(&mut connection, channel, "bytes", &numbered(22, 1_001));
        assert_eq!(count(&mut connection, channel, "bytes").await, 0);
        publish(&mut connection, channel, "bytes", &numbered(23, 1_000));
        let left = take(&mut connection, channel, "bytes").await;
        assert_eq!(left, [23]);
    });
}

#[test]
fn lower_of_both_limits_counts() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let both = max_length(5).with("x-max-length-bytes", 1_000);
        declare_as(&mut connection, channel, "both", &transient(both)).await;
        for number in 0..8 {
            publish(&mut connection, channel, "both", &numbered(number, 8));
        }
        assert_eq!(count(&mut connection, channel, "both").await, 5);
        for number in 8..16 {
            publish(&mut connection, channel, "both", &numbered(number, 400));
        }
        let left = take(&mut connection, channel, "both").await;
        assert_eq!(left, [14, 15]);
    });
}

#[test]
fn queue_of_no_length_serves_consumers_only() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_as(&mut connection, channel, "none", &transient(max_length(0))).await;
        publish(&mut connection, channel, "none", &numbered(1, 8));
        assert_eq!(count(&mut connection, channel, "none").await, 0);
        consume_from(&mut connection, channel, "none", 2).await;
        for number in 2..10 {
            publish(&mut connection, channel, "none", &numbered(number, 8));
        }
        let delivered = receive_all(&mut connection, 2).await;
        assert_eq!((delivered[0].number(), delivered[1].number()), (2, 3));
        connection.ack(channel, delivered[0].tag, false);
        assert_quiet(&mut connection).await;
        publish(&mut connection, channel, "none", &numbered(10, 8));
        assert_eq!(receive(&mut connection).await.number(), 10);
    });
}

#[test]
fn what_is_out_for_delivery_does_not_count_until_it_comes_back() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let arguments = transient(max_length(5));
        declare_as(&mut connection, channel, "out", &arguments).await;
        let (mut consumer, consuming) = open(&broker).await;
        consume_from(&mut consumer, consuming, "out", 10).await;
        for number in 0..30 {
            publish(&mut connection, channel, "out", &numbered(number, 8));
            synchronize(&mut connection, channel).await;
        }
        assert_eq!(count(&mut connection, channel, "out").await, 5);
        let out = receive_all(&mut consumer, 10).await;
        let out: Vec<u64> = out.iter().map(Received::number).collect();
        assert!((0..10).eq(out));
        // They are the oldest, so they are those that must go again.
        drop(consumer);
        eventually("they come back", seconds(2), async || {
            look_at(&mut connection, channel, "out").await.consumers == 0
        })
        .await;
        let left = take(&mut connection, channel, "out").await;
        assert!((25..30).eq(left));
    });
}

#[test]
fn full_queue_refuses_and_says_which() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for (queue, properties) in [
            ("refusing", PropertiesBuilder::default()),
            ("persistent", PropertiesBuilder::default().delivery_mode(2)),
        ] {
            let options = durable(rejecting(10));
            declare_as(&mut connection, channel, queue, &options).await;
            let mut judged = Judged::open(&broker).await;
            for _ in 0..25 {
                judged.publish("", queue, properties.clone(), 8);
            }
            judged.all_judged().await;
            assert!((1..=10).eq(judged.acked.iter().copied()), "{queue}");
            assert!((11..=25).eq(judged.nacked.iter().copied()), "{queue}");
            assert_eq!(count(&mut connection, channel, queue).await, 10);
            // Room is room again.
            assert!(get(&mut connection, channel, queue, true).await.is_some());
            for _ in 0..2 {
                judged.publish("", queue, properties.clone(), 8);
            }
            judged.all_judged().await;
            assert!(judged.acked.contains(&26) && judged.nacked.contains(&27));
            let left = take(&mut connection, channel, queue).await;
            assert_eq!(left, [2, 3, 4, 5, 6, 7, 8, 9, 10, 26]);
        }
    });
}

#[test]
fn refusals_by_bytes_depend_on_the_message() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let arguments = FieldTable::new()
            .with("x-max-length-bytes", 1_000)
            .with("x-overflow", "reject-publish");
        declare_as(&mut connection, channel, "fits", &transient(arguments)).await;
        let mut judged = Judged::open(&broker).await;
        for len in [600, 500, 300, 101, 100, 8] {
            judged.publish("", "fits", PropertiesBuilder::default(), len);
        }
        judged.all_judged().await;
        assert_eq!(judged.acked, BTreeSet::from([1, 3, 5]));
        assert_eq!(judged.nacked, BTreeSet::from([2, 4, 6]));
    });
}

/// Refused ones and others by turns, while a consumer makes room now and then: what was confirmed
/// is there, and what was refused is not.
#[test]
fn every_message_is_either_confirmed_and_there_or_refused_and_not() {
    within(seconds(40), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_as(&mut connection, channel, "tight", &durable(rejecting(7))).await;
        declare_durable(&mut connection, channel, "wide").await;
        let mut random = Random::new(1);
        let mut judged = Judged::open(&broker).await;
        let mut taken = Vec::new();
        let mut wide = BTreeSet::new();
        for _ in 0..300 {
            for _ in 0..random.below(12) {
                let properties = match random.one_in(2) {
                    true => PropertiesBuilder::default().delivery_mode(2),
                    false => PropertiesBuilder::default(),
                };
                let queue = if random.one_in(3) { "wide" } else { "tight" };
                judged.publish("", queue, properties, 50);
                if queue == "wide" {
                    wide.insert(judged.published);
                }
                if random.one_in(5) {
                    judged.connection.flush().await.expect("sent");
                }
            }
            judged.connection.flush().await.expect("sent");
            for _ in 0..random.below(5) {
                if let Some(got) = get(&mut connection, channel, "tight", true).await {
                    taken.push(number(&got.body));
                }
            }
        }
        judged.all_judged().await;
        taken.extend(take(&mut connection, channel, "tight").await);
        assert!(taken.is_sorted());
        let kept: BTreeSet<u64> = judged.acked.difference(&wide).copied().collect();
        assert!(kept.iter().copied().eq(taken));
        assert!(judged.nacked.is_disjoint(&wide));
        assert!(judged.nacked.len() > 100 && kept.len() > 100, "says little");
        let in_wide = take(&mut connection, channel, "wide").await;
        assert!(wide.iter().copied().eq(in_wide));
    });
}

#[test]
fn without_confirms_refused_messages_vanish() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = transient(rejecting(3));
        declare_as(&mut connection, channel, "silent", &options).await;
        let (flags, none) = (PublishFlags::MANDATORY, Properties::default());
        for number in 0..10 {
            connection
                .publish(channel, "", "silent", flags, none, &numbered(number, 8))
                .expect("short names");
        }
        // Not even a mandatory one comes back: it was routed.
        assert_quiet(&mut connection).await;
        let left = take(&mut connection, channel, "silent").await;
        assert_eq!(left, [0, 1, 2]);
    });
}

#[test]
fn refused_message_may_be_dead_lettered() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "refused dead").await;
        let arguments = dead_letters_to("refused dead")
            .with("x-max-length", 5)
            .with("x-overflow", "reject-publish-dlx");
        declare_as(&mut connection, channel, "refused", &durable(arguments)).await;
        let mut judged = Judged::open(&broker).await;
        for number in 0..20 {
            let properties = PropertiesBuilder::default().delivery_mode(1 + number % 2);
            judged.publish("", "refused", properties, 8);
        }
        judged.all_judged().await;
        assert!((1..=5).eq(judged.acked.iter().copied()));
        assert!((6..=20).eq(judged.nacked.iter().copied()));
        let left = take(&mut connection, channel, "refused").await;
        assert!((1..=5).eq(left));
        drain_from(&mut connection, channel, "refused dead").await;
        let dead = letters_until_quiet(&mut connection, millis(200)).await;
        assert!((6..=20).eq(numbers(&dead)));
        for letter in &dead {
            let expected = [("refused".into(), "maxlen".into(), 1)];
            assert_eq!(letter.obituary(), expected);
        }
    });
}

/// One message, two queues, of which one is full: the other has it, and the publisher hears of it.
#[test]
fn one_full_queue_of_several_makes_it_a_refusal() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let exchange = ExchangeOptions::default();
        let declared = connection.declare_exchange(channel, "fan", "fanout", &exchange);
        declared.await.expect("an exchange");
        declare_as(&mut connection, channel, "narrow", &transient(rejecting(2))).await;
        declare(&mut connection, channel, "roomy").await;
        for queue in ["narrow", "roomy"] {
            bind(&mut connection, channel, queue, "fan", "").await;
        }
        let mut judged = Judged::open(&broker).await;
        for _ in 0..6 {
            judged.publish("fan", "", PropertiesBuilder::default(), 8);
        }
        judged.all_judged().await;
        assert_eq!(judged.acked, BTreeSet::from([1, 2]));
        assert_eq!(judged.nacked, BTreeSet::from([3, 4, 5, 6]));
        assert_eq!(take(&mut connection, channel, "narrow").await, [1, 2]);
        let all = take(&mut connection, channel, "roomy").await;
        assert_eq!(all, [1, 2, 3, 4, 5, 6]);
    });
}

/// Nothing of a transaction happens if a queue refuses a part of it.
#[test]
fn transaction_that_a_queue_refuses_fails_as_a_whole() {
    within(seconds(10), async {
        let broker = shared();
        let (mut observer, observing) = open(&broker).await;
        declare(&mut observer, observing, "tx other").await;
        declare(&mut observer, observing, "tx acked").await;
        declare_as(
            &mut observer,
            observing,
            "tx full",
            &transient(rejecting(3)),
        )
        .await;
        for number in 0..4 {
            publish(&mut observer, observing, "tx acked", &numbered(number, 8));
        }
        synchronize(&mut observer, observing).await;
        let (mut connection, channel) = open(&broker).await;
        connection.tx_select(channel).await.expect("select-ok");
        // What fits is taken.
        publish(&mut connection, channel, "tx full", &numbered(0, 8));
        connection.tx_commit(channel).await.expect("commit-ok");
        for _ in 0..2 {
            let got = get(&mut connection, channel, "tx acked", false).await;
            connection.ack(channel, got.expect("a message").delivery_tag, false);
        }
        let got = get(&mut connection, channel, "tx acked", false).await;
        connection.nack(channel, got.expect("a message").delivery_tag, false, false);
        for number in 1..4 {
            publish(&mut connection, channel, "tx full", &numbered(number, 8));
            publish(&mut connection, channel, "tx other", &numbered(number, 8));
        }
        match connection.tx_commit(channel).await {
            Err(Error::ChannelClosed { code, text, .. }) => {
                assert_eq!(code, 406, "{text}");
                assert!(text.starts_with("PRECONDITION_FAILED"), "{text}");
            }
            other => panic!("a refusal expected, got {other:?}"),
        }
        assert_eq!(take(&mut observer, observing, "tx full").await, [0]);
        assert_eq!(count(&mut observer, observing, "tx other").await, 0);
        let back = take(&mut observer, observing, "tx acked").await;
        assert_eq!(back, [0, 1, 2, 3]);
        // The connection goes on.
        let channel = connection.open_channel().await.expect("a channel");
        connection.tx_select(channel).await.expect("select-ok");
        publish(&mut connection, channel, "tx full", &numbered(9, 8));
        connection.tx_commit(channel).await.expect("commit-ok");
        assert_eq!(take(&mut observer, observing, "tx full").await, [9]);
    });
}

#[test]
fn committed_messages_push_out_the_oldest() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_as(&mut connection, channel, "tx head", &durable(max_length(3))).await;
        connection.tx_select(channel).await.expect("select-ok");
        for number in 0..10 {
            publish_persistent(&mut connection, channel, "tx head", &numbered(number, 8));
        }
        assert_eq!(count(&mut connection, channel, "tx head").await, 0);
        connection.tx_commit(channel).await.expect("commit-ok");
        assert_eq!(count(&mut connection, channel, "tx head").await, 3);
        assert_eq!(take(&mut connection, channel, "tx head").await, [7, 8, 9]);
    });
}

#[test]
fn messages_that_make_room_are_dead_lettered_in_order() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "trimmed dead").await;
        let arguments = dead_letters_to("trimmed dead").with("x-max-length", 100);
        declare_as(&mut connection, channel, "trimmed", &transient(arguments)).await;
        let (mut mourner, mourning) = open(&broker).await;
        drain_from(&mut mourner, mourning, "trimmed dead").await;
        // Several publishers at a time.
        let publish_all = async |first: u64| {
            let (mut publisher, channel) = open(&broker).await;
            for number in first..first + 2_000 {
                publish(&mut publisher, channel, "trimmed", &numbered(number, 100));
                if number % 20 == 0 {
                    publisher.flush().await.expect("sent");
                }
            }
            synchronize(&mut publisher, channel).await;
        };
        let receive_dead = async {
            let mut last = [None; 3];
            for _ in 0..5_900 {
                let letter = receive_letter(&mut mourner).await;
                let number = letter.number();
                let last = &mut last[number as usize / 10_000];
                assert!(last.is_none_or(|last| last < number), "{number} is late");
                *last = Some(number);
            }
        };
        tokio::join!(
            publish_all(0),
            publish_all(10_000),
            publish_all(20_000),
            receive_dead
        );
        assert_quiet(&mut mourner).await;
        assert_eq!(count(&mut connection, channel, "trimmed").await, 100);
    });
}

#[test]
fn limits_hold_over_a_restart() {
    within(seconds(30), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            let bytes = FieldTable::new().with("x-max-length-bytes", 1_000);
            for (queue, arguments) in [
                ("dropping", max_length(10)),
                ("refusing", rejecting(10)),
                ("bytes", bytes),
            ] {
                declare_as(&mut connection, channel, queue, &durable(arguments)).await;
            }
            let mut judged = Judged::open(&broker).await;
            for _ in 0..15 {
                for queue in ["dropping", "refusing", "bytes"] {
                    let persistent = PropertiesBuilder::default().delivery_mode(2);
                    judged.publish("", queue, persistent, 100);
                }
            }
            judged.all_judged().await;
            let dropped: BTreeSet<u64> = judged.nacked.iter().map(|n| n % 3).collect();
            assert_eq!(dropped, BTreeSet::from([2]));
            connection.close().await.expect("close-ok");
            drop(judged);
            until_written_down().await;
            ending.restart(&mut broker);
            let mut judged = Judged::open(&broker).await;
            for queue in ["dropping", "refusing", "bytes"] {
                assert_eq!(messages_in(&broker, queue).await, Some(10), "{ending:?}");
                judged.publish("", queue, PropertiesBuilder::default(), 100);
            }
            judged.all_judged().await;
            assert_eq!(judged.nacked, BTreeSet::from([2]), "{ending:?}");
            let left = take_numbers(&broker, "dropping").await;
            let expected: Vec<u64> = (6..15).map(|n| 3 * n + 1).chain([1]).collect();
            assert_eq!(left, expected, "{ending:?}");
            let left = take_numbers(&broker, "bytes").await;
            let expected: Vec<u64> = (6..15).map(|n| 3 * n + 3).chain([3]).collect();
            assert_eq!(left, expected, "{ending:?}");
            let left = take_numbers(&broker, "refusing").await;
            assert!((0..10).map(|n| 3 * n + 2).eq(left), "{ending:?}");
        }
    });
}

/// A limit on a queue the most of which lies in segments.
#[test]
fn limit_of_a_long_queue_holds_on_disk_as_well() {
    const LIMIT: u64 = 5_000;
    within(seconds(60), async {
        let mut broker = with_little_memory().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let options = durable(max_length(LIMIT as i32));
        declare_as(&mut connection, channel, "long", &options).await;
        let mut publisher = Publisher::open(&broker).await;
        for number in 0..4 * LIMIT {
            publisher.persistent("long", &numbered(number, 1_000));
            while publisher.published - publisher.confirmed > 1_000 {
                publisher.confirm().await;
            }
        }
        publisher.all_confirmed().await;
        let left = count(&mut connection, channel, "long").await;
        assert_eq!(u64::from(left), LIMIT);
        drop((connection, publisher));
        until_written_down().await;
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "long").await, Some(LIMIT as u32));
        let mut publisher = Publisher::open(&broker).await;
        for number in 4 * LIMIT..4 * LIMIT + 500 {
            publisher.persistent("long", &numbered(number, 1_000));
        }
        publisher.all_confirmed().await;
        assert_eq!(messages_in(&broker, "long").await, Some(LIMIT as u32));
        let left = take_numbers(&broker, "long").await;
        assert!((3 * LIMIT + 500..4 * LIMIT + 500).eq(left));
    });
}
