//! A disk that fills up: publishers wait, consumers go on, nothing that was confirmed is lost, and
//! the process lives.

mod support;

use client::{Connection, ConsumeOptions, Event};
use support::durable::*;
use support::small_disk::SmallDisk;
use support::*;
use testkit::{Broker, Builder};

const BODY: usize = 16 * 1024;
const QUEUES: [&str; 2] = ["one", "two"];
/// Unconfirmed messages of a publisher, at most.
const AHEAD: u64 = 200;

/// A publisher that knows what was confirmed, and whether it is blocked.
struct Filler {
    publisher: Publisher,
    queue: &'static str,
    blocked: Option<String>,
}

impl Filler {
    async fn start(broker: &Broker, queue: &'static str) -> Filler {
        let mut publisher = Publisher::open(broker).await;
        declare_durable(&mut publisher.connection, publisher.channel, queue).await;
        Filler {
            publisher,
            queue,
            blocked: None,
        }
    }

    async fn event(&mut self) {
        let publisher = &mut self.publisher;
        match publisher.connection.next().await.expect("an event") {
            Event::Confirm(confirm) => {
                assert!(confirm.acked, "{confirm:?}");
                publisher.confirmed = confirmed_up_to(publisher.confirmed, &confirm);
            }
            Event::Blocked { reason } => {
                assert_eq!(self.blocked, None, "told twice");
                self.blocked = Some(reason.lossy().into_owned());
            }
            Event::Unblocked => {
                self.blocked.take().expect("it was blocked before");
            }
            other => panic!("a confirm or a notice expected, got {other:?}"),
        }
    }

    /// Numbers start from 1, as the confirms do.
    fn publish(&mut self) {
        let number = self.publisher.published + 1;
        self.publisher
            .persistent(self.queue, &numbered(number, BODY));
    }

    /// Publishes until it is told to wait, for good: now and then the broker finds room by itself.
    async fn fill(&mut self) {
        const MOST: u64 = 40_000;
        while self.publisher.published < MOST {
            if self.blocked.is_some() {
                self.settle().await;
                if self.blocked.is_some() {
                    return;
                }
            } else if self.publisher.published - self.publisher.confirmed > AHEAD {
                self.event().await;
            } else {
                self.publish();
            }
        }
        panic!("{MOST} messages, and no alarm");
    }

    /// Takes events until none has come for a while.
    async fn settle(&mut self) {
        while tokio::time::timeout(millis(400), self.event())
            .await
            .is_ok()
        {}
    }
}

/// Both queues filled until the alarm rings for their publishers.
async fn filled(broker: &Broker) -> [Filler; 2] {
    let mut one = Filler::start(broker, QUEUES[0]).await;
    let mut two = Filler::start(broker, QUEUES[1]).await;
    tokio::join!(one.fill(), two.fill());
    for filler in [&one, &two] {
        assert_eq!(filler.blocked.as_deref(), Some("low on disk"));
    }
    [one, two]
}

/// Consumes and acknowledges, in order.
struct Drain {
    connection: Connection,
    channel: u16,
    last: u64,
}

impl Drain {
    async fn start(broker: &Broker, queue: &str) -> Drain {
        let (mut connection, channel) = open(broker).await;
        connection.qos(channel, 100, false).await.expect("qos-ok");
        let options = ConsumeOptions::default();
        let consuming = connection.consume(channel, queue, &options).await;
        consuming.expect("a consumer");
        Drain {
            connection,
            channel,
            last: 0,
        }
    }

    async fn delivery(&mut self) {
        let delivery = receive(&mut self.connection).await;
        assert_eq!(delivery.number(), self.last + 1);
        assert_eq!(delivery.body.len(), BODY);
        self.last += 1;
        self.connection.ack(self.channel, delivery.tag, false);
    }

    async fn deliveries_up_to(&mut self, last: u64) {
        while self.last < last {
            self.delivery().await;
        }
        synchronize(&mut self.connection, self.channel).await;
    }
}

