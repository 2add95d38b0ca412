//! What waits for the log, and what does not: on a disk that is held up, so that it can be told.

mod support;

use client::method::{basic, channel, queue, tx};
use client::{Connection, Event, FieldTable, QueueOptions, ShortStr};
use support::durable::*;
use support::rules::*;
use support::slow_disk::SlowDisk;
use support::*;
use testkit::Broker;

/// A broker on a slow disk, with durable queues.
async fn on_slow_disk(disk: &SlowDisk, queues: &[&str]) -> Broker {
    let broker = disk.under(builder()).start().expect("a broker");
    let (mut connection, channel) = open(&broker).await;
    for queue in queues {
        declare_durable(&mut connection, channel, queue).await;
    }
    connection.close().await.expect("close-ok");
    broker
}

/// Declares a durable queue whose confirms wait for that.
async fn declare_with_durability(broker: &Broker, queue: &str, durability: &str) {
    let (mut connection, channel) = open(broker).await;
    let options = QueueOptions {
        arguments: FieldTable::new().with("x-leveret-durability", durability),
        ..QueueOptions::durable()
    };
    let declared = connection.declare_queue(channel, queue, &options).await;
    declared.expect("a queue");
    connection.close().await.expect("close-ok");
}

/// What an event is, in a word, with its channel.
fn kind(event: &Event<'_>) -> (u16, &'static str) {
    match event {
        Event::Reply { channel, method } => (*channel, method.name()),
        Event::GetOk(message) => (message.channel, "basic.get-ok"),
        Event::GetEmpty { channel } => (*channel, "basic.get-empty"),
        Event::Confirm(confirm) => (confirm.channel, "basic.ack"),
        Event::Delivery(delivery) => (delivery.channel, "basic.deliver"),
        other => panic!("unexpected: {other:?}"),
    }
}

/// What the next events are.
async fn kinds(connection: &mut Connection, count: usize) -> Vec<(u16, &'static str)> {
    let mut kinds = Vec::new();
    for _ in 0..count {
        kinds.push(kind(&connection.next().await.expect("an event")));
    }
    kinds
}

fn short(text: &str) -> ShortStr<'_> {
    ShortStr::try_from(text).expect("a short name")
}

fn durable_queue(name: &str) -> queue::Declare<'_> {
    queue::Declare {
        queue: short(name),
        durable: true,
        ..Default::default()
    }
}

fn get(name: &str) -> basic::Get<'_> {
    basic::Get {
        queue: short(name),
        no_ack: true,
        ..Default::default()
    }
}

#[test]
fn confirm_of_a_persistent_message_waits_for_the_sync() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["synced"]).await;
        let mut publisher = Publisher::open(&broker).await;
        for _ in 0..3 {
            disk.hold_syncs();
            publisher.persistent("synced", b"message");
            assert_quiet(&mut publisher.connection).await;
            disk.release();
            publisher.all_confirmed().await;
        }
    });
}

/// Its consumers need not wait: delivery is no promise that it is kept.
#[test]
fn delivery_does_not_wait_for_the_sync() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["early"]).await;
        let (mut consumer, channel) = open(&broker).await;
        let options = client::ConsumeOptions::default();
        let consuming = consumer.consume(channel, "early", &options).await;
        consuming.expect("a consumer");
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_syncs();
        publisher.persistent("early", b"message");
        publisher.connection.flush().await.expect("sent");
        assert_eq!(receive(&mut consumer).await.body, b"message");
        assert_quiet(&mut publisher.connection).await;
        disk.release();
        publisher.all_confirmed().await;
    });
}

#[test]
fn what_need_not_survive_is_confirmed_at_once() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["kept"]).await;
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "transient").await;
        disk.hold_syncs();
        disk.hold_writes();
        let mut publisher = Publisher::open(&broker).await;
        publisher.publish("", "kept", &[0, 0], b"a transient message");
        publisher.all_confirmed().await;
        publisher.persistent("transient", b"in a transient queue");
        publisher.all_confirmed().await;
        publisher.persistent("nowhere", b"in no queue");
        publisher.all_confirmed().await;
    });
}

