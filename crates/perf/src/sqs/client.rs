//! Calls: sent, tried again, read, checked, and counted where they fail.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use super::encoding::md5_hex;
use super::http::Pool;
use super::{Action, Answer, Credentials, Endpoint, Entry, Error, Message, Outcome};
use super::{json, query, request};

/// Codes of errors that are told apart; a service could make up any number of them.
const MOST_CODES: usize = 32;
/// The first pause before a call is tried again; each following one is twice as long, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// The Query protocol, with either signature.
    Query(Signature),
    /// AWS JSON 1.0, which is signed with version 4.
    Json,
}

/// How calls are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Signature {
    /// Signature Version 2: a parameter.
    V2,
    /// Signature Version 4: a header.
    V4,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Query(Signature::V2) => "query v2",
            Protocol::Query(Signature::V4) => "query v4",
            Protocol::Json => "json",
        })
    }
}

/// What a client is told beforehand.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the service is.
    pub endpoint: Endpoint,
    /// The region that is signed for.
    pub region: String,
    /// Who signs.
    pub credentials: Credentials,
    /// How to speak.
    pub protocol: Protocol,
    /// How long one attempt may take, connecting included; waiting for messages comes on top.
    pub timeout: Duration,
    /// How often a call is tried again that failed for a moment only.
    pub retries: u32,
}

/// A client of one service in one region.
pub struct Client {
    options: Options,
    pool: Pool,
    errors: RefCell<BTreeMap<String, u64>>,
    retried: Cell<u64>,
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(options: Options) -> Result<Client, Error> {
        Ok(Client {
            pool: Pool::new(&options.endpoint)?,
            options,
            errors: RefCell::default(),
            retried: Cell::new(0),
        })
    }

    /// Where it sends its calls.
    pub fn endpoint(&self) -> &Endpoint {
        &self.options.endpoint
    }

    /// The failures since the last time, of attempts and of single messages, by [`Error::code`]; and
    /// how often a call was tried again.
    pub fn take_failures(&self) -> (BTreeMap<String, u64>, u64) {
        (self.errors.take(), self.retried.take())
    }

    /// Creates a queue and returns its URL.
    pub async fn create_queue(&self, name: &str) -> Result<String, Error> {
        self.queue(Action::CreateQueue { name }).await
    }

    /// Looks up a queue's URL.
    pub async fn get_queue_url(&self, name: &str) -> Result<String, Error> {
        self.queue(Action::GetQueueUrl { name }).await
    }

    async fn queue(&self, action: Action<'_>) -> Result<String, Error> {
        match self.call(action).await? {
            // What no call can be sent to must not be found out by the first message.
            Answer::Queue(url) => Endpoint::queue_path(&url).map(|_| url),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a message, and checks that its body arrived as it was.
    pub async fn send_message(&self, queue: &str, body: &str) -> Result<(), Error> {
        match self.call(Action::SendMessage { queue, body }).await? {
            Answer::Sent(md5) => self.noted(check_md5(body, &md5)),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends up to ten messages; returns what became of each.
    pub async fn send_message_batch(
        &self,
        queue: &str,
        entries: &[Entry],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let action = Action::SendMessageBatch { queue, entries };
        let Answer::Batch(outcomes) = self.call(action).await? else {
            return Err(unexpected(&Answer::Done));
        };
        let mut outcomes: BTreeMap<String, Outcome> = outcomes.into_iter().collect();
        let results = entries
            .iter()
            .map(|entry| match outcomes.remove(&entry.id) {
                Some(Outcome::Sent(md5)) => self.noted(check_md5(&entry.body, &md5)),
                Some(Outcome::Refused(code, message)) => {
                    self.noted(Err(Error::refused(200, &code, &message)))
                }
                None => self.noted(Err(Error::Malformed("an entry has no outcome".into()))),
            });
        Ok(results.collect())
    }

    /// Asks for up to `max` messages and waits so long for the first. A message whose body is not
    /// what its MD5 says is counted as an error and left out.
    pub async fn receive_message(
        &self,
        queue: &str,
        max: u8,
        wait_seconds: u8,
    ) -> Result<Vec<Message>, Error> {
        let action = Action::ReceiveMessage {
            queue,
            max,
            wait_seconds,
        };
        let Answer::Messages(mut messages) = self.call(action).await? else {
            return Err(unexpected(&Answer::Done));
        };
        messages.retain(|message| self.noted(check_md5(&message.body, &message.md5)).is_ok());
        Ok(messages)
    }

    /// Deletes a message that was received.
    pub async fn delete_message(&self, queue: &str, receipt_handle: &str) -> Result<(), Error> {
        let action = Action::DeleteMessage {
            queue,
            receipt_handle,
        };
        self.call(action).await.map(drop)
    }

    /// Deletes a queue.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), Error> {
        self.call(Action::DeleteQueue { queue }).await.map(drop)
    }

    /// Carries out a call, trying again as often as the options say.
    pub async fn call(&self, action: Action<'_>) -> Result<Answer, Error> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..self.options.retries {
            match self.attempt(&action).await {
                Err(error) if error.is_transient() => {}
                result => return result,
            }
            self.retried.set(self.retried.get() + 1);
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.attempt(&action).await
    }

    async fn attempt(&self, action: &Action<'_>) -> Result<Answer, Error> {
        let mut limit = self.options.timeout;
        if let Action::ReceiveMessage { wait_seconds, .. } = action {
            limit += Duration::from_secs(u64::from(*wait_seconds));
        }
        let exchange = async {
            let request = request::write(&self.options, action, &crate::clock::timestamp())?;
            let response = self.pool.call(request).await?;
            self.answer(action, &response)
        };
        let result = tokio::time::timeout(limit, exchange).await;
        self.noted(result.unwrap_or(Err(Error::Timeout(limit))))
    }

    fn answer(&self, action: &Action<'_>, response: &Response<Bytes>) -> Result<Answer, Error> {
        let (status, body) = (response.status(), response.body());
        let header = |name: &str| response.headers().get(name).map(HeaderValue::to_str);
        match (self.options.protocol, status == StatusCode::OK) {
            (Protocol::Query(_), true) => query::answer(action, body),
            (Protocol::Query(_), false) => Err(query::error(status.as_u16(), body)),
            (Protocol::Json, true) => json::answer(action, body),
            (Protocol::Json, false) => {
                let code = header("x-amzn-query-error").and_then(Result::ok);
                Err(json::error(status.as_u16(), code, body))
            }
        }
    }

    /// Counts a failure.
    fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result {
            let mut errors = self.errors.borrow_mut();
            let code = match errors.len() < MOST_CODES || errors.contains_key(error.code()) {
                true => error.code(),
                false => "others",
            };
            *errors.entry(code.to_owned()).or_default() += 1;
        }
        result
    }
}

fn check_md5(body: &str, found: &str) -> Result<(), Error> {
    let expected = md5_hex(body);
    match expected.eq_ignore_ascii_case(found) {
        true => Ok(()),
        false => Err(Error::Md5 {
            expected,
            found: found.chars().take(32).collect(),
        }),
    }
}

/// Between half of a pause and all of it, so that calls that failed together do not return together.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

fn unexpected(answer: &Answer) -> Error {
    Error::Malformed(format!("{answer:?} answers another call"))
}
