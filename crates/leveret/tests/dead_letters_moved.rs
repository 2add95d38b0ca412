//! Dead letters on their way: in order, many, large, and in exactly one place whatever happens.

mod support;

use std::collections::BTreeSet;

use client::{Connection, FieldTable, PropertiesBuilder, QueueOptions};
use support::durable::*;
use support::folder::size_of;
use support::in_process::InProcess;
use support::rules::*;
use support::*;
use testkit::{Broker, Random};

/// Declares a durable queue, and one for its dead letters.
async fn declare_pair(connection: &mut Connection, channel: u16, queue: &str) {
    let dead = format!("{queue} dead");
    declare_durable(connection, channel, &dead).await;
    let options = durable(dead_letters_to(&dead));
    declare_as(connection, channel, queue, &options).await;
}

async fn fill(broker: &Broker, queue: &str, numbers: std::ops::Range<u64>, len: usize) {
    let mut publisher = Publisher::open(broker).await;
    for number in numbers {
        publisher.persistent(queue, &numbered(number, len));
        while publisher.published - publisher.confirmed > 1_000 {
            publisher.confirm().await;
        }
    }
    publisher.all_confirmed().await;
    publisher.connection.close().await.expect("close-ok");
}

#[test]
fn thousands_refused_at_once_keep_their_order() {
    const COUNT: u64 = 10_000;
    within(seconds(30), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "many").await;
        fill(&broker, "many", 0..COUNT, 100).await;
        consume_from(&mut connection, channel, "many", 0).await;
        let out = receive_all(&mut connection, COUNT as usize).await;
        let last = out.last().expect("thousands").tag;
        connection.nack(channel, last, true, false);
        synchronize(&mut connection, channel).await;
        let left = look_at(&mut connection, channel, "many").await;
        assert_eq!(left.messages, 0);
        assert!((0..COUNT).eq(take_numbers(&broker, "many dead").await));
    });
}

/// While others publish, consume and refuse.
#[test]
fn order_holds_when_everything_happens_at_once() {
    const COUNT: u64 = 6_000;
    within(seconds(40), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "flow").await;
        let publish_all = fill(&broker, "flow", 0..COUNT, 100);
        let refuse_all = async {
            let mut random = Random::new(1);
            consume_from(&mut connection, channel, "flow", 300).await;
            let mut pending = 0;
            for number in 0..COUNT {
                let delivery = receive(&mut connection).await;
                assert_eq!(delivery.number(), number);
                pending += 1;
                if random.one_in(50) || pending == 300 || number == COUNT - 1 {
                    connection.nack(channel, delivery.tag, true, false);
                    pending = 0;
                }
            }
            synchronize(&mut connection, channel).await;
        };
        let mourn_all = async {
            let (mut mourner, mourning) = open(&broker).await;
            consume_from(&mut mourner, mourning, "flow dead", 100).await;
            for number in 0..COUNT {
                let delivery = receive(&mut mourner).await;
                assert_eq!(delivery.number(), number);
                mourner.ack(mourning, delivery.tag, false);
            }
        };
        tokio::join!(publish_all, refuse_all, mourn_all);
    });
}

#[test]
fn large_messages_become_dead_letters() {
    within(seconds(60), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_pair(&mut connection, channel, "large").await;
        let mut random = Random::new(2);
        let sizes = [
            1 << 20,
            20 << 20,
            131_064,
            131_065,
            3 << 20,
            10,
            5 << 20,
            1 << 19,
        ];
        let bodies: Vec<Vec<u8>> = sizes.into_iter().map(|size| random.bytes(size)).collect();
        let mut publisher = Publisher::open(&broker).await;
        for body in &bodies {
            publisher.persistent("large", body);
        }
        publisher.all_confirmed().await;
        publisher.connection.close().await.expect("close-ok");
        for body in &bodies {
            let got = get(&mut connection, channel, "large", false).await;
            assert!(&got.expect("a message").body == body);
        }
        connection.nack(channel, 0, true, false);
        synchronize(&mut connection, channel).await;
        until_count(&broker, "large dead", bodies.len() as u32).await;
        until_written_down().await;
        connection.close().await.expect("close-ok");
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "large").await, Some(0));
        let dead = take_all(&broker, "large dead").await;
        assert_eq!(dead.len(), bodies.len());
        for (message, body) in dead.iter().zip(&bodies) {
            assert!(&message.body == body);
        }
    });
}

