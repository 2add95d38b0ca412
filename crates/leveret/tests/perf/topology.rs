//! Exchanges, queues and bindings: what each option declares.

use std::collections::BTreeSet;

use client::{FieldTable, FieldValue, Method, QueueOptions};

use crate::load::{path, run, start, start_command};
use crate::queues::*;
use crate::support::folder::Folder;
use crate::support::*;
use crate::wire::{DeclaredQueue, Wire};

fn names(pairs: &[(String, String)]) -> BTreeSet<(&str, &str)> {
    let pairs = pairs.iter();
    pairs.map(|(a, b)| (a.as_str(), b.as_str())).collect()
}

#[test]
fn by_default_each_consumer_has_a_queue_that_the_broker_names_and_all_are_bound_with_one_key() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let ended = run(&wire.uri(), "-y 2 -C 5 -D 5").await.well();
        assert_eq!((ended.total("sent"), ended.total("received")), (5, 10));
        let unnamed = DeclaredQueue {
            auto_delete: true,
            ..DeclaredQueue::default()
        };
        assert_eq!(wire.queues(), [unnamed.clone(), unnamed]);
        let bindings = wire.bindings();
        assert_eq!(bindings.len(), 2);
        let (exchange, key) = &bindings[0];
        // A UUID.
        assert_eq!((exchange.as_str(), key.len()), ("direct", 36));
        let same = BTreeSet::from([(exchange.as_str(), key.as_str())]);
        assert_eq!(names(&bindings), same);
        assert_eq!(names(&wire.published()), same);
    });
}

#[test]
fn by_default_the_exchange_is_direct_and_durable() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        run(&wire.uri(), "-C 1 -D 1").await.well();
        let declared = wire.all(|method| match method {
            Method::ExchangeDeclare(it) => {
                let text = format!("{} {}", it.exchange.lossy(), it.kind.lossy());
                assert!(!it.passive && !it.auto_delete && !it.internal);
                Some((text, it.durable))
            }
            _ => None,
        });
        assert!(!declared.is_empty());
        let expected = ("direct direct".to_owned(), true);
        assert!(declared.iter().all(|it| *it == expected), "{declared:?}");
        let same = declared_exchange(&broker, "direct", "direct", &durable_exchange()).await;
        assert_eq!(same, Ok(()));
    });
}

#[test]
fn named_queues_are_all_consumed_from_and_share_one_key() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let words = "-y 2 -u list-a,list-b -ad false -C 6 -s 16 --verify";
        let ended = run(&wire.uri(), words).await.well();
        // On each queue once, whichever consumer got it.
        assert_eq!(ended.check("checked"), 12);
        let keys: BTreeSet<String> = wire.bindings().into_iter().map(|(_, key)| key).collect();
        assert_eq!(keys.len(), 1);
        let consumed = wire.all(|method| match method {
            Method::BasicConsume(consume) => Some(consume.queue.lossy().into_owned()),
            _ => None,
        });
        assert_eq!(consumed.len(), 4, "{consumed:?}");
        assert_eq!(ready(&broker, "list-a").await, Some(0));
        assert_eq!(ready(&broker, "list-b").await, Some(0));
    });
}

#[test]
fn pattern_queues_are_taken_in_turn_and_reached_by_their_names() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-x 4 -y 0 -qp turn-%03d -qpf 8 -qpt 10 -ad false -C 2 -c 2";
        run(broker.uri(), words).await.well();
        for (queue, count) in [("turn-008", 4), ("turn-009", 2), ("turn-010", 2)] {
            let messages = take(&broker, queue).await;
            assert_eq!(messages.len(), count, "{queue}");
            assert!(messages.iter().all(|message| message.routing_key == queue));
        }
        assert_eq!(ready(&broker, "turn-011").await, None);
    });
}

#[test]
fn consumers_take_pattern_queues_in_turn_too() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let words = "-x 3 -y 3 -qp pairs-%d -qpf 1 -qpt 3 -C 4 -s 16 --verify";
        let ended = run(&wire.uri(), words).await.well();
        assert_eq!(ended.check("checked"), 12);
        let mut consumed = wire.all(|method| match method {
            Method::BasicConsume(consume) => Some(consume.queue.lossy().into_owned()),
            _ => None,
        });
        consumed.sort();
        assert_eq!(consumed, ["pairs-1", "pairs-2", "pairs-3"]);
    });
}

