//! The SQS client against a service that misbehaves, and what a call costs.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use perf::sqs::{Client, Credentials, Error, Options, Protocol, Secret, Signature};
use rustix::time::{ClockId, clock_gettime};

use tokio::task::LocalSet;

use crate::service::{Reply, Service};

const BODY: &str = "hello world";
const MD5: &str = "5eb63bbbe01eeed093cb22bb8f5acdc3";
const QUEUE: &str = "http://sqs.elsewhere/000000000000/q";

fn client(service: &Service, protocol: Protocol, retries: u32) -> Client {
    Client::new(options(&service.endpoint(), protocol, retries)).expect("a client")
}

fn options(endpoint: &str, protocol: Protocol, retries: u32) -> Options {
    Options {
        endpoint: endpoint.parse().expect("an endpoint"),
        region: "us-east-1".into(),
        credentials: Credentials {
            access_key_id: "test".into(),
            secret_access_key: Secret("test".into()),
            session_token: None,
        },
        protocol,
        timeout: Duration::from_secs(1),
        retries,
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), future)
}

fn sent(md5: &str) -> Reply {
    Reply::With(200, format!("{{\"MD5OfMessageBody\":\"{md5}\"}}"))
}

#[test]
fn a_body_that_arrived_changed_is_an_error() {
    let service = Service::start(true, |_| sent("00000000000000000000000000000000"));
    let client = client(&service, Protocol::Json, 3);
    let error = block_on(client.send_message(QUEUE, BODY)).unwrap_err();
    assert!(matches!(error, Error::Md5 { .. }), "{error}");
    assert_eq!(client.take_failures(), ([("WrongMD5".into(), 1)].into(), 0));
}

#[test]
fn throttled_calls_are_tried_again_and_counted() {
    let calls = AtomicU32::new(0);
    let service = Service::start(true, move |_| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::With(
            400,
            r#"{"__type":"com.amazonaws.sqs#RequestThrottled"}"#.into(),
        ),
        1 => Reply::With(502, "<html>".into()),
        _ => sent(MD5),
    });
    let client = client(&service, Protocol::Json, 2);
    block_on(client.send_message(QUEUE, BODY)).unwrap();
    let (errors, retries) = client.take_failures();
    assert_eq!(
        errors,
        [("HTTP 502".into(), 1), ("RequestThrottled".into(), 1)].into()
    );
    assert_eq!(retries, 2);
}

#[test]
fn a_refused_call_is_not_tried_again() {
    let refusal = "<ErrorResponse><Error><Code>InvalidMessageContents</Code></Error>\
                   </ErrorResponse>";
    let service = Service::start(true, move |_| Reply::With(400, refusal.into()));
    let client = client(&service, Protocol::Query(Signature::V2), 5);
    let error = block_on(client.send_message(QUEUE, BODY)).unwrap_err();
    assert_eq!(error.code(), "InvalidMessageContents");
    assert_eq!(client.take_failures().1, 0);
}

#[test]
fn a_redirection_is_not_followed() {
    let service = Service::start(true, |_| Reply::With(307, String::new()));
    let client = client(&service, Protocol::Json, 0);
    let error = block_on(client.send_message(QUEUE, BODY)).unwrap_err();
    assert_eq!(error.to_string(), "HTTP 307");
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let service = Service::start(true, |_| Reply::With(200, " ".repeat(2 << 20)));
    let client = client(&service, Protocol::Json, 0);
    let error = block_on(client.send_message(QUEUE, BODY)).unwrap_err();
    assert!(matches!(error, Error::TooLong), "{error}");
}

#[test]
fn silence_ends_a_call() {
    let service = Service::start(true, |_| Reply::Silence);
    let client = client(&service, Protocol::Json, 0);
    let error = block_on(client.send_message(QUEUE, BODY)).unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error}");
}

#[test]
fn connections_are_used_again() {
    let service = Service::start(true, |_| sent(MD5));
    let client = client(&service, Protocol::Json, 0);
    block_on(async {
        for _ in 0..100 {
            client.send_message(QUEUE, BODY).await.unwrap();
        }
    });
    assert_eq!(service.connections(), 1);
}

#[test]
fn a_service_that_ends_each_connection_costs_no_call() {
    let service = Service::start(false, |_| sent(MD5));
    let client = client(&service, Protocol::Json, 0);
    block_on(async {
        for _ in 0..100 {
            client.send_message(QUEUE, BODY).await.unwrap();
        }
    });
    assert_eq!(service.connections(), 100);
}

#[test]
fn what_is_no_http_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"AMQP\x00\x00\x09\x01").unwrap();
    });
    let client = Client::new(options(&endpoint, Protocol::Json, 0)).unwrap();
    let error = block_on(client.create_queue("q")).unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error}");
    peer.join().unwrap();
}

/// Run it with `cargo test --release -p perf --test sqs -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_call_costs() {
    const CALLS: u32 = 200_000;
    let xml = format!(
        "<SendMessageResponse><SendMessageResult><MD5OfMessageBody>{MD5}</MD5OfMessageBody>\
         </SendMessageResult></SendMessageResponse>"
    );
    let service = Service::start(true, move |call| {
        match call.headers.contains_key("x-amz-target") {
            true => sent(MD5),
            false => Reply::With(200, xml.clone()),
        }
    });
    for protocol in [
        Protocol::Query(Signature::V2),
        Protocol::Query(Signature::V4),
        Protocol::Json,
    ] {
        let client = Rc::new(client(&service, protocol, 0));
        let (began, cpu) = (Instant::now(), thread_cpu());
        block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..100 {
                let client = Rc::clone(&client);
                tasks.spawn_local(async move {
                    for _ in 0..CALLS / 100 {
                        client.send_message(QUEUE, BODY).await.unwrap();
                    }
                });
            }
            while tasks.join_next().await.is_some() {}
        });
        let (took, cpu) = (began.elapsed(), thread_cpu() - cpu);
        let rate = f64::from(CALLS) / took.as_secs_f64();
        let each = cpu * 1e6 / f64::from(CALLS);
        eprintln!("{protocol}: {rate:.0} calls/s, {each:.1} µs of CPU for each");
    }
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
