use std::time::Duration;

use client::{FieldTable, FieldValue, Mechanism, Options};
use serde_json::json;

use super::*;
use crate::settings::*;

mod all_options;
mod messages;

/// Arguments separated by spaces; `'` quotes one that holds some.
fn split(line: &str) -> Vec<String> {
    let mut quoted = false;
    let mut words = Vec::new();
    let mut word = None::<String>;
    for letter in line.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

fn read(line: &str) -> Result<Load, Error> {
    match parse(&split(line), &|_| None)? {
        Invocation::Load(load) => Ok(*load),
        Invocation::Print(text) => panic!("{line} prints {text}"),
    }
}

fn load(line: &str) -> Load {
    read(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The settings, with the id that every run has for itself taken out.
fn settings(line: &str) -> Settings {
    let mut settings = load(line).settings;
    settings.id = "test".into();
    settings
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn nothing_given_is_perf_test_s_default() {
    let load = load("");
    assert_eq!(settings(""), Settings::default());
    assert!(load.warnings.is_empty() && load.parameters.is_empty());
    assert_eq!(
        load.keep,
        Keep {
            rounds: 3,
            ..Keep::default()
        }
    );
    let id = load.settings.id;
    assert!(
        id.starts_with("test-") && id.len() == "test-HHmmss-SSS".len(),
        "{id}"
    );
}

#[test]
fn published_command_lines_mean_what_they_meant() {
    let shard = "-p -e myshard -u 'sharding: myshard - NODE - 0' -c 1000 -f persistent -x0 -y1";
    let read = settings(shard);
    assert_eq!(
        read.topology.queues,
        Queues::Shared(vec!["sharding: myshard - NODE - 0".into()])
    );
    assert_eq!((read.producers.count, read.consumers.count), (0, 1));
    assert!(read.topology.predeclared && read.topology.durable && read.producers.persistent);
    assert_eq!(read.producers.confirm, Some(1000));
    let read = settings("-p -e myshard -c 1000 -f persistent -x1 -y0 -K");
    assert_eq!(read.topology.exchange, "myshard");
    assert_eq!(read.topology.random_routing_key, Some(RandomKeys::Fresh));
    assert!(load(shard).warnings.is_empty());
    let read = settings("-x 1 -y 2 -u 'throughput-test-1' -a --id 'test 1' -s 4000 -z 30");
    assert_eq!(read.consumers.acks, Acks::Auto);
    assert_eq!(read.limits.time, Some(secs(30)));
    assert_eq!(read.payload.body, Body::Sized(4000));
}

#[test]
fn exchange_is_named_after_its_type() {
    for (line, name, kind) in [
        ("", "direct", "direct"),
        ("-t topic", "topic", "topic"),
        ("-t fanout -e", "fanout", "fanout"),
        ("-e -t fanout", "fanout", "fanout"),
        ("-e orders -t topic", "orders", "topic"),
        ("-e amq.default -k q", "", "direct"),
        ("-e '' -k q", "", "direct"),
        ("-e amq.topic", "amq.topic", "direct"),
    ] {
        let topology = settings(line).topology;
        assert_eq!(
            (&*topology.exchange, &*topology.exchange_type),
            (name, kind),
            "{line}"
        );
    }
}

#[test]
fn queues_are_shared_or_taken_in_turn() {
    let file = std::env::temp_dir().join(format!("leveret-perf-queues-{}", std::process::id()));
    std::fs::write(&file, "one\n  two \n\n").expect("a file");
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    for (line, queues) in [
        ("-u ''", Queues::ServerNamed),
        ("-u a", Queues::Shared(names(&["a"]))),
        ("-u a,b,", Queues::Shared(names(&["a", "b"]))),
        (
            "-qp q%02d -qpf 9 -qpt 11",
            Queues::InTurn(names(&["q09", "q10", "q11"])),
        ),
        ("-qp q -qpf 1 -qpt 1", Queues::InTurn(names(&["q"]))),
        (
            &format!("-qf {}", file.display()),
            Queues::InTurn(names(&["one", "two"])),
        ),
    ] {
        assert_eq!(settings(line).topology.queues, queues, "{line}");
    }
    std::fs::remove_file(file).expect("the file");
}

#[test]
fn queue_types_bring_their_arguments() {
    let quorum = settings("-qq");
    assert_eq!(
        quorum.topology.arguments,
        FieldTable::new().with("x-queue-type", "quorum")
    );
    assert!(quorum.topology.durable && quorum.producers.persistent);
    assert!(!quorum.topology.auto_delete);
    let stream = settings("-sq -ad true -ma PT10M30S -ll balanced -sco first");
    let expected = FieldTable::new()
        .with("x-queue-type", "stream")
        .with("x-max-length-bytes", 20_000_000_000i64)
        .with("x-stream-max-segment-size-bytes", 500_000_000i64)
        .with("x-max-age", "630s")
        .with("x-queue-leader-locator", "balanced");
    assert_eq!(stream.topology.arguments, expected);
    assert_eq!(stream.consumers.qos, 200);
    assert!(!stream.topology.auto_delete);
    assert_eq!(settings("-sq -q 10").consumers.qos, 10);
    let sizes = |line| {
        let table = settings(line).topology.arguments;
        let size = |name| table.get(name).and_then(FieldValue::as_i64);
        (
            size("x-max-length-bytes"),
            size("x-stream-max-segment-size-bytes"),
        )
    };
    assert_eq!(sizes("-mlb 1gb"), (Some(1_000_000_000), None));
    assert_eq!(sizes("-mlb 0 -qa x-max-length-bytes=5"), (None, None));
    assert_eq!(sizes("-sq -mlb 0"), (None, Some(500_000_000)));
    assert_eq!(
        sizes("-sq -qa x-max-length-bytes=5"),
        (Some(5), Some(500_000_000))
    );
    assert_eq!(
        sizes("-sq -mlb 30gb -smssb 1gb"),
        (Some(30_000_000_000), Some(1_000_000_000))
    );
}

#[test]
fn producers_are_as_asked() {
    let read = settings(
        "-x 3 -X 4 -r 0.5 -c 0 -ct 7 -C 9 -f persistent mandatory -prsd 0 -k key -rkcs 5 -sb -E \
         -ad false",
    );
    let expected = Producers {
        count: 3,
        channels: 4,
        rate: Rate::Fixed(0.5),
        confirm: Some(0),
        confirm_timeout: secs(7),
        transaction: None,
        persistent: true,
        mandatory: true,
        limit: Some(9),
        start_delay: Duration::ZERO,
    };
    assert_eq!(read.producers, expected);
    assert_eq!(read.topology.routing_key.as_deref(), Some("key"));
    assert_eq!(
        read.topology.random_routing_key,
        Some(RandomKeys::Cached(5))
    );
    assert!(read.topology.skip_binding && read.topology.exclusive && read.topology.durable);
    assert!(!read.topology.auto_delete);
    assert_eq!(settings("-c -1 -m 5").producers.transaction, Some(5));
    assert_eq!(settings("-C 0 -D 0 -m 0 -n 0 -z 0"), Settings::default());
}

#[test]
fn rates_spread_the_starts_over_a_second() {
    for (line, rate, delay) in [
        ("-r 100", Rate::Fixed(100.0), 1),
        ("-r -1", Rate::Unlimited, 0),
        ("-r 0", Rate::Unlimited, 1),
        ("-r 5 -prsd 9", Rate::Fixed(5.0), 9),
        ("-prsd 9", Rate::Unlimited, 9),
        ("-P 0.5", Rate::Every(Duration::from_millis(500)), 1),
        ("-P 0.1", Rate::Every(Duration::from_millis(100)), 1),
        (
            "-vr 100:60 -vr 0:5 7:1",
            Rate::Variable(vec![(100.0, secs(60)), (0.0, secs(5)), (7.0, secs(1))]),
            1,
        ),
    ] {
        let producers = settings(line).producers;
        assert_eq!(
            (producers.rate, producers.start_delay),
            (rate, secs(delay)),
            "{line}"
        );
    }
}

#[test]
fn consumers_are_as_asked() {
    let read = settings(
        "-y 3 -Y 4 -A 10 -q 10 -Q 20 -R 50 -vl 5:1 -vl 0:2 -D 9 -po -pi 3 -na -re false \
         -ca x-priority=10 -sco 77 -S -csd 2 -n 10",
    );
    let expected = Consumers {
        count: 3,
        channels: 4,
        acks: Acks::Every(10),
        nack: Some(false),
        qos: 10,
        global_qos: 20,
        rate: Some(50.0),
        latency: vec![
            (Duration::from_micros(5), secs(1)),
            (Duration::ZERO, secs(2)),
        ],
        transaction: Some(10),
        limit: Some(9),
        polling: Some(Duration::from_millis(3)),
        arguments: FieldTable::new()
            .with("x-priority", 10i64)
            .with("x-stream-offset", 77i64),
        slow_start: true,
        start_delay: secs(2),
    };
    assert_eq!(read.consumers, expected);
    assert_eq!(settings("-na").consumers.nack, Some(true));
    assert_eq!(settings("-a -A 5").consumers.acks, Acks::Auto);
    let [(latency, _)] = settings("-L 1500").consumers.latency[..] else {
        panic!("one latency")
    };
    assert_eq!(latency, Duration::from_micros(1500));
    let offset = |line| {
        settings(line)
            .consumers
            .arguments
            .get("x-stream-offset")
            .cloned()
    };
    assert_eq!(
        offset("-sco 2022-06-03T07:45:54Z"),
        Some(FieldValue::Timestamp(1_654_242_354))
    );
    assert_eq!(offset("-sco LAST"), Some(FieldValue::from("last")));
}

#[test]
fn bodies_and_properties_are_as_asked() {
    let file = std::env::temp_dir().join(format!("leveret-perf-body-{}", std::process::id()));
    std::fs::write(&file, "hello").expect("a file");
    let shown = file.display();
    for (line, body, content_type) in [
        ("-s 12", Body::Sized(12), None),
        ("-T text/plain", Body::Sized(12), Some("text/plain")),
        (
            "-vs 100:1 200:2",
            Body::Varying(vec![(100, secs(1)), (200, secs(2))]),
            None,
        ),
        (
            &format!("-B {shown},{shown} -s 4"),
            Body::Files(vec![b"hello".to_vec(), b"hello".to_vec()]),
            None,
        ),
        (
            "-jb -s 4 -bfc 10 -bc 2",
            Body::Json {
                size: 4,
                fields: 10,
                bodies: 2,
            },
            Some("application/json"),
        ),
    ] {
        let payload = settings(line).payload;
        assert_eq!(
            (payload.body, payload.content_type.as_deref()),
            (body, content_type),
            "{line}"
        );
    }
    std::fs::remove_file(file).expect("the file");
    let text = |text: &str| PropertyValue::Text(text.into());
    let read = settings("-mp priority=5,x-tenant=a,x-flag=true,timestamp=2022-06-03T07:45:54Z");
    let expected = [
        ("priority", PropertyValue::Number(5)),
        ("x-tenant", text("a")),
        ("x-flag", text("true")),
        ("timestamp", PropertyValue::Number(1_654_242_354)),
    ];
    assert_eq!(
        read.payload.properties,
        expected.map(|(key, value)| (key.to_owned(), value))
    );
}

#[test]
fn brokers_are_uris_with_limits() {
    let read = settings("-H 'amqp://a:p@one:1/v, amqp://two' -M 8192 -b 7 -se -cal round-robin");
    let expected = Options {
        host: "one".into(),
        port: 1,
        user: "a".into(),
        password: "p".into(),
        vhost: "v".into(),
        frame_max: 8192,
        heartbeat: 7,
        mechanism: Mechanism::External,
        ..Options::default()
    };
    assert_eq!(read.brokers[0], expected);
    assert_eq!((read.brokers.len(), &*read.brokers[1].host), (2, "two"));
    assert_eq!(read.allocation, Allocation::RoundRobin);
    assert_eq!(settings("-M 0 -b 0").brokers, [Options::default()]);
    assert_eq!(settings("-Y 3000").brokers[0].channel_max, 3001);
    let wait = |line| settings(line).wait_for_brokers;
    assert_eq!(wait("-H amqp://a,amqp://b -sst 30"), Some((secs(30), 2)));
    assert_eq!(
        wait("-H amqp://a,amqp://b -sst 30 -sul 1"),
        Some((secs(30), 1))
    );
    assert_eq!(wait("-sst -1 -sul -1"), None);
}

#[test]
fn results_go_where_they_are_asked_to() {
    let read = load(
        "--json r.json -o l.csv --html r.html --label 1.0 --history h --broker-pid 7 --steady \
         --against amqp://u:p@b --rounds 5 -z 1 -mpr -mpp 9000 -mpe stats -mpx p_ -mt a=b,c= \
         -em expected_published=50,ratio=0.5 -i 2 -mf compact --plain --quiet --verify --threads 2 \
         -ew idle -st 0 -ms -d me",
    );
    let keep = Keep {
        json: Some("r.json".into()),
        csv: Some("l.csv".into()),
        html: Some("r.html".into()),
        label: Some("1.0".into()),
        history: Some("h".into()),
        broker_pid: Some(7),
        against: Some("amqp://u:p@b".parse().expect("a URI")),
        rounds: 5,
        steady: true,
        prometheus: Some(Prometheus {
            port: 9000,
            endpoint: "/stats".into(),
            prefix: "p_".into(),
            tags: vec![("a".into(), "b".into()), ("c".into(), String::new())],
        }),
        exposed: vec![("expected_published".into(), 50.0), ("ratio".into(), 0.5)],
    };
    assert_eq!(read.keep, keep);
    let expected = Settings {
        id: "me".into(),
        limits: Limits {
            time: Some(secs(1)),
            exit_when: ExitWhen::Idle,
            shutdown_timeout: Duration::ZERO,
        },
        output: Output {
            interval: secs(2),
            format: Format::Compact,
            csv: Some("l.csv".into()),
            verbose: Verbose::Off,
            live: false,
            quiet: true,
        },
        use_millis: true,
        verify: true,
        threads: 2,
        ..Settings::default()
    };
    assert_eq!(read.settings, expected);
    assert_eq!(load("--csv x").settings.output.csv, Some("x".into()));
    assert_eq!(settings("--verbose -r 1").output.verbose, Verbose::Messages);
    assert_eq!(
        settings("--verbose-full -r 1").output.verbose,
        Verbose::Full
    );
}

#[test]
fn parameters_are_what_makes_the_load_without_passwords() {
    let read = load(
        "-h amqp://u:secret@h/v -x 2 -r 0.5 -f persistent -qa x-max-length=5 -e -p --json f -niot \
         4 --against amqp://u:secret@other -C 5 -d id -ad false -u q",
    );
    let expected = json!({
        "uri": "amqp://h:5672/v",
        "producers": 2,
        "rate": 0.5,
        "flag": ["persistent"],
        "queue-args": ["x-max-length=5"],
        "exchange": "",
        "predeclared": true,
        "queue": "q",
        "against": "amqp://other:5672",
        "pmessages": 5,
        "id": "id",
        "auto-delete": "false",
    });
    assert_eq!(json!(read.parameters), expected);
    assert!(!format!("{read:?}").contains("secret"));
}

#[test]
fn environment_is_read_like_arguments() {
    let environment = |name: &str| match name {
        "PRODUCERS" => Some("7".to_owned()),
        "FLAG" => Some("persistent,mandatory".to_owned()),
        "EXCHANGE" => Some("orders".to_owned()),
        _ => None,
    };
    let invocation = parse(&split("-y 2"), &environment).expect("a load");
    let Invocation::Load(load) = invocation else {
        panic!("a load")
    };
    assert_eq!(load.settings.producers.count, 7);
    assert!(load.settings.producers.mandatory && load.settings.topology.durable);
    assert_eq!(load.settings.topology.exchange, "orders");
    assert_eq!(
        load.warnings,
        ["options come from the environment: EXCHANGE, PRODUCERS, FLAG"]
    );
}

#[test]
fn help_and_version_are_printed_whatever_else_is_given() {
    for (line, expected) in [
        ("-?", "Usage: leveret perf"),
        ("-x 1 --help -s 4", "Usage: leveret perf"),
        ("-env", "CONFIRM_TIMEOUT"),
        ("-mh", "--metrics-prometheus-port"),
        (
            "-v",
            concat!("leveret perf ", env!("CARGO_PKG_VERSION"), "\n"),
        ),
    ] {
        let Ok(Invocation::Print(text)) = parse(&split(line), &|_| None) else {
            panic!("{line} prints nothing")
        };
        assert!(text.contains(expected) && text.ends_with('\n'), "{line}");
    }
}