#[test]
fn os_durability_waits_for_the_write_alone() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &[]).await;
        declare_with_durability(&broker, "os", "os").await;
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_syncs();
        publisher.persistent("os", &numbered(1, 8));
        publisher.all_confirmed().await;
        disk.release();
        disk.hold_writes();
        publisher.persistent("os", &numbered(2, 8));
        assert_quiet(&mut publisher.connection).await;
        disk.release();
        publisher.all_confirmed().await;
    });
}

#[test]
fn os_durability_survives_the_end_of_the_process() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let mut broker = on_slow_disk(&disk, &[]).await;
        declare_with_durability(&broker, "os", "os").await;
        disk.hold_syncs();
        let mut publisher = Publisher::open(&broker).await;
        for number in 0..100 {
            publisher.persistent("os", &numbered(number, 1_000));
            publisher.all_confirmed().await;
        }
        broker.kill().expect("a running broker");
        disk.release();
        broker.start_again().expect("a restart");
        assert!((0..100).eq(take_numbers(&broker, "os").await));
    });
}

/// The queue's own argument takes precedence over `leveret.durability`, after a restart as well.
#[test]
fn durability_of_the_node_is_that_of_queues_that_do_not_say() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let configured = builder().config("leveret.durability = os");
        let mut broker = disk.under(configured).start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        declare_durable(&mut connection, channel, "plain").await;
        declare_with_durability(&broker, "fsync", "fsync").await;
        drop(connection);
        for _ in 0..2 {
            let mut publisher = Publisher::open(&broker).await;
            disk.hold_syncs();
            publisher.persistent("plain", b"message");
            publisher.all_confirmed().await;
            publisher.persistent("fsync", b"message");
            assert_quiet(&mut publisher.connection).await;
            disk.release();
            publisher.all_confirmed().await;
            Ending::Killed.restart(&mut broker);
        }
    });
}

/// A message to several queues is confirmed when the most careful of them has it.
#[test]
fn message_to_several_queues_waits_for_the_most_durable() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["fsync"]).await;
        declare_with_durability(&broker, "os", "os").await;
        let (mut connection, channel) = open(&broker).await;
        for queue in ["os", "fsync"] {
            bind(&mut connection, channel, queue, "amq.fanout", "").await;
        }
        let mut publisher = Publisher::open(&broker).await;
        disk.hold_syncs();
        publisher.publish("amq.fanout", "", &persistent(), b"message");
        assert_quiet(&mut publisher.connection).await;
        disk.release();
        publisher.all_confirmed().await;
    });
}

#[test]
fn unknown_durabilities_are_refused_like_other_wrong_arguments() {
    within(seconds(20), async {
        let broker = shared();
        declare_with_durability(&broker, "chosen", "os").await;
        let declare = async |queue: &str, arguments: FieldTable| {
            let options = QueueOptions {
                arguments,
                ..QueueOptions::durable()
            };
            ask(&broker, async |connection, channel| {
                connection.declare_queue(channel, queue, &options).await
            })
            .await
        };
        let name = "x-leveret-durability";
        for (queue, arguments, problem) in [
            (
                "wrong",
                FieldTable::new().with(name, "sometimes"),
                "invalid arg 'x-leveret-durability' for queue 'wrong' in vhost '/': \
                 invalid_durability",
            ),
            (
                "wrong",
                FieldTable::new().with(name, 1),
                "invalid arg 'x-leveret-durability' for queue 'wrong' in vhost '/': \
                 {unacceptable_type,signedint}",
            ),
            (
                "chosen",
                FieldTable::new().with(name, "fsync"),
                "inequivalent arg 'x-leveret-durability' for queue 'chosen' in vhost '/': \
                 received 'fsync' but current is 'os'",
            ),
            (
                "chosen",
                FieldTable::new(),
                "inequivalent arg 'x-leveret-durability' for queue 'chosen' in vhost '/': \
                 received none but current is the value 'os' of type 'longstr'",
            ),
        ] {
            let (code, text) = declare(queue, arguments).await.expect_err(problem);
            assert_eq!(
                (code, text),
                (406, format!("PRECONDITION_FAILED - {problem}"))
            );
        }
        let same = FieldTable::new().with(name, "os");
        declare("chosen", same).await.expect("the same");
    });
}