/// Drains the queue until its publisher may go on, has published more, and has got all confirms.
async fn drain_and_go_on(broker: &Broker, filler: &mut Filler) {
    let mut drain = Drain::start(broker, filler.queue).await;
    while filler.blocked.is_some() || filler.publisher.confirmed < filler.publisher.published {
        tokio::select! {
            () = drain.delivery() => {}
            () = filler.event() => {}
        }
    }
    for _ in 0..500 {
        filler.publish();
    }
    while filler.publisher.confirmed < filler.publisher.published {
        tokio::select! {
            () = drain.delivery() => {}
            () = filler.event() => {}
        }
    }
    drain.deliveries_up_to(filler.publisher.published).await;
    assert_eq!(messages_in(broker, filler.queue).await, Some(0));
    drain.connection.close().await.expect("close-ok");
}

/// The alarm rings, nothing more is read, others are served; consumers make room; it goes on.
async fn fill_and_drain(broker: &Broker) {
    let [mut one, mut two] = filled(broker).await;
    // What it goes on to send is not read.
    let before = one.publisher.confirmed;
    for _ in 0..100 {
        one.publish();
    }
    one.settle().await;
    assert_eq!(one.publisher.confirmed, before, "was read while blocked");
    assert_healthy_for_others(broker).await;
    tokio::join!(
        drain_and_go_on(broker, &mut one),
        drain_and_go_on(broker, &mut two)
    );
    let log = broker.log();
    assert!(log.contains("disk alarm"), "{log}");
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
}

/// Whoever does not publish is served. Transient: what must be logged has no room.
async fn assert_healthy_for_others(broker: &Broker) {
    let (mut connection, channel) = open(broker).await;
    declare(&mut connection, channel, "transient").await;
    let got = connection.get(channel, QUEUES[0], false).await;
    let tag = got.expect("an answer").expect("a message").delivery_tag;
    connection.nack(channel, tag, false, true);
    synchronize(&mut connection, channel).await;
    connection.close().await.expect("close-ok");
}

/// A crash while nothing more fits: it starts again, all that was confirmed is there, and once it
/// is consumed there is room again.
async fn fill_and_crash(mut broker: Broker) {
    let fillers = filled(&broker).await;
    broker.kill().expect("a running broker");
    let confirmed = fillers.map(|filler| filler.publisher.confirmed);
    for _ in 0..2 {
        broker
            .start_again()
            .unwrap_or_else(|error| panic!("{error}"));
        broker.kill().expect("a running broker");
    }
    broker
        .start_again()
        .unwrap_or_else(|error| panic!("{error}"));
    for (queue, confirmed) in QUEUES.into_iter().zip(confirmed) {
        let there = messages_in(&broker, queue).await.expect(queue);
        assert!(u64::from(there) >= confirmed, "{there} of {confirmed}");
        let mut drain = Drain::start(&broker, queue).await;
        drain.deliveries_up_to(confirmed).await;
        // Some more may follow, which were not confirmed in time.
        drain.deliveries_up_to(there.into()).await;
    }
    let mut late = Filler::start(&broker, "late").await;
    late.publish();
    while late.publisher.confirmed == 0 {
        late.event().await;
    }
    drop(late);
    broker.stop().expect("exit status 0");
}

fn small(builder: Builder) -> Builder {
    builder
        .config("leveret.queue_memory = 4MiB")
        .config("leveret.log_file_size = 8MiB")
        .config("leveret.log_size = 32MiB")
}

#[test]
fn disk_free_limit_blocks_publishers_until_consumers_have_made_room() {
    within(seconds(60), async {
        let disk = SmallDisk::new(300);
        // With all defaults: a limit of 50 MB, files of 64 MiB.
        let broker = disk.under(builder()).start().expect("a broker");
        fill_and_drain(&broker).await;
        broker.stop().expect("exit status 0");
    });
}

/// The limit leaves room for what is under way: it is not reached by surprise.
#[test]
#[ignore = "long: make test-long"]
fn disk_free_limit_acts_before_the_disk_is_full() {
    within(seconds(120), async {
        for round in 0..10 {
            let disk = SmallDisk::new(200);
            let broker = disk.under(small(builder())).start().expect("a broker");
            filled(&broker).await;
            let log = broker.log();
            assert!(!log.contains("disk full"), "round {round}: {log}");
        }
    });
}

