//! The Query protocol of 2006 to 2023: a form goes there, XML comes back (SQS API reference, "Query
//! requests"; version 2012-11-05).

use std::borrow::Cow;

use super::xml::Element;
use super::{Action, Answer, Error, Message, Outcome};

/// The version of the API whose names are used here.
const VERSION: &str = "2012-11-05";

/// Names and values of a form.
pub(super) type Parameters<'a> = Vec<(Cow<'static, str>, Cow<'a, str>)>;

/// The parameters of a call, without those that a signature adds.
pub(super) fn parameters<'a>(action: &Action<'a>) -> Parameters<'a> {
    let mut parameters: Parameters<'a> = Vec::with_capacity(8);
    let mut add = |name: &'static str, value: Cow<'a, str>| {
        parameters.push((Cow::Borrowed(name), value));
    };
    add("Action", action.name().into());
    add("Version", VERSION.into());
    match *action {
        Action::CreateQueue { name } | Action::GetQueueUrl { name } => {
            add("QueueName", name.into());
        }
        Action::SendMessage { body, .. } => add("MessageBody", body.into()),
        Action::SendMessageBatch { entries, .. } => {
            for (entry, number) in entries.iter().zip(1..) {
                let name = |member| format!("SendMessageBatchRequestEntry.{number}.{member}");
                parameters.push((name("Id").into(), entry.id.as_str().into()));
                parameters.push((name("MessageBody").into(), entry.body.as_str().into()));
            }
        }
        Action::ReceiveMessage {
            max, wait_seconds, ..
        } => {
            add("AttributeName.1", "ApproximateReceiveCount".into());
            add("MaxNumberOfMessages", max.to_string().into());
            add("WaitTimeSeconds", wait_seconds.to_string().into());
        }
        Action::DeleteMessage { receipt_handle, .. } => {
            add("ReceiptHandle", receipt_handle.into());
        }
        Action::DeleteQueue { .. } => {}
    }
    parameters
}

/// Reads the answer to a call that succeeded.
pub(super) fn answer(action: &Action<'_>, body: &[u8]) -> Result<Answer, Error> {
    let root = Element::parse(body)?;
    let expected = format!("{}Response", action.name());
    if root.name != expected {
        let reason = format!("<{}> instead of <{expected}>", root.name);
        return Err(Error::Malformed(reason));
    }
    let nothing = Element::default();
    let result = root.child(&format!("{}Result", action.name()));
    let result = result.unwrap_or(&nothing);
    match action {
        Action::CreateQueue { .. } | Action::GetQueueUrl { .. } => {
            required(result, "QueueUrl").map(Answer::Queue)
        }
        Action::SendMessage { .. } => required(result, "MD5OfMessageBody").map(Answer::Sent),
        Action::SendMessageBatch { .. } => batch(result).map(Answer::Batch),
        Action::ReceiveMessage { .. } => {
            let messages: Result<_, _> = result.all("Message").map(message).collect();
            messages.map(Answer::Messages)
        }
        Action::DeleteMessage { .. } | Action::DeleteQueue { .. } => Ok(Answer::Done),
    }
}

/// Reads the answer to a call that failed. Whatever it is, it says as much as can be found in it.
pub(super) fn error(status: u16, body: &[u8]) -> Error {
    let root = Element::parse(body).unwrap_or_default();
    match root.child("Error") {
        Some(error) => Error::refused(status, error.text_of("Code"), error.text_of("Message")),
        None => Error::refused(status, "", ""),
    }
}

fn required(element: &Element, name: &str) -> Result<String, Error> {
    match element.text_of(name).trim() {
        "" => Err(Error::Malformed(format!("no {name} in <{}>", element.name))),
        text => Ok(text.to_owned()),
    }
}

fn batch(result: &Element) -> Result<Vec<(String, Outcome)>, Error> {
    let sent = result.all("SendMessageBatchResultEntry").map(|entry| {
        let md5 = required(entry, "MD5OfMessageBody")?;
        Ok((required(entry, "Id")?, Outcome::Sent(md5)))
    });
    let refused = result.all("BatchResultErrorEntry").map(|entry| {
        let message = entry.text_of("Message").to_owned();
        let outcome = Outcome::Refused(required(entry, "Code")?, message);
        Ok((required(entry, "Id")?, outcome))
    });
    sent.chain(refused).collect()
}