#[test]
fn commit_of_persistent_work_waits_for_the_sync() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["committed"]).await;
        let (mut connection, channel) = open(&broker).await;
        connection.tx_select(channel).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, channel, "committed", b"message");
        connection.send(channel, tx::Commit::default());
        assert_quiet(&mut connection).await;
        disk.release();
        assert_eq!(kinds(&mut connection, 1).await, [(1, "tx.commit-ok")]);

        // An acknowledgement is work of the same kind.
        let got = connection.get(channel, "committed", false).await;
        let tag = got.expect("an answer").expect("one").delivery_tag;
        connection.ack(channel, tag, false);
        disk.hold_syncs();
        connection.send(channel, tx::Commit::default());
        assert_quiet(&mut connection).await;
        disk.release();
        assert_eq!(kinds(&mut connection, 1).await, [(1, "tx.commit-ok")]);

        disk.hold_syncs();
        publish(&mut connection, channel, "committed", b"transient");
        connection.tx_commit(channel).await.expect("at once");
    });
}

#[test]
fn definitions_are_answered_when_the_log_has_them() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["there"]).await;
        let (mut connection, channel) = open(&broker).await;
        disk.hold_syncs();
        declare(&mut connection, channel, "transient, at once").await;
        disk.release();
        let bind = queue::Bind {
            queue: short("there"),
            exchange: short("amq.direct"),
            routing_key: short("key"),
            ..Default::default()
        };
        let unbind = queue::Unbind {
            queue: bind.queue,
            exchange: bind.exchange,
            routing_key: bind.routing_key,
            ..Default::default()
        };
        let delete = queue::Delete {
            queue: short("new"),
            ..Default::default()
        };
        let changes: [(client::Method<'_>, &str); 4] = [
            (durable_queue("new").into(), "queue.declare-ok"),
            (bind.into(), "queue.bind-ok"),
            (unbind.into(), "queue.unbind-ok"),
            (delete.into(), "queue.delete-ok"),
        ];
        for (change, answer) in changes {
            disk.hold_syncs();
            connection.send(channel, change);
            assert_quiet(&mut connection).await;
            disk.release();
            assert_eq!(kinds(&mut connection, 1).await, [(1, answer)]);
        }
    });
}

/// What a client sends without waiting for the answer to its commit is done after it.
#[test]
fn frames_behind_a_commit_are_acted_on_after_it_and_answered_in_order() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["pipelined"]).await;
        let (mut connection, channel) = open(&broker).await;
        connection.tx_select(channel).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, channel, "pipelined", &numbered(1, 8));
        connection.send(channel, tx::Commit::default());
        connection.send(channel, get("pipelined"));
        connection.send(channel, tx::Select::default());
        // More than a connection holds back.
        publish_persistent(&mut connection, channel, "pipelined", &[7; 300_000]);
        connection.send(channel, tx::Commit::default());
        connection.send(channel, durable_queue("pipelined"));
        connection.send(channel, get("pipelined"));
        connection.send(channel, get("pipelined"));
        assert_quiet(&mut connection).await;
        disk.release();
        let expected = [
            "tx.commit-ok",
            "basic.get-ok",
            "tx.select-ok",
            "tx.commit-ok",
            "queue.declare-ok",
            "basic.get-ok",
            "basic.get-empty",
        ];
        let answers = kinds(&mut connection, expected.len()).await;
        assert_eq!(answers, expected.map(|name| (1, name)));
    });
}

