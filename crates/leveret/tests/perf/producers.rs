//! How much, how fast, with which confirms and transactions.

use std::sync::{Arc, Mutex};

use client::Method;

use crate::load::run;
use crate::queues::*;
use crate::scripted::{self, Happening};
use crate::support::*;
use crate::wire::Wire;

const LIMIT_REACHED: &str = "Producer reached message limit";

#[test]
fn every_channel_publishes_its_limit_and_not_one_more() {
    within(seconds(30), async {
        let broker = shared();
        for words in ["", "-c 3", "-c 0", "-m 4", "-r 1000 -prsd 0"] {
            let words = format!("-x 2 -X 3 -C 50 -y 0 -u limited -ad false {words}");
            let ended = run(broker.uri(), &words).await.well();
            assert_eq!(ended.total("sent"), 300, "{words}");
            assert_eq!(ended.stopped(LIMIT_REACHED), 6, "{words}");
            assert_eq!(take(&broker, "limited").await.len(), 300, "{words}");
        }
    });
}

#[test]
fn both_sides_reach_their_limits() {
    within(seconds(30), async {
        let broker = shared();
        let ended = run(broker.uri(), "-x 2 -y 3 -C 200 -D 400").await.well();
        assert_eq!((ended.total("sent"), ended.total("received")), (400, 1_200));
        assert_eq!(ended.stopped(LIMIT_REACHED), 2);
        assert_eq!(ended.stopped("Consumer reached message limit"), 3);
    });
}

#[test]
fn a_rate_is_kept_by_each_channel() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-X 2 -r 250 -prsd 0 -y 0 -u steady -ad false -z 2";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(ended.stopped("Reached time limit"), 1);
        let took = ended.run()["totals"]["seconds"].as_f64().expect("a time");
        // Of each channel, the first is due at once.
        let most = 2.0 * (took * 250.0 + 1.0);
        let sent = ended.total("sent") as f64;
        assert!((850.0..=most).contains(&sent), "{sent} in {took} s");
        assert!(ready(&broker, "steady").await.map(f64::from) >= Some(sent));
    });
}

#[test]
fn a_variable_rate_pauses() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-vr 100:1 -vr 0:30 -prsd 0 -y 0 -e amq.default -k nowhere -z 2";
        let ended = run(broker.uri(), words).await.well();
        // The last one is due where the pause begins.
        assert!((100..=101).contains(&ended.total("sent")), "{ended:?}");
    });
}

#[test]
fn an_interval_sends_one_message_each_time() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-P 0.4 -prsd 0 -C 4 -y 0 -u spaced -ad false -c 10";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(ended.total("sent"), 4);
        let messages = take(&broker, "spaced").await;
        let times: Vec<i64> = messages.iter().map(|message| time(&message.body)).collect();
        let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [400_000_000; 3]);
    });
}

#[test]
fn confirms_are_counted() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-x 2 -c 10 -C 100 -y 0 -u sure -ad false";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(ended.total("confirmed"), 200);
        assert_eq!(ended.total("nacked"), 0);
        assert_eq!(ended.run()["confirm_latency"]["count"], 200);
    });
}

#[derive(Default)]
struct Window {
    unconfirmed: u64,
    most: u64,
}

/// Confirms only when the client waits.
#[test]
fn a_window_is_filled_and_never_exceeded() {
    within(seconds(30), async {
        let window = Arc::new(Mutex::new(Window::default()));
        let seen = window.clone();
        let uri = scripted::start(move |link, happening| {
            let mut window = window.lock().expect("no panic");
            match happening {
                Happening::Published { .. } => {
                    window.unconfirmed += 1;
                    window.most = window.most.max(window.unconfirmed);
                }
                Happening::Quiet => {
                    link.ack(1, 0, true);
                    window.unconfirmed = 0;
                }
            }
        });
        let words = "-y 0 -e amq.default -k q -c 7 -C 25";
        let ended = run(&uri, words).await.well();
        assert_eq!(ended.total("confirmed"), 25);
        assert_eq!(seen.lock().expect("no panic").most, 7);
    });
}

