//! Exchanges: one file per type, each an index from bindings to destinations.
//!
//! Exchanges live in the topology and are guarded by its lock.

mod consistent_hash;
mod declare;
mod deduplication;
mod delayed_message;
mod direct;
mod fanout;
mod hash;
mod headers;
mod modulus_hash;
mod random;
mod recent_history;
mod topic;

use std::fmt;
use std::sync::Arc;

use ahash::{HashMap, HashMapExt};
use amqp::{FieldTable, Properties, Table};
use store::StreamId;

use crate::binding::{Binding, BindingKey, Destination};
use crate::policy::Applied;
use crate::queue::Queue;
use crate::sharding::Sharding;
pub(crate) use deduplication::ExchangeWindow;
use delayed_message::DelayedMessage;
pub(crate) use modulus_hash::position as spread_position;

pub use declare::ExchangeOptions;
pub(crate) use recent_history::{History, Passage, Replay};

/// Receives destinations; the same one may come several times.
pub(crate) type Visit<'v, 'r> = &'v mut dyn FnMut(&'r Destination);

/// What decides where a message goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'m> {
    /// Its routing keys: its own, and those of CC and BCC. At least one.
    pub keys: &'m [&'m [u8]],
    /// Its headers.
    pub headers: Option<Table<'m>>,
    /// All its properties.
    pub properties: Properties<'m>,
}

/// How one exchange type finds destinations.
trait Router: Send + Sync {
    /// Adds a binding that is not there yet.
    fn add(&mut self, binding: &Arc<Binding>);
    /// Removes a binding that is there.
    fn remove(&mut self, binding: &Arc<Binding>);
    /// Visits every destination that a message goes to.
    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>);
    /// All destinations in order, if [`spread_position`] tells which one of them a message goes to.
    fn spreads_to(&self) -> Option<Vec<&Destination>> {
        None
    }
}

/// The type of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeKind {
    /// Routing key equal to the binding's.
    Direct,
    /// Everything to everywhere.
    Fanout,
    /// Words with `*` and `#`.
    Topic,
    /// By message headers.
    Headers,
    /// To one, by a hash and weights.
    ConsistentHash,
    /// To one, by the routing key's hash modulo their number.
    ModulusHash,
    /// To any one.
    Random,
    /// To any one on this node.
    LocalRandom,
    /// Everything to everywhere; new destinations get the last messages first.
    RecentHistory,
    /// As another type, after a delay.
    DelayedMessage,
}

/// All types by name.
const KINDS: [(&str, ExchangeKind); 10] = [
    ("direct", ExchangeKind::Direct),
    ("fanout", ExchangeKind::Fanout),
    ("topic", ExchangeKind::Topic),
    ("headers", ExchangeKind::Headers),
    ("x-consistent-hash", ExchangeKind::ConsistentHash),
    ("x-modulus-hash", ExchangeKind::ModulusHash),
    ("x-random", ExchangeKind::Random),
    ("x-local-random", ExchangeKind::LocalRandom),
    ("x-recent-history", ExchangeKind::RecentHistory),
    ("x-delayed-message", ExchangeKind::DelayedMessage),
];

impl ExchangeKind {
    /// The type of that name.
    pub fn from_name(name: &str) -> Option<ExchangeKind> {
        let mut kinds = KINDS.iter();
        kinds
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind)
    }

    /// Exchange and routing key alone decide.
    fn routes_by_key(self) -> bool {
        matches!(
            self,
            ExchangeKind::Direct
                | ExchangeKind::Fanout
                | ExchangeKind::Topic
                | ExchangeKind::RecentHistory
        )
    }

    fn router(self, arguments: &FieldTable) -> Box<dyn Router> {
        match delayed_message::routed_as(self, arguments) {
            ExchangeKind::Direct | ExchangeKind::DelayedMessage => Box::<direct::Direct>::default(),
            ExchangeKind::Fanout | ExchangeKind::RecentHistory => Box::<fanout::Fanout>::default(),
            ExchangeKind::Topic => Box::<topic::Topic>::default(),
            ExchangeKind::Headers => Box::<headers::Headers>::default(),
            ExchangeKind::ConsistentHash => {
                Box::new(consistent_hash::ConsistentHash::new(arguments))
            }
            ExchangeKind::ModulusHash => Box::<modulus_hash::ModulusHash>::default(),
            ExchangeKind::Random | ExchangeKind::LocalRandom => Box::<random::Random>::default(),
        }
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| kind == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// What an exchange keeps besides its bindings, each in a stream of its own in the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Belongings {
    /// Where messages wait that are to be delayed.
    pub delayed: Option<Arc<Queue>>,
    /// What has been published lately, if that is not to be published again.
    pub window: Option<Arc<ExchangeWindow>>,
}

