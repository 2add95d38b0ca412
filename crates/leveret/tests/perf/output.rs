//! What is printed, and what is written to files.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::load::{path, plainly, run, start};
use crate::queues::*;
use crate::support::folder::Folder;
use crate::support::*;

/// A text with `#` for each number in it.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut in_number = false;
    for (at, sign) in text.char_indices() {
        let follows = text[at + sign.len_utf8()..].chars().next();
        let fraction = sign == '.' && follows.is_some_and(|c| c.is_ascii_digit());
        let part = sign.is_ascii_digit() || in_number && fraction;
        if !part {
            shape.push(sign);
        } else if !in_number {
            shape.push('#');
        }
        in_number = part;
    }
    shape
}

fn read(folder: &Folder, name: &str) -> String {
    let text = std::fs::read_to_string(folder.path().join(name));
    text.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&read(folder, name)).expect("a document")
}

#[test]
fn each_second_has_a_line_and_the_end_a_summary() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-d mine -r 50 -prsd 0 -z 3 -c 10";
        let ended = run(broker.uri(), words).await.well();
        let lines: Vec<&str> = ended.out.lines().collect();
        let start = [
            "id: mine, starting consumer #0",
            "id: mine, starting consumer #0, channel #0",
            "id: mine, starting producer #0",
            "id: mine, starting producer #0, channel #0",
        ];
        assert_eq!(lines[..4], start);
        let seconds: Vec<&&str> = lines
            .iter()
            .filter(|line| line.contains(", time "))
            .collect();
        assert!((1..=3).contains(&seconds.len()), "{seconds:?}");
        for line in seconds {
            assert_eq!(
                shape(line),
                "id: mine, time # s, sent: # msg/s, confirmed: # msg/s, nacked: # msg/s, \
                 received: # msg/s, min/median/#th/#th/#th/max consumer latency: #/#/#/#/#/# µs, \
                 confirm latency: #/#/#/#/#/# µs"
            );
        }
        let summary = lines
            .iter()
            .position(|line| line.starts_with("test stopped"));
        let summary: Vec<String> = lines[summary.expect("a summary")..]
            .iter()
            .map(|line| shape(line))
            .collect();
        assert_eq!(
            summary[..5],
            [
                "test stopped (Reached time limit)",
                "id: mine, sending rate avg: # msg/s",
                "id: mine, receiving rate avg: # msg/s",
                "id: mine, consumer latency min/median/#th/#th/#th/max #/#/#/#/#/# µs",
                "id: mine, confirm latency min/median/#th/#th/#th/max #/#/#/#/#/# µs",
            ]
        );
        assert!(ended.out.contains("order: in order; "), "{}", ended.out);
    });
}

#[test]
fn figures_that_do_not_apply_are_left_out() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-d one -y 0 -e amq.default -k none -f mandatory -r 50 -prsd 0 -z 2";
        let ended = run(broker.uri(), words).await.well();
        let line = ended.out.lines().find(|line| line.contains(", time "));
        assert_eq!(
            shape(line.expect("a line")),
            "id: one, time # s, sent: # msg/s, returned: # msg/s"
        );
    });
}

#[test]
fn the_compact_format_is_a_table() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-mf compact -ms -r 50 -prsd 0 -z 2 -i 1";
        let ended = run(broker.uri(), words).await.well();
        let lines: Vec<&str> = ended.out.lines().collect();
        let head = lines.iter().position(|line| line.starts_with("time "));
        let head = head.expect("a head");
        let columns: Vec<&str> = lines[head].split_whitespace().collect();
        assert_eq!(columns, ["time", "sent", "received", "consumer", "latency"]);
        let row: Vec<String> = lines[head + 1].split_whitespace().map(shape).collect();
        assert_eq!(
            row,
            [
                "#/#/#",
                "#:#:#",
                "#",
                "msg/s",
                "#",
                "msg/s",
                "#/#/#/#/#/#",
                "ms"
            ]
        );
        assert_eq!(lines[head].chars().count(), lines[head + 1].chars().count());
    });
}

#[test]
fn intervals_go_to_a_csv_file_too() {
    within(seconds(30), async {
        let broker = shared();
        let folder = Folder::new("csv");
        for (option, name) in [("-o", "a"), ("--csv", "b")] {
            let file = path(&folder, name);
            let words = format!("{option} {file} -d x,y -r 50 -prsd 0 -z 2");
            run(broker.uri(), &words).await.well();
            let text = read(&folder, name);
            let lines: Vec<&str> = text.lines().collect();
            let head = "id,time (s),published (msg/s),returned (msg/s),confirmed (msg/s),\
                        nacked (msg/s),received (msg/s),min consumer latency (µs),";
            assert!(lines[0].starts_with(head), "{}", lines[0]);
            assert_eq!(lines[0].split(',').count(), 17);
            assert_eq!(
                shape(lines[1]),
                "\"x,y\",#,#,,,,#,#,#,#,#,#,,,,,",
                "{}",
                lines[1]
            );
        }
    });
}

