//! A connection: one task that reads, acts, and writes.
//!
//! Each wake it (1) writes what is left to write, (2) encodes what its outbox holds, (3) reads
//! what has arrived, up to a few buffers, and acts on every complete frame; then again, until the
//! socket and the outbox have nothing more. Output that the client does not take stops both the
//! outbox and the reading, so a slow client costs a bounded amount of memory.

mod awaiting;
mod buffers;
mod core;
mod frames;
mod held;
mod methods;
mod output;
mod sent;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ahash::HashMap;
use amqp::{ReplyCode, frame};
use broker::{ConsumerHandle, Delivery, Origin, Outgoing, ShardHandle};
use store::Lsn;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::channel::Channel;
use crate::exception::Exception;
use crate::heartbeat::{Beat, Heartbeat};

use self::awaiting::What;
pub(crate) use self::core::{Consumer, Core, Negotiated};
use self::held::Held;
pub(crate) use self::methods::second_open;
pub(crate) use self::output::{Output, SHARED_BODY};

/// Unwritten bytes above which nothing more is encoded or read.
const MAX_UNWRITTEN: usize = 256 * 1024;
/// Rounds of reading and writing after which other tasks get a turn.
const ROUNDS_PER_WAKE: usize = 8;
/// Bytes of input that are held while they cannot be acted on.
const MAX_HELD: usize = 64 * 1024;
/// How long a client may take to answer connection.close, or to take what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the connection stands.
enum Phase {
    Open,
    /// connection.close was sent; everything but close-ok is dropped.
    Closing(Pin<Box<Sleep>>),
    /// Write what is left, then end.
    Finishing(Pin<Box<Sleep>>),
}

/// How a connection ended, for the log.
#[derive(Debug)]
pub(crate) enum End {
    /// One side closed it as the protocol says.
    Closed,
    /// The client went without a word.
    Vanished,
    /// No heartbeat came.
    Silent,
    /// No answer to connection.close came.
    Unanswered,
    /// The socket failed.
    Failed(io::Error),
}

/// An open connection.
pub(crate) struct Connection {
    stream: TcpStream,
    core: Core,
    channels: HashMap<u16, Box<Channel>>,
    /// What was read and not acted on: the start of a frame whose rest has not arrived.
    partial: Vec<u8>,
    /// `partial` holds whole frames: their answers had no room in the output.
    held_back: bool,
    /// How far the log must come before more is read from this publisher.
    waiting_for_room: Option<Lsn>,
    /// Frames of channels that wait for the log.
    held: Held,
    /// That it holds frames of this channel, which waits for the log; there were too many.
    held_for: Option<u16>,
    /// The body frame that is arriving in parts.
    body: Option<frames::PartialBody>,
    phase: Phase,
    heartbeat: Option<Heartbeat>,
    /// The client was told that it is blocked.
    told_blocked: bool,
    items: Vec<Outgoing>,
    stalled: Vec<ConsumerHandle>,
}

impl Connection {
    pub fn new(stream: TcpStream, core: Core, heartbeat_s: u16, leftover: Vec<u8>) -> Self {
        Connection {
            stream,
            core,
            channels: HashMap::default(),
            held_back: !leftover.is_empty(),
            partial: leftover,
            waiting_for_room: None,
            held: Held::default(),
            held_for: None,
            body: None,
            phase: Phase::Open,
            heartbeat: Heartbeat::new(heartbeat_s),
            told_blocked: false,
            items: Vec::new(),
            stalled: Vec::new(),
        }
    }

    /// Who it is, and where.
    pub fn session(&self) -> &broker::Session {
        &self.core.session
    }

    /// Runs until the connection ends. Dropping cleans up after it.
    pub async fn run(mut self) -> End {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.core.outbox.register(cx.waker());
        buffers::lend(self.core.out.encoded());
        let result = self.poll_rounds(cx);
        buffers::give_back(self.core.out.encoded());
        match result {
            // The round may have set the deadline, and nobody else waits for it.
            Poll::Pending => self.poll_deadline(cx),
            ended => ended,
        }
    }

