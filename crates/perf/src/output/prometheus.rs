//! `--metrics-prometheus`: the figures of the last interval, for a scraper, under PerfTest's names.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Show;
use crate::Error;
use crate::command::Prometheus;
use crate::result::{Interval, Percentiles, Run};
use crate::sync::lock;

/// A request beyond this is none of a scraper.
const MAX_REQUEST: u64 = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves the figures until the load ends.
pub struct Exporter {
    names: Prometheus,
    exposed: Vec<(String, f64)>,
    page: Arc<Mutex<String>>,
}

impl Exporter {
    /// Begins to serve.
    ///
    /// # Errors
    /// The port cannot be listened on.
    pub fn start(names: &Prometheus, exposed: &[(String, f64)]) -> Result<Exporter, Error> {
        let listener = TcpListener::bind(("0.0.0.0", names.port)).map_err(|source| {
            Error::Load(format!(
                "cannot serve Prometheus on port {}: {source}; choose another with -mpp",
                names.port
            ))
        })?;
        let exporter = Exporter {
            names: names.clone(),
            exposed: exposed.to_vec(),
            page: Arc::default(),
        };
        exporter.update(&Interval::default());
        let (page, endpoint) = (exporter.page.clone(), names.endpoint.clone());
        let started = std::thread::Builder::new()
            .name("perf-prometheus".into())
            .spawn(move || serve(&listener, &endpoint, &page));
        match started {
            // It ends with the process.
            Ok(_) => Ok(exporter),
            Err(source) => Err(Error::System {
                what: "cannot start a thread",
                source,
            }),
        }
    }

    fn update(&self, interval: &Interval) {
        *lock(&self.page) = page(&self.names, &self.exposed, interval);
    }
}

impl Show for Exporter {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.update(interval);
        Ok(())
    }

    fn say(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Run) -> io::Result<()> {
        Ok(())
    }
}

/// The text format, version 0.0.4.
fn page(names: &Prometheus, exposed: &[(String, f64)], interval: &Interval) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, value: f64| {
        let full = format!("{}{name}", names.prefix);
        let labels = labels(&names.tags, None);
        text.push_str(&format!("# TYPE {full} gauge\n{full}{labels} {value}\n"));
    };
    gauge("published", interval.sent_rate);
    gauge("confirmed", interval.confirmed_rate);
    gauge("nacked", interval.nacked_rate);
    gauge("returned", interval.returned_rate);
    gauge("consumed", interval.received_rate);
    exposed.iter().for_each(|(name, value)| gauge(name, *value));
    for (name, latency) in [
        ("latency_seconds", &interval.consumer_latency),
        ("confirm_latency_seconds", &interval.confirm_latency),
    ] {
        text.push_str(&summary(names, name, &latency.unwrap_or_default()));
    }
    text
}

fn summary(names: &Prometheus, name: &str, latency: &Percentiles) -> String {
    let full = format!("{}{name}", names.prefix);
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let mut text = format!("# TYPE {full} summary\n");
    for (quantile, nanos) in [
        ("0.5", latency.p50_ns),
        ("0.75", latency.p75_ns),
        ("0.95", latency.p95_ns),
        ("0.99", latency.p99_ns),
    ] {
        let labels = labels(&names.tags, Some(quantile));
        text.push_str(&format!("{full}{labels} {}\n", seconds(nanos)));
    }
    let labels = labels(&names.tags, None);
    let sum = seconds(latency.mean_ns) * latency.count as f64;
    text.push_str(&format!("{full}_count{labels} {}\n", latency.count));
    text.push_str(&format!("{full}_sum{labels} {sum}\n"));
    text
}

fn labels(tags: &[(String, String)], quantile: Option<&str>) -> String {
    let tags = tags
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let all: Vec<String> = tags
        .chain(quantile.map(|quantile| ("quantile", quantile)))
        .map(|(name, value)| {
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        })
        .collect();
    match all.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", all.join(",")),
    }
}

/// One request a connection, one at a time: scrapers come every few seconds.
fn serve(listener: &TcpListener, endpoint: &str, page: &Mutex<String>) {
    for stream in listener.incoming() {
        match stream {
            // A scraper that goes away is its own affair.
            Ok(stream) => drop(answer(stream, endpoint, page)),
            // Out of files, mostly: that does not get better at once.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut stream: TcpStream, endpoint: &str, page: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?.take(MAX_REQUEST));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path.split('?').next() == Some(endpoint) {
        true => ("200 OK", lock(page).clone()),
        false => ("404 Not Found", format!("the figures are at {endpoint}\n")),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_figures() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let names = Prometheus {
            port,
            endpoint: "/metrics".into(),
            prefix: "perftest_".into(),
            tags: vec![("zone".into(), "a\"b".into())],
        };
        let exposed = [("expected_published".to_owned(), 50.0)];
        let mut exporter = Exporter::start(&names, &exposed).expect("the port is free");
        exporter
            .interval(&Interval {
                sent_rate: 1_234.5,
                consumer_latency: Some(Percentiles {
                    p50_ns: 2_000_000,
                    ..Percentiles::default()
                }),
                ..Interval::default()
            })
            .expect("it is kept");
        let get = |path: &str| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("an answer");
            answer
        };
        let answer = get("/metrics");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        for line in [
            "perftest_published{zone=\"a\\\"b\"} 1234.5",
            "perftest_expected_published{zone=\"a\\\"b\"} 50",
            "perftest_latency_seconds{zone=\"a\\\"b\",quantile=\"0.5\"} 0.002",
        ] {
            assert!(
                answer.lines().any(|given| given == line),
                "{line}\n{answer}"
            );
        }
        assert!(get("/").starts_with("HTTP/1.1 404"));
    }
}