/// What goes with an exchange, once the log was told.
impl Belongings {
    /// The streams of those that outlast a restart.
    pub fn logged_streams(&self) -> Vec<StreamId> {
        let delayed = self.delayed.as_ref().filter(|queue| queue.logged);
        let window = self.window.as_ref().filter(|window| window.logged);
        let streams = delayed.into_iter().flat_map(|queue| queue.streams());
        streams.chain(window.map(|window| window.stream)).collect()
    }

    /// Nothing of it is needed any more. Where no lock is held.
    pub fn release(self) {
        if let Some(queue) = self.delayed {
            // Unconditional, so it cannot be refused.
            drop(queue.close(false, false));
            queue.release_store();
        }
        if let Some(window) = self.window {
            window.release_store();
        }
    }
}

/// An exchange and the bindings that start from it.
pub(crate) struct Exchange {
    pub name: Arc<str>,
    pub kind: ExchangeKind,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub arguments: FieldTable,
    /// Where messages go that match no binding: the argument's exchange, else the policy's.
    pub alternate: Option<Arc<str>>,
    /// The policies that apply.
    pub applied: Applied,
    /// What it keeps.
    pub belongings: Belongings,
    /// The last messages, which new destinations get first.
    pub history: Option<Arc<History>>,
    /// The policy that its shards were made and bound for.
    pub sharded: Option<Sharding>,
    /// With whether they survive a restart.
    bindings: HashMap<BindingKey, (Arc<Binding>, bool)>,
    router: Box<dyn Router>,
}

impl Exchange {
    /// With what the options ask for.
    pub fn new(name: Arc<str>, options: ExchangeOptions, belongings: Belongings) -> Self {
        let router = options.kind.router(&options.arguments);
        let router = match belongings.delayed.clone() {
            Some(waiting) => Box::new(DelayedMessage::new(router, waiting)),
            None => router,
        };
        Exchange {
            name,
            kind: options.kind,
            durable: options.durable,
            auto_delete: options.auto_delete,
            internal: options.internal,
            alternate: declare::alternate(&options.arguments),
            history: recent_history::history(options.kind, &options.arguments),
            applied: Applied::default(),
            bindings: HashMap::new(),
            router,
            belongings,
            sharded: None,
            arguments: options.arguments,
        }
    }

    /// Other policies apply from now on.
    pub fn apply(&mut self, applied: Applied) {
        let declared = declare::alternate(&self.arguments);
        let from_policy = || Some(applied.get(declare::ALTERNATE_EXCHANGE)?.as_str()?.into());
        self.alternate = declared.or_else(from_policy);
        self.applied = applied;
    }

    /// True if its policies ask for other shards than it has.
    pub fn is_to_be_resharded(&self) -> bool {
        Sharding::of(&self.applied) != self.sharded
    }

    /// All its bindings, in no order.
    pub fn bindings(&self) -> impl Iterator<Item = &Arc<Binding>> {
        self.bindings.values().map(|(binding, _)| binding)
    }

    /// Adds a binding; false if the same one is there already. `durable`: it survives a restart.
    pub fn bind(&mut self, key: BindingKey, binding: Binding, durable: bool) -> bool {
        if self.bindings.contains_key(&key) {
            return false;
        }
        let binding = Arc::new(binding);
        self.router.add(&binding);
        self.bindings.insert(key, (binding, durable));
        true
    }

    /// Removes a binding; `None` if it is not there, or whether it would have survived a restart.
    pub fn unbind(&mut self, key: &BindingKey) -> Option<bool> {
        let (binding, durable) = self.bindings.remove(key)?;
        self.router.remove(&binding);
        Some(durable)
    }

    /// Exchange and routing key alone decide where a message goes.
    pub fn routes_by_key(&self) -> bool {
        self.kind.routes_by_key() && self.belongings.delayed.is_none()
    }

    /// All destinations in order, if [`spread_position`] tells which one of them a message goes to.
    pub fn spreads_to(&self) -> Option<Vec<&Destination>> {
        self.router.spreads_to()
    }

    pub fn has_bindings(&self) -> bool {
        !self.bindings.is_empty()
    }

    /// Takes all bindings out, for an exchange that goes; with whether they are durable.
    pub fn take_bindings(&mut self) -> Vec<(BindingKey, bool)> {
        self.router = self.kind.router(&self.arguments);
        let bindings = self.bindings.drain();
        bindings.map(|(key, (_, durable))| (key, durable)).collect()
    }

    pub fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        self.router.route(message, visit);
    }
}
