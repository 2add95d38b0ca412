//! A broker in this process, driven as the AMQP server drives it, and what the model says of it.
//!
//! Each action is done and told to the model, and whatever it leads to is compared at once: what
//! is delivered, in which order, how many are left. What only a restart shows the model compares
//! then.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use broker::access::Login;
use broker::{
    Broker, ChannelPrefetch, ConsumerHandle, ConsumerId, Delivery, LeaseId, LogPositions, Origin,
    Outbox, Outcome, Outgoing, Publish, Publisher, Queue, Route, Session, Settings,
};
use store::{Budget, Store};
use testkit::FaultyDisk;

use crate::durable::{Change, Record};
use crate::live::Live;
use crate::model::Model;
use crate::topology::Topology;
use crate::universe::{Name, id, queue_kind, queue_names};

pub const DIR: &str = "/data";

/// So little that everything happens within a few hundred steps.
pub const BUDGET: Budget = Budget {
    queue: 8 * 1024,
    node: 48 * 1024,
    log: 256 * 1024,
    log_file: 64 * 1024,
    epoch: 16 * 1024,
    segment: 48 * 1024,
};

pub struct World {
    pub disk: FaultyDisk,
    pub store: Arc<Store>,
    pub broker: Arc<Broker>,
    pub session: Session,
    pub publisher: Publisher,
    pub outbox: Arc<Outbox>,
    pub channel: Arc<ChannelPrefetch>,
    pub consumers: BTreeMap<u32, Consumer>,
    pub next_handle: u32,
    /// Deliveries that have not been sent to the client yet.
    pub inbox: VecDeque<Arrived>,
    /// Deliveries that the client has.
    pub held: Vec<Held>,
    pub live: Live,
    /// Exchanges and bindings as the log has them.
    defined: Topology,
    pub model: Model,
}

pub struct Consumer {
    pub queue: Arc<Queue>,
    pub id: ConsumerId,
    pub name: Name,
    pub number: u32,
}

pub struct Arrived {
    pub delivery: Delivery,
    pub queue: Arc<Queue>,
    pub name: Name,
    pub number: u32,
    pub place: u64,
}

pub struct Held {
    pub queue: Arc<Queue>,
    pub name: Name,
    pub number: u32,
    pub place: u64,
    pub lease: LeaseId,
    /// It came from a consumer, so it counts against the channel's prefetch.
    pub counted: bool,
}

/// The first user's, in the first vhost.
pub fn session(broker: &Broker) -> Session {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let Login::Accepted(user) = broker.login("guest", b"guest", here) else {
        panic!("the first user is not known");
    };
    let connection = broker.connections.next_id();
    let session = broker.open_session(&user, "/", connection);
    session.unwrap_or_else(|error| panic!("cannot open the vhost: {error}"))
}