fn message(element: &Element) -> Result<Message, Error> {
    let count = element
        .all("Attribute")
        .find(|attribute| attribute.text_of("Name") == "ApproximateReceiveCount")
        .and_then(|attribute| attribute.text_of("Value").trim().parse().ok());
    Ok(Message {
        body: element.text_of("Body").to_owned(),
        receipt_handle: required(element, "ReceiptHandle")?,
        md5: required(element, "MD5OfBody")?,
        receive_count: count,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::super::encoding::form;
    use super::*;

    fn encoded(action: &Action<'_>) -> String {
        let parameters = parameters(action);
        form(
            parameters
                .iter()
                .map(|(name, value)| (name.as_ref(), value.as_ref())),
        )
    }

    #[test]
    fn calls_become_forms() {
        let (queue, body) = ("http://sqs/0/q", "a=b&c");
        assert_eq!(
            encoded(&Action::SendMessage { queue, body }),
            "Action=SendMessage&Version=2012-11-05&MessageBody=a%3Db%26c"
        );
        let entry = |id: &str| Entry {
            id: id.into(),
            body: format!("body {id}"),
        };
        let entries = &[entry("x"), entry("y")];
        let batch = encoded(&Action::SendMessageBatch { queue, entries });
        assert!(batch.ends_with(
            "&SendMessageBatchRequestEntry.2.Id=y&SendMessageBatchRequestEntry.2.MessageBody=body%20y"
        ));
    }

    #[test]
    fn answers_are_read_under_any_namespace() {
        let action = Action::CreateQueue { name: "q" };
        let xml = b"<CreateQueueResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">\
            <CreateQueueResult><QueueUrl> http://sqs/0/q </QueueUrl></CreateQueueResult>\
            <ResponseMetadata><RequestId>7</RequestId></ResponseMetadata></CreateQueueResponse>";
        let expected = Answer::Queue("http://sqs/0/q".into());
        assert_eq!(answer(&action, xml).unwrap(), expected);
        assert!(answer(&action, b"<CreateQueueResponse/>").is_err());
        let other = answer(&Action::GetQueueUrl { name: "q" }, xml).unwrap_err();
        assert!(other.to_string().contains("<GetQueueUrlResponse>"));
    }

    #[test]
    fn messages_are_read_with_their_receive_count() {
        let action = Action::ReceiveMessage {
            queue: "",
            max: 10,
            wait_seconds: 0,
        };
        let xml =
            b"<ReceiveMessageResponse><ReceiveMessageResult><Message><MessageId>i</MessageId>\
            <ReceiptHandle>h</ReceiptHandle><MD5OfBody>m</MD5OfBody><Body>&amp; </Body><Attribute>\
            <Name>ApproximateReceiveCount</Name><Value>2</Value></Attribute></Message>\
            </ReceiveMessageResult></ReceiveMessageResponse>";
        let Answer::Messages(messages) = answer(&action, xml).unwrap() else {
            panic!("other answer");
        };
        assert_eq!(messages[0].body, "& ");
        assert!(messages[0].is_redelivered());
        let none = b"<ReceiveMessageResponse><ReceiveMessageResult/></ReceiveMessageResponse>";
        assert_eq!(answer(&action, none).unwrap(), Answer::Messages(vec![]));
    }

    #[test]
    fn a_batch_may_fail_in_part() {
        let action = Action::SendMessageBatch {
            queue: "",
            entries: &[],
        };
        let xml = b"<SendMessageBatchResponse><SendMessageBatchResult><SendMessageBatchResultEntry>\
            <Id>0</Id><MD5OfMessageBody>m</MD5OfMessageBody></SendMessageBatchResultEntry>\
            <BatchResultErrorEntry><Id>1</Id><Code>InternalError</Code><SenderFault>false\
            </SenderFault></BatchResultErrorEntry></SendMessageBatchResult></SendMessageBatchResponse>";
        let outcomes = vec![
            ("0".into(), Outcome::Sent("m".into())),
            (
                "1".into(),
                Outcome::Refused("InternalError".into(), String::new()),
            ),
        ];
        assert_eq!(answer(&action, xml).unwrap(), Answer::Batch(outcomes));
    }

    #[test]
    fn errors_are_read_from_whatever_comes() {
        let xml = b"<ErrorResponse><Error><Type>Sender</Type>\
            <Code>AWS.SimpleQueueService.NonExistentQueue</Code><Message>No.</Message></Error>\
            </ErrorResponse>";
        let code = |body: &[u8]| error(400, body).code().to_owned();
        assert_eq!(code(xml), "AWS.SimpleQueueService.NonExistentQueue");
        assert_eq!(code(b"<html><p>Bad Gateway</html>"), "HTTP 400");
        assert_eq!(code(b""), "HTTP 400");
    }
}