#[test]
fn crash_at_the_disk_free_limit_loses_nothing_that_was_confirmed() {
    within(seconds(60), async {
        let disk = SmallDisk::new(200);
        let broker = disk.under(small(builder())).start().expect("a broker");
        fill_and_crash(broker).await;
    });
}

#[test]
fn disk_without_any_room_blocks_publishers_until_consumers_have_made_some() {
    within(seconds(60), async {
        let disk = SmallDisk::new(150);
        let builder = small(builder()).config("disk_free_limit.absolute = 0");
        let broker = disk.under(builder).start().expect("a broker");
        fill_and_drain(&broker).await;
        broker.stop().expect("exit status 0");
    });
}

#[test]
fn crash_on_a_disk_without_any_room_loses_nothing_that_was_confirmed() {
    within(seconds(60), async {
        let disk = SmallDisk::new(150);
        let builder = small(builder()).config("disk_free_limit.absolute = 0");
        let broker = disk.under(builder).start().expect("a broker");
        fill_and_crash(broker).await;
    });
}

/// It is somebody else who fills the disk, to the last byte, and who makes room again.
#[test]
fn room_that_others_take_and_give_back_blocks_and_unblocks() {
    within(seconds(60), async {
        let disk = SmallDisk::new(150);
        let builder = small(builder()).config("disk_free_limit.absolute = 0");
        let broker = disk.under(builder).start().expect("a broker");
        let mut filler = Filler::start(&broker, QUEUES[0]).await;
        let taken = disk.fill_up();
        filler.fill().await;
        assert_eq!(filler.blocked.as_deref(), Some("low on disk"));
        std::fs::remove_file(taken).expect("their file");
        while filler.publisher.confirmed < filler.publisher.published {
            filler.event().await;
        }
        eventually_unblocked(&mut filler).await;
        let mut drain = Drain::start(&broker, QUEUES[0]).await;
        drain.deliveries_up_to(filler.publisher.published).await;
        drop((filler, drain));
        broker.stop().expect("exit status 0");
    });
}

async fn eventually_unblocked(filler: &mut Filler) {
    while filler.blocked.is_some() {
        filler.event().await;
    }
}

/// It ends as it should, full as the disk is.
#[test]
fn stop_on_a_full_disk_is_orderly() {
    within(seconds(60), async {
        let disk = SmallDisk::new(150);
        let builder = small(builder()).config("disk_free_limit.absolute = 0");
        let mut broker = disk.under(builder).start().expect("a broker");
        let fillers = filled(&broker).await;
        let confirmed = fillers.each_ref().map(|filler| filler.publisher.confirmed);
        drop(fillers);
        broker.terminate().expect("a running broker");
        let status = broker.wait(seconds(15)).unwrap_or_else(|e| panic!("{e}"));
        assert!(status.success(), "{status}");
        broker
            .start_again()
            .unwrap_or_else(|error| panic!("{error}"));
        for (queue, confirmed) in QUEUES.into_iter().zip(confirmed) {
            let there = messages_in(&broker, queue).await.expect(queue);
            assert!(u64::from(there) >= confirmed, "{there} of {confirmed}");
        }
    });
}

/// Publishers of transient messages to transient queues wait as well: RabbitMQ's alarm is one for
/// all of them.
#[test]
fn transient_publishers_are_blocked_too() {
    within(seconds(60), async {
        let disk = SmallDisk::new(150);
        let broker = disk.under(small(builder())).start().expect("a broker");
        let taken = disk.fill_up();
        let mut filler = Filler::start_transient(&broker).await;
        filler.settle().await;
        filler.publisher.publish("", "transient", &[0, 0], b"x");
        filler.settle().await;
        assert_eq!(filler.blocked.as_deref(), Some("low on disk"));
        std::fs::remove_file(taken).expect("their file");
        eventually_unblocked(&mut filler).await;
    });
}

impl Filler {
    async fn start_transient(broker: &Broker) -> Filler {
        let mut publisher = Publisher::open(broker).await;
        declare(&mut publisher.connection, publisher.channel, "transient").await;
        Filler {
            publisher,
            queue: "transient",
            blocked: None,
        }
    }
}
