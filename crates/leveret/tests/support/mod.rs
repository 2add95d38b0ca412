//! What the tests in this folder share: a broker, connections to it, a limit on their time.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod durable;
pub mod folder;
pub mod in_process;
pub mod refused;
pub mod routes;
pub mod rules;
pub mod slow_disk;
pub mod small_disk;

use std::future::Future;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use client::{
    Confirm, Connection, Event, Options, Properties, PublishFlags, QueueInfo, QueueOptions,
};
use testkit::{Broker, Builder};

/// Runs a test; one that hangs fails after `limit`.
pub fn within(limit: Duration, test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    // Panics with the test still there, so that its brokers show their logs.
    let mut test = pin!(test);
    let ended = runtime.block_on(async { tokio::time::timeout(limit, test.as_mut()).await });
    ended.unwrap_or_else(|_| panic!("the test took longer than {limit:?}"));
}

/// Seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Milliseconds.
pub const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// How to start the broker under test.
pub fn builder() -> Builder {
    Broker::builder(env!("CARGO_BIN_EXE_leveret"))
}

/// A broker most of whose backlogs lie in segments.
pub fn with_little_memory() -> Builder {
    builder()
        .config("leveret.queue_memory = 1MiB")
        .config("leveret.log_file_size = 4MiB")
        .config("leveret.log_size = 16MiB")
}

/// A broker with defaults, which all tests of a file that run at the same time share. It stops with
/// the last of them.
pub fn shared() -> Arc<Broker> {
    static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(broker) = shared.upgrade() {
        return broker;
    }
    let broker = Arc::new(builder().start().expect("a broker"));
    *shared = Arc::downgrade(&broker);
    broker
}

/// Waits until a broker ends by itself, without keeping the test's clients from running; returns
/// its status and its log.
pub async fn end_of(mut broker: Broker, limit: Duration) -> (ExitStatus, String) {
    let waiting = tokio::task::spawn_blocking(move || {
        let status = broker.wait(limit).unwrap_or_else(|error| panic!("{error}"));
        (status, broker.log())
    });
    waiting.await.expect("the broker ended")
}

/// How to reach a broker. Without heartbeats: a test may well be busy elsewhere.
pub fn options(broker: &Broker) -> Options {
    let options: Options = broker.uri().parse().expect("the broker's own URI");
    Options {
        heartbeat: 0,
        ..options
    }
}

/// An open connection.
pub async fn connect(broker: &Broker) -> Connection {
    connect_with(&options(broker)).await
}

/// An open connection.
pub async fn connect_with(options: &Options) -> Connection {
    let connected = Connection::connect(options).await;
    connected.unwrap_or_else(|error| panic!("{error}"))
}

/// An open connection, and a channel of it.
pub async fn open(broker: &Broker) -> (Connection, u16) {
    let mut connection = connect(broker).await;
    let channel = connection.open_channel().await.expect("a channel");
    (connection, channel)
}

/// Declares a transient queue.
pub async fn declare(connection: &mut Connection, channel: u16, queue: &str) {
    let declared = connection
        .declare_queue(channel, queue, &QueueOptions::default())
        .await;
    declared.unwrap_or_else(|error| panic!("{queue}: {error}"));
}

/// What the broker says of a queue.
pub async fn look_at(connection: &mut Connection, channel: u16, queue: &str) -> QueueInfo {
    let passive = QueueOptions {
        passive: true,
        ..QueueOptions::default()
    };
    let found = connection.declare_queue(channel, queue, &passive).await;
    found.unwrap_or_else(|error| panic!("{queue}: {error}"))
}

/// Publishes to a queue, by way of the default exchange.
pub fn publish(connection: &mut Connection, channel: u16, queue: &str, body: &[u8]) {
    let (flags, none) = (PublishFlags::NONE, Properties::default());
    connection
        .publish(channel, "", queue, flags, none, body)
        .expect("short names");
}

/// Waits until the broker has acted on everything that was sent on the channel.
pub async fn synchronize(connection: &mut Connection, channel: u16) {
    let active = client::method::channel::Flow { active: true };
    connection
        .call::<client::method::channel::FlowOk>(channel, active)
        .await
        .expect("channel.flow-ok");
}

