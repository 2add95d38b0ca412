//! AWS JSON 1.0, which SDKs speak since 2023: an object goes there, an object comes back (Smithy,
//! "AWS JSON 1.0 protocol").

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Action, Answer, Error, Message, Outcome};

/// The body of a call.
pub(super) fn body(action: &Action<'_>) -> String {
    let object = match action {
        Action::CreateQueue { name } | Action::GetQueueUrl { name } => json!({"QueueName": name}),
        Action::SendMessage { queue, body } => json!({"QueueUrl": queue, "MessageBody": body}),
        Action::SendMessageBatch { queue, entries } => {
            let entries = entries.iter();
            let entries = entries.map(|entry| json!({"Id": entry.id, "MessageBody": entry.body}));
            json!({"QueueUrl": queue, "Entries": entries.collect::<Value>()})
        }
        Action::ReceiveMessage {
            queue,
            max,
            wait_seconds,
        } => json!({
            "QueueUrl": queue,
            "MaxNumberOfMessages": max,
            "WaitTimeSeconds": wait_seconds,
            "AttributeNames": ["ApproximateReceiveCount"],
        }),
        Action::DeleteMessage {
            queue,
            receipt_handle,
        } => json!({"QueueUrl": queue, "ReceiptHandle": receipt_handle}),
        Action::DeleteQueue { queue } => json!({"QueueUrl": queue}),
    };
    object.to_string()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Queue {
    queue_url: String,
}

#[derive(Deserialize)]
struct Sent {
    #[serde(rename = "MD5OfMessageBody")]
    md5: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Batch {
    #[serde(default)]
    successful: Option<Vec<Successful>>,
    #[serde(default)]
    failed: Option<Vec<Failed>>,
}

#[derive(Deserialize)]
struct Successful {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "MD5OfMessageBody")]
    md5: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failed {
    id: String,
    code: String,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Received {
    #[serde(default)]
    messages: Option<Vec<ReceivedMessage>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceivedMessage {
    #[serde(default)]
    body: String,
    receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    md5: String,
    #[serde(default)]
    attributes: Attributes,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    approximate_receive_count: Option<String>,
}

/// Reads the answer to a call that succeeded.
pub(super) fn answer(action: &Action<'_>, body: &[u8]) -> Result<Answer, Error> {
    match action {
        Action::CreateQueue { .. } | Action::GetQueueUrl { .. } => {
            parse(body).map(|queue: Queue| Answer::Queue(queue.queue_url))
        }
        Action::SendMessage { .. } => parse(body).map(|sent: Sent| Answer::Sent(sent.md5)),
        Action::SendMessageBatch { .. } => parse(body).map(batch),
        Action::ReceiveMessage { .. } => parse(body).map(|received: Received| {
            let messages = received.messages.unwrap_or_default();
            Answer::Messages(messages.into_iter().map(message).collect())
        }),
        Action::DeleteMessage { .. } | Action::DeleteQueue { .. } => Ok(Answer::Done),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Malformed(error.to_string()))
}

fn batch(batch: Batch) -> Answer {
    let sent = batch.successful.into_iter().flatten();
    let sent = sent.map(|entry| (entry.id, Outcome::Sent(entry.md5)));
    let failed = batch.failed.into_iter().flatten().map(|entry| {
        let message = entry.message.unwrap_or_default();
        (entry.id, Outcome::Refused(entry.code, message))
    });
    Answer::Batch(sent.chain(failed).collect())
}

fn message(message: ReceivedMessage) -> Message {
    let count = message.attributes.approximate_receive_count;
    Message {
        body: message.body,
        receipt_handle: message.receipt_handle,
        md5: message.md5,
        receive_count: count.and_then(|count| count.parse().ok()),
    }
}

/// Reads the answer to a call that failed. `query_error` is the header `x-amzn-query-error`, which
/// has the code of the Query protocol: the same failure counts under one name in both protocols.
pub(super) fn error(status: u16, query_error: Option<&str>, body: &[u8]) -> Error {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let shape = text("__type").unwrap_or_default();
    let shape = shape.rsplit_once('#').map_or(shape, |(_, shape)| shape);
    // As in botocore: a header of any other form is not believed.
    let code = query_error
        .and_then(|header| header.split_once(';'))
        .filter(|(code, fault)| !code.is_empty() && !fault.contains(';'))
        .map_or(shape, |(code, _)| code);
    let message = text("message").or_else(|| text("Message"));
    Error::refused(status, code, message.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVE: Action<'static> = Action::ReceiveMessage {
        queue: "",
        max: 10,
        wait_seconds: 0,
    };
    const MESSAGES: &str = r#"{"Messages":[{"MessageId":"i","ReceiptHandle":"h","MD5OfBody":"m",
        "Body":"ü","Attributes":{"ApproximateReceiveCount":"1"}}]}"#;

    #[test]
    fn calls_become_objects() {
        let (queue, text) = ("http://sqs/0/q", "\"\u{1}ü");
        let sent: Value =
            serde_json::from_str(&body(&Action::SendMessage { queue, body: text })).expect("JSON");
        assert_eq!(sent, json!({"QueueUrl": queue, "MessageBody": text}));
    }

    #[test]
    fn answers_are_read() {
        let Answer::Messages(messages) = answer(&RECEIVE, MESSAGES.as_bytes()).unwrap() else {
            panic!("other answer");
        };
        assert_eq!(messages[0].body, "ü");
        assert!(!messages[0].is_redelivered());
        assert_eq!(answer(&RECEIVE, b"{}").unwrap(), Answer::Messages(vec![]));
        let delete = Action::DeleteQueue { queue: "" };
        assert_eq!(answer(&delete, b"").unwrap(), Answer::Done);
        let batch = Action::SendMessageBatch {
            queue: "",
            entries: &[],
        };
        let body = br#"{"Successful":[{"Id":"0","MD5OfMessageBody":"m"}],
            "Failed":[{"Id":"1","Code":"InternalError","SenderFault":false}]}"#;
        let outcomes = vec![
            ("0".into(), Outcome::Sent("m".into())),
            (
                "1".into(),
                Outcome::Refused("InternalError".into(), String::new()),
            ),
        ];
        assert_eq!(answer(&batch, body).unwrap(), Answer::Batch(outcomes));
    }

    #[test]
    fn whatever_is_cut_or_changed_is_refused_or_read_but_never_panics() {
        let answers = MESSAGES.as_bytes();
        for length in 0..answers.len() {
            assert!(answer(&RECEIVE, &answers[..length]).is_err());
        }
        for place in 0..answers.len() {
            for byte in [0, b'{', b'[', b'"', b'\\', b',', b'0', 0xff] {
                let mut changed = answers.to_vec();
                changed[place] = byte;
                drop(answer(&RECEIVE, &changed));
                drop(error(400, None, &changed));
            }
        }
        assert!(answer(&RECEIVE, "[".repeat(1 << 20).as_bytes()).is_err());
    }

    #[test]
    fn one_failure_has_one_code_in_both_protocols() {
        let body = br#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"No."}"#;
        let code = |header: Option<&str>| error(400, header, body).code().to_owned();
        let header = "AWS.SimpleQueueService.NonExistentQueue;Sender";
        assert_eq!(
            code(Some(header)),
            "AWS.SimpleQueueService.NonExistentQueue"
        );
        assert_eq!(code(Some("a;b;c")), "QueueDoesNotExist");
        assert_eq!(code(Some("com.amazonaws.sqs#X")), "QueueDoesNotExist");
        assert_eq!(code(None), "QueueDoesNotExist");
        assert_eq!(error(502, None, b"<html>").to_string(), "HTTP 502");
    }
}