    fn poll_rounds(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(end) = self.poll_timers(cx) {
            return Poll::Ready(end);
        }
        let connections = &self.core.broker.connections;
        if matches!(self.phase, Phase::Open)
            && let Some(reason) = connections.must_end(self.core.session.connection)
        {
            self.close(Exception::new(ReplyCode::ConnectionForced, &*reason));
        }
        for _ in 0..ROUNDS_PER_WAKE {
            let mut progress = false;
            let writing = match self.poll_write(cx) {
                Poll::Ready(Err(error)) => return Poll::Ready(End::Failed(error)),
                Poll::Ready(Ok(())) if matches!(self.phase, Phase::Finishing(_)) => {
                    return Poll::Ready(End::Closed);
                }
                Poll::Ready(Ok(())) => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            };
            if !matches!(self.phase, Phase::Finishing(_)) {
                // Before the outbox, which may fill the output again and again: a cancel or an
                // acknowledgement must not wait for the end of a backlog.
                match self.poll_input(cx) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(self.ended_by_client()),
                    Poll::Ready(Ok(_)) => progress = true,
                    Poll::Ready(Err(error)) => return Poll::Ready(End::Failed(error)),
                    Poll::Pending => {}
                }
                let read = progress;
                progress |= self.drain_outbox();
                // Waiting has the log written: rather once, for all that has come.
                if !read {
                    progress |= self.say_what_is_logged(cx);
                    progress |= self.act_on_held();
                }
            }
            // Sleep only when every source of work will wake this task: the outbox is empty or
            // the socket is full, and nothing that can be written is left.
            if !progress && (writing.is_pending() || self.unwritten() == 0) {
                return Poll::Pending;
            }
        }
        self.say_what_is_logged(cx);
        self.act_on_held();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn ended_by_client(&self) -> End {
        match self.phase {
            Phase::Open => End::Vanished,
            Phase::Closing(_) | Phase::Finishing(_) => End::Closed,
        }
    }

