//! Loads that cannot run: one line, and which status.

use crate::load::{plainly, run, start_command};
use crate::support::*;

#[test]
fn nonsense_is_refused_before_anything_is_connected_to() {
    for (words, said) in [
        ("-x many", "-x"),
        ("--no-such-option", "--no-such-option"),
        ("-x 0 -y 0", "-y"),
        ("-x 0 --verify", "--verify"),
        ("-m 5 -c 5", "-m"),
        ("-s 5", "-s"),
        ("-qp q-%d", "-qp"),
        ("--against amqp://localhost", "--against"),
        ("-B /no/such/file", "/no/such/file"),
        ("-h http://localhost", "-h"),
    ] {
        let ended = plainly(words);
        let line = ended.failed(2);
        assert!(line.contains(said), "{words}: {line}");
        assert_eq!(ended.out, "", "{words}");
    }
}

#[test]
fn a_broker_that_is_not_there_is_named() {
    within(seconds(30), async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        drop(listener);
        let ended = run(&format!("amqp://{address}"), "-C 1").await;
        let line = ended.failed(1);
        assert!(line.contains(&format!("cannot reach {address}")), "{line}");
        // There is nothing to sum up.
        assert!(!ended.out.contains("test stopped"), "{}", ended.out);
        assert_eq!(ended.run()["error"], line);
    });
}

#[test]
fn a_broker_that_starts_later_is_waited_for() {
    within(seconds(30), async {
        let broker = builder().start().expect("a broker");
        let uri = broker.uri().to_owned();
        let address = options(&broker).address();
        broker.stop().expect("a clean end");
        let load = start_command(&format!("-h {uri} -sst 20 -C 5 -D 5"));
        tokio::time::sleep(millis(700)).await;
        let broker = builder().listener(address).start().expect("a broker");
        let ended = load.end().await.well();
        assert_eq!(ended.total("received"), 5);
        drop(broker);
    });
}

#[test]
fn an_exchange_of_another_type_is_an_error() {
    within(seconds(30), async {
        let broker = shared();
        let ended = run(broker.uri(), "-e amq.fanout -t direct -C 5 -D 5").await;
        // Those are not declared.
        assert_eq!(ended.well().total("received"), 5);
        run(broker.uri(), "-e typed -t fanout -C 1 -D 1")
            .await
            .well();
        let ended = run(broker.uri(), "-e typed -t topic -C 1 -D 1").await;
        let line = ended.failed(1);
        assert!(line.contains("406") && line.contains("typed"), "{line}");
    });
}

#[test]
fn a_queue_that_differs_is_an_error() {
    within(seconds(30), async {
        let broker = shared();
        run(broker.uri(), "-u differs -ad false -C 1 -D 1")
            .await
            .well();
        let ended = run(broker.uri(), "-u differs -f persistent -C 1 -D 1").await;
        let line = ended.failed(1);
        assert!(line.contains("406") && line.contains("differs"), "{line}");
    });
}
