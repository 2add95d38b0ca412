mod support;
use client::method::{basic, channel};
use client::*;
use support::*;
#[test]
fn scratch() {
    within(seconds(60), async {
        let broker = builder().start().unwrap();
        let show = |what: String| {
            let t =
                std::fs::read_to_string(format!("/proc/{}/smaps_rollup", broker.pid())).unwrap();
            let f = |k: &str| {
                t.lines()
                    .find(|l| l.starts_with(k))
                    .unwrap()
                    .split_whitespace()
                    .nth(1)
                    .unwrap()
                    .parse::<u64>()
                    .unwrap()
                    / 1024
            };
            println!("{what}: rss {} anonhuge {}", f("Rss:"), f("AnonHugePages:"));
        };
        show("start".into());
        let o = options(&broker);
        let mut client = RawConnection::open(&o).await.unwrap();
        client.handshake(&o).await.unwrap();
        for c in 1..=500 {
            client.send(c, channel::Open::default());
        }
        for _ in 1..=500 {
            client.next_method().await.unwrap();
        }
        show("channels".into());
        let header_only = std::env::var("HEADER").is_ok();
        for c in 1..=500u16 {
            let routing_key = ShortStr::truncated("nowhere");
            client.send(
                c,
                basic::Publish {
                    routing_key,
                    ..Default::default()
                },
            );
            let mut header = vec![0, 60, 0, 0];
            header.extend_from_slice(&(128u64 << 20).to_be_bytes());
            header.extend_from_slice(&[0, 0]);
            client.send_frame(2, c, &header);
            if !header_only {
                client.send_frame(3, c, b"the first of many bytes");
            }
            if c % 100 == 0 {
                client.flush().await;
                tokio::time::sleep(millis(50)).await;
                show(format!("{c}"));
            }
        }
    });
}