impl World {
    /// Starts a broker; gives the model back where the disk does not let it.
    pub fn open(disk: &FaultyDisk, mut model: Model) -> Result<World, Box<(Model, String)>> {
        let opened = Store::open(Arc::new(disk.clone()), Path::new(DIR), BUDGET, false);
        let (store, recovered) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(Box::new((model, error.to_string()))),
        };
        model.opened();
        let broker = Broker::new(Settings::default(), store.clone(), recovered);
        let broker = broker.unwrap_or_else(|error| panic!("cannot start: {error}"));
        Ok(World {
            disk: disk.clone(),
            store,
            session: session(&broker),
            broker,
            publisher: Publisher::default(),
            outbox: Arc::default(),
            channel: Arc::default(),
            consumers: BTreeMap::new(),
            next_handle: 0,
            inbox: VecDeque::new(),
            held: Vec::new(),
            live: Live::restored(&model.durable),
            defined: model.durable.topology.clone(),
            model,
        })
    }

    /// The machine has crashed, or nothing more is kept.
    pub fn is_over(&self) -> bool {
        self.disk.has_crashed() || self.store.failure().is_some()
    }

    /// The process is killed: nothing that is still in its memory is written.
    pub fn kill(self) -> Model {
        self.disk.crash_now();
        self.model
    }

    /// An orderly stop: everything that was done must be there again.
    pub fn close(mut self) -> Model {
        self.store.close();
        if !self.is_over() {
            self.model.all_settled();
        }
        self.model
    }

    /// The store's threads get their turn.
    pub fn run_once(&mut self) {
        self.store.run_once();
        if !self.is_over() && !self.store.disk_full() {
            self.model.all_written();
        }
        self.model.look(&self.store);
        self.collect();
    }

    /// A route, which must be the one that the model sees.
    pub fn route(&mut self, exchange: Name, key: Name) -> Arc<Route> {
        let publish = Publish {
            exchange: exchange.as_bytes(),
            routing_key: key.as_bytes(),
            properties: &amqp::PropertySummary::default(),
            all_properties: amqp::Properties::default(),
        };
        let outcome = self.publisher.route(&self.session, &publish);
        let route = outcome
            .unwrap_or_else(|error| panic!("no route: {error}"))
            .route;
        let expected = match exchange {
            "" if self.live.queues.contains_key(key) => [key].into(),
            "" => [].into(),
            _ => self.live.topology.route(exchange, key),
        };
        let found = queue_names(route.queues.iter().map(|queue| &*queue.name));
        assert_eq!(found, expected, "{exchange:?} with {key:?} leads elsewhere");
        route
    }

    /// The log was told that messages of a queue are gone.
    pub fn log_removed(&mut self, queue: Name, removed: Vec<u64>) {
        if !removed.is_empty() && queue_kind(queue).durable {
            self.model.log(Record::Change(vec![Change {
                queue,
                removed,
                added: Vec::new(),
            }]));
        }
    }

    /// Definitions have changed; they are confirmed when the log has them.
    pub fn defined(
        &mut self,
        new: Option<(Name, u32)>,
        gone: Option<Name>,
        consumed: Option<Name>,
    ) {
        let durable = |name: &Name| queue_kind(name).durable;
        let new = new.filter(|(name, _)| durable(name));
        let (gone, consumed) = (gone.filter(durable), consumed.filter(durable));
        let topology = self.live.topology.durable();
        if new.is_none() && gone.is_none() && consumed.is_none() && topology == self.defined {
            return;
        }
        self.defined = topology.clone();
        self.model.log(Record::Define {
            new,
            gone,
            consumed,
            topology,
        });
        let positions = LogPositions::definitions(self.session.vhost.definitions_logged());
        self.model.wait(positions, self.model.appended());
    }

    /// Takes in what queues have handed over, and lets consumers go on that had no room.
    pub fn collect(&mut self) {
        while let Some(stalled) = self.drain() {
            self.resume(stalled.into_iter());
        }
        self.log_delivered();
    }

    /// Takes in what is in the outbox; gives the consumers that found no room there, or `None` if
    /// there was nothing.
    pub fn drain(&mut self) -> Option<Vec<u32>> {
        let (mut items, mut stalled) = (Vec::new(), Vec::new());
        self.outbox.drain(&mut items, &mut stalled);
        let any = !items.is_empty() || !stalled.is_empty();
        for item in items {
            match item {
                Outgoing::Delivery(delivery) => self.arrived(delivery),
                Outgoing::Cancelled(handle) => drop(self.consumers.remove(&handle.0)),
                Outgoing::TimedOut(..) | Outgoing::Rebalance(_) => {}
            }
        }
        any.then(|| stalled.into_iter().map(|handle| handle.0).collect())
    }

    fn arrived(&mut self, delivery: Delivery) {
        let consumer = &self.consumers[&delivery.consumer.0];
        let (name, number) = (consumer.name, consumer.number);
        let from = consumer.queue.clone();
        let place = self.take_first(name, &delivery.message, delivery.redelivered);
        let queue = self
            .live
            .queues
            .get_mut(name)
            .expect("it has just delivered");
        match delivery.origin {
            Origin::Leased(_) | Origin::Read { .. } | Origin::SettledWhenSent(_) => {
                queue.delivered = queue.delivered.max(place + 1);
            }
            Origin::Taken(_) => {
                assert!(!queue.kind.durable, "{name:?} forgets what it delivers");
                queue.entries.get_mut(&place).expect("just taken").out = false;
                queue.entries.remove(&place);
            }
        }
        let queue = from;
        self.inbox.push_back(Arrived {
            delivery,
            queue,
            name,
            number,
            place,
        });
    }

    /// A queue has given out a message: it must be the first.
    pub fn take_first(&mut self, name: Name, message: &store::Message, redelivered: bool) -> u64 {
        let id = id(message);
        let queue = self.live.queues.get_mut(name);
        let queue = queue.unwrap_or_else(|| panic!("{id} from {name:?}, which is gone"));
        let first = queue.first_ready();
        let place = first.unwrap_or_else(|| panic!("{id} from {name:?}, which is empty"));
        let entry = queue.entries.get_mut(&place).expect("just found");
        assert_eq!(
            (id, redelivered),
            (entry.id, entry.redelivered),
            "from {name:?}: what comes is not what comes next"
        );
        entry.out = true;
        place
    }

    pub fn log_delivered(&mut self) {
        for (name, queue) in &mut self.live.queues {
            if queue.kind.durable && queue.delivered > queue.delivered_logged {
                queue.delivered_logged = queue.delivered;
                self.model.log(Record::Delivered {
                    queue: name,
                    up_to: queue.delivered,
                });
            }
        }
    }

    pub fn resume(&self, handles: impl Iterator<Item = u32>) {
        for consumer in handles.filter_map(|handle| self.consumers.get(&handle)) {
            consumer.queue.resume(consumer.id);
        }
    }

    /// The client gets the oldest deliveries.
    pub fn send(&mut self, count: usize) {
        for _ in 0..count {
            let Some(arrived) = self.inbox.pop_front() else {
                return;
            };
            let Arrived {
                delivery,
                queue,
                name,
                number,
                place,
            } = arrived;
            match delivery.origin {
                Origin::Leased(lease) | Origin::Read { lease, .. } => self.held.push(Held {
                    queue,
                    name,
                    number,
                    place,
                    lease,
                    counted: true,
                }),
                Origin::SettledWhenSent(lease) => {
                    let live = self.live.queue(name, number);
                    let removed = live.and_then(|queue| queue.remove(place));
                    queue.settle(&[lease], Outcome::Acknowledge);
                    self.log_removed(name, removed.into_iter().collect());
                    self.collect();
                }
                Origin::Taken(_) => {}
            }
        }
    }

    /// A consumer ends; what was on its way goes back.
    pub fn cancel(&mut self, handle: u32) {
        let Some(consumer) = self.consumers.remove(&handle) else {
            return;
        };
        let Consumer {
            queue,
            id,
            name,
            number,
            ..
        } = consumer;
        // It takes back what it finds on its way; here that is done below, where it can be followed.
        let nowhere = Outbox::default();
        let handles = [(id, ConsumerHandle(handle))];
        self.session.end_consumers(&queue, &handles, &nowhere, &[]);
        let live = self.live.queue(name, number);
        let last = live.is_some_and(|live| {
            live.consumers -= 1;
            live.consumers == 0 && live.kind.auto_delete
        });
        if last {
            self.live.remove_queue(name);
            self.defined(None, Some(name), None);
        }
        // What was free for others now they have got before that is back.
        self.collect();
        let handle = ConsumerHandle(handle);
        let (unsent, kept): (Vec<Arrived>, Vec<Arrived>) = std::mem::take(&mut self.inbox)
            .into_iter()
            .partition(|arrived| arrived.delivery.consumer == handle);
        self.inbox = kept.into();
        for arrived in &unsent {
            self.returned(arrived);
        }
        let leased = |arrived: &&Arrived| arrived.delivery.origin.to_settle().is_some();
        let leased = unsent.iter().filter(leased).count();
        queue.take_back(unsent.into_iter().map(|arrived| arrived.delivery));
        self.release(leased);
        self.collect();
    }

    /// So many deliveries no longer count against the channel's prefetch.
    pub fn release(&self, count: usize) {
        if count > 0 && self.channel.release(count as u32) {
            self.resume(self.consumers.keys().copied());
        }
    }

    fn returned(&mut self, arrived: &Arrived) {
        let Some(live) = self.live.queue(arrived.name, arrived.number) else {
            return;
        };
        let message = &arrived.delivery.message;
        let entry = live.entries.entry(arrived.place);
        let entry = entry.or_insert_with(|| crate::live::Entry {
            id: id(message),
            persistent: message.is_persistent(),
            redelivered: arrived.delivery.redelivered,
            out: true,
        });
        entry.out = false;
    }

    /// Says what happens, to whoever looks for a fault.
    pub fn trace(&self, step: usize) {
        if std::env::var_os("LEVERET_TRACE").is_none() {
            return;
        }
        let (operation, work) = (self.disk.operations(), self.store.work());
        eprintln!("at operation {operation}, {work:?}:");
        for (name, queue) in &self.live.queues {
            let (ready, out, consumers) = (queue.ready(), queue.out(), queue.consumers);
            eprintln!("  {name:?} has {ready} ready, {out} out, {consumers} consumers");
        }
        eprintln!("  {:?}\nnow step {step}", self.live.topology);
    }

    /// Numbers of messages must be those of the model.
    pub fn check_counts(&self) {
        for (name, live) in &self.live.queues {
            let queue = self.session.queue(name);
            let counts = queue.unwrap_or_else(|error| panic!("{error}")).counts();
            let expected = (live.ready(), live.out(), live.consumers);
            assert_eq!(
                (counts.ready, counts.unacked, counts.consumers),
                expected,
                "in {name:?}"
            );
        }
    }
}
