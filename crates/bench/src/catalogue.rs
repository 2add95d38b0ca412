//! Every case, in the order in which they are measured.

use crate::case::{Bars, Case, Kind, Reliable, Stream};

/// W3's unit, as RabbitMQ's PerfTest has it with `-c 1000 -f persistent`.
pub const W3: Stream = Stream {
    pairs: 1,
    body: 1024,
    reliable: Some(Reliable {
        window: 1_000,
        prefetch: 1_000,
    }),
    durable: true,
    in_flight: 20_000,
    bars: Bars::W3,
};

pub fn all() -> Vec<Case> {
    let case = |name, about, kind| Case {
        name,
        about,
        kind,
        seasoned: false,
    };
    let ping_pong = |name, about, channels| case(name, about, Kind::PingPong { channels });
    let mut cases = vec![case(
        "start",
        "time to start and memory when idle",
        Kind::Start,
    )];
    cases.extend(transient_streams());
    cases.extend(durable());
    cases.extend(queue_features());
    cases.extend([
        ping_pong("w2-1", "ping-pong, 1 channel", 1),
        ping_pong("w2-10", "ping-pong, 10 channels of one connection", 10),
        ping_pong("w2-50", "ping-pong, 50 channels of one connection", 50),
        ping_pong("w2-500", "ping-pong, 500 channels of one connection", 500),
        case(
            "connections",
            "idle connections with one open channel each",
            Kind::Connections,
        ),
        case(
            "generator",
            "what `leveret perf` itself costs, 16 bytes, transient",
            Kind::Generator,
        ),
    ]);
    cases
}

fn transient_streams() -> [Case; 4] {
    let stream = |name, about, body, reliable| Case {
        name,
        about,
        kind: Kind::Stream(Stream {
            pairs: 1,
            body,
            reliable,
            durable: false,
            // Some 20 MiB at most: what a queue keeps in memory.
            in_flight: 50_000.min((20 << 20) / body as u64),
            bars: Bars::None,
        }),
        seasoned: false,
    };
    let reliable = Some(Reliable {
        window: 5_000,
        prefetch: 5_000,
    });
    [
        stream("16b", "16 bytes, transient, no acks", 16, None),
        stream("1k", "1 KiB, transient, no acks", 1024, None),
        stream(
            "16b-acks",
            "16 bytes, transient, acks and confirms",
            16,
            reliable,
        ),
        stream(
            "1k-acks",
            "1 KiB, transient, acks and confirms",
            1024,
            reliable,
        ),
    ]
}

fn durable() -> [Case; 7] {
    let seasoned = |name, about, kind| Case {
        name,
        about,
        kind,
        seasoned: true,
    };
    let parallel = Stream {
        pairs: 4,
        bars: Bars::Parallel,
        ..W3
    };
    [
        seasoned(
            "w3",
            "1 KiB, persistent, acks, at most 1,000 unconfirmed",
            Kind::Stream(W3),
        ),
        seasoned(
            "w3-4",
            "the same, four producers, queues and consumers",
            Kind::Stream(parallel),
        ),
        seasoned(
            "confirm",
            "one persistent message outstanding, beside a bare write and sync",
            Kind::Confirm,
        ),
        seasoned(
            "latency",
            "5,000 persistent messages a second",
            Kind::Latency,
        ),
        seasoned(
            "tx",
            "four clients, one persistent message a commit, beside a flow",
            Kind::Transactions,
        ),
        seasoned(
            "w1",
            "transactions of 500 to 20,000 persistent messages",
            Kind::W1,
        ),
        Case {
            name: "backlog",
            about: "filling a durable queue, restarting on it, emptying it",
            kind: Kind::Backlog,
            seasoned: false,
        },
    ]
}

fn queue_features() -> [Case; 5] {
    let case = |name, about, kind| Case {
        name,
        about,
        kind,
        seasoned: false,
    };
    [
        case(
            "topic",
            "routing by 10,000 bindings of a topic exchange, keys ever new",
            Kind::Topic,
        ),
        case(
            "unbind",
            "deleting a queue with 3,000 bindings, beside a publisher",
            Kind::Unbind,
        ),
        case(
            "queues",
            "100,000 durable queues: declaring them, memory, restart",
            Kind::ManyQueues,
        ),
        case(
            "ttl",
            "1,000,000 messages that expire, beside as many that are purged",
            Kind::Ttl,
        ),
        Case {
            seasoned: true,
            ..case(
                "sharded",
                "four producers on a sharded exchange, beside four plain queues",
                Kind::Sharded,
            )
        },
    ]
}

/// The cases as text.
pub fn list() -> String {
    let lines: Vec<String> = all()
        .iter()
        .map(|case| format!("{:<12} {}", case.name, case.about))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: HashSet<&str> = all().iter().map(|case| case.name).collect();
        assert_eq!(names.len(), all().len());
    }
}
