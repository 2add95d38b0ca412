//! Starting, stopping and crashing, with shell scripts in the broker's place.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::{Broker, Error};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/brokers")
        .join(name)
}

#[test]
fn broker_is_found_measured_and_stopped() {
    let broker = Broker::start(script("obedient.sh")).expect("a started script");
    assert_eq!(broker.uri(), "amqp://127.0.0.1:0");
    assert!(broker.rss().expect("a live process") > 0);
    broker.cpu().expect("a live process");
    assert!(broker.start_time().as_nanos() > 0);
    broker.stop().expect("exit status 0");
}

#[test]
fn restarts_keep_address_and_data() {
    let builder = Broker::builder(script("obedient.sh")).config("heartbeat = 1");
    let mut broker = builder
        .listener("127.0.0.1:7")
        .start()
        .expect("a started script");
    let first = broker.pid();
    broker.restart().expect("an orderly restart");
    broker.crash_and_restart().expect("a restart after a crash");
    assert_ne!(broker.pid(), first);
    assert_eq!(broker.uri(), "amqp://127.0.0.1:7");
    let starts = fs::read_to_string(broker.data_dir().join("starts")).expect("the script's file");
    assert_eq!(starts.lines().count(), 3);
}

#[test]
fn failures_show_what_the_broker_printed() {
    match Broker::start(script("failing.sh")) {
        Err(Error::EndedEarly { status, log }) => {
            assert_eq!(status.code(), Some(3));
            assert!(log.contains("cannot open the store"));
        }
        Err(other) => panic!("an early end expected, got {other}"),
        Ok(_) => panic!("the script must fail"),
    }
    let builder = Broker::builder(script("obedient.sh")).environment("BROKER_STATUS", "4");
    let failed = builder.start().expect("a started script").stop();
    assert!(matches!(failed, Err(Error::Failed { log, .. }) if log.contains("bye")));
}

#[test]
fn missing_program_is_named() {
    let error = Broker::start("/nowhere/leveret")
        .err()
        .expect("no such program");
    assert!(error.to_string().contains("/nowhere/leveret"));
}
