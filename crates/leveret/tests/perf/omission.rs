//! A broker that stands still is seen in the latencies of all messages that it kept from being sent
//! in time, not of the one that it kept waiting.

use std::time::Instant;

use serde_json::Value;

use crate::load::run;
use crate::scripted::{self, Happening};
use crate::support::*;

fn longer_than(latency: &Value, nanos: u64) -> u64 {
    let counts = latency["counts"].as_array().expect("counts");
    let pairs = counts.iter().map(|pair| {
        let number = |at: usize| pair[at].as_u64().expect("a number");
        (number(0), number(1))
    });
    pairs
        .filter(|(value, _)| *value > nanos)
        .map(|(_, count)| count)
        .sum()
}

#[test]
fn a_pause_of_the_broker_delays_every_message_that_was_due_in_it() {
    within(seconds(30), async {
        let uri = scripted::start(|link, happening| {
            if let Happening::Published { channel, number } = happening {
                if number == 20 {
                    std::thread::sleep(seconds(1));
                }
                link.ack(channel, number, false);
            }
        });
        let words = "-y 0 -e amq.default -k q -r 100 -prsd 0 -c 1 -C 150";
        let began = Instant::now();
        let ended = run(&uri, words).await.well();
        assert!(began.elapsed() >= millis(1_490));
        assert_eq!(ended.total("confirmed"), 150);
        let latency = &ended.run()["confirm_latency"];
        assert_eq!(latency["count"], 150);
        let max = latency["max_ns"].as_u64().expect("a time");
        assert!(max >= 1_000_000_000, "{max}");
        // A hundred are due in that second, each 10 ms later than the one before.
        for (millis, count) in [(100, 90), (500, 50), (900, 10)] {
            let longer = longer_than(latency, millis * 1_000_000);
            assert!(longer >= count, "{longer} took longer than {millis} ms");
        }
        let median = latency["p50_ns"].as_u64().expect("a time");
        assert!(median >= 200_000_000, "{median}");
    });
}

#[test]
fn messages_that_wait_for_a_window_keep_the_time_at_which_they_were_due() {
    within(seconds(30), async {
        let broker = shared();
        // Two consumers' worth of work for one.
        let words = "-r 100 -prsd 0 -C 100 -D 100 -q 1 -L 20000";
        let ended = run(broker.uri(), words).await.well();
        let latency = &ended.run()["consumer_latency"];
        let max = latency["max_ns"].as_u64().expect("a time");
        assert!(max >= 900_000_000, "{max}");
        assert!(longer_than(latency, 400_000_000) >= 50);
    });
}
