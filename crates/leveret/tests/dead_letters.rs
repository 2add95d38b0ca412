//! Dead letters: why, what they say of it, and what is kept of the message.

mod support;

use amqp::FieldValue;
use client::{ConsumeOptions, FieldTable, PropertiesBuilder, Property, QueueOptions};
use support::durable::*;
use support::rules::*;
use support::*;

#[test]
fn every_way_to_refuse_a_message_makes_it_a_dead_letter() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "ways dead").await;
        let arguments = dead_letters_to("ways dead");
        declare_with(&mut connection, channel, "ways", arguments).await;
        for number in 0..7 {
            publish(&mut connection, channel, "ways", &numbered(number, 8));
        }
        for way in 0..2 {
            let got = get(&mut connection, channel, "ways", false).await;
            let tag = got.expect("a message").delivery_tag;
            match way {
                0 => connection.reject(channel, tag, false),
                _ => connection.nack(channel, tag, false, false),
            }
        }
        consume_from(&mut connection, channel, "ways", 0).await;
        let out = receive_all(&mut connection, 5).await;
        connection.reject(channel, out[0].tag, false);
        connection.nack(channel, out[1].tag, false, false);
        connection.ack(channel, out[2].tag, false);
        connection.nack(channel, 0, true, false);
        synchronize(&mut connection, channel).await;
        let (mut mourner, mourning) = open(&broker).await;
        drain_from(&mut mourner, mourning, "ways dead").await;
        let dead = letters_until_quiet(&mut mourner, millis(150)).await;
        assert_eq!(numbers(&dead), [0, 1, 2, 3, 5, 6]);
        for letter in dead {
            let expected = [("ways".into(), "rejected".into(), 1)];
            assert_eq!(letter.obituary(), expected);
            assert!(!letter.delivery.redelivered);
        }
    });
}

#[test]
fn each_reason_has_its_name() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "reasons").await;
        let to = || dead_letters_to("reasons");
        let (ttl, length) = (to().with("x-message-ttl", 50), to().with("x-max-length", 0));
        let limit = to().with("x-delivery-limit", 0);
        declare_with(&mut connection, channel, "expired", ttl).await;
        declare_with(&mut connection, channel, "maxlen", length).await;
        declare_with(&mut connection, channel, "rejected", to()).await;
        declare_as(&mut connection, channel, "delivery_limit", &quorum(limit)).await;
        for reason in ["expired", "maxlen", "rejected", "delivery_limit"] {
            publish(&mut connection, channel, reason, b"12345678");
            synchronize(&mut connection, channel).await;
            if let "rejected" | "delivery_limit" = reason {
                let got = get(&mut connection, channel, reason, false).await;
                let tag = got.expect("a message").delivery_tag;
                connection.reject(channel, tag, reason == "delivery_limit");
                synchronize(&mut connection, channel).await;
            }
            let letter = only_letter(&broker, "reasons").await;
            let expected = [(reason.into(), reason.into(), 1)];
            assert_eq!(letter.obituary(), expected);
            assert_eq!(letter.text("x-first-death-reason"), reason);
            assert_eq!(letter.text("x-first-death-queue"), reason);
            assert_eq!(letter.text("x-first-death-exchange"), "");
            assert_eq!(letter.text("x-last-death-reason"), reason);
            assert_eq!(letter.text("x-last-death-queue"), reason);
            assert_eq!(letter.text("x-last-death-exchange"), "");
        }
    });
}