    /// Ready where the client lets us wait for the end.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match &mut self.phase {
            Phase::Open => Poll::Pending,
            Phase::Closing(deadline) | Phase::Finishing(deadline) => {
                deadline.as_mut().poll(cx).map(|()| End::Unanswered)
            }
        }
    }

    /// Ready where the client has been silent for too long.
    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(end) = self.poll_deadline(cx) {
            return Poll::Ready(end);
        }
        if self.partial.len() >= MAX_HELD {
            // It may be sending, and it is we who do not read.
            self.heard();
        }
        while let Some(heartbeat) = &mut self.heartbeat {
            match ready!(heartbeat.poll(cx)) {
                Beat::PeerIsGone => return Poll::Ready(End::Silent),
                // With output waiting the client does not lack signs of life.
                Beat::Send if self.unwritten() == 0 => {
                    self.core.out.encoded().extend_from_slice(&frame::HEARTBEAT);
                }
                Beat::Send => {}
            }
        }
        Poll::Pending
    }

    fn unwritten(&self) -> usize {
        self.core.out.unwritten()
    }

    /// Writes until everything is written or the socket takes no more.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = self.unwritten();
        let result = self.core.out.poll_write(Pin::new(&mut self.stream), cx);
        self.core.sent.written(self.core.out.total_written());
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.sent |= self.core.out.unwritten() < before;
        }
        result
    }

    /// Something came from the client.
    fn heard(&mut self) {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.received = true;
        }
    }

    /// Acts on what was held back, or else reads once and acts on what came; the count of bytes,
    /// 0 at the end of the stream.
    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.publisher_is_blocked()
            || self.unwritten() > MAX_UNWRITTEN
            || self.held_for.is_some_and(|channel| self.is_held(channel))
            || !self.has_room(cx)
        {
            return self.poll_held(cx);
        }
        self.held_for = None;
        if !self.held_back {
            return self.poll_read(cx);
        }
        let held = std::mem::take(&mut self.partial);
        self.received(&held);
        Poll::Ready(Ok(held.len()))
    }

    /// True unless this connection publishes more than the disk can take.
    fn has_room(&mut self, cx: &Context<'_>) -> bool {
        if !self.core.has_published || !matches!(self.phase, Phase::Open) {
            return true;
        }
        let store = &self.core.broker.store;
        store.wait_for_room(cx.waker(), &mut self.waiting_for_room)
    }

    /// Sends what waited for the log, and sees to being woken for the rest; true if anything was
    /// sent.
    fn say_what_is_logged(&mut self, cx: &Context<'_>) -> bool {
        let mut progress = false;
        while let Some(positions) = self.core.awaiting.next() {
            let store = &self.core.broker.store;
            let Some(missing) = positions.missing(store) else {
                self.say_next();
                progress = true;
                continue;
            };
            if self.core.awaiting.registered == Some(missing) {
                break;
            }
            let (lsn, durability) = missing;
            if !store.wait(lsn, durability, cx.waker()) {
                self.core.awaiting.registered = Some(missing);
                break;
            }
        }
        progress
    }

    /// Sends the first thing that waited; of several confirms of one channel only the last.
    fn say_next(&mut self) {
        let store = self.core.broker.store.clone();
        let take = |core: &mut Core| core.awaiting.take(|positions| positions.reached(&store));
        let mut confirmed: Option<(u16, u64, u32)> = None;
        while let Some((channel, what)) = take(&mut self.core) {
            match what {
                What::Confirmed(up_to) => match &mut confirmed {
                    Some((same, last, entries)) if *same == channel => {
                        *last = up_to;
                        *entries += 1;
                    }
                    other => {
                        let before = other.replace((channel, up_to, 1));
                        self.confirm(before);
                    }
                },
                What::Reply(reply) => self.core.out.encoded().extend_from_slice(&reply),
            }
        }
        self.confirm(confirmed);
    }

    fn confirm(&mut self, confirmed: Option<(u16, u64, u32)>) {
        if let Some((channel, up_to, entries)) = confirmed
            && let Some(channel) = self.channels.get_mut(&channel)
        {
            channel.confirm_up_to(&mut self.core, up_to, entries);
        }
    }

    /// Reads what is not acted on now, for its heartbeats; up to a bound.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.partial.len() >= MAX_HELD {
            return Poll::Pending;
        }
        let mut chunk = [0; 4_096];
        let mut buffer = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        self.heard();
        self.held_back = true;
        self.partial.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let partial = std::mem::take(&mut self.partial);
        buffers::with_input(self.core.frame_max, partial, |mut input| {
            let mut buffer = ReadBuf::new(input.free());
            if Pin::new(&mut self.stream)
                .poll_read(cx, &mut buffer)?
                .is_pending()
            {
                self.partial = input.keep_partial();
                return Poll::Pending;
            }
            let count = buffer.filled().len();
            self.heard();
            if count > 0 {
                self.received(input.filled(count));
            }
            Poll::Ready(Ok(count))
        })
    }

    /// Acts on bytes from the client; keeps the incomplete frame at their end, and frames whose
    /// answers would find no room.
    fn received(&mut self, bytes: &[u8]) {
        self.held_back = false;
        let consumed = match self.frames(bytes) {
            Ok(consumed) => consumed,
            Err(exception) => {
                self.close(exception);
                bytes.len()
            }
        };
        self.finish_batch();
        self.partial.extend_from_slice(&bytes[consumed..]);
    }

    /// Hands over what was gathered while acting on a batch of frames.
    fn finish_batch(&mut self) {
        self.core.publisher.flush();
        for number in std::mem::take(&mut self.core.touched) {
            if let Some(channel) = self.channels.get_mut(&number) {
                channel.flush_touched(&mut self.core);
            }
        }
    }

    /// Encodes what queues have put into the outbox; true if there was anything.
    fn drain_outbox(&mut self) -> bool {
        if self.unwritten() > MAX_UNWRITTEN {
            return false;
        }
        let mut items = std::mem::take(&mut self.items);
        let mut stalled = std::mem::take(&mut self.stalled);
        self.core.outbox.drain(&mut items, &mut stalled);
        let count = items.len();
        if count > 0 && self.core.session.vhost.is_traced() {
            self.trace(&items);
        }
        let (mut timed_out, mut rebalanced) = (Vec::new(), Vec::new());
        for item in items.drain(..) {
            match item {
                Outgoing::Delivery(delivery) => self.deliver(&delivery),
                Outgoing::Cancelled(handle) => self.consumer_cancelled(handle),
                Outgoing::TimedOut(handle, after) => timed_out.push((handle, after)),
                Outgoing::Rebalance(handle) => rebalanced.push(handle),
            }
        }
        let position = self.core.out.total_written() + self.unwritten() as u64;
        self.core.sent.encoded_up_to(position);
        // Consumers may end by them. What was on its way to those has been sent by now, or is in
        // the outbox, where it is found.
        for (handle, after) in timed_out {
            self.time_out(handle, after);
        }
        for handle in rebalanced {
            self.rebalance(handle);
        }
        self.core.resume(stalled.drain(..));
        // A burst's worth of room is not kept by a connection that has become quiet.
        if items.capacity() > 256 && count < 32 {
            items = Vec::new();
        }
        self.items = items;
        self.stalled = stalled;
        count > 0
    }

    /// Copies deliveries to the firehose, before they are sent.
    #[cold]
    fn trace(&self, items: &[Outgoing]) {
        for item in items {
            if let Outgoing::Delivery(delivery) = item
                && let Some(consumer) = self.core.consumers.get(delivery.consumer.0 as usize)
            {
                let (channel, redelivered) = (consumer.channel, delivery.redelivered);
                let session = &self.core.session;
                session.trace_delivery(channel, &consumer.queue, redelivered, &delivery.message);
            }
        }
    }

    /// Encodes a delivery.
    #[inline]
    fn deliver(&mut self, delivery: &Delivery) {
        let Core {
            consumers,
            out,
            frame_max,
            sent,
            ..
        } = &mut self.core;
        let Some(consumer) = consumers.get(delivery.consumer.0 as usize) else {
            return;
        };
        let Some(channel) = self.channels.get_mut(&consumer.channel) else {
            return;
        };
        channel.deliver(out, *frame_max, consumer, delivery);
        if let Origin::SettledWhenSent(lease) = delivery.origin {
            sent.push(&consumer.queue, lease);
        }
    }

    /// A consumer has ended without having been asked to.
    fn consumer_cancelled(&mut self, handle: ConsumerHandle) {
        let Some(consumer) = self.core.consumers.try_remove(handle.0 as usize) else {
            return;
        };
        if let Some(channel) = self.channels.get_mut(&consumer.channel) {
            channel.consumer_cancelled(&mut self.core, handle, &consumer);
        }
    }

    /// A consumer of shards takes others from now on.
    fn rebalance(&mut self, handle: ShardHandle) {
        let consumer = self.core.shard_consumers.get(handle.0 as usize).cloned();
        if let Some((number, tag)) = consumer
            && let Some(channel) = self.channels.get_mut(&number)
        {
            channel.rebalance(&mut self.core, &tag);
        }
    }

    /// A consumer has kept a message for too long: its channel ends, and says whose and why.
    fn time_out(&mut self, handle: ConsumerHandle, after: u64) {
        let Some(consumer) = self.core.consumers.get(handle.0 as usize) else {
            return;
        };
        let number = consumer.channel;
        if self
            .channels
            .get(&number)
            .is_none_or(|channel| channel.closing)
        {
            return;
        }
        let text = format!(
            "delivery acknowledgement on channel {number} timed out. Timeout value used: {after} \
             ms. This timeout value can be configured, see consumers doc guide to learn more. \
             Consumer '{}' of queue '{}'",
            String::from_utf8_lossy(&consumer.tag),
            consumer.queue.name
        );
        let exception = Exception::new(ReplyCode::PreconditionFailed, text);
        // A channel exception does not end the connection.
        let _ = self.channel_exception(number, exception);
    }

    /// True while an alarm keeps this connection, which publishes, from being read. Tells the
    /// client when that begins and ends.
    fn publisher_is_blocked(&mut self) -> bool {
        let reason = self.core.broker.alarms.blocked();
        let reason = reason.filter(|_| self.core.has_published);
        if reason.is_some() != self.told_blocked {
            self.told_blocked = reason.is_some();
            self.core.tell_blocked(reason);
        }
        reason.is_some() && matches!(self.phase, Phase::Open)
    }

    /// Ends the connection with connection.close.
    fn close(&mut self, exception: Exception) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        tracing::warn!(
            connection = self.core.session.connection.0,
            user = &*self.core.session.user.name,
            error = %exception.reply_text(),
            "closing connection"
        );
        self.release_everything();
        self.core.send_close(&exception);
        self.phase = Phase::Closing(deadline());
    }

    /// Ends the connection once what is left has been written.
    fn finish(&mut self) {
        self.phase = Phase::Finishing(deadline());
    }

    /// Gives back what the connection holds. Before the client is told that it is closed: it may
    /// then count on exclusive queues being gone.
    fn release_everything(&mut self) {
        self.held = Held::default();
        self.close_channels();
        self.core.clean_up();
    }

    fn close_channels(&mut self) {
        self.core.publisher.flush();
        for (_, mut channel) in self.channels.drain() {
            channel.close(&mut self.core);
        }
    }
}

/// Whichever way its task ends, what the connection held goes back to where it came from.
impl Drop for Connection {
    fn drop(&mut self) {
        self.release_everything();
        self.core.sent.take_back();
        let events = &self.core.broker.events;
        events.connection_closed(&self.core.session);
    }
}

fn deadline() -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(CLOSE_TIMEOUT))
}
