//! What the lapin tests share: the broker's address, a session that cleans up after itself, and
//! calls with a time limit. Helpers panic, since a failed one fails the test that called it.

use std::{
    env,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties, Consumer, Error, ErrorKind,
    ExchangeKind,
    message::{BasicGetMessage, Delivery},
    options::{
        BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, ExchangeDeclareOptions,
        ExchangeDeleteOptions, QueueDeclareOptions,
    },
    types::{FieldTable, ShortString},
};
use tokio::time::timeout;
use tokio_stream::StreamExt;

const TEST_LIMIT: Duration = Duration::from_secs(15);
/// How long something that must arrive may take.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// How long nothing must arrive where nothing should.
const QUIET_TIME: Duration = Duration::from_millis(200);

/// Connects as guest to the broker at `AMQP_HOST` and `AMQP_PORT`, in one attempt.
pub async fn connect(password: &str) -> lapin::Result<Connection> {
    let host = env::var("AMQP_HOST").unwrap_or_else(|_| "127.0.0.1".into());
    let port = env::var("AMQP_PORT").unwrap_or_else(|_| "5672".into());
    let uri = format!("amqp://guest:{password}@{host}:{port}/%2f");
    let attempt = Connection::connect(&uri, ConnectionProperties::default());
    timeout(WAIT_LIMIT, attempt)
        .await
        .expect("connecting took too long")
}

pub fn unique_name(purpose: &str) -> ShortString {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("interop.rust.{purpose}.{}.{number}", std::process::id()).into()
}

/// One connection and what was declared through it. Queues are exclusive, so they go with the
/// connection; exchanges are deleted at the end.
pub struct Session {
    pub connection: Connection,
    /// Kept until the end: dropping a channel closes it in the background, and lapin's
    /// `connection.close` fails when it meets a channel on its way out.
    channels: Mutex<Vec<Channel>>,
    exchanges: Mutex<Vec<ShortString>>,
}

impl Session {
    /// Runs a test's body with a session of its own, within the time a test may take.
    pub async fn run(body: impl AsyncFnOnce(&Session)) {
        let connection = connect("guest").await.expect("connect");
        let session = Session {
            connection,
            channels: Mutex::default(),
            exchanges: Mutex::default(),
        };
        timeout(TEST_LIMIT, async {
            body(&session).await;
            session.close().await;
        })
        .await
        .expect("the test took too long");
    }

    pub async fn channel(&self) -> Channel {
        let channel = self
            .connection
            .create_channel()
            .await
            .expect("channel.open");
        self.channels
            .lock()
            .expect("no panic holds it")
            .push(channel.clone());
        channel
    }

    /// Declares an exclusive queue under a fresh name, and returns the name.
    pub async fn queue(&self, channel: &Channel) -> ShortString {
        let name = unique_name("queue");
        let options = QueueDeclareOptions::exclusive();
        let declared = channel
            .queue_declare(name, options, FieldTable::default())
            .await;
        declared.expect("queue.declare").name().clone()
    }

    /// Declares an exchange under a fresh name, and returns the name.
    pub async fn exchange(&self, channel: &Channel, kind: ExchangeKind) -> ShortString {
        let name = unique_name("exchange");
        let options = ExchangeDeclareOptions::default();
        let declared = channel.exchange_declare(name.clone(), kind, options, FieldTable::default());
        declared.await.expect("exchange.declare");
        self.exchanges
            .lock()
            .expect("no panic holds it")
            .push(name.clone());
        name
    }

    async fn close(&self) {
        let exchanges = std::mem::take(&mut *self.exchanges.lock().expect("no panic holds it"));
        if !exchanges.is_empty() {
            let channel = self.channel().await;
            for name in exchanges {
                let deleted = channel.exchange_delete(name, ExchangeDeleteOptions::default());
                deleted.await.expect("exchange.delete");
            }
        }
        self.connection
            .close(200, "done".into())
            .await
            .expect("connection.close");
    }
}

/// Publishes without waiting for a confirm.
pub async fn publish(channel: &Channel, exchange: &ShortString, key: &ShortString, body: &str) {
    send(
        channel,
        exchange,
        key,
        body.as_bytes(),
        BasicProperties::default(),
    )
    .await;
}

pub async fn publish_all(channel: &Channel, queue: &ShortString, bodies: &[String]) {
    for body in bodies {
        publish(channel, &"".into(), queue, body).await;
    }
}

pub async fn send(
    channel: &Channel,
    exchange: &ShortString,
    key: &ShortString,
    body: &[u8],
    properties: BasicProperties,
) {
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(exchange.clone(), key.clone(), options, body, properties);
    drop(sent.await.expect("basic.publish"));
}

pub async fn consume(channel: &Channel, queue: &ShortString, no_ack: bool) -> Consumer {
    let options = BasicConsumeOptions {
        no_ack,
        ..Default::default()
    };
    let tag = unique_name("consumer");
    let consumer = channel
        .basic_consume(queue.clone(), tag, options, FieldTable::default())
        .await;
    consumer.expect("basic.consume")
}

/// The next delivery, or `None` once the consumer is cancelled.
pub async fn next_or_end(consumer: &mut Consumer) -> Option<Delivery> {
    let next = timeout(WAIT_LIMIT, consumer.next())
        .await
        .expect("no delivery in time");
    next.map(|delivery| delivery.expect("delivery"))
}

pub async fn next(consumer: &mut Consumer) -> Delivery {
    next_or_end(consumer).await.expect("the consumer has ended")
}

pub async fn take(consumer: &mut Consumer, count: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::with_capacity(count);
    for _ in 0..count {
        deliveries.push(next(consumer).await);
    }
    deliveries
}

/// Fails if anything comes while the broker has time to send it.
pub async fn stays_empty(consumer: &mut Consumer) {
    if let Ok(unexpected) = timeout(QUIET_TIME, consumer.next()).await {
        panic!("unexpected delivery {unexpected:?}");
    }
}

pub async fn get_or_empty(
    channel: &Channel,
    queue: &ShortString,
    no_ack: bool,
) -> Option<BasicGetMessage> {
    channel
        .basic_get(queue.clone(), BasicGetOptions { no_ack })
        .await
        .expect("basic.get")
}

pub async fn get(channel: &Channel, queue: &ShortString, no_ack: bool) -> BasicGetMessage {
    get_or_empty(channel, queue, no_ack)
        .await
        .expect("the queue is empty")
}

/// The messages ready for delivery; those delivered and not yet acknowledged do not count.
pub async fn ready_count(channel: &Channel, queue: &ShortString) -> u32 {
    let options = QueueDeclareOptions::default().passive();
    let state = channel
        .queue_declare(queue.clone(), options, FieldTable::default())
        .await;
    state.expect("passive queue.declare").message_count()
}

/// `m0`, `m1`, …: bodies whose order can be checked.
pub fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("m{i}")).collect()
}

pub fn text(body: &[u8]) -> &str {
    str::from_utf8(body).expect("a text body")
}

pub fn texts(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries
        .iter()
        .map(|delivery| text(&delivery.data))
        .collect()
}

/// The code and text of the error that the broker sent.
pub fn broker_error(error: &Error) -> (u16, String) {
    match error.kind() {
        ErrorKind::ProtocolError(sent) => (sent.get_id(), sent.get_message().to_string()),
        _ => panic!("not an error from the broker: {error}"),
    }
}