/// The place that a confirm out of order makes is used at once.
#[test]
fn confirms_may_come_in_any_order() {
    within(seconds(30), async {
        let most = Arc::new(Mutex::new(0));
        let seen = most.clone();
        let uri = scripted::start(move |link, happening| match happening {
            // The first of each three waits for a quiet moment.
            Happening::Published { channel, number } => {
                if number % 3 != 1 {
                    link.ack(channel, number, false);
                }
                *most.lock().expect("no panic") = number;
            }
            Happening::Quiet => link.ack(1, *most.lock().expect("no panic"), true),
        });
        let words = "-y 0 -e amq.default -k q -c 4 -C 30";
        let ended = run(&uri, words).await.well();
        assert_eq!((ended.total("confirmed"), ended.total("sent")), (30, 30));
        assert_eq!(*seen.lock().expect("no panic"), 30);
    });
}

#[test]
fn refused_messages_are_counted_apart() {
    within(seconds(30), async {
        let uri = scripted::start(|link, happening| match happening {
            Happening::Published { channel, number } if number % 10 == 0 => {
                // The last three together.
                link.nack(channel, number, true);
            }
            Happening::Published { channel, number } if number % 10 < 8 => {
                link.ack(channel, number, false);
            }
            _ => {}
        });
        let words = "-y 0 -e amq.default -k q -c 5 -C 50";
        let ended = run(&uri, words).await.well();
        assert_eq!((ended.total("confirmed"), ended.total("nacked")), (35, 15));
        assert_eq!(ended.run()["confirm_latency"]["count"], 35);
    });
}

#[test]
fn a_confirm_that_does_not_come_ends_the_run() {
    within(seconds(30), async {
        let uri = scripted::start(|link, happening| {
            if let Happening::Published { channel, number } = happening
                && number <= 5
            {
                link.ack(channel, number, false);
            }
        });
        let words = "-y 0 -e amq.default -k q -c 2 -ct 1";
        let ended = run(&uri, words).await;
        let address = uri.strip_prefix("amqp://").expect("a URI");
        let line = ended.failed(1);
        assert!(line.starts_with(&format!("no confirm from {address} within 1 s")));
        // The figures up to there are kept.
        assert_eq!((ended.total("sent"), ended.total("confirmed")), (7, 5));
        assert_eq!(ended.run()["error"], line);
    });
}

/// How many messages each commit was about.
fn commits(wire: &Wire) -> Vec<usize> {
    let mut commits = Vec::new();
    let mut open = 0;
    wire.all(|method| -> Option<()> {
        match method {
            Method::BasicPublish(_) => open += 1,
            Method::TxCommit(_) => commits.push(std::mem::take(&mut open)),
            _ => {}
        }
        None
    });
    assert_eq!(open, 0, "not committed");
    commits
}

#[test]
fn transactions_hold_exactly_that_many_messages_and_the_rest_is_committed() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let words = "-m 10 -C 25 -y 0 -u committed -ad false";
        run(&wire.uri(), words).await.well();
        assert_eq!(commits(&wire), [10, 10, 5]);
        assert_eq!(ready(&broker, "committed").await, Some(25));
    });
}

#[test]
fn a_transaction_that_is_open_when_time_is_up_is_committed() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let words = "-m 1000 -r 50 -prsd 0 -z 1 -y 0 -u late -ad false";
        run(&wire.uri(), words).await.well();
        let [committed] = commits(&wire)[..] else {
            panic!("one commit expected");
        };
        assert_eq!(take(&broker, "late").await.len(), committed);
        assert!(committed > 0);
    });
}

#[test]
fn mandatory_messages_that_come_back_are_counted() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-f mandatory -e amq.default -k nobody -y 0 -c 10 -C 100";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(
            (ended.total("returned"), ended.total("confirmed")),
            (100, 100)
        );
    });
}