#[test]
fn queues_may_come_from_a_file() {
    within(seconds(30), async {
        let broker = shared();
        let folder = Folder::new("perf");
        let file = path(&folder, "queues");
        std::fs::write(&file, "filed-a\n\n filed-b \n").expect("written");
        let words = format!("-x 2 -y 0 -qf {file} -ad false -C 3 -c 3");
        run(broker.uri(), &words).await.well();
        for queue in ["filed-a", "filed-b"] {
            assert_eq!(ready(&broker, queue).await, Some(3), "{queue}");
        }
    });
}

#[test]
fn auto_delete_queues_go_with_their_consumers_unless_told_otherwise() {
    within(seconds(30), async {
        let broker = shared();
        for (words, left) in [("", None), ("-ad false", Some(0))] {
            let words = format!("-u passing -C 3 -D 3 {words}");
            run(broker.uri(), &words).await.well();
            assert_eq!(ready(&broker, "passing").await, left);
        }
    });
}

#[test]
fn exclusive_queues_are_locked_to_others_and_gone_at_the_end() {
    within(seconds(30), async {
        let broker = shared();
        let load = start(broker.uri(), "-E -u locked -r 20");
        let resource_locked = 405;
        let passive = QueueOptions {
            passive: true,
            ..QueueOptions::default()
        };
        eventually("a locked queue", seconds(20), async || {
            declared(&broker, "locked", &passive).await == Err(resource_locked)
        })
        .await;
        load.out.says("received").await;
        load.interrupt();
        load.end().await.well();
        assert_eq!(ready(&broker, "locked").await, None);
    });
}

#[test]
fn consumers_of_one_exclusive_queue_share_a_connection() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-E -u shut -y 3 -C 30 -s 16 --verify";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!(ended.check("checked"), 30);
    });
}

#[test]
fn predeclared_objects_must_exist() {
    within(seconds(30), async {
        let broker = shared();
        let ended = run(broker.uri(), "-p -e amq.direct -u absent -C 1 -D 1").await;
        let line = ended.failed(1);
        assert!(line.contains("queue 'absent' does not exist"), "{line}");
        let ended = run(broker.uri(), "-p -e missing -u absent -C 1 -D 1").await;
        let line = ended.failed(1);
        assert!(line.contains("exchange 'missing' does not exist"), "{line}");
        assert_eq!(ready(&broker, "absent").await, None);
    });
}

#[test]
fn predeclared_objects_are_used_as_they_are() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        listening(&broker, "there", "there-queue").await;
        let words = "-p -e there -u there-queue -C 5 -D 5";
        run(&wire.uri(), words).await.well();
        let queues = wire.queues();
        assert!(!queues.is_empty() && queues.iter().all(|queue| queue.passive));
        wire.all(|method| match method {
            Method::ExchangeDeclare(declare) => {
                assert!(declare.passive);
                Some(())
            }
            _ => None,
        });
        assert_eq!(ready(&broker, "there-queue").await, Some(0));
    });
}

#[test]
fn without_bindings_nothing_is_routed() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-sb -y 0 -u unbound -ad false -f mandatory -c 5 -C 5";
        let ended = run(broker.uri(), words).await.well();
        assert_eq!((ended.total("sent"), ended.total("returned")), (5, 5));
        assert_eq!(ready(&broker, "unbound").await, Some(0));
    });
}

#[test]
fn queue_arguments_keep_their_types() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let arguments = "-qa x-max-length=3,x-overflow=drop-head";
        let words = format!("-y 0 -u short -ad false {arguments} -C 1");
        run(&wire.uri(), &words).await.well();
        let declared = &wire.queues()[0].arguments;
        assert_eq!(declared.get("x-max-length"), Some(&FieldValue::I64(3)));
        assert_eq!(
            declared.get("x-overflow"),
            Some(&FieldValue::from("drop-head"))
        );
    });
}

#[test]
fn fanout_reaches_every_queue_whatever_the_key() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-t fanout -y 0 -qp fan-%d -qpf 1 -qpt 3 -ad false -C 4 -c 4";
        run(broker.uri(), words).await.well();
        for queue in ["fan-1", "fan-2", "fan-3"] {
            assert_eq!(ready(&broker, queue).await, Some(4), "{queue}");
        }
        let same = declared_exchange(&broker, "fanout", "fanout", &durable_exchange()).await;
        assert_eq!(same, Ok(()));
    });
}