#[test]
fn frames_behind_a_declaration_are_acted_on_after_it() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &[]).await;
        let (mut connection, channel) = open(&broker).await;
        connection
            .confirm_select(channel)
            .await
            .expect("confirm mode");
        disk.hold_syncs();
        connection.send(channel, durable_queue("fresh"));
        publish_persistent(&mut connection, channel, "fresh", b"message");
        connection.send(channel, get("fresh"));
        connection.send(channel, channel::Flow { active: true });
        assert_quiet(&mut connection).await;
        disk.release();
        let mut answers = kinds(&mut connection, 4).await;
        assert_eq!(answers[0], (1, "queue.declare-ok"));
        // The confirm comes whenever the log has the message.
        answers.retain(|(_, name)| *name != "basic.ack");
        let expected = ["queue.declare-ok", "basic.get-ok", "channel.flow-ok"];
        assert_eq!(answers, expected.map(|name| (1, name)));
    });
}

#[test]
fn other_channels_go_on_while_one_waits() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["slow"]).await;
        let (mut connection, waiting) = open(&broker).await;
        let free = connection.open_channel().await.expect("a second channel");
        declare(&mut connection, free, "fast").await;
        connection.tx_select(waiting).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, waiting, "slow", b"message");
        connection.send(waiting, tx::Commit::default());
        synchronize(&mut connection, free).await;
        publish(&mut connection, free, "fast", b"message");
        let got = connection.get(free, "fast", true).await;
        assert!(got.expect("an answer").is_some());

        assert_quiet(&mut connection).await;
        disk.release();
        assert_eq!(kinds(&mut connection, 1).await, [(waiting, "tx.commit-ok")]);
    });
}

/// Also the first time that the disk is slow.
#[test]
fn other_connections_go_on_while_one_waits() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = disk.under(builder()).start().expect("a broker");
        let mut publisher = Publisher::open(&broker).await;
        let (connection, channel) = (&mut publisher.connection, publisher.channel);
        declare_durable(connection, channel, "slow").await;
        let (mut other, channel) = open(&broker).await;
        declare(&mut other, channel, "fast").await;
        disk.hold_syncs();
        publisher.persistent("slow", b"message");
        publisher.connection.flush().await.expect("sent");
        tokio::time::sleep(millis(50)).await;
        let others = async {
            publish(&mut other, channel, "fast", b"message");
            let got = other.get(channel, "fast", true).await;
            assert!(got.expect("an answer").is_some());
            open(&broker).await;
        };
        let answered = tokio::time::timeout(seconds(3), others).await;
        disk.release();
        answered.expect("everybody waits for one client's sync");
        publisher.all_confirmed().await;
    });
}

/// What was rejected lies in segments, and has to be read before it can go on.
#[test]
fn other_connections_go_on_while_dead_letters_are_read() {
    const COUNT: u64 = 2_000;
    within(seconds(60), async {
        let disk = SlowDisk::new();
        // The one worker reads everybody's sockets.
        let builder = with_little_memory().config("leveret.worker_threads = 1");
        let broker = disk.under(builder).start().expect("a broker");
        let (mut consumer, channel) = open(&broker).await;
        declare_durable(&mut consumer, channel, "paged dead").await;
        let options = durable(dead_letters_to("paged dead"));
        declare_as(&mut consumer, channel, "paged", &options).await;
        let mut publisher = Publisher::open(&broker).await;
        for number in 0..COUNT {
            publisher.persistent("paged", &numbered(number, 2_000));
        }
        publisher.all_confirmed().await;
        consume_from(&mut consumer, channel, "paged", 0).await;
        receive_all(&mut consumer, COUNT as usize).await;
        disk.hold_reads();
        consumer.nack(channel, 0, true, false);
        let others = async {
            synchronize(&mut consumer, channel).await;
            tokio::time::sleep(millis(100)).await;
            open(&broker).await;
        };
        let answered = tokio::time::timeout(seconds(5), others).await;
        // As long as nothing is read, nothing has gone on.
        let dead = look_at(&mut publisher.connection, publisher.channel, "paged dead");
        let dead = tokio::time::timeout(seconds(5), dead).await;
        disk.release();
        answered.expect("everybody waits for the disk");
        let dead = dead.expect("everybody waits for the disk").messages;
        assert!(dead < COUNT as u32, "nothing had to be read");
        eventually("all are dead", seconds(20), async || {
            messages_in(&broker, "paged dead").await == Some(COUNT as u32)
        })
        .await;
        assert!((0..COUNT).eq(take_numbers(&broker, "paged dead").await));
    });
}