/// Declares so many queues which have no room, `c0` and so on, each with the next one for its dead
/// letters. Returns the name of the last, which keeps what it gets.
async fn declare_chain(connection: &mut Connection, channel: u16, count: usize) -> String {
    for number in 0..count {
        let next = format!("c{}", number + 1);
        let arguments = dead_letters_to(&next).with("x-max-length", 0);
        let name = format!("c{number}");
        declare_as(connection, channel, &name, &transient(arguments)).await;
    }
    let last = format!("c{count}");
    declare(connection, channel, &last).await;
    last
}

/// Each of them passes it on to the next: a list of work, not a stack of calls.
#[test]
fn dead_letter_goes_through_a_thousand_queues() {
    const COUNT: usize = 1_000;
    within(seconds(60), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let last = declare_chain(&mut connection, channel, COUNT).await;
        publish(&mut connection, channel, "c0", b"12345678");
        eventually("it is through", seconds(40), async || {
            // Others are served meanwhile.
            connect(&broker).await.close().await.expect("close-ok");
            look_at(&mut connection, channel, &last).await.messages == 1
        })
        .await;
        let got = get(&mut connection, channel, &last, true).await;
        let properties = got.expect("a message").properties;
        let Some(amqp::FieldValue::Array(deaths)) = header(&properties, "x-death") else {
            panic!("no deaths");
        };
        assert_eq!(deaths.len(), COUNT);
        assert_healthy(&broker).await;
    });
}

/// A worker that moved a dead letter through all of its queues could serve nobody else meanwhile:
/// the publisher's goes only so far, the timer's threads do the rest.
#[test]
fn publisher_does_not_move_its_dead_letter_all_the_way() {
    within(seconds(60), async {
        // Its timer calls when it is told to.
        let server = InProcess::start("dead-letter-chain");
        let mut connection = connect_with(&server.options).await;
        let channel = connection.open_channel().await.expect("a channel");
        let last = declare_chain(&mut connection, channel, 300).await;
        publish(&mut connection, channel, "c0", b"12345678");
        synchronize(&mut connection, channel).await;
        let arrived = look_at(&mut connection, channel, &last).await.messages;
        assert_eq!(arrived, 0, "all on the publisher's account");
        eventually("it is through", seconds(10), async || {
            server.broker.timer.run_once();
            look_at(&mut connection, channel, &last).await.messages == 1
        })
        .await;
    });
}

/// The same for very many that die at once. They keep their order, whoever moves them.
#[test]
fn consumer_does_not_move_all_that_it_refuses() {
    const COUNT: u64 = 5_000;
    within(seconds(60), async {
        let server = InProcess::start("dead-letters-in-turns");
        let mut connection = connect_with(&server.options).await;
        let channel = connection.open_channel().await.expect("a channel");
        declare_pair(&mut connection, channel, "q").await;
        consume_from(&mut connection, channel, "q", 0).await;
        for number in 0..COUNT {
            publish(&mut connection, channel, "q", &numbered(number, 16));
        }
        receive_all(&mut connection, COUNT as usize).await;
        connection.nack(channel, 0, true, false);
        synchronize(&mut connection, channel).await;
        let arrived = look_at(&mut connection, channel, "q dead").await.messages;
        assert!(arrived < COUNT as u32, "all on the consumer's account");
        eventually("all are there", seconds(10), async || {
            server.broker.timer.run_once();
            let arrived = look_at(&mut connection, channel, "q dead").await;
            arrived.messages == COUNT as u32
        })
        .await;
        consume_from(&mut connection, channel, "q dead", 0).await;
        let dead = receive_all(&mut connection, COUNT as usize).await;
        assert!((0..COUNT).eq(dead.iter().map(Received::number)));
    });
}

