//! How messages are taken, acknowledged, refused, and how fast.

use std::time::Duration;

use client::Method;
use testkit::Broker;

use crate::load::{Ended, run, start};
use crate::queues::*;
use crate::support::*;
use crate::wire::Wire;

/// Puts messages into a queue that stays.
async fn fill(broker: &Broker, queue: &str, count: u32) {
    let words = format!("-y 0 -u {queue} -ad false -s 16 -c 100 -C {count}");
    run(broker.uri(), &words).await.well();
}

/// Only consumes.
async fn consume(uri: &str, queue: &str, words: &str) -> Ended {
    let words = format!("-x 0 -u {queue} -ad false -s 16 {words}");
    run(uri, &words).await.well()
}

/// Delivery tags of acknowledgements, and whether they stand for all before.
fn acks(wire: &Wire) -> Vec<(u64, bool)> {
    wire.all(|method| match method {
        Method::BasicAck(ack) => Some((ack.delivery_tag, ack.multiple)),
        _ => None,
    })
}

#[test]
fn by_default_each_message_is_acknowledged_by_itself() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "each", 5).await;
        let ended = consume(&wire.uri(), "each", "-D 5").await;
        assert_eq!(ended.total("received"), 5);
        assert_eq!(acks(&wire), [1, 2, 3, 4, 5].map(|tag| (tag, false)));
        assert_eq!(ready(&broker, "each").await, Some(0));
    });
}

#[test]
fn with_autoack_nothing_is_acknowledged() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "auto", 5).await;
        let ended = consume(&wire.uri(), "auto", "-a -D 5").await;
        assert_eq!(ended.total("received"), 5);
        let no_ack = wire.all(|method| match method {
            Method::BasicConsume(consume) => Some(consume.no_ack),
            _ => None,
        });
        assert_eq!((no_ack, acks(&wire)), (vec![true], vec![]));
        assert_eq!(ready(&broker, "auto").await, Some(0));
    });
}

#[test]
fn several_messages_may_be_acknowledged_together() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "together", 10).await;
        consume(&wire.uri(), "together", "-A 5 -D 10").await;
        assert_eq!(acks(&wire), [(5, true), (10, true)]);
        assert_eq!(ready(&broker, "together").await, Some(0));
    });
}

#[test]
fn a_limit_ends_it_and_the_rest_stays() {
    within(seconds(30), async {
        let broker = shared();
        fill(&broker, "some", 20).await;
        let ended = consume(broker.uri(), "some", "-D 7").await;
        assert_eq!(ended.total("received"), 7);
        let left = take(&broker, "some").await;
        let numbers: Vec<u32> = left.iter().map(|m| sequence(&m.body)).collect();
        assert_eq!(numbers, (7..20).collect::<Vec<u32>>());
    });
}

#[test]
fn no_more_is_outstanding_than_the_prefetch() {
    within(seconds(30), async {
        let broker = shared();
        for (words, left) in [("-q 5", 15), ("-Q 4 -Y 2", 12)] {
            fill(&broker, "held", 20).await;
            // The first message takes longer than the test.
            let words = format!("-x 0 -u held -ad false -L 100000000 {words}");
            let load = start(broker.uri(), &words);
            eventually("the prefetch", seconds(20), async || {
                ready(&broker, "held").await == Some(left)
            })
            .await;
            tokio::time::sleep(millis(200)).await;
            assert_eq!(ready(&broker, "held").await, Some(left));
            load.interrupt();
            load.end().await.well();
            assert_eq!(take(&broker, "held").await.len(), 20);
        }
    });
}

#[test]
fn consumer_transactions_hold_exactly_that_many_acknowledgements() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "acked", 10).await;
        consume(&wire.uri(), "acked", "-n 5 -D 10").await;
        let settling: Vec<&str> = wire
            .names()
            .into_iter()
            .filter(|name| ["tx.select", "basic.ack", "tx.commit"].contains(name))
            .collect();
        let five = ["basic.ack"; 5];
        let mut expected = vec!["tx.select"];
        for _ in 0..2 {
            expected.extend(five);
            expected.push("tx.commit");
        }
        assert_eq!(settling, expected);
        assert_eq!(ready(&broker, "acked").await, Some(0));
    });
}

#[test]
fn rejected_messages_are_dropped_if_they_are_not_requeued() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "dropped", 10).await;
        let ended = consume(&wire.uri(), "dropped", "-na -re false -D 10").await;
        assert_eq!(
            (ended.total("received"), ended.check("redelivered")),
            (10, 0)
        );
        assert_eq!((wire.count("basic.nack"), acks(&wire)), (10, vec![]));
        assert_eq!(ready(&broker, "dropped").await, Some(0));
    });
}

#[test]
fn rejected_messages_come_again_by_default() {
    within(seconds(30), async {
        let broker = shared();
        fill(&broker, "again", 1).await;
        let ended = consume(broker.uri(), "again", "-na -D 50").await;
        assert_eq!(ended.total("received"), 50);
        assert!(ended.check("redelivered") >= 49);
        // Neither are they doubled.
        assert_eq!(ended.faults(), [0, 0, 0]);
        assert_eq!(ready(&broker, "again").await, Some(1));
    });
}

