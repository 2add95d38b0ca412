//! A broker that is short of memory.

use crate::load::start;
use crate::support::*;

/// Memory that messages may take before the alarm rings.
const ROOM: u64 = 30 << 20;

#[test]
fn a_broker_that_blocks_is_noted_and_the_load_goes_on_afterwards() {
    within(seconds(40), async {
        let at_start = builder().start().expect("a broker").rss();
        let watermark = at_start.expect("its memory") + ROOM;
        let broker = builder()
            .config(format!("vm_memory_high_watermark.absolute = {watermark}"))
            .start()
            .expect("a broker");
        let words = "-y 0 -u heap -ad false -s 16384 -C 8000 -st 20";
        let load = start(broker.uri(), words);
        load.err
            .says("the broker blocks producers: low on memory")
            .await;
        let (mut connection, channel) = open(&broker).await;
        let ended = {
            let mut ended = std::pin::pin!(load.end());
            loop {
                connection.purge(channel, "heap").await.expect("purge-ok");
                let end = tokio::time::timeout(millis(50), ended.as_mut()).await;
                if let Ok(ended) = end {
                    break ended;
                }
            }
        };
        assert_eq!((ended.code(), ended.total("sent")), (0, 8_000));
        assert!(ended.err.contains("the broker no longer blocks producers"));
        assert!(ended.run().get("error").is_none());
    });
}