/// A queue takes its messages along when it goes, but not those that were rejected before.
#[test]
fn what_was_rejected_does_not_go_with_its_queue() {
    const COUNT: u64 = 5_000;
    within(seconds(60), async {
        let in_memory = builder().start().expect("a broker");
        let on_disk = with_little_memory().start().expect("a broker");
        for broker in [in_memory, on_disk] {
            for exclusive in [false, true] {
                let (mut connection, channel) = open(&broker).await;
                declare_durable(&mut connection, channel, "heir").await;
                let options = QueueOptions {
                    exclusive,
                    ..durable(dead_letters_to("heir"))
                };
                declare_as(&mut connection, channel, "short-lived", &options).await;
                for number in 0..COUNT {
                    publish(
                        &mut connection,
                        channel,
                        "short-lived",
                        &numbered(number, 1_000),
                    );
                }
                consume_from(&mut connection, channel, "short-lived", 0).await;
                receive_all(&mut connection, COUNT as usize).await;
                connection.nack(channel, 0, true, false);
                match exclusive {
                    true => connection.close().await.expect("close-ok"),
                    false => {
                        let deleted = connection.delete_queue(channel, "short-lived").await;
                        deleted.expect("delete-ok");
                    }
                }
                // The end of a connection takes its queues along after it was answered.
                until_count(&broker, "heir", COUNT as u32).await;
                assert_eq!(messages_in(&broker, "short-lived").await, None);
                assert!((0..COUNT).eq(take_numbers(&broker, "heir").await));
            }
        }
    });
}

/// One dead letter, several queues: each has it, after a crash too.
#[test]
fn dead_letter_exchange_may_lead_to_several_queues() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        for queue in ["heir 1", "heir 2", "heir 3"] {
            declare_durable(&mut connection, channel, queue).await;
            bind(&mut connection, channel, queue, "amq.fanout", "").await;
        }
        let arguments = FieldTable::new().with("x-dead-letter-exchange", "amq.fanout");
        declare_as(&mut connection, channel, "rich", &durable(arguments)).await;
        fill(&broker, "rich", 0..500, 200).await;
        consume_from(&mut connection, channel, "rich", 0).await;
        receive_all(&mut connection, 500).await;
        connection.nack(channel, 0, true, false);
        synchronize(&mut connection, channel).await;
        until_written_down().await;
        drop(connection);
        Ending::Killed.restart(&mut broker);
        assert_eq!(messages_in(&broker, "rich").await, Some(0));
        for queue in ["heir 1", "heir 2", "heir 3"] {
            assert!((0..500).eq(take_numbers(&broker, queue).await), "{queue}");
        }
    });
}

/// The end comes at any moment after the refusal: each message is in one of the two queues.
#[test]
fn killed_broker_has_each_message_in_exactly_one_queue() {
    const COUNT: u64 = 400;
    within(seconds(60), async {
        let mut broker = builder().start().expect("a broker");
        let mut random = Random::new(3);
        for round in 0..8_u64 {
            let (mut connection, channel) = open(&broker).await;
            declare_pair(&mut connection, channel, "either").await;
            fill(&broker, "either", 0..COUNT, 300).await;
            consume_from(&mut connection, channel, "either", 0).await;
            let out = receive_all(&mut connection, COUNT as usize).await;
            // In some rounds all at once, in others one by one.
            match round % 2 {
                0 => connection.nack(channel, 0, true, false),
                _ => out
                    .iter()
                    .for_each(|d| connection.nack(channel, d.tag, false, false)),
            }
            connection.flush().await.expect("sent");
            tokio::time::sleep(std::time::Duration::from_micros(random.below(20_000) as u64)).await;
            Ending::Killed.restart(&mut broker);
            drop(connection);
            let here = take_numbers(&broker, "either").await;
            let there = take_numbers(&broker, "either dead").await;
            assert!(here.is_sorted() && there.is_sorted(), "round {round}");
            let all: BTreeSet<u64> = here.iter().chain(&there).copied().collect();
            let (here, there) = (here.len(), there.len());
            assert_eq!(
                here + there,
                COUNT as usize,
                "round {round}: {here} and {there}"
            );
            assert!((0..COUNT).eq(all), "round {round}");
        }
    });
}

/// The same with messages that lie in segments, and dead letters of other reasons.
#[test]
fn killed_broker_has_each_message_of_a_backlog_in_exactly_one_queue() {
    const COUNT: u64 = 5_000;
    within(seconds(60), async {
        let mut broker = with_little_memory().start().expect("a broker");
        for round in 0..3_u64 {
            let (mut connection, channel) = open(&broker).await;
            declare_durable(&mut connection, channel, "backlog dead").await;
            let arguments = dead_letters_to("backlog dead").with("x-message-ttl", 2_500);
            declare_as(&mut connection, channel, "backlog", &durable(arguments)).await;
            let began = std::time::Instant::now();
            fill(&broker, "backlog", 0..COUNT, 1_000).await;
            let size = size_of(&broker.data_dir().join("queues"));
            assert!(size > 2_000_000, "only {size} bytes are in segments");
            let until = millis(2_520 + 40 * round);
            tokio::time::sleep(until.saturating_sub(began.elapsed())).await;
            Ending::Killed.restart(&mut broker);
            drop(connection);
            eventually("all are dead", seconds(10), async || {
                messages_in(&broker, "backlog").await == Some(0)
            })
            .await;
            eventually("all are there", seconds(10), async || {
                messages_in(&broker, "backlog dead").await >= Some(COUNT as u32)
            })
            .await;
            let there = take_numbers(&broker, "backlog dead").await;
            assert!((0..COUNT).eq(there), "round {round}");
        }
    });
}