/// A delivery that owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub channel: u16,
    pub tag: u64,
    pub redelivered: bool,
    pub consumer: String,
    pub body: Vec<u8>,
}

impl Received {
    /// The number that the body begins with; see [`numbered`].
    pub fn number(&self) -> u64 {
        number(&self.body)
    }
}

/// The number that a body begins with; see [`numbered`].
pub fn number(body: &[u8]) -> u64 {
    let first = body.first_chunk().expect("a body of eight bytes at least");
    u64::from_be_bytes(*first)
}

/// A body of `len` bytes that begins with a number.
pub fn numbered(number: u64, len: usize) -> Vec<u8> {
    let mut body = vec![0; len.max(8)];
    body[..8].copy_from_slice(&number.to_be_bytes());
    body
}

/// Takes over a delivery; `None` for other events.
pub fn received(event: &Event<'_>) -> Option<Received> {
    match event {
        Event::Delivery(delivery) => Some(Received {
            channel: delivery.channel,
            tag: delivery.delivery_tag,
            redelivered: delivery.redelivered,
            consumer: delivery.consumer_tag.lossy().into_owned(),
            body: delivery.body.to_vec(),
        }),
        _ => None,
    }
}

/// The next event, which has to be a delivery.
pub async fn receive(connection: &mut Connection) -> Received {
    let event = connection.next().await.expect("an event");
    received(&event).unwrap_or_else(|| panic!("a delivery expected, got {event:?}"))
}

/// The next `count` events, which have to be deliveries.
pub async fn receive_all(connection: &mut Connection, count: usize) -> Vec<Received> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(receive(connection).await);
    }
    all
}

/// Nothing comes for a while.
pub async fn assert_quiet(connection: &mut Connection) {
    match tokio::time::timeout(millis(150), connection.next()).await {
        Err(_) => {}
        Ok(event) => panic!("silence expected, got {event:?}"),
    }
}

/// The broker confirms in order, so one number says what is confirmed.
pub fn confirmed_up_to(before: u64, confirm: &Confirm) -> u64 {
    let tag = confirm.delivery_tag;
    match confirm.multiple {
        true => assert!(tag > before, "{tag} was confirmed before"),
        false => assert_eq!(tag, before + 1, "confirms are not in order"),
    }
    tag
}

/// Takes events until the wanted one comes, dropping the others.
pub async fn until<R>(
    connection: &mut Connection,
    mut wanted: impl FnMut(&Event<'_>) -> Option<R>,
) -> R {
    loop {
        let event = connection.next().await.expect("an event");
        if let Some(found) = wanted(&event) {
            return found;
        }
    }
}

/// True for a reply of that name, such as `basic.cancel-ok`.
pub fn is_reply(event: &Event<'_>, name: &str) -> bool {
    matches!(event, Event::Reply { method, .. } if method.name() == name)
}

/// Asks again and again until the answer is yes.
pub async fn eventually(what: &str, limit: Duration, mut check: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !check().await {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(millis(5)).await;
    }
}

/// Sockets that the broker has open: one for each listener and each connection.
pub fn open_sockets(broker: &Broker) -> usize {
    let folder = format!("/proc/{}/fd", broker.pid());
    let files = std::fs::read_dir(folder).expect("a running broker");
    files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

/// The broker serves a new client, and nothing in it has panicked.
pub async fn assert_healthy(broker: &Broker) {
    let (mut connection, channel) = open(broker).await;
    let queue = connection
        .declare_queue(channel, "", &QueueOptions::exclusive())
        .await
        .expect("a queue");
    publish(&mut connection, channel, &queue.name, b"are you well?");
    let message = connection
        .get(channel, &queue.name, true)
        .await
        .expect("an answer");
    assert_eq!(message.expect("a message").body, b"are you well?");
    connection.close().await.expect("an orderly close");
    let log = broker.log();
    assert!(!log.contains("panicked"), "{log}");
}