/// Names and types on the wire are those of RabbitMQ; clients take them apart.
#[test]
fn fields_of_a_death_have_their_types() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "fields dead").await;
        let exchange = client::ExchangeOptions::default();
        let declared = connection.declare_exchange(channel, "fields x", "topic", &exchange);
        declared.await.expect("an exchange");
        let arguments = dead_letters_to("fields dead");
        declare_with(&mut connection, channel, "fields", arguments).await;
        bind(&mut connection, channel, "fields", "fields x", "a.*").await;
        let copies = FieldValue::Array(vec!["a.copy".into()]);
        let headers = FieldTable::new().with("CC", copies).with("mine", true);
        let properties = PropertiesBuilder::default()
            .headers(&headers)
            .text(Property::Expiration, "60000");
        let body = numbered(1, 8);
        publish_to(
            &mut connection,
            channel,
            "fields x",
            "a.key",
            properties,
            &body,
        );
        reject_first(&mut connection, channel, "fields").await;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.expect("later than 1970").as_secs();
        let letter = only_letter(&broker, "fields dead").await;
        let deaths = letter.deaths();
        assert_eq!(deaths.len(), 1);
        let death = &deaths[0];
        assert_eq!(death.len(), 7, "{death:?}");
        assert_eq!(death.get("count"), Some(&FieldValue::I64(1)));
        assert_eq!(death.get("reason"), text("rejected").as_ref());
        assert_eq!(death.get("queue"), text("fields").as_ref());
        assert_eq!(death.get("exchange"), text("fields x").as_ref());
        let keys = FieldValue::Array(vec!["a.key".into(), "a.copy".into()]);
        assert_eq!(death.get("routing-keys"), Some(&keys));
        assert_eq!(death.get("original-expiration"), text("60000").as_ref());
        let Some(FieldValue::Timestamp(time)) = death.get("time") else {
            panic!("a timestamp expected: {death:?}");
        };
        assert!(time.abs_diff(now) <= 2, "{time} at {now}");
        assert_eq!(letter.header("x-first-death-queue"), text("fields"));
        assert_eq!(letter.header("x-first-death-exchange"), text("fields x"));
        assert_eq!(letter.header("x-last-death-exchange"), text("fields x"));
        assert_eq!(letter.header("mine"), Some(FieldValue::Bool(true)));
        assert_eq!(letter.properties().text(Property::Expiration), None);
    });
}

/// To and fro between two queues: each has one entry, the last one first.
#[test]
fn repeated_deaths_are_counted() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for (queue, other) in [("ping", "pong"), ("pong", "ping")] {
            let arguments = dead_letters_to(other);
            declare_with(&mut connection, channel, queue, arguments).await;
        }
        publish(&mut connection, channel, "ping", b"12345678");
        for _ in 0..3 {
            reject_first(&mut connection, channel, "ping").await;
            reject_first(&mut connection, channel, "pong").await;
        }
        reject_first(&mut connection, channel, "ping").await;
        let letter = only_letter(&broker, "pong").await;
        let expected = [
            ("ping".into(), "rejected".into(), 4),
            ("pong".into(), "rejected".into(), 3),
        ];
        assert_eq!(letter.obituary(), expected);
        assert_eq!(letter.text("x-first-death-queue"), "ping");
        assert_eq!(letter.text("x-last-death-queue"), "ping");
        let last = letter.deaths().remove(1);
        let count = last.get("count").cloned();
        assert_eq!(count, Some(FieldValue::I64(3)));
    });
}

#[test]
fn deaths_of_several_reasons_in_one_queue_have_an_entry_each() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let arguments = dead_letters_to("self").with("x-dead-letter-routing-key", "self");
        declare_with(&mut connection, channel, "self", arguments).await;
        publish(&mut connection, channel, "self", b"12345678");
        for _ in 0..3 {
            reject_first(&mut connection, channel, "self").await;
        }
        assert_eq!(count(&mut connection, channel, "self").await, 1);
        let got = get(&mut connection, channel, "self", true).await;
        let properties = got.expect("a message").properties;
        let Some(FieldValue::Array(deaths)) = header(&properties, "x-death") else {
            panic!("no deaths");
        };
        assert_eq!(deaths.len(), 1);
        let arguments = dead_letters_to("both other").with("x-max-length", 1);
        declare_with(&mut connection, channel, "both", arguments).await;
        let other = dead_letters_to("both");
        declare_with(&mut connection, channel, "both other", other).await;
        publish(&mut connection, channel, "both", &numbered(1, 8));
        reject_first(&mut connection, channel, "both").await;
        reject_first(&mut connection, channel, "both other").await;
        assert_eq!(count(&mut connection, channel, "both").await, 1);
        publish(&mut connection, channel, "both", &numbered(2, 8));
        synchronize(&mut connection, channel).await;
        let letter = only_letter(&broker, "both other").await;
        let expected = [
            ("both".into(), "maxlen".into(), 1),
            ("both other".into(), "rejected".into(), 1),
            ("both".into(), "rejected".into(), 1),
        ];
        assert_eq!(letter.obituary(), expected);
        assert_eq!(letter.text("x-first-death-reason"), "rejected");
        assert_eq!(letter.text("x-last-death-reason"), "maxlen");
    });
}