#[test]
fn the_result_says_what_was_done_and_what_came_of_it() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-d doc --label 1.2.3 -x 2 -C 100 -D 200 -c 5 -s 20 -f persistent";
        let ended = run(broker.uri(), words).await.well();
        let document = ended.document.as_ref().expect("a result");
        assert_eq!(document["format"], "leveret-perf/1");
        assert_eq!(document["label"], "1.2.3");
        assert!(document.get("scenario").is_none());
        let command = document["command"].as_array().expect("words");
        assert_eq!(command[..2], ["leveret", "perf"]);
        assert!(command.contains(&"persistent".into()));
        let run = ended.run();
        assert_eq!((&run["name"], &run["round"]), (&"doc".into(), &1.into()));
        assert_eq!(run["broker"]["product"], "Leveret");
        assert_eq!(run["broker"]["address"], options(&broker).address());
        assert_eq!(run["broker"]["pid"], broker.pid());
        let parameters = &run["parameters"];
        assert_eq!(
            (&parameters["producers"], &parameters["size"]),
            (&2.into(), &20.into())
        );
        assert_eq!(parameters["uri"], broker.uri());
        assert!(run.get("error").is_none());
        for (name, count) in [("sent", 200), ("confirmed", 200), ("received", 200)] {
            assert_eq!(ended.total(name), count, "{name}");
        }
        for latency in ["consumer_latency", "confirm_latency"] {
            assert_eq!(run[latency]["count"], 200);
            let counts = run[latency]["counts"].as_array().expect("counts");
            let sum: u64 = counts.iter().filter_map(|pair| pair[1].as_u64()).sum();
            assert_eq!(sum, 200);
        }
        assert!(run["totals"]["broker_rss_bytes"].as_u64() > Some(1 << 20));
    });
}

#[test]
fn quiet_loads_print_nothing() {
    within(seconds(30), async {
        let broker = shared();
        let ended = run(broker.uri(), "--quiet -C 50 -D 50").await.well();
        assert_eq!(ended.out, "");
        assert_eq!(ended.total("received"), 50);
    });
}

#[test]
fn verbose_loads_print_each_message() {
    within(seconds(30), async {
        let broker = shared();
        let words = "--verbose -r 100 -prsd 0 -c 1 -C 5 -D 5";
        let ended = run(broker.uri(), words).await.well();
        for what in [
            "message published",
            "message received",
            "channel 1: confirmed",
        ] {
            assert_eq!(ended.out.matches(what).count(), 5, "{}", ended.out);
        }
        let words = "--verbose-full -r 100 -prsd 0 -T text/odd -C 2 -D 2";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(ended.out.matches("body 12 bytes").count(), 4);
    });
}

#[test]
fn a_page_has_the_run_in_it() {
    within(seconds(30), async {
        let broker = shared();
        let folder = Folder::new("page");
        let page = path(&folder, "page.html");
        let words = format!("-d <page-run> --html {page} -r 50 -prsd 0 -z 2");
        run(broker.uri(), &words).await.well();
        let page = read(&folder, "page.html");
        assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
        assert!(page.contains("&lt;page-run&gt;") && !page.contains("<page-run>"));
        assert!(page.contains("<svg") && page.contains("Leveret"));
    });
}

#[test]
fn a_history_grows_by_a_line_each_run_and_is_read_for_changes() {
    within(seconds(30), async {
        let broker = shared();
        let folder = Folder::new("history");
        let history = path(&folder, "history.jsonl");
        for label in ["one", "two", "three"] {
            let words = format!("--history {history} --label {label} -d same -C 50 -D 50");
            run(broker.uri(), &words).await.well();
        }
        let text = read(&folder, "history.jsonl");
        let labels: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a document")["label"].clone())
            .collect();
        assert_eq!(labels, ["one", "two", "three"]);
        let found = path(&folder, "found.json");
        let ended = plainly(&format!("changes {history} --json {found}")).well();
        assert!(ended.out.contains("3 values are too few"), "{}", ended.out);
        json(&folder, "found.json");
    });
}