/// Arguments of a queue that keeps its dead letters until another one has them.
fn at_least_once(target: &str) -> FieldTable {
    dead_letters_to(target)
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish")
}

async fn until_count(broker: &Broker, queue: &str, count: u32) {
    eventually(&format!("{queue} has {count}"), seconds(5), async || {
        messages_in(broker, queue).await == Some(count)
    })
    .await;
}

#[test]
fn at_least_once_waits_for_its_target() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let options = quorum(at_least_once("once later"));
        declare_as(&mut connection, channel, "once", &options).await;
        fill(&broker, "once", 0..50, 100).await;
        consume_from(&mut connection, channel, "once", 0).await;
        receive_all(&mut connection, 50).await;
        connection.nack(channel, 40, true, false);
        connection.nack(channel, 0, true, true);
        // Nobody gets what is dead.
        let again = receive_all(&mut connection, 10).await;
        let again: Vec<u64> = again.iter().map(Received::number).collect();
        assert!((40..50).eq(again));
        assert_quiet(&mut connection).await;
        assert_eq!(messages_in(&broker, "once").await, Some(0));
        tokio::time::sleep(millis(700)).await;
        declare_durable(&mut connection, channel, "once later").await;
        until_count(&broker, "once later", 40).await;
        assert!((0..40).eq(take_numbers(&broker, "once later").await));
    });
}

#[test]
fn at_least_once_waits_for_room() {
    within(seconds(20), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let full = FieldTable::new()
            .with("x-max-length", 3)
            .with("x-overflow", "reject-publish");
        declare_as(&mut connection, channel, "room dead", &durable(full)).await;
        let options = quorum(at_least_once("room dead"));
        declare_as(&mut connection, channel, "room", &options).await;
        fill(&broker, "room", 0..10, 100).await;
        let (mut consumer, consuming) = open(&broker).await;
        consume_from(&mut consumer, consuming, "room", 0).await;
        receive_all(&mut consumer, 10).await;
        consumer.nack(consuming, 0, true, false);
        synchronize(&mut consumer, consuming).await;
        until_count(&broker, "room dead", 3).await;
        tokio::time::sleep(millis(700)).await;
        assert_eq!(messages_in(&broker, "room dead").await, Some(3));
        for number in 0..10 {
            let mut found = None;
            eventually("the next one", seconds(3), async || {
                found = get(&mut connection, channel, "room dead", true).await;
                found.is_some()
            })
            .await;
            let found = found.expect("just found");
            assert_eq!(support::number(&found.body), number);
        }
        tokio::time::sleep(millis(700)).await;
        assert_eq!(messages_in(&broker, "room dead").await, Some(0));
    });
}

/// What waits for its target is not lost with the process.
#[test]
fn at_least_once_survives_a_restart() {
    within(seconds(40), async {
        for ending in Ending::BOTH {
            let mut broker = builder().start().expect("a broker");
            let (mut connection, channel) = open(&broker).await;
            let options = quorum(at_least_once("survived dead"));
            declare_as(&mut connection, channel, "survived", &options).await;
            fill(&broker, "survived", 0..20, 100).await;
            for _ in 0..15 {
                let got = get(&mut connection, channel, "survived", false).await;
                assert!(got.is_some());
            }
            connection.nack(channel, 0, true, false);
            synchronize(&mut connection, channel).await;
            until_written_down().await;
            connection.close().await.expect("close-ok");
            ending.restart(&mut broker);
            let (mut connection, channel) = open(&broker).await;
            declare_durable(&mut connection, channel, "survived dead").await;
            // They may be alive again, or still dead: all are somewhere, once.
            eventually("all are somewhere", seconds(5), async || {
                let alive = messages_in(&broker, "survived").await;
                let dead = messages_in(&broker, "survived dead").await;
                alive.unwrap_or(0) + dead.unwrap_or(0) == 20
            })
            .await;
            let mut all = take_numbers(&broker, "survived").await;
            all.extend(take_numbers(&broker, "survived dead").await);
            all.sort_unstable();
            assert!((0..20).eq(all), "{ending:?}");
            connection.close().await.expect("close-ok");
            broker.stop().expect("exit status 0");
        }
    });
}

