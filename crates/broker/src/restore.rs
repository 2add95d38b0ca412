//! After a restart: vhosts, users, parameters, policies, exchanges, queues and bindings as they were defined, queues
//! with the messages that the store has found.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ahash::{HashMap, HashMapExt};
use store::{DefinitionChange, Recovered, StreamId};

use crate::binding::{Binding, Destination, DestinationKey};
use crate::broker::Broker;
use crate::definitions::{self, BindingDefinition, Definitions, QueueDefinition};
use crate::vhost::VHost;

impl Broker {
    pub(crate) fn restore(&self, found: Definitions, recovered: &mut Recovered) {
        {
            let mut vhosts = self.vhosts.write();
            for (name, metadata) in found.vhosts {
                vhosts.insert(name.clone(), self.make_vhost(name, metadata));
            }
        }
        found
            .users
            .into_iter()
            .for_each(|user| self.users.insert(user));
        self.users
            .change_topic(|topic| *topic = found.topic_permissions);
        self.parameters
            .restore(found.parameters, found.global_parameters);
        // Before whatever they apply to.
        for (vhost, authority, policy) in found.policies {
            if let Some(vhost) = self.vhost(&vhost) {
                vhost.restore(|topology| {
                    topology.set_policies([(authority, policy)]);
                });
            }
        }
        for exchange in found.exchanges {
            if let Some(vhost) = self.vhost(&exchange.vhost) {
                let mut claim = |stream: Option<StreamId>| {
                    stream.map(|stream| recovered.claim(&self.store, stream, vhost.durability))
                };
                let (delayed, window) = (claim(exchange.delayed), claim(exchange.window));
                let (name, options) = (exchange.name, exchange.options);
                let exchange = vhost.remake_exchange(name, options, delayed, window);
                vhost.restore(|topology| topology.insert_exchange(exchange));
            }
        }
        // Those whose last consumer went with the process go as well.
        let (gone, queues): (Vec<_>, Vec<_>) = found
            .queues
            .into_iter()
            .partition(|queue| queue.options.auto_delete && queue.consumed);
        for queue in queues {
            self.restore_queue(queue, recovered);
        }
        let mut bindings: HashMap<Arc<str>, Vec<BindingDefinition>> = HashMap::new();
        for binding in found.bindings {
            bindings
                .entry(binding.vhost.clone())
                .or_default()
                .push(binding);
        }
        for (vhost, bindings) in bindings {
            if let Some(vhost) = self.vhost(&vhost) {
                vhost.restore_bindings(bindings);
            }
        }
        self.forget_queues(&gone);
        // What a policy asked for may have been cut short by the end of the process.
        let vhosts: Vec<Arc<VHost>> = self.vhosts.read().values().cloned().collect();
        vhosts.iter().for_each(|vhost| vhost.change(|_| ()));
    }

    fn restore_queue(&self, queue: QueueDefinition, recovered: &mut Recovered) {
        let Some(vhost) = self.vhost(&queue.vhost) else {
            return;
        };
        let durability = queue.options.durability().unwrap_or(vhost.durability);
        let streams = queue.streams();
        let recovered = streams.map(|stream| recovered.claim(&self.store, stream, durability));
        let recovered = recovered.collect();
        let remade = vhost.remake_queue(queue.name, queue.options, recovered);
        remade.consumed.store(queue.consumed, Ordering::Relaxed);
        vhost.restore(|topology| topology.insert_queue(remade));
    }

    fn forget_queues(&self, gone: &[QueueDefinition]) {
        let mut change = DefinitionChange::default();
        for queue in gone {
            change.undefine(&definitions::queue_key(&queue.vhost, &queue.name));
            queue.streams().for_each(|stream| change.forget(stream));
        }
        self.store.define(change);
    }
}

impl VHost {
    /// Bindings both of whose ends are there; others belong to queues that have gone.
    fn restore_bindings(&self, bindings: Vec<BindingDefinition>) {
        let mut orphans = DefinitionChange::default();
        self.restore(|topology| {
            for found in bindings {
                let destination = match &found.destination {
                    DestinationKey::Queue(name) => {
                        topology.queues.get(name).cloned().map(Destination::Queue)
                    }
                    DestinationKey::Exchange(name) => topology
                        .exchanges
                        .contains_key(name)
                        .then(|| Destination::Exchange(name.clone())),
                };
                match destination {
                    Some(destination) if topology.exchanges.contains_key(&found.source) => {
                        topology.bind(Binding {
                            source: found.source,
                            destination,
                            routing_key: found.routing_key,
                            arguments: found.arguments,
                        });
                    }
                    _ => orphans.undefine(&found.key()),
                }
            }
        });
        self.store.define(orphans);
    }
}