#[test]
fn results_are_reported_and_compared() {
    within(seconds(30), async {
        let broker = shared();
        let folder = Folder::new("results");
        let [a, b, page, csv] = ["a.json", "b.json", "p.html", "i.csv"].map(|it| path(&folder, it));
        for file in [&a, &b] {
            let words = format!(
                "-h {} --json {file} -d twice -r 100 -prsd 0 -z 2",
                broker.uri()
            );
            plainly(&words).well();
        }
        let ended = plainly(&format!("report {a}")).well();
        assert!(ended.out.contains("twice"), "{}", ended.out);
        plainly(&format!(
            "report {a} {b} --html {page} --csv {csv} --title Both"
        ))
        .well();
        assert!(read(&folder, "p.html").contains("<title>Both"));
        assert!(read(&folder, "i.csv").lines().count() >= 3);
        let ended = plainly(&format!("compare {a} {b}")).well();
        assert!(
            ended.out.contains("B/A") && ended.out.contains("twice"),
            "{}",
            ended.out
        );
        let ended = plainly(&format!("changes {a}")).well();
        assert!(ended.out.contains("twice"), "{}", ended.out);
    });
}

/// Whoever leaves the pager has seen enough; the load has not.
#[test]
fn a_closed_output_does_not_stop_the_load() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-r 100 -prsd 0 -C 300 -y 0 -u unread -ad false --verbose";
        let mut load = start(broker.uri(), words);
        load.out.says("starting producer").await;
        load.close_out();
        let ended = load.end().await.well();
        assert_eq!(ended.total("sent"), 300);
        assert!(!ended.out.contains("test stopped"));
        assert_eq!(ready(&broker, "unread").await, Some(300));
    });
}

#[test]
fn an_interrupted_load_sums_up() {
    within(seconds(30), async {
        let broker = shared();
        let load = start(broker.uri(), "-r 100 -s 16 --verify");
        load.out.says("received").await;
        load.interrupt();
        let ended = load.end().await.well();
        assert_eq!(ended.stopped("Interrupted"), 1);
        assert!(ended.out.contains("test stopped (Interrupted)"));
        assert!(ended.out.contains("order: in order"), "{}", ended.out);
        assert!(ended.total("received") > 0);
    });
}

#[test]
fn passwords_are_nowhere() {
    within(seconds(30), async {
        let broker = builder()
            .config("default_user = someone")
            .config("default_pass = s3cret-word")
            .start()
            .expect("a broker");
        let folder = Folder::new("secret");
        let address = options(&broker).address();
        let uri = format!("amqp://someone:s3cret-word@{address}");
        let (page, history) = (path(&folder, "page"), path(&folder, "history"));
        let words =
            format!("--against {uri} --rounds 1 --html {page} --history {history} -C 5 -D 5");
        let ended = run(&uri, &words).await.well();
        let document = ended.document.as_ref().expect("a result").to_string();
        let wrong = format!("amqp://someone:wr0ng-word@{address}");
        let refused = run(&wrong, "-C 5").await;
        assert!(refused.failed(1).contains("someone"));
        let said = [
            &ended.out,
            &document,
            &read(&folder, "page"),
            &read(&folder, "history"),
            &refused.out,
            &refused.err,
            &refused
                .document
                .as_ref()
                .map(Value::to_string)
                .unwrap_or_default(),
        ];
        for text in said {
            assert!(
                !text.contains("s3cret-word") && !text.contains("wr0ng-word"),
                "{text}"
            );
        }
        assert!(document.contains("someone:***@"), "{document}");
    });
}

fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("a server");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("text");
    page
}

#[test]
fn figures_can_be_scraped_while_the_load_runs() {
    within(seconds(30), async {
        let broker = shared();
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let words = format!("-mpr -mpp {port} -mt zone=eu -r 50 -prsd 0 -c 10");
        let load = start(broker.uri(), &words);
        load.out.says("received").await;
        // On a busy machine the first second may be over before the first message.
        eventually("figures of a load that runs", seconds(10), async || {
            let page = scrape(port);
            let counts = [
                "perftest_published",
                "perftest_consumed",
                "perftest_confirmed",
            ];
            counts.iter().all(|name| {
                let line = page.lines().find(|line| line.starts_with(name));
                let line = line.unwrap_or_else(|| panic!("no {name}: {page}"));
                assert!(line.contains("zone=\"eu\""), "{line}");
                let value = line.rsplit(' ').next().and_then(|value| value.parse().ok());
                value > Some(0.0)
            })
        })
        .await;
        load.interrupt();
        load.end().await.well();
    });
}
