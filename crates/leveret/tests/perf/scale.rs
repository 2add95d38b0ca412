//! Many channels, many connections.

use crate::load::run;
use crate::support::*;

#[test]
fn five_hundred_channels_of_one_connection() {
    within(seconds(40), async {
        let broker = shared();
        let queues = "-qp channel-%03d -qpf 1 -qpt 500";
        let words = format!("-X 500 -Y 500 {queues} -C 6 -s 16 --verify");
        let ended = run(broker.uri(), &words).await.well();
        assert_eq!(ended.check("checked"), 3_000);
        assert_eq!(ended.total("sent"), 3_000);
        assert_eq!(ended.stopped("Producer reached message limit"), 500);
    });
}

#[test]
fn a_thousand_connections() {
    // Two ends of each in two programs, and a timer of each.
    assert!(testkit::raise_open_files(4_096) >= 4_096, "too few files");
    within(seconds(40), async {
        let broker = builder().start().expect("a broker");
        let queues = "-qp connection-%03d -qpf 1 -qpt 500";
        let words = format!("-x 500 -y 500 {queues} -r 5 -C 8 -s 16 --verify");
        let ended = run(broker.uri(), &words).await.well();
        assert_eq!(ended.check("checked"), 4_000);
        assert_eq!(ended.stopped("Producer reached message limit"), 500);
    });
}