/// Dead letters that wait for long, in a queue that meanwhile moves to disk: whoever reads it from
/// there must not take them for messages.
#[test]
fn dead_letters_that_wait_do_not_come_back_from_segments() {
    const COUNT: u64 = 6_000;
    within(seconds(60), async {
        let broker = with_little_memory().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let options = quorum(at_least_once("late dead"));
        declare_as(&mut connection, channel, "late", &options).await;
        let mut publisher = Publisher::open(&broker).await;
        let mut publish = async |numbers: std::ops::Range<u64>| {
            for number in numbers {
                let persistent = PropertiesBuilder::default().delivery_mode(2);
                let properties = match number % 3 == 1 && number < 900 {
                    true => persistent.text(client::Property::Expiration, "1"),
                    false => persistent,
                };
                publisher.publish("", "late", &properties.finish(), &numbered(number, 1_000));
            }
            publisher.all_confirmed().await;
        };
        // All of them in memory when a third dies; then the rest moves all to disk.
        publish(0..900).await;
        until_count(&broker, "late", 600).await;
        publish(900..COUNT).await;
        let count = COUNT as u32 - 300;
        assert_eq!(messages_in(&broker, "late").await, Some(count));
        let size = size_of(&broker.data_dir().join("queues"));
        assert!(size > 3_000_000, "only {size} bytes are in segments");
        let alive = take_numbers(&broker, "late").await;
        assert!(
            (0..COUNT).filter(|n| n % 3 != 1 || *n >= 900).eq(alive),
            "the dead came back, or others did not"
        );
        assert_eq!(messages_in(&broker, "late").await, Some(0));
        declare_durable(&mut connection, channel, "late dead").await;
        until_count(&broker, "late dead", 300).await;
        let dead = take_numbers(&broker, "late dead").await;
        assert!((0..300).map(|n| 3 * n + 1).eq(dead));
    });
}

/// A queue that is deleted or purged with dead letters waiting.
#[test]
fn purge_leaves_waiting_dead_letters_and_delete_takes_them_along() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        for queue in ["purged", "deleted"] {
            let options = quorum(at_least_once(&format!("{queue} dead")));
            declare_as(&mut connection, channel, queue, &options).await;
            fill(&broker, queue, 0..20, 100).await;
            for _ in 0..10 {
                assert!(get(&mut connection, channel, queue, false).await.is_some());
            }
            connection.nack(channel, 0, true, false);
            synchronize(&mut connection, channel).await;
        }
        let purged = connection.purge(channel, "purged").await;
        assert_eq!(purged.expect("purge-ok"), 10);
        let deleted = connection.delete_queue(channel, "deleted").await;
        assert_eq!(deleted.expect("delete-ok"), 10);
        for queue in ["purged dead", "deleted dead"] {
            declare_durable(&mut connection, channel, queue).await;
        }
        until_count(&broker, "purged dead", 10).await;
        assert!((0..10).eq(take_numbers(&broker, "purged dead").await));
        tokio::time::sleep(millis(700)).await;
        assert_eq!(messages_in(&broker, "deleted dead").await, Some(0));
        assert_healthy(&broker).await;
    });
}

/// Without the strategy a target that refuses is no reason to wait.
#[test]
fn at_most_once_drops_what_its_target_refuses() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let full = FieldTable::new()
            .with("x-max-length", 3)
            .with("x-overflow", "reject-publish");
        declare_as(&mut connection, channel, "most dead", &durable(full)).await;
        let options = durable(dead_letters_to("most dead"));
        declare_as(&mut connection, channel, "most", &options).await;
        fill(&broker, "most", 0..10, 100).await;
        for _ in 0..10 {
            assert!(get(&mut connection, channel, "most", false).await.is_some());
        }
        connection.nack(channel, 0, true, false);
        synchronize(&mut connection, channel).await;
        assert_eq!(messages_in(&broker, "most").await, Some(0));
        assert!((0..3).eq(take_numbers(&broker, "most dead").await));
        tokio::time::sleep(millis(700)).await;
        assert_eq!(messages_in(&broker, "most dead").await, Some(0));
    });
}
