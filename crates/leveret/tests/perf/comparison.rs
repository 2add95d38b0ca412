//! `--against`: the same load on two brokers in turn.

use serde_json::Value;

use crate::load::{run, start};
use crate::support::*;

#[test]
fn two_brokers_are_loaded_by_turns() {
    within(seconds(40), async {
        let (one, other) = (shared(), builder().start().expect("a broker"));
        let words = format!(
            "--against {} --rounds 2 -d turns -C 200 -D 200 -s 16",
            other.uri()
        );
        let ended = run(one.uri(), &words).await.well();
        let of = |run: &Value| {
            let address = run["broker"]["address"].as_str().expect("an address");
            (address.to_owned(), run["round"].as_u64().expect("a round"))
        };
        let runs: Vec<(String, u64)> = ended.runs().iter().map(of).collect();
        let (a, b) = (options(&one).address(), options(&other).address());
        assert_eq!(runs, [(a.clone(), 1), (b.clone(), 1), (a, 2), (b, 2)]);
        for (run, broker) in ended.runs().iter().zip([&*one, &other].iter().cycle()) {
            assert_eq!(run["totals"]["received"], 200);
            assert_eq!(run["broker"]["pid"], broker.pid());
        }
        assert!(ended.out.contains("B/A"), "{}", ended.out);
    });
}

#[test]
fn a_comparison_that_is_interrupted_keeps_what_it_has() {
    within(seconds(40), async {
        let (one, other) = (shared(), builder().start().expect("a broker"));
        let words = format!("--against {} --rounds 3 -r 50 -z 1", other.uri());
        let load = start(one.uri(), &words);
        load.out.says("msg/s").await;
        tokio::time::sleep(millis(300)).await;
        load.interrupt();
        let ended = load.end().await.well();
        let runs = ended.runs().len();
        assert!((2..6).contains(&runs), "{runs}");
        assert_eq!(ended.runs()[runs - 1]["stopped"]["Interrupted"], 1);
    });
}

#[test]
fn a_broker_that_fails_fails_the_comparison_and_the_other_is_still_measured() {
    within(seconds(40), async {
        let one = shared();
        let words = "--against amqp://127.0.0.1:1 --rounds 2 -C 50 -D 50";
        let ended = run(one.uri(), words).await;
        assert!(ended.failed(1).contains("cannot reach 127.0.0.1:1"));
        let errors = ended.runs().iter().map(|run| run.get("error").is_some());
        assert_eq!(errors.collect::<Vec<bool>>(), [false, true, false, true]);
    });
}