#[test]
fn exchange_and_key_may_be_named() {
    within(seconds(30), async {
        let broker = shared();
        let words = "-t topic -e weather -k eu.rain -y 0 -u rain -ad false -C 3 -c 3";
        run(broker.uri(), words).await.well();
        let messages = take(&broker, "rain").await;
        assert_eq!(messages.len(), 3);
        for message in messages {
            let way = (message.exchange.as_str(), message.routing_key.as_str());
            assert_eq!(way, ("weather", "eu.rain"));
        }
        let same = declared_exchange(&broker, "weather", "topic", &durable_exchange()).await;
        assert_eq!(same, Ok(()));
    });
}

#[test]
fn default_exchange_reaches_a_queue_by_its_name() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        let words = "-e amq.default -y 0 -u by-name -ad false -C 3 -c 3";
        run(&wire.uri(), words).await.well();
        let messages = take(&broker, "by-name").await;
        assert_eq!(messages.len(), 3);
        assert!(messages.iter().all(|message| message.exchange.is_empty()));
        assert_eq!(wire.bindings(), []);
        assert_eq!(wire.count("exchange.declare"), 0);
    });
}

#[test]
fn persistent_loads_have_durable_queues_and_messages() {
    within(seconds(30), async {
        let mut broker = builder().start().expect("a broker");
        for (flags, delivery_mode) in [("-f persistent", 2), ("", 0)] {
            let queue = format!("mode-{delivery_mode}");
            let words = format!("-y 0 -u {queue} -ad false -C 3 -c 3 {flags}");
            run(broker.uri(), &words).await.well();
            let options = QueueOptions {
                durable: delivery_mode == 2,
                ..QueueOptions::default()
            };
            assert_eq!(declared(&broker, &queue, &options).await, Ok(3));
            let message = take(&broker, &queue).await.remove(0);
            let summary = message.properties().summarize().expect("properties");
            assert_eq!(summary.delivery_mode, delivery_mode);
        }
        run(
            broker.uri(),
            "-y 0 -u kept -ad false -C 3 -c 3 -f persistent",
        )
        .await
        .well();
        broker.crash_and_restart().expect("a broker");
        assert_eq!(ready(&broker, "kept").await, Some(3));
    });
}

#[test]
fn random_keys_differ_from_message_to_message_and_cached_ones_come_round() {
    within(seconds(30), async {
        let broker = shared();
        listening(&broker, "random", "random-keys").await;
        for (words, distinct) in [("-K", 9), ("-rkcs 3", 3)] {
            let words = format!("-t fanout -e random -y 0 -C 9 -c 9 {words}");
            run(broker.uri(), &words).await.well();
            let messages = take(&broker, "random-keys").await;
            let keys: Vec<&str> = messages.iter().map(|m| m.routing_key.as_str()).collect();
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), distinct);
            assert!(keys.iter().all(|key| key.len() == 36));
            assert_eq!(keys.len(), 9);
            assert!(distinct == 9 || keys[..6] == keys[3..], "{keys:?}");
        }
    });
}

#[test]
fn consumer_arguments_are_passed_on() {
    within(seconds(30), async {
        let broker = shared();
        let wire = Wire::to(&broker);
        run(&wire.uri(), "-ca x-priority=7 -C 1 -D 1").await.well();
        let arguments = wire.all(|method| match method {
            Method::BasicConsume(consume) => Some(consume.arguments.to_owned().expect("a table")),
            _ => None,
        });
        assert_eq!(arguments, [FieldTable::new().with("x-priority", 7_i64)]);
    });
}

#[test]
fn connections_are_spread_over_several_addresses_in_turn() {
    within(seconds(30), async {
        let broker = shared();
        let (one, other) = (Wire::to(&broker), Wire::to(&broker));
        let words = format!(
            "-H {},{} -cal round-robin -x 4 -y 0 -u spread -ad false -C 5 -c 5",
            one.uri(),
            other.uri()
        );
        start_command(&words).end().await.well();
        assert_eq!((one.published().len(), other.published().len()), (10, 10));
        assert_eq!(ready(&broker, "spread").await, Some(20));
    });
}