#[test]
fn polling_asks_for_each_message() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "polled", 5).await;
        let ended = consume(&wire.uri(), "polled", "-po -D 5").await;
        assert_eq!(ended.total("received"), 5);
        assert_eq!(
            (wire.count("basic.consume"), wire.count("basic.get")),
            (0, 5)
        );
        assert_eq!(acks(&wire).len(), 5);
        assert_eq!(ready(&broker, "polled").await, Some(0));
    });
}

#[test]
fn polling_pauses_and_meets_empty_queues() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let words = "-u asked-a,asked-b -po -pi 100 -a -C 4 -D 8 -s 16";
        let ended = run(&wire.uri(), words).await.well();
        assert_eq!(ended.faults(), [0, 0, 0]);
        let asked: Vec<_> = wire
            .said()
            .into_iter()
            .filter(|said| said.method().name() == "basic.get")
            .collect();
        assert!(asked.len() >= 8);
        let took = asked[7].at - asked[0].at;
        assert!(took >= millis(500), "{took:?}");
        for queue in ["asked-a", "asked-b"] {
            assert_eq!(ready(&broker, queue).await, Some(0));
        }
    });
}

#[test]
fn each_message_takes_as_long_as_it_is_told_to() {
    within(seconds(30), async {
        let broker = shared();
        fill(&broker, "slow", 20).await;
        let ended = consume(broker.uri(), "slow", "-L 50000 -D 20").await;
        let took = ended.run()["totals"]["seconds"].as_f64().expect("a time");
        assert!((0.99..10.0).contains(&took), "{took}");
        assert_eq!(ready(&broker, "slow").await, Some(0));
    });
}

#[test]
fn a_consumer_rate_is_not_exceeded() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        fill(&broker, "paced", 21).await;
        consume(&wire.uri(), "paced", "-R 20 -D 21").await;
        let said = wire.said();
        let acks = said.iter().filter(|it| it.method().name() == "basic.ack");
        let times: Vec<_> = acks.map(|said| said.at).collect();
        assert_eq!(times.len(), 21);
        let took = times[20] - times[0];
        assert!((millis(700)..seconds(10)).contains(&took), "{took:?}");
    });
}

#[test]
fn consumers_end_when_their_queue_is_empty() {
    within(seconds(30), async {
        let broker = shared();
        fill(&broker, "emptied", 30).await;
        let ended = consume(broker.uri(), "emptied", "-y 2 -ew empty").await;
        assert_eq!(ended.total("received"), 30);
        assert_eq!(ended.stopped("Consumer queue(s) empty"), 2);
    });
}

/// What `-A` has left over is acknowledged then.
#[test]
fn consumers_end_when_nothing_comes() {
    within(seconds(30), async {
        let broker = shared();
        fill(&broker, "idle", 32).await;
        let ended = consume(broker.uri(), "idle", "-A 5 -ew idle").await;
        assert_eq!(ended.total("received"), 32);
        assert_eq!(ended.stopped("Consumer is idle for more than 1 second"), 1);
        assert_eq!(ready(&broker, "idle").await, Some(0));
    });
}

/// When each consumer began, from the first declaration of a queue on.
fn starts(wire: &Wire) -> Vec<Duration> {
    let said = wire.said();
    let named = |name: &'static str| said.iter().filter(move |it| it.method().name() == name);
    let declared = named("queue.declare").map(|said| said.at).min();
    let declared = declared.expect("a queue");
    let consumed = named("basic.consume").map(|said| said.at - declared);
    consumed.collect()
}

#[test]
fn consumers_may_start_late() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        run(&wire.uri(), "-csd 1 -C 10 -D 10 -u later -ad false")
            .await
            .well();
        let starts = starts(&wire);
        assert!(starts[0] >= seconds(1), "{starts:?}");
        assert_eq!(ready(&broker, "later").await, Some(0));
    });
}

#[test]
fn a_slow_start_begins_one_consumer_a_second() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        run(&wire.uri(), "-S -y 3 -r 20 -z 3").await.well();
        let starts = starts(&wire);
        assert_eq!(starts.len(), 3);
        assert!(
            starts[1] >= seconds(1) && starts[2] >= seconds(2),
            "{starts:?}"
        );
    });
}

/// The broker would take it for dead.
#[test]
fn a_consumer_that_starts_late_shows_that_it_lives() {
    within(seconds(30), async {
        let broker = shared();
        run(broker.uri(), "-b 1 -csd 4 -C 5 -D 5").await.well();
    });
}

/// A producer that is done waits for consumers, for longer than heartbeats are apart.
#[test]
fn a_producer_that_is_done_shows_that_it_lives() {
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        let words = "-b 1 -C 20 -D 20 -L 250000 -q 1";
        run(broker.uri(), words).await.well();
        let log = broker.log();
        assert!(!log.contains("heartbeat"), "{log}");
    });
}

#[test]
fn a_queue_that_is_deleted_ends_the_run() {
    within(seconds(30), async {
        let broker = shared();
        let load = start(broker.uri(), "-u deleted -r 50");
        load.out.says("received").await;
        let (mut connection, channel) = open(&broker).await;
        let deleted = connection.delete_queue(channel, "deleted").await;
        deleted.expect("delete-ok");
        let ended = load.end().await;
        let line = ended.failed(1);
        assert!(line.contains("queue 'deleted'"), "{line}");
    });
}