/// Even where something more has come for the channel that waits.
#[test]
fn other_channels_go_on_while_frames_are_held_back_for_one() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["slow"]).await;
        let (mut connection, waiting) = open(&broker).await;
        let free = connection.open_channel().await.expect("a second channel");
        connection.tx_select(waiting).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, waiting, "slow", b"message");
        connection.send(waiting, tx::Commit::default());
        connection.send(waiting, get("slow"));
        let answered = tokio::time::timeout(seconds(2), synchronize(&mut connection, free)).await;
        disk.release();
        answered.expect("channel 2 waits for channel 1");
        let expected = [(waiting, "tx.commit-ok"), (waiting, "basic.get-ok")];
        assert_eq!(kinds(&mut connection, 2).await, expected);
    });
}

/// Deliveries to a channel that waits for its commit still come.
#[test]
fn consumers_of_a_waiting_channel_are_served() {
    within(seconds(20), async {
        let disk = SlowDisk::new();
        let broker = on_slow_disk(&disk, &["slow"]).await;
        let (mut connection, waiting) = open(&broker).await;
        declare(&mut connection, waiting, "served").await;
        let options = client::ConsumeOptions::no_ack();
        let consuming = connection.consume(waiting, "served", &options).await;
        consuming.expect("a consumer");
        connection.tx_select(waiting).await.expect("select-ok");
        disk.hold_syncs();
        publish_persistent(&mut connection, waiting, "slow", b"message");
        connection.send(waiting, tx::Commit::default());
        connection.flush().await.expect("sent");
        let (mut other, channel) = open(&broker).await;
        publish(&mut other, channel, "served", b"message");
        other.flush().await.expect("sent");
        assert_eq!(receive(&mut connection).await.body, b"message");
        disk.release();
        assert_eq!(kinds(&mut connection, 1).await, [(waiting, "tx.commit-ok")]);
    });
}

/// More requests than are kept for later, as many as the client likes to have under way.
async fn declare_many(broker: &Broker, share: u64) {
    const CHANNELS: u64 = 25;
    const UNDER_WAY: u64 = 100 * CHANNELS;
    const COUNT: u64 = 6_000;
    let mut connection = connect(broker).await;
    for _ in 0..CHANNELS {
        connection.open_channel().await.expect("a channel");
    }
    let (mut sent, mut answered) = (0, 0);
    while answered < COUNT {
        while sent < COUNT && sent - answered < UNDER_WAY {
            let name = format!("one of very many queues {share} {sent}");
            connection.send((1 + sent % CHANNELS) as u16, durable_queue(&name));
            sent += 1;
        }
        connection.ready().await.expect("input");
        while let Some(event) = connection.try_next().expect("no error") {
            assert_eq!(kind(&event).1, "queue.declare-ok");
            answered += 1;
        }
    }
    connection.close().await.expect("close-ok");
}

/// On channels that wait for the log in turns.
#[test]
fn any_number_of_pipelined_declarations_is_answered() {
    within(seconds(60), async {
        let broker = builder().start().expect("a broker");
        tokio::join!(
            declare_many(&broker, 0),
            declare_many(&broker, 1),
            declare_many(&broker, 2),
            declare_many(&broker, 3),
        );
    });
}
