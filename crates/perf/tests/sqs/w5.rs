//! The scenario W5 against a small queue service, in both protocols.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use clap::Parser;
use perf::result::Run;
use perf::scenarios::w5;

use crate::service::{Call, Reply, Service};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: w5::Arguments,
}

fn run(service: &Service, arguments: &str) -> Result<Vec<Run>, perf::Error> {
    let endpoint = service.endpoint();
    let words = ["w5", "--endpoint", &endpoint].into_iter();
    let command = Command::parse_from(words.chain(arguments.split(' ')));
    w5::run(&command.arguments)
}

/// Queues by their paths.
type Queues = Arc<Mutex<BTreeMap<String, VecDeque<String>>>>;

/// A service with queues in memory, which hands out each message this many times.
fn queues(times: usize) -> (Service, Queues) {
    let queues = Queues::default();
    let shared = Arc::clone(&queues);
    let service = Service::start(true, move |call| {
        let parameters = call.parameters();
        let path = parameters.get("QueueUrl").unwrap_or(&call.path).clone();
        let answer = answer(
            &mut shared.lock().expect("no panic"),
            times,
            &parameters,
            &path,
        );
        answer.map_or_else(
            || Reply::With(400, String::new()),
            |members| write(call, &parameters["Action"], &members),
        )
    });
    (service, queues)
}

fn answer(
    queues: &mut BTreeMap<String, VecDeque<String>>,
    times: usize,
    parameters: &BTreeMap<String, String>,
    path: &str,
) -> Option<Vec<(&'static str, String)>> {
    match parameters["Action"].as_str() {
        "CreateQueue" => {
            let path = format!("/0/{}", parameters["QueueName"]);
            queues.insert(path.clone(), VecDeque::new());
            Some(vec![("QueueUrl", path)])
        }
        "SendMessage" => {
            let body = parameters["MessageBody"].clone();
            let md5 = md5(&body);
            let queue = queues.get_mut(path)?;
            queue.extend(std::iter::repeat_n(body, times));
            Some(vec![("MD5OfMessageBody", md5)])
        }
        "ReceiveMessage" => Some(match queues.get_mut(path)?.pop_front() {
            Some(body) => vec![
                ("MD5OfBody", md5(&body)),
                ("ReceiptHandle", "h".into()),
                ("Body", body),
            ],
            None => vec![],
        }),
        "DeleteQueue" => queues.remove(path).map(|_| vec![]),
        _ => Some(vec![]),
    }
}

fn md5(body: &str) -> String {
    use md5::Digest;
    let digest = md5::Md5::digest(body);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(call: &Call, action: &str, members: &[(&'static str, String)]) -> Reply {
    let is_message = action == "ReceiveMessage" && !members.is_empty();
    if call.headers.contains_key("x-amz-target") {
        let object: BTreeMap<_, _> = members.iter().cloned().collect();
        return Reply::With(
            200,
            match is_message {
                true => serde_json::json!({ "Messages": [object] }).to_string(),
                false => serde_json::json!(object).to_string(),
            },
        );
    }
    let members = members.iter();
    let members: String = members
        .map(|(name, text)| format!("<{name}>{text}</{name}>"))
        .collect();
    let members = match is_message {
        true => format!("<Message>{members}</Message>"),
        false => members,
    };
    let xml = format!("<{action}Response><{action}Result>{members}</{action}Result>");
    Reply::With(200, format!("{xml}</{action}Response>"))
}

#[test]
fn all_messages_of_both_protocols_arrive_once_and_the_queues_are_gone() {
    let (service, queues) = queues(1);
    let arguments = "--region a,b --messages 30,300 --in-flight 20 --consume --rounds 2";
    let runs = run(&service, arguments).unwrap();
    assert_eq!(runs.len(), 2 * 2 * 2 * 2);
    for run in &runs {
        let messages = run.parameters["messages"].as_u64().unwrap();
        assert_eq!(run.totals.sent, messages, "{}", run.name);
        assert_eq!(run.totals.received, messages, "{}", run.name);
        let checks = run.checks.as_ref().unwrap();
        assert!(checks.passed() && checks.checked == messages, "{checks:?}");
        assert_eq!(run.figures["errors"], 0.0);
        let latency = run.confirm_latency.as_ref().unwrap();
        assert_eq!(latency.percentiles.count, messages);
        assert_eq!((&run.error, run.stopped["all sent"]), (&None, 1));
    }
    assert!(queues.lock().unwrap().is_empty());
}

#[test]
fn regions_together_are_one_run() {
    let (service, queues) = queues(1);
    let arguments = "--region a,b,c --messages 50 --together --protocol query --signature v4";
    let runs = run(&service, arguments).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].name, "query v4, N=50, 3 regions");
    assert_eq!(runs[0].totals.sent, 150);
    assert!(queues.lock().unwrap().is_empty());
}

#[test]
fn a_service_that_doubles_messages_does_not_pass() {
    let (service, _) = queues(2);
    let arguments = "--region a --messages 20 --consume --protocol json --receivers 2";
    let runs = run(&service, arguments).unwrap();
    let checks = runs[0].checks.as_ref().unwrap();
    assert_eq!((checks.duplicates, checks.gaps), (20, 0));
}

#[test]
fn messages_that_are_refused_are_counted_by_code_and_their_queue_is_deleted() {
    let deleted = Arc::new(Mutex::new(0));
    let count = Arc::clone(&deleted);
    let service = Service::start(true, move |call| {
        match call.parameters()["Action"].as_str() {
            "CreateQueue" => Reply::With(200, r#"{"QueueUrl":"http://sqs/0/q"}"#.into()),
            "DeleteQueue" => {
                *count.lock().unwrap() += 1;
                Reply::With(200, "{}".into())
            }
            _ => Reply::With(403, r#"{"__type":"a#OverLimit","message":"full"}"#.into()),
        }
    });
    let runs = run(&service, "--region a --messages 25 --protocol json").unwrap();
    assert_eq!(runs[0].totals.nacked, 25);
    assert_eq!(runs[0].figures["errors, OverLimit"], 25.0);
    let error = runs[0].error.as_deref();
    assert_eq!(
        error,
        Some("25 of 25 messages were not taken; first: OverLimit: full")
    );
    assert_eq!(*deleted.lock().unwrap(), 1);
}

#[test]
fn an_endpoint_that_is_none_of_sqs_is_named_in_one_line() {
    let service = Service::start(true, |_| Reply::With(404, "<html>".into()));
    let error = run(&service, "--region a --messages 1")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&service.endpoint()) && error.contains("--endpoint"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn a_queue_whose_creation_was_not_answered_is_deleted_all_the_same() {
    let deleted = Arc::new(Mutex::new(0));
    let count = Arc::clone(&deleted);
    let service = Service::start(true, move |call| {
        match call.parameters()["Action"].as_str() {
            "GetQueueUrl" => Reply::With(200, r#"{"QueueUrl":"http://sqs/0/q"}"#.into()),
            "DeleteQueue" => {
                *count.lock().unwrap() += 1;
                Reply::With(200, "{}".into())
            }
            _ => Reply::Silence,
        }
    });
    let arguments = "--region a --messages 1 --protocol json --timeout 1";
    let error = run(&service, arguments).unwrap_err().to_string();
    assert!(error.contains("no answer within 1 s"), "{error}");
    assert_eq!(*deleted.lock().unwrap(), 1);
}