/// Expired in both, it would go round for ever.
#[test]
fn dead_letter_that_comes_round_by_itself_is_dropped() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        for (queue, other) in [("tick", "tock"), ("tock", "tick"), ("alone", "alone")] {
            let arguments = dead_letters_to(other).with("x-message-ttl", 100);
            declare_with(&mut connection, channel, queue, arguments).await;
        }
        publish(&mut connection, channel, "tick", b"12345678");
        publish(&mut connection, channel, "alone", b"12345678");
        synchronize(&mut connection, channel).await;
        tokio::time::sleep(millis(120)).await;
        eventually("it is in the other", seconds(1), async || {
            count(&mut connection, channel, "tock").await == 1
        })
        .await;
        tokio::time::sleep(millis(400)).await;
        for queue in ["tick", "tock", "alone"] {
            assert_eq!(count(&mut connection, channel, queue).await, 0, "{queue}");
        }
    });
}

/// The usual way to try again later: refused, it waits in another queue and comes back.
#[test]
fn dead_letter_that_somebody_refused_on_its_way_may_come_round() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        let work = dead_letters_to("retry");
        declare_with(&mut connection, channel, "work", work).await;
        let retry = dead_letters_to("work").with("x-message-ttl", 50);
        declare_with(&mut connection, channel, "retry", retry).await;
        publish(&mut connection, channel, "work", b"12345678");
        consume_from(&mut connection, channel, "work", 1).await;
        for round in 0..6 {
            let letter = receive_letter(&mut connection).await;
            if round > 0 {
                let expected = [
                    ("retry".into(), "expired".into(), round),
                    ("work".into(), "rejected".into(), round),
                ];
                assert_eq!(letter.obituary(), expected);
                assert_eq!(letter.text("x-first-death-queue"), "work");
                assert_eq!(letter.text("x-last-death-queue"), "retry");
            }
            connection.reject(channel, letter.delivery.tag, false);
        }
    });
}

#[test]
fn properties_but_the_expiration_are_kept() {
    within(seconds(20), async {
        let mut broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let priorities = FieldTable::new().with("x-max-priority", 9);
        declare_with(&mut connection, channel, "kept dead", priorities).await;
        let arguments = dead_letters_to("kept dead");
        declare_with(&mut connection, channel, "kept", arguments).await;
        let headers = FieldTable::new().with("number", -5);
        let all = |persistent: u8, priority: u8| {
            PropertiesBuilder::default()
                .text(Property::ContentType, "text/plain")
                .text(Property::ContentEncoding, "utf-8")
                .headers(&headers)
                .delivery_mode(persistent)
                .priority(priority)
                .text(Property::CorrelationId, "correlation")
                .text(Property::ReplyTo, "replies")
                .text(Property::Expiration, "86400000")
                .text(Property::MessageId, "id")
                .timestamp(1_600_000_000)
                .text(Property::Type, "type")
                .text(Property::UserId, "guest")
                .text(Property::AppId, "application")
        };
        for (number, mode, priority) in [(1, 2, 0), (2, 1, 9), (3, 2, 7), (4, 2, 8)] {
            let body = numbered(number, 100);
            let properties = all(mode, priority);
            send(&mut connection, channel, "kept", properties, &body);
        }
        for _ in 0..4 {
            reject_first(&mut connection, channel, "kept").await;
        }
        until_written_down().await;
        connection.close().await.expect("close-ok");
        Ending::Killed.restart(&mut broker);
        let dead = take_all(&broker, "kept dead").await;
        let order: Vec<u64> = dead.iter().map(|m| number(&m.body)).collect();
        assert_eq!(order, [4, 3, 1], "the transient one is gone");
        for (message, priority) in dead.iter().zip([8, 7, 0]) {
            assert_eq!(message.body.len(), 100);
            let before = all(2, priority).finish();
            let before = client::Properties::from_wire(&before);
            let after = message.properties();
            for property in [
                Property::ContentType,
                Property::ContentEncoding,
                Property::DeliveryMode,
                Property::Priority,
                Property::CorrelationId,
                Property::ReplyTo,
                Property::MessageId,
                Property::Timestamp,
                Property::Type,
                Property::UserId,
                Property::AppId,
            ] {
                assert_eq!(after.get(property), before.get(property), "{property:?}");
            }
            assert_eq!(after.get(Property::Expiration), None);
            let number = header(&message.properties, "number");
            assert_eq!(number, Some(FieldValue::I32(-5)));
        }
    });
}

