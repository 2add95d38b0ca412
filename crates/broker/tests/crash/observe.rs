//! Reading everything out of what a crash has left: on a copy, since that changes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use amqp::FieldTable;
use broker::{ConsumerHandle, ConsumerOptions, Outgoing, Publish, Publisher};
use store::{Disk, check};
use testkit::{FaultyDisk, Survival};

use crate::durable::{Contents, definition_of, routes};
use crate::model::{Model, Observed};
use crate::universe::{EXCHANGES, Name, QUEUES, id, queue_names};
use crate::world::{DIR, World};

/// Looks at what a broker finds on that disk. `by_consumer`: messages are consumed, not fetched.
pub fn observe(disk: &FaultyDisk, by_consumer: bool) -> Observed {
    let disk = disk.restart(Survival::Everything);
    check_directory(&disk);
    let world = World::open(&disk, Model::default());
    let world = world.unwrap_or_else(|failed| panic!("cannot start again: {}", failed.1));
    let mut observed = Observed {
        contents: definitions(&world),
        ..Observed::default()
    };
    for kind in &QUEUES {
        let Ok(queue) = world.session.queue(kind.name) else {
            continue;
        };
        assert!(kind.durable, "{:?} should have ended", kind.name);
        let counts = queue.counts();
        assert_eq!(
            (counts.unacked, counts.consumers),
            (0, 0),
            "of {:?}",
            kind.name
        );
        let found = match by_consumer {
            true => consume_all(&world, kind.name, counts.ready),
            false => get_all(&world, kind.name),
        };
        assert_eq!(
            found.len(),
            counts.ready,
            "{:?} has not what it counts",
            kind.name
        );
        assert_eq!(queue.counts().ready, 0, "of {:?}", kind.name);
        let (ids, redelivered) = found.into_iter().unzip();
        observed.contents.queues.insert(kind.name, ids);
        observed.redelivered.insert(kind.name, redelivered);
    }
    assert_eq!(world.store.failure(), None);
    observed
}

/// `leveret check` must find nothing wrong either.
fn check_directory(disk: &FaultyDisk) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    match check::check(&disk, Path::new(DIR)) {
        Ok(report) => assert!(report.is_sound(), "{report:?}"),
        // Nothing was ever kept.
        Err(store::Error::NoManifest { .. }) => {}
        Err(error) => panic!("cannot check: {error}"),
    }
}

fn definitions(world: &World) -> Contents {
    let defined = world.broker.store.definitions();
    let exists = |name: Name| world.session.check_exchange(name).is_ok();
    let mut publisher = Publisher::default();
    Contents {
        queues: BTreeMap::new(),
        exchanges: EXCHANGES
            .iter()
            .map(|sort| sort.name)
            .filter(|name| exists(name))
            .collect(),
        routes: routes(|exchange, key| {
            let publish = Publish {
                exchange: exchange.as_bytes(),
                routing_key: key.as_bytes(),
                properties: &amqp::PropertySummary::default(),
                all_properties: amqp::Properties::default(),
            };
            let route = publisher.route(&world.session, &publish).ok()?.route;
            Some(queue_names(route.queues.iter().map(|queue| &*queue.name)))
        }),
        definitions: defined
            .keys()
            .filter_map(|key| definition_of(key))
            .collect(),
    }
}

fn get_all(world: &World, name: Name) -> Vec<(u64, bool)> {
    let get = || {
        world
            .session
            .get(name, true)
            .unwrap_or_else(|error| panic!("{error}"))
            .1
    };
    let all = std::iter::from_fn(get);
    all.map(|got| (id(&got.message), got.redelivered)).collect()
}

fn consume_all(world: &World, name: Name, count: usize) -> Vec<(u64, bool)> {
    let options = ConsumerOptions {
        no_ack: true,
        exclusive: false,
        prefetch: 0,
        channel: world.channel.clone(),
        outbox: world.outbox.clone(),
        handle: ConsumerHandle(0),
        priority: 0,
        timeout: None,
        stream: None,
    };
    let consuming = world.session.consume(name, options, &FieldTable::new());
    let (queue, consumer) = consuming.unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    for _ in 0..10 + count {
        queue.resume(consumer);
        let (mut items, mut stalled) = (Vec::new(), Vec::new());
        world.outbox.drain(&mut items, &mut stalled);
        found.extend(items.into_iter().filter_map(|item| match item {
            Outgoing::Delivery(one) => Some((id(&one.message), one.redelivered)),
            Outgoing::Cancelled(_) | Outgoing::TimedOut(..) | Outgoing::Rebalance(_) => None,
        }));
        world.store.run_once();
    }
    found
}