/// What counts in its new queue is when it came there.
#[test]
fn time_to_live_begins_anew_in_the_next_queue() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "third").await;
        let second = dead_letters_to("third").with("x-message-ttl", 400);
        declare_with(&mut connection, channel, "second", second).await;
        let first = dead_letters_to("second").with("x-message-ttl", 400);
        declare_with(&mut connection, channel, "first", first).await;
        let (mut mourner, mourning) = open(&broker).await;
        drain_from(&mut mourner, mourning, "third").await;
        let sent = std::time::Instant::now();
        send(
            &mut connection,
            channel,
            "first",
            wanted_for(300),
            b"12345678",
        );
        connection.flush().await.expect("sent");
        let letter = receive_letter(&mut mourner).await;
        let took = letter.at.duration_since(sent);
        assert!(took >= millis(696) && took < seconds(3), "{took:?}");
        let expected = [
            ("second".into(), "expired".into(), 1),
            ("first".into(), "expired".into(), 1),
        ];
        assert_eq!(letter.obituary(), expected);
        let first = letter.deaths().remove(1);
        assert_eq!(first.get("original-expiration"), text("300").as_ref());
        let second = letter.deaths().remove(0);
        assert_eq!(second.get("original-expiration"), None);
    });
}

/// A waiting consumer of the next queue gets it at once, and it is not marked as redelivered.
#[test]
fn dead_letter_reaches_a_waiting_consumer() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "awaited").await;
        let arguments = dead_letters_to("awaited");
        declare_with(&mut connection, channel, "source", arguments).await;
        for queue in ["source", "awaited"] {
            let options = ConsumeOptions {
                consumer_tag: queue.into(),
                ..ConsumeOptions::default()
            };
            let consuming = connection.consume(channel, queue, &options).await;
            consuming.expect("a consumer");
        }
        for number in 0..50 {
            publish(&mut connection, channel, "source", &numbered(number, 8));
            let delivery = receive(&mut connection).await;
            assert_eq!((&*delivery.consumer, delivery.number()), ("source", number));
            connection.reject(channel, delivery.tag, false);
            let delivery = receive(&mut connection).await;
            assert_eq!(
                (&*delivery.consumer, delivery.number()),
                ("awaited", number)
            );
            assert!(!delivery.redelivered);
            connection.ack(channel, delivery.tag, false);
        }
    });
}

#[test]
fn transaction_dead_letters_when_it_is_committed() {
    within(seconds(10), async {
        let broker = shared();
        let (mut connection, channel) = open(&broker).await;
        declare(&mut connection, channel, "tx dead").await;
        let arguments = dead_letters_to("tx dead");
        declare_with(&mut connection, channel, "tx", arguments).await;
        for number in 0..10 {
            publish(&mut connection, channel, "tx", &numbered(number, 8));
        }
        let observing = connection.open_channel().await.expect("another");
        connection.tx_select(channel).await.expect("select-ok");
        let mut last = 0;
        for _ in 0..6 {
            let got = get(&mut connection, channel, "tx", false).await;
            last = got.expect("a message").delivery_tag;
        }
        connection.nack(channel, last, true, false);
        connection.tx_rollback(channel).await.expect("rollback-ok");
        assert_eq!(count(&mut connection, observing, "tx dead").await, 0);
        connection.nack(channel, last - 1, true, false);
        connection.nack(channel, last, false, true);
        synchronize(&mut connection, channel).await;
        assert_eq!(count(&mut connection, observing, "tx dead").await, 0);
        connection.tx_commit(channel).await.expect("commit-ok");
        assert_eq!(count(&mut connection, observing, "tx dead").await, 5);
        assert_eq!(count(&mut connection, observing, "tx").await, 5);
        assert!((0..5).eq(take_numbers(&broker, "tx dead").await));
        assert!((5..10).eq(take_numbers(&broker, "tx").await));
    });
}

#[test]
fn dead_letter_arguments_are_checked() {
    within(seconds(10), async {
        let broker = shared();
        let key = FieldTable::new().with("x-dead-letter-routing-key", "k");
        let strategy = to_exchange("").with("x-dead-letter-strategy", "at-least-once");
        let unknown = to_exchange("")
            .with("x-dead-letter-strategy", "sometimes")
            .with("x-queue-type", "quorum");
        for (arguments, problem) in [
            (key, "routing_key_but_no_dlx_defined"),
            (strategy, "of queue type rabbit_classic_queue"),
            (unknown, "invalid_dlx_strategy"),
            (
                FieldTable::new().with("x-dead-letter-exchange", 5),
                "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'refused' in \
                 vhost '/'",
            ),
        ] {
            let options = QueueOptions {
                arguments,
                ..QueueOptions::durable()
            };
            let text = refusal_of(&broker, &options).await;
            assert!(text.ends_with(problem), "{text}");
        }
    });
}
